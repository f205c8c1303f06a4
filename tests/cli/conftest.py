"""The toy course as working directory, and the command line as a function."""

import hashlib
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from attn_course.cli import main
from tests.browser.toy_course import make_course
from tests.classroom import toy
from tests.classroom.class_tools import Room, Threads
from tests.classroom.stand_in import StandIn


class Said(NamedTuple):
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def toy_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of a course with the toy chapter, the only chapter; it is also the working directory."""
    importlib.import_module("attn_course.authoring.own")  # first imported while the toy stands in, it would know nothing else
    toy.install(monkeypatch.setattr)
    monkeypatch.chdir(toy.make_course(tmp_path))
    return tmp_path


@pytest.fixture
def attn_course(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command line in this process: `attn_course("check", "--json", "-")`."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def command(*words: str) -> Said:
        capsys.readouterr()
        code = main(words)
        return Said(code, *capsys.readouterr())

    return command


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two chapters, whose signatures are kept beside it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return make_course(tmp_path / "course")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    """A class in the working directory, which commands grade in this process, with the stand-in."""
    monkeypatch.setattr("attn_course.classroom.grader.Grader", StandIn)
    monkeypatch.setattr("attn_course.classroom.engines.Pool", lambda *_: Threads())
    monkeypatch.chdir(tmp_path)
    return Room(tmp_path)


def tree(folder: Path) -> dict[str, str]:
    """Return every file below a folder with the hash of what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        small = path.is_file() and path.stat().st_size < 2**20
        found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest() if small else "not read"
    return found


def refused(said: Said, folder: Path, before: dict[str, str], lines: int = 1) -> Sequence[str]:
    """Hold a command to what bad input deserves: exit code 2, one line, nothing written; return the lines."""
    assert said.code == 2
    assert said.out == ""
    complaints = said.err.splitlines()
    assert len(complaints) == lines
    assert all(line.startswith("attn-course: ") for line in complaints)
    assert tree(folder) == before
    return complaints
