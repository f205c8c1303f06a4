"""Graders with short limits for hostile notebooks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attn_course.grading.grader import Grader
from attn_course.grading.sandbox import Limits
from tests.grading.sandbox_child import command_in


@pytest.fixture(scope="session")
def strict(exercises: Path) -> Iterator[Grader]:
    """A grader that waits 1 s for a cell or a call."""
    with _grader(exercises) as grader:
        yield grader


@pytest.fixture(scope="module")
def contained(root: Path, exercises: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    """The same with a sandbox such as can be had in a container; everything else stays where it is."""
    python = tmp_path_factory.mktemp("contained") / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec {" ".join(command_in("a container"))} "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        with _grader(exercises) as grader:
            yield grader


def _grader(exercises: Path) -> Grader:
    limits = Limits(address_space_bytes=2**28, cpu_s=30.0, wall_s=60.0)
    return Grader(seed=5, exercises=exercises, cell_s=1.0, call_s=1.0, limits=limits)
