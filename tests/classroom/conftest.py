"""The toy course, made anew for each test that asks for it; and one grader for all tests, since its start takes seconds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attn_course.classroom import grader as grader_module
from attn_course.classroom.grader import Grader
from tests.classroom import sandbox_child, toy
from tests.classroom.class_tools import Room


@pytest.fixture
def toy_course(tmp_path: Path, toy_chapter: None) -> Path:
    """Root of a course with the toy chapter, which is the only chapter while the test runs."""
    return toy.make_course(tmp_path)


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
    with Grader(seed=11, exercises=exercises) as grader:
        yield grader


@pytest.fixture
def stage() -> Iterator[sandbox_child.Stage]:
    with sandbox_child.a_stage() as made:
        yield made


def beside(grader: Grader, **options: Any) -> Grader:
    """Another grader, whose workers come from the fork server of this one, and which need not be closed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grader_module, "ForkServer", lambda: grader._workers)
        patch.setattr(grader_module, "probe", lambda: grader.probe)
        return Grader(**options)


@pytest.fixture
def toy_chapter(monkeypatch: pytest.MonkeyPatch) -> None:
    toy.install(monkeypatch.setattr)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture
def small_room(room: Room) -> Room:
    return room.with_students(4)
