"""The part of a notebook that makes a name: all that reaches the answer, and nothing beside it."""

import ast

import pytest

from attn_course.tasks.slices import Cells, statements


def making(*texts, given=(), before=None):
    cells = Cells([ast.parse(text) for text in texts], statements(given))
    return cells.making("f", len(texts) if before is None else before)


@pytest.mark.parametrize(
    ("texts", "cells"),
    [
        (["f = 1"], (0,)),
        (["g = 1", "f = g", "h = f"], (0, 1)),
        (["def g(): pass", "def f(): return g()"], (0, 1)),
        (["f = 1", "f += 1", "f[0] = 2", "f.a = 3", "f.append(4)"], (0, 1, 2, 3, 4)),
        (["def f(): return bad()", "def f(): return 1"], (1,)),
        (["def f(): return 1", "f = wrap(f)"], (0, 1)),
        (["def f(): return 1", "@f\ndef f(): return 2"], (0, 1)),
        (["if True:\n    f = 1"], (0,)),
        (["for f in range(3): pass"], (0,)),
        (["(f := 3)"], (0,)),
        (["with a as f: pass"], (0,)),
        (["try:\n    def f(): pass\nexcept E:\n    pass"], (0,)),
        (["class f: pass"], (0,)),
        (["d = {}", "d['x'] = torch.softmax", "f = d['x']"], (0, 1, 2)),
        (["def g():\n    global f\n    f = 1", "g()"], (0,)),
    ],
)
def test_what_reaches_the_answer_is_kept(texts, cells):
    assert making(*texts).cells == cells


def test_a_comparison_beside_the_answer_is_left_out():
    beside = ("assert torch.softmax(x, 0) == f(x)", "torch.softmax(f(x), 0)", "torch.testing.assert_close(f(x), torch.softmax(x, 0))")
    assert "softmax" not in making("import torch", "def f(x): return torch.exp(x)", *beside).text


def test_only_imports_that_are_used_are_kept():
    text = making("import torch, numpy as np\nfrom os import *", "def f(x): return np.exp(x)").text
    assert text.splitlines() == ["import torch, numpy as np", "from os import *", "def f(x):", "    return np.exp(x)", "f"]
    assert making("import torch", "def f(x): return x").text == "def f(x):\n    return x\nf"


def test_given_helpers_belong_to_no_answer_unless_they_were_changed():
    given = "def helper(x):\n    return torch.softmax(x)"
    assert "softmax" not in making(given, "def f(x): return helper(x)", given=[given]).text
    assert "softmax" in making(given + " + 1", "def f(x): return helper(x)", given=[given]).text


def test_what_stands_below_the_check_does_not_count():
    assert making("f = 1", "f = 2", before=1).cells == (0,)
    assert Cells([ast.parse("f = 1"), ast.parse("g = 1"), ast.parse("def f(): pass")]).binding("f") == [0, 2]
