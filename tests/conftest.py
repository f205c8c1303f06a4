"""Shared by all tests: shapes of the reference are checked while tests run, and errors of tests show the values."""

import gc
import importlib.util
import inspect
import os
import signal
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests import warm

# In a container Python often writes no bytecode; then every worker rewrites the asserts of 200 files in every run, for 12 s.
sys.dont_write_bytecode = False

# Searching all that collection makes for garbage would take a quarter of its time, in every worker; from its end on it is left alone.
gc.disable()


def pytest_collection_finish() -> None:
    """Search only what the tests themselves make, and not so often: formulas are trees of many small objects."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    if interpreter := sys.modules.get("triton.runtime.interpreter"):
        _look_once(interpreter)


def _look_once(interpreter: types.ModuleType) -> None:
    """Triton's interpreter looks for its built-in functions among all names at every call of a function in a kernel: here once."""
    names = cache(lambda place: [name for name, member in inspect.getmembers(place) if interpreter.tl.core.is_builtin(member)])

    def patch(place: Any, builder: Any, scope: Any) -> None:
        for name in names(place):
            if interpreter.tl.core.is_builtin(member := getattr(place, name)):
                interpreter._patch_attr(place, name, member, builder, scope)

    interpreter._patch_builtin = patch


# A job in the background ignores Ctrl-C, and one behind nohup a lost terminal; what a test starts would inherit that, unlike a handler.
for number in (signal.SIGINT, signal.SIGHUP) if hasattr(signal, "SIGHUP") else ():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

# Triton reads this when it is first imported, which any test may do: without a GPU, NumPy runs the kernels.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Lessons run on stored answers here, in seconds; tests/language has the real model, one process at a time.
MODEL = os.environ.setdefault("TESTED_MODEL", os.environ.get("ATTN_COURSE_MODEL", ""))  # workers inherit it
os.environ["ATTN_COURSE_MODEL"] = "no"

# A GPU machine may have torch, Triton, NumPy and pytest only: the tests that need it ask for no more.
if importlib.util.find_spec("jaxtyping") and importlib.util.find_spec("beartype"):
    import jaxtyping

    # Before any test imports the room: from here on every call checks the shapes in its signature.
    jaxtyping.install_import_hook("attn_course.reference", "beartype.beartype")
elif not importlib.util.find_spec("jaxtyping"):  # Float[np.ndarray, "..."] in the reference, the oracle of the kernels, is then a word
    sys.modules["jaxtyping"] = types.ModuleType("jaxtyping")
    vars(sys.modules["jaxtyping"])["__getattr__"] = lambda name: defaultdict(lambda: object)
    vars(sys.modules["jaxtyping"])["__file__"] = __file__  # inspect asks every module
if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    # Two busy cores make any deadline flaky; on CI the examples are the same in every run.
    settings.register_profile("attn_course", deadline=None, derandomize="CI" in os.environ, print_blob=True)
    settings.load_profile("attn_course")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return a worker more than there are cores, since many tests wait, for a kernel, a page or a limit; each costs 12 s at its start."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the course."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, np.ndarray]]:
    """Give what tests/oracles/models.py stores for a model of other people: all workers of a run share one process that makes it."""
    from tests.oracles.arrays import stored

    own = tmp_path_factory.getbasetemp()
    return stored(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A command that looks like python and has imported the heavy libraries, which all test processes share; see tests/warm.py."""
    own = tmp_path_factory.getbasetemp()
    with warm.served(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as command:
        yield command


@pytest.fixture
def quick_start(warm_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What starts Python, nbval and kernels too, gets one whose libraries are imported."""
    monkeypatch.setattr(sys, "executable", warm_python)


def _unchecked() -> Iterator[None]:
    """Let a call reach the function's own error messages: the jaxtyping check is off."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


no_shape_check = pytest.fixture(_unchecked)
no_shape_checks = pytest.fixture(_unchecked, scope="module")  # where equations are computed by thousands, a third of the time
