"""A course of one toy lesson, number 97, in a folder of its own: three tasks, so that the engine is tested apart from real chapters.

The kernel that runs a toy notebook imports this file too, from the folder of the notebook.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attn_course import numbers
from attn_course.tasks import Case, Task, Wrong, registry


def _task(name: str, title: str, entry: str, answer: Any, wrong: Iterable[Any], points: int) -> Task:
    names = ["forgot the factor", "lost the sign", "added one"]
    known = [Wrong(name, function, f"hint: you {name}") for name, function in zip(names, wrong, strict=True)]
    asked = {"kind": "write", "equation": None, "points": points, "difficulty": 1, "minutes": 1, "trains": "the engine"}
    hints = [f"first nudge for {entry}", "second nudge", "third nudge"]

    def cases(rng: Any) -> list[Case]:
        return [Case("five numbers", x=rng.normal(size=5))]

    return Task(id=name, title=title, entry=entry, answer=answer, cases=cases, wrong=known, hints=hints, **asked)


TASKS = (
    _task("twice", "Twice", "twice", lambda x: 2 * x, [lambda x: x, lambda x: -2 * x, lambda x: 2 * x + 1], 2),
    _task("thrice", "Thrice", "thrice", lambda x: 3 * x, [lambda x: x, lambda x: -3 * x, lambda x: 3 * x + 1], 3),
    _task("four-times", "Four times", "four_times", lambda x: 4 * x, [lambda x: x, lambda x: -4 * x, lambda x: 4 * x + 1], 4),
)


NAMES = [*(task.id for task in TASKS), "five-times", "ten-times"]
OWN = {
    "labels": {},
    "tasks": {"another": {"of-another": "96.1"}, "toy": {name: f"97.{number}" for number, name in enumerate(NAMES, 1)}},
    "slugs": {"another": {"number": 96, "title": "Another"}, "toy": {"number": 97, "title": "Toy"}},
}
NUMBERS = {kind: {**known, **OWN[kind]} for kind, known in numbers.tables().items()}


def install(set_attribute: Callable[[Any, str, Any], None] = setattr) -> None:
    """Make the toy lesson the only one with tasks; a test passes `monkeypatch.setattr`."""
    set_attribute(registry, "lessons", lambda: ["toy"])
    for name in ("declared_tasks", "_lesson_tasks"):
        set_attribute(registry, name, lambda lesson: TASKS)
    set_attribute(numbers, "tables", lambda: NUMBERS)


RIGHT = {
    "twice": "def twice(x):\n    return 2 * x",
    "thrice": "def thrice(x):\n    return 3 * x",
    "four-times": "def four_times(x):\n    return 4 * x",
}
SETUP = "import numpy as np\nimport toy\nfrom attn_course import check\ntoy.install()"


def cell(source: str, cell_id: str, *, grade: bool | None = None) -> dict[str, Any]:
    """Return a code cell; `grade` True makes it a check cell of nbgrader, False an answer cell."""
    nbgrader = {"nbgrader": {"grade_id": cell_id, "grade": grade, "solution": not grade, "locked": grade}} if grade is not None else {}
    return {"cell_type": "code", "id": cell_id, "metadata": nbgrader, "source": source, "outputs": [], "execution_count": None}


def cells(answers: dict[str, str]) -> list[dict[str, Any]]:
    """Return the cells of the toy notebook with these answers; other tasks keep their stubs."""
    found = [cell(SETUP, "setup")]
    for task in TASKS:
        stub = f"def {task.entry}(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
        found.append(cell(answers.get(task.id, stub), task.id, grade=False))
        found.append(cell(f'check("{task.id}", {task.entry})', f"{task.id}-check", grade=True))
    return found


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": found}
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    return path


def make_course(root: Path) -> Path:
    """Write the toy course: exercises/, notebooks/, work/; and this file beside the notebooks of work/."""
    for folder in ("exercises", "notebooks", "work"):
        (root / folder).mkdir()
    (root / "notebooks" / "series.toml").write_text('[[lesson]]\nslug = "toy"\ntitle = "Toy"\nminutes = 1\n', encoding="utf-8")
    write(root / "exercises" / "ex_97_toy.ipynb", cells({}))
    (root / "work" / "toy.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    return root
