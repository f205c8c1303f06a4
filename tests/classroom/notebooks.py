"""Notebooks as learners hand them in: a chapter's exercise with answers put into it, and whatever else they did to it."""

import copy
import json
from pathlib import Path
from typing import Any

from attn_course.numbers import lesson_in
from attn_course.tasks.registry import declared_tasks
from tests.classroom.toy import cell

Notebook = dict[str, Any]


def load(root: Path, folder: str, lesson: str) -> Notebook:
    (path,) = (path for path in (root / folder).glob("*.ipynb") if lesson_in(path.name) == lesson)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def text_of(book: Notebook, cell_id: str) -> str:
    return "".join(next(cell["source"] for cell in book["cells"] if cell["id"] == cell_id))


def answered(root: Path, lesson: str, answers: dict[str, str], *, folder: str = "exercises") -> Notebook:
    """A chapter's exercise with these answers, by task id."""
    book = load(root, folder, lesson)
    for slug, text in {task.id: answers[task.id] for task in declared_tasks(lesson) if task.id in answers}.items():
        next(cell for cell in book["cells"] if cell["id"] == slug)["source"] = text
    return book


def with_cells(book: Notebook, *, first: str = "", after: dict[str, str] | None = None) -> Notebook:
    """A copy with a cell of the learner's own at the top, or behind the cells of these ids."""
    book = copy.deepcopy(book)
    cells = [cell(first, "own-first")] if first else []
    for old in book["cells"]:
        cells.append(old)
        if after and old["id"] in after:
            cells.append(cell(after[old["id"]], f"own-after-{old['id']}"))
    return {**book, "cells": cells}


def without(book: Notebook, *endings: str) -> Notebook:
    return {**book, "cells": [cell for cell in book["cells"] if not cell["id"].endswith(endings)]}


def unmarked(book: Notebook) -> Notebook:
    """A copy of its code without ids, tags and marks."""
    sources = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
    bare = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [bare | {"source": source} for source in sources]}


def save(book: Notebook, path: Path) -> Path:
    path.write_text(json.dumps(book), encoding="utf-8")
    return path
