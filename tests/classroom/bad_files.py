"""Files that are no notebook anyone can judge, each with the words that its complaint must hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.classroom import toy


def _json(data: Any) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps(data), encoding="utf-8")


def _notebook(**changes: Any) -> Callable[[Path], object]:
    return _json({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": toy.cells({})} | changes)


def _truncated(path: Path) -> None:
    toy.write(path, toy.cells({}))
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) // 2], encoding="utf-8")


def _huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(80 * 2**20)  # a hole: no disk is used


def _check(task: str) -> dict[str, Any]:
    return toy.cell(f'check("{task}", something)', "a-check")


NAMES = {"prose": "notes.md", "tasks of two chapters": "mine.ipynb", "another chapter without its name": "mine.ipynb"}
BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "no such file"),
    "directory": (lambda path: path.mkdir(), "is a directory"),
    "prose": (lambda path: path.write_text("# Notes\n", encoding="utf-8"), "is not a notebook: not valid JSON at line 1"),
    "truncated JSON": (_truncated, "is cut short or damaged"),
    "empty file": (lambda path: path.touch(), "is empty"),
    "JSON but a list": (_json([1, 2]), "is JSON, but not a notebook"),
    "JSON but no notebook": (_json({"cells": []}), "no nbformat number"),
    "cells that are no list": (_notebook(cells="all"), "no list of cells"),
    "nested too deep": (lambda path: path.write_text("[" * 200_000, encoding="utf-8"), "is not a notebook"),
    "a number of 5000 digits": (lambda path: path.write_text('{"nbformat": ' + "4" * 5000 + "}"), "absurd numbers"),
    "format 3": (_notebook(nbformat=3), "is in notebook format 3"),
    "format 5": (_notebook(nbformat=5), "is in notebook format 5"),
    "no cells": (_notebook(cells=[]), "without cells"),
    "a cell that is text": (_notebook(cells=["print(1)"]), "cell 1 is no code, markdown or raw cell"),
    "a cell whose source is a number": (
        _notebook(cells=[{"cell_type": "code", "source": 7, "metadata": {}}]),
        "cell 1 has no text",
    ),
    "binary": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff"), "byte 0 is not UTF-8"),
    "UTF-16": (lambda path: path.write_text('{"nbformat": 4}', encoding="utf-16"), "is not UTF-8"),
    "huge": (_huge, "is too large (80 MiB; at most 64)"),
    "in R": (_notebook(metadata={"kernelspec": {"language": "R"}}), "is a notebook in r"),
    "a lesson": (_notebook(cells=[toy.cell("print(1)", "hello")]), "holds no task of the course"),
    "tasks of two chapters": (_notebook(cells=[_check("of-another"), _check("twice")]), "tasks of chapters 96 and 97"),
    "another chapter": (
        _notebook(cells=[_check("of-another")]),
        "is named for the lesson toy but holds tasks of another",
    ),
    "another chapter without its name": (_notebook(cells=[_check("of-another")]), "holds tasks of chapter 96, for which"),
}


def spoil(folder: Path, name: str) -> tuple[Path, str]:
    """Make one of these files; return its path and the words."""
    make, words = BAD_FILES[name]
    path = folder / NAMES.get(name, "ex_97_toy.ipynb")
    make(path)
    return path, words
