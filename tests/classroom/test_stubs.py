"""The fence around forbidden library calls."""

import contextlib
import importlib
import sys
import types
from dataclasses import asdict

import IPython
import numpy as np
import pytest
import torch

from attn_course.classroom.stubs import Refused, Stubs
from attn_course.classroom.worker import Session
from attn_course.tasks.forbidden import AUTOGRAD, SOFTMAX
from attn_course.tasks.run import Call

RULES = ["slow_library.softmax"]
FIRST_CELL = {"judged_after": {"0.0": 1}, "answers": {"0.0": [0]}, "seed": 0}
LATE = """
import importlib
def f(x): return getattr(importlib.import_module("slow_" + "library"), "soft" + "max")(x)
"""


def _asking(rules):
    return {"0.0": asdict(Call("f", "write", forbid=rules))}


@pytest.fixture
def slow_library(monkeypatch, tmp_path):
    (tmp_path / "slow_library.py").write_text("def softmax(x):\n    return x\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_library", raising=False)
    yield
    sys.modules.pop("slow_library", None)


@pytest.fixture
def library(monkeypatch):
    made = types.ModuleType("slow_library")
    made.softmax = lambda x: x
    monkeypatch.setitem(sys.modules, "slow_library", made)
    return made


def test_a_function_is_refused_that_is_first_imported_while_the_answer_runs(slow_library, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    session = Session(forbid=RULES)
    session.begin([LATE], [1], _asking(RULES), **FIRST_CELL)
    assert session.cell(0, 5.0) == {"problem": None}
    assert session.call("0.0", {"x": np.ones(2)}, 5.0)["refused"] == "slow_library.softmax"
    session.discard()


def test_a_library_that_is_imported_anew_gets_stubs_anew(slow_library):
    stubs = Stubs()
    for _time in range(2):
        sys.modules.pop("slow_library", None)
        importlib.import_module("slow_library")
        assert stubs.install(RULES)


def test_another_name_of_a_forbidden_function_is_seen_in_the_text_while_its_stub_stands(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    importlib.import_module("sympy")
    rules = [".exp", "numpy.exp", "sympy.integrate"]
    aliases = ["from numpy._core.umath import exp as f", "from sympy.integrals.integrals import integrate as f"]
    session = Session(forbid=rules)
    refusals = [session.begin([text], [1], _asking(rules), **FIRST_CELL)["refusals"]["0.0"] for text in aliases]
    session.discard()
    assert [refusal.partition(",")[0] for refusal in refusals] == ["f uses f (numpy.exp)", "f uses f (sympy.integrate)"]


def test_a_stub_is_put_up_once_and_refuses_only_under_its_own_rule_with_all_methods(library):
    library.softmax = np.power
    stubs = Stubs()
    assert [stubs.install(RULES), stubs.install(RULES)] == [True, False]
    with stubs.forbidding(["torch.softmax"]):
        assert library.softmax(3, 2) == 9
        assert library.softmax.outer([2, 3], [1, 2]).tolist() == [[2, 4], [3, 9]]
    for call in (library.softmax, library.softmax.outer):
        with pytest.raises(Refused), stubs.forbidding(RULES):
            call([2, 3], [1, 2])
    assert stubs.caught == "slow_library.softmax"


def test_what_stubs_stood_in_front_of_comes_back_as_it_was(library):
    class Base:
        def softmax(self):
            return 1

        @staticmethod
        def exp():
            return 2

    class Tensor(Base):
        pass

    library.Tensor, library.softmax = Tensor, len
    before = [dict(vars(owner)) for owner in (library, Base, Tensor)]
    stubs = Stubs()
    rules = ["slow_library.softmax", "slow_library.Tensor", "slow_library.Tensor.softmax", "slow_library.Tensor.exp"]
    assert stubs.install(rules)
    with stubs.forbidding(rules[:1]), contextlib.suppress(Refused):
        library.softmax("ab")
    assert stubs.caught
    stubs.remove()
    assert [dict(vars(owner)) for owner in (library, Base, Tensor)] == before
    assert stubs.install(rules), "they can be put up again"


def test_a_session_leaves_no_stub_and_no_shell_to_the_next(library):
    first, shell = library.softmax, IPython.get_ipython
    session = Session(setup=["import slow_library"], given=["def helper(x):\n    return slow_library.softmax(x)"], forbid=RULES)
    assert library.softmax is not first
    assert IPython.get_ipython is not shell
    session.discard()
    assert library.softmax is first
    assert IPython.get_ipython is shell


def test_kernels_are_watched_only_where_a_rule_speaks_of_them():
    stubs, x = Stubs(), torch.ones(3, dtype=torch.float64, requires_grad=True)
    for rules, refused in ((SOFTMAX.rules, True), (AUTOGRAD.rules, False), ([], False)):
        with stubs.forbidding(rules), contextlib.suppress(Refused):
            torch.ops.aten._softmax(x, 0, False)
        assert bool(stubs.caught) is refused
