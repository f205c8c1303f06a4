"""Make the source notebooks from which nbgrader generates an assignment."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attn_course.authoring.course import Unit, units
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import read_text
from attn_course.files import write_atomically

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"


def prepare(root: Path, out: Path, only: Iterable[str] | None = None) -> list[Path]:
    """Write source/<lesson>/<lesson>.ipynb for `nbgrader generate_assignment` and `nbgrader validate`.

    They are our solutions, but for two things that nbgrader would hand to students: explanations of solutions and tasks of the
    lesson are left out, and a function to repair stands, broken, before the repaired one, which is marked for removal.

    `out`: nbgrader's course folder; source/ is made below it. `only`: chapters, as `units` takes them; None means all. Returns
    what was written; files that held the same already are among them. Raises AuthoringError if a chapter has no built solution,
    or a notebook of another making is in the way.
    """
    exercises = [unit for unit in units(root, only) if unit.folder == "exercises"]
    texts = {out / "source" / unit.slug / f"{unit.slug}.ipynb": _source(unit) for unit in exercises}
    for path in texts:
        there = read_text(path)
        if there is not None and '"nbgrader_source"' not in there:
            raise AuthoringError(f"{path} is there already, and was not made by this command: move it away first")
    try:
        for path, text in texts.items():
            write_atomically(path, text)
    except OSError as error:
        raise AuthoringError(f"cannot write below {out}: {error.strerror or error}") from error
    return list(texts)


def _source(exercise: Unit) -> str:
    """The text of one source notebook."""
    from attn_course.tasks import all_tasks

    solution = _read(Unit(exercise.root, "solutions", exercise.lesson))
    asked = {cell["id"]: _text(cell) for cell in _read(exercise)["cells"]}
    repairs = {task.id for task in all_tasks(exercise.slug) if task.kind == "repair"}
    cells = [cell for cell in solution["cells"] if cell["id"] in asked]
    for cell in cells:
        if cell["id"] in repairs:
            right = "\n".join(line for line in _text(cell).splitlines() if line.strip() not in (_BEGIN, _END))
            cell["source"] = f"{asked[cell['id']].rstrip()}\n\n\n{_BEGIN}\n{right.strip()}\n{_END}"
    metadata = {name: value for name, value in solution["metadata"].items() if name != "attn_course"}
    made = {**solution, "cells": cells, "metadata": {**metadata, "attn_course": {"made": "nbgrader_source"}}}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _read(unit: Unit) -> dict[str, Any]:
    text = read_text(unit.path)
    if text is None:
        raise AuthoringError(f"{unit.name} is not there: attn-course notebooks build makes it")
    return dict(json.loads(text))


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
