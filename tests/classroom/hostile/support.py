"""Grade a toy notebook, and the neighbour that is graded next."""

from pathlib import Path

from attn_course.classroom.grader import Graded, Grader
from tests.classroom import toy


def grade(grader: Grader, path: Path, answers: dict[str, str]) -> Graded:
    """Grade the toy notebook with these answers."""
    return grader.grade(toy.write(path, toy.cells(answers)), student="mallory")


def assert_neighbour_unharmed(grader: Grader, folder: Path) -> None:
    """The next notebook, by the same grader, gets what it deserves."""
    graded = grade(grader, folder / "97_neighbour.ipynb", toy.RIGHT)
    assert [verdict.points for verdict in graded.verdicts] == [2, 3, 4], graded
