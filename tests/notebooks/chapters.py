"""The course's notebooks, read once: every chapter that has a source takes part in the tests of this folder."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from attn_course.authoring.course import units

ROOT = Path(__file__).resolve().parents[2]
UNITS = units(ROOT)
LESSONS = [unit.slug for unit in UNITS if unit.folder == "notebooks"]
EXECUTED = [unit.name for unit in UNITS if unit.is_executed]
ALL = [unit.name for unit in UNITS]

_DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_INLINE = re.compile(r"\$[^$\n]+(?:\n[^$\n]+)?\$")


@cache
def notebook(name: str) -> Any:
    """Return a built notebook, such as "notebooks/02_softmax.ipynb"."""
    return nbformat.read(ROOT / name, as_version=4)


def lesson(slug: str) -> Any:
    """Return a lesson by its slug."""
    return notebook(next(unit.name for unit in UNITS if unit.slug == slug and unit.folder == "notebooks"))


def markdown_cells(book: Any) -> list[Any]:
    """Return the cells of text."""
    return [cell for cell in book.cells if cell.cell_type == "markdown"]


def code_cells(book: Any) -> list[Any]:
    """Return the cells of code."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def prose_words(markdown: str) -> int:
    """Count the words a reader meets: an inline formula is one, a displayed one none, and what is folded away none."""
    return len(_INLINE.sub(" formula ", _DISPLAY.sub(" ", _FOLDED.sub(" ", markdown))).split())


def code_words(code: str) -> int:
    """Count the names, keywords and numbers of a piece of code."""
    return len(re.findall(r"\w+", code))


def code_lines(code: str) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for line in code.splitlines())
