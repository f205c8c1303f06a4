"""Answers that readers of the exercises wrote, who saw neither the known wrong answers nor the solutions, put to both engines.

A file holds those of a lesson, a cell each: `# %% task | kind | what it is`, and the code of the answer's cell. The kinds are right, wrong
and cheat: right by a way that the text forbids, for which a notebook's check may be too trusting and a class's marks may not.

What another answer tells is not here. A wrong answer goes if a known mistake of the task or another wrong one fails in no other case, in no
other array and by no more: whatever lets it pass lets that one pass before; and of answers that write to their input, about which no task
says anything of its own, some stand for all. A right one goes if one of tests/exercises/right_answers is as wide (float32 or float64) and
at least as far off, but for a few roundings of float64: whatever refuses it refuses that one before; but what answers import and the forms
they take (classes, closures) are all kept. Of cheats of a task by one forbidden thing one stands, and no way that the hostile attacks try.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

from attn_course.classroom.grader import Grader
from attn_course.tasks import get_task
from attn_course.tasks.gates import bench_of
from tests.classroom import notebooks
from tests.exercises.answers import notebook
from tests.notebooks.chapters import ROOT

HERE = Path(__file__).parent
HEAD = re.compile(r"^# %% ([a-z-]+) \| (right|wrong|cheat) \| (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What somebody handed in for a task."""

    lesson: str
    task: str
    kind: str
    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.task}: {self.name}"


def answers(path: Path) -> list[Answer]:
    """The answers of a file."""
    _, *parts = HEAD.split(path.read_text(encoding="utf-8"))
    return [Answer(path.stem, *head, code.strip()) for *head, code in zip(*[iter(parts)] * 4, strict=True)]


LESSONS = {path.stem: answers(path) for path in sorted(HERE.glob("*.py")) if path != Path(__file__)}


@cache
def given(lesson: str, task: str) -> tuple[str, ...]:
    """The code that an exercise gives before a task is answered; another task's may give its names another meaning."""
    cells = notebook(ROOT, "solutions", lesson).cells  # these hold retired tasks too
    return tuple(cell.source for cell in cells if cell.cell_type == "code" and cell.id in ("setup", f"{task}-given"))


@pytest.fixture(scope="module")
def grader():
    with Grader(seed=11, exercises=ROOT / "exercises") as grader:
        yield grader


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_notebook_says_what_is_right(lesson):
    wrong = []
    for answer in (answer for answer in LESSONS[lesson] if answer.kind != "cheat"):
        cells, names = [*given(answer.lesson, answer.task), answer.code], {}
        for cell in cells:
            exec(compile(cell, "cell", "exec"), names)
        task = get_task(answer.task)
        verdict = bench_of(task).assess(names[task.entry], cells, names)  # computes the right answers of a task once
        wrong += [] if verdict.passed == (answer.kind == "right") else [f"{answer}: {verdict.message}"]
    assert not wrong


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_class_is_graded_alike(lesson, grader, tmp_path):
    by_task = {}
    for answer in LESSONS[lesson]:
        by_task.setdefault(answer.task, []).append(answer)
    wrong = []
    for number, row in enumerate(zip_longest(*by_task.values())):  # a notebook answers each task once
        row = {answer.task: answer for answer in row if answer}
        folder = "solutions" if any(get_task(task).retired for task in row) else "exercises"
        book = notebooks.answered(ROOT, lesson, {task: answer.code for task, answer in row.items()}, folder=folder)
        graded = grader.grade(notebooks.save(book, tmp_path / f"{number}_{lesson}.ipynb"), student="ada", tasks=[*row])
        assert len(graded.verdicts) == len(row)
        wrong += [f"{row[verdict.task]}: {verdict.message}" for verdict in graded.verdicts
                  if verdict.passed != (row[verdict.task].kind == "right")]  # fmt: skip
    assert not wrong
