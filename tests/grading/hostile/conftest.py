"""One grader with short limits for all hostile notebooks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attn_course.grading.grader import Grader
from attn_course.grading.sandbox import Limits


@pytest.fixture(scope="session")
def strict(exercises: Path) -> Iterator[Grader]:
    """A grader that waits 1 s for a cell or a call."""
    limits = Limits(address_space_bytes=2**28, cpu_s=30.0, wall_s=60.0)
    with Grader(seed=5, exercises=exercises, cell_s=1.0, call_s=1.0, limits=limits) as grader:
        yield grader
