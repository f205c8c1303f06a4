"""The chapter table of the README says what is there."""

import re
from pathlib import Path

from attn_course.tasks import all_tasks

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d\d) \| \[(.+?)\]\((notebooks/.+?)\) \| \[(\d+) tasks, (\d+) points\]\((exercises/.+?)\) \|", re.MULTILINE)


def test_every_lesson_has_a_row_with_its_title_tasks_and_points():
    wanted = []
    for source in sorted((ROOT / "notebooks" / "src").glob("*.py")):
        title = re.search(r"^# # \d\d ([^:\n]+)", source.read_text(encoding="utf-8"), re.MULTILINE).group(1)
        number = source.stem[:2]
        tasks = [task for task in all_tasks() if task.chapter == int(number)]
        points = sum(task.points for task in tasks)
        wanted.append((number, title, f"notebooks/{source.stem}.ipynb", str(len(tasks)), str(points), f"exercises/{source.stem}.ipynb"))
    assert ROW.findall((ROOT / "README.md").read_text(encoding="utf-8")) == wanted
