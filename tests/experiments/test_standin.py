"""What plays Triton elsewhere than on Linux runs every kernel that lesson kernels shows, and is stricter about addresses."""

import re

import numpy as np
import pytest
import torch

from attn_course.experiments.guarded import empty, finished, guarded
from attn_course.experiments.standin import tl, triton
from attn_course.tasks import assess
from attn_course.tasks.registry import declared_tasks

ANSWER = re.compile(r'tags=\["ours"\]\n# ```python\n(.*?)\n# ```', re.DOTALL)
STUB = re.compile(r"\{turn\}`[^`]+`\n#\n# ```python\n(.*?)\n# ```", re.DOTALL)
SHARED = re.compile(r'^# %% id="(?:load-rows|update)-code"\n(.*?)\n# %%', re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def whole(stub: str, answer: str) -> str:
    """The code of a rung: the lines shown in our answer take the place of those left out, or of the kernel that is to be repaired."""
    left_out = re.search(r"^ *\.\.\. .*$", stub, re.MULTILINE)
    return stub.replace(left_out[0], answer) if left_out else answer + stub[stub.index("\n\ndef") :]


def test_each_answer_that_the_lesson_shows_passes_without_triton(root):
    lesson = (root / "notebooks" / "src" / "kernels.py").read_text(encoding="utf-8")
    stubs, answers = ([re.sub("^# ?", "", code, flags=re.MULTILINE) for code in found.findall(lesson)] for found in (STUB, ANSWER))
    shown = [whole(*pair) for pair in zip(stubs, answers, strict=True)]
    rungs = [task for task in declared_tasks("kernels") if task.your_turn]
    assert len(shown) == len(rungs) == 8
    names = {"np": np, "torch": torch, "triton": triton, "tl": tl, "guarded": guarded, "empty": empty, "finished": finished}
    for source in [*SHARED.findall(lesson), *shown]:
        exec(source, names)
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
    out.as_strided((6,), (1,))[5] = 7.0
    with pytest.raises(ValueError, match=r"look at the mask of tl\.store"):
        finished(out)
