"""The chapter table of the README says what is there, and its samples what is printed."""

import re
from pathlib import Path

import numpy as np
import pytest

from attn_course.authoring.course import units
from attn_course.tasks import all_tasks, check
from attn_course.tasks.notebook import CheckFailed

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


def test_the_samples_of_a_check_are_what_it_prints(capsys):
    def weights(scores, axis):
        unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return unnormalised / unnormalised.sum(axis=axis, keepdims=True)

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (failed,) = re.findall(r'```text\ncheck\("stable-softmax", my_softmax\)\n\n(.+?)\n```', text, re.DOTALL)
    (passed,) = re.findall(r"in plain text one line: `(.+?)`", text)
    with pytest.raises(CheckFailed) as raised:
        check("stable-softmax", lambda scores, axis: weights(scores, -1))
    begun, rest = failed.split(" ...\n")
    said = str(raised.value)
    assert said.startswith(begun)
    assert said.splitlines()[1:] == rest.splitlines()
    capsys.readouterr()
    check("stable-softmax", weights)
    assert capsys.readouterr().out == f"{passed}\n"
