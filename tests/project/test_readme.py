"""The chapter table of the README says what is there."""

import re
from pathlib import Path

from attn_course.authoring.course import units
from attn_course.tasks import all_tasks

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d\d) \| \[(.+?)\]\((notebooks/.+?)\) \| \[(\d+) tasks, (\d+) points\]\((exercises/.+?)\) \|", re.MULTILINE)


def test_every_lesson_has_a_row_with_its_title_tasks_and_points():
    wanted = []
    for lesson, exercise in zip(
        *([unit for unit in units(ROOT) if unit.folder == folder] for folder in ("notebooks", "exercises")), strict=True
    ):
        title = re.search(r"^# # \S+ ([^:\n]+)", lesson.read_source(), re.MULTILINE).group(1)
        tasks = all_tasks(lesson.slug)
        points = sum(task.points for task in tasks)
        wanted.append((lesson.stem[:2], title, lesson.name, str(len(tasks)), str(points), exercise.name))
    assert ROW.findall((ROOT / "README.md").read_text(encoding="utf-8")) == wanted
