"""The course's notebooks, read once: every chapter that has a source takes part in the tests of this folder."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
LESSONS = [path.stem for path in sorted((ROOT / "notebooks" / "src").glob("*.py"))]
EXECUTED = [f"{folder}/{path.stem}.ipynb" for folder in ("notebooks", "solutions") for path in sorted((ROOT / folder / "src").glob("*.py"))]
ALL = [*EXECUTED, *(name.replace("solutions/", "exercises/") for name in EXECUTED if name.startswith("solutions/"))]

_DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_INLINE = re.compile(r"\$[^$\n]+(?:\n[^$\n]+)?\$")


@cache
def notebook(name: str) -> Any:
    """Return a built notebook, such as "notebooks/02_softmax.ipynb"."""
    return nbformat.read(ROOT / name, as_version=4)


def lesson(stem: str) -> Any:
    """Return a lesson by the stem of its source."""
    return notebook(f"notebooks/{stem}.ipynb")


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
