"""The toy course as working directory, and the command line as a function."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from attn_course.cli import main
from tests.grading import toy


class Said(NamedTuple):
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def toy_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of a course with the toy chapter, the only chapter; it is also the working directory."""
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
