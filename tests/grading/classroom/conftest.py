"""A class in a folder of its own."""

from pathlib import Path

import pytest

from tests.grading.classroom.class_tools import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A class in which nobody has handed in anything."""
    return Room(tmp_path)


@pytest.fixture
def small_room(room: Room) -> Room:
    """A class of four."""
    return room.with_students(4)
