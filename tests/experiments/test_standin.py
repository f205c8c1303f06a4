"""What plays Triton elsewhere than on Linux runs every kernel that lesson kernels shows, and is stricter about addresses."""

import itertools
import re

import numpy as np
import pytest
import torch

from attn_course.authoring.source import parse
from attn_course.experiments.guarded import empty, finished, guarded
from attn_course.experiments.standin import tl, triton
from attn_course.tasks import assess
from attn_course.tasks.registry import declared_tasks

FENCED = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def whole(cell: str, answer: str) -> str:
    """A rung with the answer that the lesson shows: lines for each place of dots, with a blank one between, or the kernel anew."""
    if answer.startswith("@"):
        return "\n\n\n".join((answer, cell.partition("\n\n\n")[2]))
    holes, parts = re.compile(r"^ *\.\.\. .*$", re.MULTILINE), answer.split("\n\n")
    assert len(parts) == len(holes.findall(cell))
    return holes.sub(lambda _: parts.pop(0), cell)


def test_each_answer_that_the_lesson_shows_passes_without_triton(root):
    cells = parse((root / "notebooks" / "src" / "kernels.py").read_text(encoding="utf-8"), "kernels.py")
    names = {"np": np, "torch": torch, "triton": triton, "tl": tl, "guarded": guarded, "empty": empty, "finished": finished}
    names["check"] = lambda *_: None
    shown = []
    for cell, below in itertools.pairwise(cells):
        if "your-turn" in cell.tags:
            shown.append(whole(cell.text, FENCED.search(below.text)[1]))
            exec(shown[-1], names)
        elif cell.kind == "code" and "def " in cell.text and not set(cell.tags) - {"hide-input"}:
            exec(cell.text, names)
    rungs = [task for task in declared_tasks("kernels") if task.your_turn]
    assert len(shown) == len(rungs) == 8
    for task in rungs:
        verdict = assess(task, names[task.entry], shown, names)
        assert verdict.passed, verdict.message


def test_who_leaves_the_memory_of_an_array_is_stopped():
    @triton.jit
    def copy(x, out, n):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x + i), mask=i < n)

    with pytest.raises(IndexError, match="without a mask leaves the memory"):
        copy[(1,)](torch.ones(5), torch.zeros(5), 5)


def test_a_missing_mask_is_seen_in_guarded_memory():
    x, out = guarded(np.arange(5)), empty(5)
    assert torch.isnan(out).all()
    assert torch.isnan(x.as_strided((6,), (1,))[5])
    assert finished(out.copy_(x)).tolist() == [0, 1, 2, 3, 4]
    behind = x.as_strided((6,), (1,))[5]
    for stored in (behind, behind + behind, torch.tensor(7.0)):  # NaN of a margin, too, where no load and no store has a mask
        out = empty(5)
        out.as_strided((6,), (1,))[5] = stored
        with pytest.raises(ValueError, match=r"look at the mask of tl\.store"):
            finished(out)
