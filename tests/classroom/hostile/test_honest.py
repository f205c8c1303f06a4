"""What honest learners do besides answering: nothing of it costs a point."""

import linecache

import numpy as np
import pytest
import sympy

from attn_course.tasks import all_tasks, assess, get_task
from tests.classroom import notebooks

OWN_CELLS = {
    "the course's own names": "from attn_course import check, figures, verify\nverify('stable-softmax')\ncheck('softmax', abs)",
    "a figure": "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()\nfig.savefig('mine.png')",
    "a progress bar": "import sys\nfor i in range(99):\n    sys.stderr.write(f'\\r{i}%|████      | [00:01<00:02]'); sys.stderr.flush()",
    "a library that is not there": "from tqdm.auto import tqdm",
    "rich output": "from IPython.display import HTML, Markdown, display\ndisplay(HTML('<b>x</b>'), Markdown('*x*'))",
    "classes": "from dataclasses import dataclass\nfrom typing import NamedTuple\n@dataclass\nclass P: ...\nclass N(NamedTuple): ...",
    "random numbers": "import random, torch\ntorch.manual_seed(0)\nnp.random.seed(1)\nrng = np.random.default_rng()\nrandom.random()",
    "magics": "%timeit -n 1 1 + 1\n%time x = 2\nassert x == 2\n!ls\nfiles = !ls\n%load_ext autoreload\n%autoreload 2\n?print\n%who",
    "a question to the learner": "name = input('name')",
    "a cell that does not run": "def f(:\n",
    "a file": "open('x.txt', 'w').write('x')\nnp.save('x.npy', np.ones(3))\nassert np.load('x.npy').sum() == 3",
    "threads": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p: assert [*p.map(abs, [-1])] == [1]",
    "an event loop": "import asyncio\nasync def f(): return 1\nassert asyncio.run(f()) == 1",
    "a warning": "import logging, warnings\nwarnings.warn('slow')\nlogging.warning('slow')",
    "the functions that answers must not use": "import torch\nx = torch.ones(2)\nassert all(torch.nn.Softmax(0)(x) == x.softmax(0))",
    "derivatives of one's own": "import sympy\nz = sympy.Symbol('z')\nassert sympy.diff(z**2, z) == 2 * z",
    "gradients of one's own": "import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\nassert x.grad.sum() == 4",
}
SOFTMAXES = {
    "a partial function in torch": """
import torch
from functools import partial
def soft(scores, axis, t=1.0):
    s = torch.from_numpy(np.ascontiguousarray(scores)) / t
    e = torch.exp(s - torch.amax(s, dim=axis, keepdim=True))
    return e / e.sum(dim=axis, keepdim=True)
my_softmax = partial(soft, t=1.0)
""",
    "with gradients": """
import torch
def my_softmax(scores, axis):
    s = torch.tensor(scores, requires_grad=True)
    e = torch.exp(s - s.amax(axis, keepdim=True))
    return e / e.sum(axis, keepdim=True)
""",
    "by vmap": """
import torch
def my_softmax(scores, axis):
    s = torch.tensor(scores).movedim(axis, -1)
    row = torch.vmap(lambda r: torch.exp(r - r.max()) / torch.exp(r - r.max()).sum())
    return row(s.reshape(-1, s.shape[-1])).reshape(s.shape).movedim(-1, axis)
""",
    "decorated, and talkative": '''
import functools, warnings
def told(f):
    @functools.wraps(f)
    def g(*args):
        print("torch.softmax would give the same")
        warnings.warn("slow")
        return f(*args)
    return g
@told
def my_softmax(scores, axis):
    """Not torch.softmax, not scipy.special.softmax."""
    softmax = np.exp(scores - scores.max(axis, keepdims=True))
    return softmax / softmax.sum(axis, keepdims=True)
''',
    "awaited": """
import asyncio
async def exponentials(s):
    for part in s:
        yield np.exp(part)
async def made():
    await asyncio.sleep(0)
    return lambda s, axis: np.exp(s - s.max(axis, keepdims=True)) / np.exp(s - s.max(axis, keepdims=True)).sum(axis, keepdims=True)
assert [e async for e in exponentials([0.0])] == [1.0]
my_softmax, = await asyncio.gather(made())
""",
    "its shape by tensors without data": """
import torch
def my_softmax(scores, axis):
    one = torch.ones(scores.shape, device="meta")
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis).reshape(torch.where(one > 0, one, -one).nansum(axis, keepdim=True).shape)
""",
    "methods and properties of these names": """
import torch
class Rows:
    def __init__(self, scores, axis): self.scores, self.axis = scores, axis
    @property
    def logsumexp(self):
        top = self.scores.max(self.axis, keepdims=True)
        return top + np.log(np.exp(self.scores - top).sum(self.axis, keepdims=True))
    def softmax(self): return np.exp(self.scores - self.logsumexp)
    @staticmethod
    def backward(): raise NotImplementedError
class Kept:
    def __init__(self, rows): self.softmax = rows.softmax()
def my_softmax(scores, axis): return Kept(Rows(scores, axis)).softmax
""",
    "a thread that computes for a while, and waits": """
import threading, time
def work():
    until = time.monotonic() + 0.1
    while time.monotonic() < until: pass
    threading.Event().wait()
threading.Thread(target=work, daemon=True).start()
def my_softmax(scores, axis):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
}
FILLS = {
    "solved for": "c = sympy.Symbol('c')\nmy_fill, = sympy.solve(sympy.Eq(r / (r + sympy.exp(c)), epsilon), c)",
    "solved for in positive numbers, and simplified": """
a, b, c = sympy.symbols("a b c", positive=True)
found, = sympy.solve(a / (a + sympy.exp(c)) - b, c)
my_fill = sympy.simplify(found).subs({a: r, b: epsilon})
assert sympy.simplify(sympy.exp(my_fill) - r * (1 - epsilon) / epsilon).equals(0)
""",
    "found where a set is zero": "c = sympy.Symbol('c', real=True)\n"
    "my_fill = log(next(iter(sympy.solveset(r / (r + c) - epsilon, c, sympy.S.Complexes).args[0])))",
}


def assert_full(grader, book, path):
    graded = grader.grade(notebooks.save(book, path), student="ada")
    assert all(verdict.passed for verdict in graded.verdicts), [verdict.message for verdict in graded.verdicts if not verdict.passed]


@pytest.mark.parametrize("what", OWN_CELLS)
def test_own_cells_cost_nothing_wherever_they_stand(grader, root, tmp_path, what):
    own = dict.fromkeys(("setup", "stable-softmax"), OWN_CELLS[what])
    assert_full(grader, notebooks.with_cells(notebooks.load(root, "solutions", "softmax"), after=own), tmp_path / "02_x.ipynb")


@pytest.mark.parametrize("style", SOFTMAXES)
def test_a_right_answer_of_any_style_gets_full_marks(grader, root, tmp_path, style):
    book = notebooks.answered(root, "softmax", {"stable-softmax": SOFTMAXES[style]}, folder="solutions")
    assert_full(grader, book, tmp_path / "02_x.ipynb")


@pytest.mark.parametrize("style", FILLS)
def test_solving_and_simplifying_is_no_calculus_in_either_engine(grader, root, tmp_path, style):
    source = f"import sympy\n{FILLS[style].strip()}"
    names = {"log": sympy.log} | dict(zip(("r", "epsilon"), sympy.symbols("r epsilon", real=True), strict=True))
    exec(source, names)
    verdict = assess(get_task("large-enough-fill"), names["my_fill"], [source], names)
    assert verdict.passed, verdict.message
    assert_full(grader, notebooks.answered(root, "masking", {"large-enough-fill": source}, folder="solutions"), tmp_path / "07_x.ipynb")


@pytest.mark.parametrize("style", [style for style in SOFTMAXES if "await" not in SOFTMAXES[style]])
def test_the_notebook_refuses_no_style_by_its_text(style, monkeypatch):
    source, names = SOFTMAXES[style], {"np": np, "__name__": "__main__"}
    monkeypatch.setitem(linecache.cache, "<a cell>", (len(source), None, source.splitlines(keepends=True), "<a cell>"))
    exec(compile(source, "<a cell>", "exec"), names)
    verdict = assess(get_task("stable-softmax"), names["my_softmax"], [source], names)
    assert verdict.passed, verdict.message


def test_an_answer_may_stand_in_several_cells(grader, root, tmp_path):
    answer = "def my_softmax(scores, axis):\n    return normalised(shifted(scores, axis), axis)"
    book = notebooks.with_cells(
        notebooks.answered(root, "softmax", {"stable-softmax": answer}, folder="solutions"),
        after={
            "setup": "def shifted(s, axis):\n    return np.exp(s - s.max(axis, keepdims=True))",
            "stable-softmax": "def normalised(e, axis):\n    return e / e.sum(axis, keepdims=True)",
        },
    )
    assert_full(grader, book, tmp_path / "02_x.ipynb")


def test_tasks_may_be_answered_in_another_order(grader, root, tmp_path):
    solved = notebooks.load(root, "solutions", "softmax")
    ids = [task.id for task in reversed(all_tasks("softmax"))]
    moved = {slug: [old for old in solved["cells"] if old["id"] in (slug, f"{slug}-check")] for slug in ids}
    rest = [old for old in solved["cells"] if not any(old in cells for cells in moved.values())]
    assert_full(grader, {**solved, "cells": [*rest, *(old for slug in ids for old in moved[slug])]}, tmp_path / "02_x.ipynb")
