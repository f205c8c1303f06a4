"""Graders for hostile notebooks."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attn_course.classroom.budget import Budget
from attn_course.classroom.grader import Grader
from tests.classroom.conftest import beside
from tests.classroom.sandbox_child import command_in

LIMITS = Budget(memory=256, cpu=30)


@pytest.fixture(scope="session")
def strict(grader: Grader, exercises: Path) -> Grader:
    return beside(grader, seed=5, exercises=exercises, limits=LIMITS)


@pytest.fixture
def hasty(strict: Grader, monkeypatch: pytest.MonkeyPatch) -> Grader:
    """The same, while it waits 1 s for a cell or a call: for what never ends, and does next to nothing before."""
    monkeypatch.setattr(strict, "_limits", replace(LIMITS, cell=1.0, call=1.0))
    return strict


@pytest.fixture(scope="module")
def contained(root: Path, exercises: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    """The same with a sandbox such as can be had in a container; everything else stays where it is."""
    python = tmp_path_factory.mktemp("contained") / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec {" ".join(command_in("a container"))} "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        grader = Grader(seed=5, exercises=exercises, limits=LIMITS)
    with grader:
        yield grader
