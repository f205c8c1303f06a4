"""The toy course, made anew for each test that asks for it; and one grader for all tests, since its start takes seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attn_course.grading.grader import Grader
from tests.grading import toy


@pytest.fixture
def toy_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of a course with the toy chapter, which is the only chapter while the test runs."""
    toy.install(monkeypatch.setattr)
    return toy.make_course(tmp_path)


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class reports get no figures, which take most of the time of a small run."""
    monkeypatch.setattr("attn_course.grading.class_report._figures", lambda marked, shares: [])


@pytest.fixture(scope="session")
def exercises(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the exercises of every chapter and of the toy chapter."""
    folder = tmp_path_factory.mktemp("exercises")
    for path in (root / "exercises").glob("*.ipynb"):
        (folder / path.name).write_bytes(path.read_bytes())
    toy.write(folder / "ex_97_toy.ipynb", toy.cells({}))
    return folder


@pytest.fixture(scope="session")
def grader(exercises: Path) -> Iterator[Grader]:
    """A grader with a warm zygote."""
    with Grader(seed=11, exercises=exercises) as grader:
        yield grader


@pytest.fixture
def toy_chapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy chapter is the only one while the test runs."""
    toy.install(monkeypatch.setattr)
