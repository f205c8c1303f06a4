"""Shared by all tests: shapes of the reference are checked while tests run, and errors of tests show the values."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import settings

from attn_course.grading.warm_kernels.owner import WarmKernels, warm_kernels_or_none

# Triton reads this when it is first imported, which any test may do: without a GPU, NumPy runs the kernels.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Before any test imports the room: from here on every call checks the shapes in its signature.
jaxtyping.install_import_hook("attn_course.reference", "beartype.beartype")

# Two busy cores make any deadline flaky; on CI the examples are the same in every run.
settings.register_profile("attn_course", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("attn_course")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the course."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmKernels | None]:
    """The process that kernels of this worker are forked from; None, with a word on stderr, where there can be none."""
    with warm_kernels_or_none() as process:
        yield process


@pytest.fixture
def no_shape_check() -> Iterator[None]:
    """Let a call reach the function's own error messages: the jaxtyping check is off for one test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
