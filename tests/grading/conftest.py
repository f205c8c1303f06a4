"""The toy course, made anew for each test that asks for it."""

from pathlib import Path

import pytest

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
