"""Hostile notebooks: nothing on the attacked task, with a named reason; and the notebook graded next is none the worse."""

import textwrap

import pytest

from attn_course.classroom import grader as grader_module
from tests.classroom import notebooks, toy
from tests.classroom.hostile import attacks, tricks
from tests.classroom.hostile.support import assert_neighbour_unharmed, grade
from tests.tasks.test_forbidden import UNLAUNCHED

TRIED = {  # by name: what stands in the answer cell, and the reasons of which one must be told
    **attacks.ATTACKS,
    **{
        f"{name}, in a call": (f"def thrice(x):\n{textwrap.indent(source, '    ')}", ("",)) for name, (source, _) in attacks.ATTACKS.items()
    },
    **{name: (source, (reason,)) for name, (source, reason) in tricks.TRICKS.items()},
    "a text without end": ("def thrice(x): raise ValueError('\\x1b[31m\\u202e' + 'a' * 10**6)", ("raised",)),
}


@pytest.mark.parametrize("what", TRIED)
def test_what_is_tried_in_an_answer_gets_nothing_for_a_reason_and_harms_no_neighbour(request, toy_chapter, tmp_path, monkeypatch, what):
    source, reasons = TRIED[what]
    if what in tricks.UNSTOPPED:
        monkeypatch.setattr(grader_module, "GRACE_S", 0.2)  # more would only be computed away
    grader = request.getfixturevalue("hasty" if what.removesuffix(", in a call") in attacks.ENDLESS | tricks.ENDLESS else "strict")
    first, attacked, _ = grade(grader, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "thrice": source}).verdicts
    assert first.passed, "a task judged before the attack keeps its points"
    assert attacked.points == 0
    assert any(reason in attacked.message for reason in reasons), attacked.message
    assert len(attacked.message.split()) >= 4
    assert attacked.message.isprintable()
    assert len(attacked.message) < 1_500
    assert_neighbour_unharmed(grader, tmp_path)


FOR_YOU = "which would answer the task for you"
ATTENTION = "import torch\ndef my_attention(q, k, v, _):\n    q, k, v = map(torch.as_tensor, (q, k, v))\n    return "
COSINE = f"import torch{attacks.BY_LOSS}def my_cosine_scores(query, key):\n    q, k = map(torch.tensor, (query, key))\n    return "
BACKWARD = """import torch
def my_attention_backward(q, k, v, d):
    q, k, v = (torch.tensor(x, requires_grad=True) for x in (q, k, v))
    d, o = torch.as_tensor(d), torch.softmax(q @ k.mT / q.shape[-1]**0.5, -1) @ v
    """
SOFTMAX, SLOPE, FILL = ("softmax", "stable-softmax"), ("softmax", "log-softmax-derivative"), ("masking", "large-enough-fill")
DERIVING = 'import sympy\nz, h = sympy.symbols("z h")\nmy_derivative = '
SLOPES = {
    "a hidden diff": attacks.HIDDEN_DIFF,
    "under a hidden name": attacks.HIDDEN_DIFF.replace("my_derivative = ", 'globals()["my_" + "derivative"] = '),
    "a diff awaited": attacks.AWAITED_DIFF,
}
REFUSED = {  # lesson and task, what is tried there, and words of the refusal
    **{way: (*SOFTMAX, source, ["oftmax", FOR_YOU]) for way, source in attacks.FORBIDDEN.items()},
    "rules emptied": (*SOFTMAX, attacks.FROM_THE_ENGINE, ["calls what belongs to the grader"]),
    "stubs disarmed": (*SOFTMAX, attacks.DISARMED, ["'Stubs' object attribute 'forbidding' is read-only"]),
    **{
        f"attention: {way}": ("attention", "scaled-attention", ATTENTION + call, ["scaled_dot_product_attention"])
        for way, call in attacks.ATTENTIONS.items()
    },
    **{f"gradients: {way}": ("gradients", "attention-backward", BACKWARD + call, [FOR_YOU]) for way, call in attacks.GRADIENTS.items()},
    **{f"cosines: {way}": ("scaling", "cosine-scores", COSINE + call, ["cosine", FOR_YOU]) for way, call in attacks.COSINES.items()},
    **{way: (*SLOPE, source, [f"diff, {FOR_YOU}"]) for way, source in SLOPES.items()},
    **{f"derived: {way}": (*SLOPE, f"{DERIVING}{slope} * delta_ij - s_j", [FOR_YOU]) for way, slope in attacks.DERIVED.items()},
    **{
        way: (*FILL, f"import numpy as np, sympy\n{source}", ["must be made of arithmetic and log"])
        for way, source in attacks.LOOK_ALIKES.items()
    },
    "no kernel": ("kernels", "row-lse-kernel", UNLAUNCHED, ["my_row_lse launches no kernel"]),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_would_answer_for_the_learner_gets_nothing_and_is_named(strict, root, tmp_path, way):
    lesson, task, source, words = REFUSED[way]
    book = notebooks.answered(root, lesson, {task: source}, folder="solutions")
    others = {verdict.task: verdict for verdict in strict.grade(notebooks.save(book, tmp_path / "mine.ipynb"), student="mallory").verdicts}
    verdict = others.pop(task)
    assert verdict.points == 0
    assert all(word in verdict.message for word in words), verdict.message
    assert [f"{other.task}: {other.message}" for other in others.values() if not other.passed] == []
