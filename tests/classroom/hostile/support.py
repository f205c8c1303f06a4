"""Grade a toy notebook, and the neighbour that is graded next."""

import re
import textwrap
from pathlib import Path

from attn_course.classroom.grader import Graded, Grader
from tests.classroom import toy


def read(text: str) -> dict[str, tuple[str, str]]:
    """Read entries "name: words of the reason", each with its code indented below it; return code and words by name."""
    entries = (entry.partition("\n") for entry in re.split(r"\n(?=\S)", text.strip()))
    heads = ((head.partition(":"), code) for head, _, code in entries)
    return {name: (textwrap.dedent(code), reason.strip()) for (name, _, reason), code in heads}


def grade(grader: Grader, path: Path, answers: dict[str, str]) -> Graded:
    return grader.grade(toy.write(path, toy.cells(answers)), student="mallory")


def assert_neighbour_unharmed(grader: Grader, folder: Path) -> None:
    """The next notebook, by the same grader, gets what it deserves."""
    graded = grade(grader, folder / "97_neighbour.ipynb", toy.RIGHT)
    assert [verdict.points for verdict in graded.verdicts] == [2, 3, 4], graded
