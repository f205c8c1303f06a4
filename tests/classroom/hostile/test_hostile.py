"""Hostile notebooks: nothing on the attacked task, with a named reason; and the notebook graded next is none the worse."""

import textwrap

import pytest

from tests.classroom import notebooks, toy
from tests.classroom.hostile.attacks import (
    ATTACKS,
    ATTENTIONS,
    AWAITED_DIFF,
    BY_LOSS,
    COSINES,
    DERIVED,
    DISARMED,
    ENDLESS,
    FORBIDDEN,
    FROM_THE_ENGINE,
    GRADIENTS,
    HIDDEN_DIFF,
    LIES,
    LOOK_ALIKES,
)
from tests.classroom.hostile.support import assert_neighbour_unharmed, grade
from tests.tasks.test_forbidden import UNLAUNCHED


@pytest.fixture
def attacked(request, attack):
    """The grader that an attack meets."""
    return request.getfixturevalue("hasty" if attack in ENDLESS else "strict")


@pytest.fixture
def verdicts(strict, root, tmp_path):
    """Takes a lesson, a task and an answer; returns what is found in the solution with this answer, by task."""

    def found(lesson, task, source):
        book = notebooks.answered(root, lesson, {task: source}, folder="solutions")
        graded = strict.grade(notebooks.save(book, tmp_path / "mine.ipynb"), student="mallory")
        return {verdict.task: verdict for verdict in graded.verdicts}

    return found


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_an_answer_cell_gets_nothing_there_and_harms_no_neighbour(attacked, toy_chapter, tmp_path, attack):
    source, reasons = ATTACKS[attack]
    first, second, _ = grade(attacked, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "thrice": source}).verdicts
    assert first.passed, "a task judged before the attack keeps its points"
    assert second.points == 0
    assert any(reason in second.message for reason in reasons), second.message
    assert_neighbour_unharmed(attacked, tmp_path)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_inside_a_called_answer_gets_nothing_either(attacked, toy_chapter, tmp_path, attack):
    body = textwrap.indent(ATTACKS[attack][0], "    ")
    graded = grade(attacked, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "thrice": f"def thrice(x):\n{body}"})
    assert graded.verdicts[0].passed
    assert graded.verdicts[1].points == 0
    assert_neighbour_unharmed(attacked, tmp_path)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_gets_nothing(strict, toy_chapter, tmp_path, lie):
    graded = grade(strict, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "thrice": LIES[lie][0]})
    assert [verdict.points for verdict in graded.verdicts][:2] == [2, 0], graded
    assert_neighbour_unharmed(strict, tmp_path)


@pytest.mark.parametrize("way", FORBIDDEN)
def test_a_forbidden_call_gets_nothing_and_is_named(verdicts, way):
    others = verdicts("softmax", "stable-softmax", FORBIDDEN[way])
    verdict = others.pop("stable-softmax")
    assert verdict.points == 0
    assert "oftmax" in verdict.message
    assert "which would answer the task for you" in verdict.message
    assert all(other.points == other.max_points for other in others.values())


@pytest.mark.parametrize("way", ATTENTIONS)
def test_a_fused_attention_is_found_by_what_torch_runs(verdicts, way):
    source = f"import torch\ndef my_attention(q, k, v, _):\n    q, k, v = map(torch.as_tensor, (q, k, v))\n    return {ATTENTIONS[way]}"
    others = verdicts("attention", "scaled-attention", source)
    attacked = others.pop("scaled-attention")
    assert attacked.points == 0
    assert "scaled_dot_product_attention" in attacked.message
    assert all(other.passed for other in others.values())


@pytest.mark.parametrize("way", GRADIENTS)
def test_automatic_differentiation_is_found_by_what_torch_runs(verdicts, way):
    source = (
        "import torch\ndef my_attention_backward(q, k, v, d):\n    q, k, v = (torch.tensor(x, requires_grad=True) for x in (q, k, v))\n"
    )
    source += f"    d, o = torch.as_tensor(d), torch.softmax(q @ k.mT / q.shape[-1]**0.5, -1) @ v\n    {GRADIENTS[way]}"
    verdict = verdicts("gradients", "attention-backward", source)["attention-backward"]
    assert verdict.points == 0
    assert "which would answer the task for you" in verdict.message


@pytest.mark.parametrize("way", COSINES)
def test_a_librarys_cosine_is_found_by_what_is_called(verdicts, way):
    source = (
        f"import torch{BY_LOSS}def my_cosine_scores(query, key):\n    q, k = map(torch.tensor, (query, key))\n    return {COSINES[way]}"
    )
    verdict = verdicts("scaling", "cosine-scores", source)["cosine-scores"]
    assert verdict.points == 0
    assert "cosine" in verdict.message
    assert "which would answer the task for you" in verdict.message


@pytest.mark.parametrize(
    ("source", "reason"),
    [(FROM_THE_ENGINE, "calls what belongs to the grader"), (DISARMED, "'Stubs' object attribute 'forbidding' is read-only")],
)
def test_stubs_taken_down_are_missed(verdicts, source, reason):
    verdict = verdicts("softmax", "stable-softmax", source)["stable-softmax"]
    assert verdict.points == 0
    assert reason in verdict.message


def test_a_library_call_beside_the_answer_is_no_offence(strict, root, tmp_path):
    own = "import torch\nx = torch.ones(2, 3)\ntorch.testing.assert_close(torch.as_tensor(my_softmax(x.numpy(), 0)), torch.softmax(x, 0))"
    book = notebooks.with_cells(notebooks.load(root, "solutions", "softmax"), after={"stable-softmax": own})
    graded = strict.grade(notebooks.save(book, tmp_path / "02_softmax.ipynb"), student="ada")
    assert all(verdict.passed for verdict in graded.verdicts)
    assert graded.notes == ()


@pytest.mark.parametrize(
    "source", [HIDDEN_DIFF, HIDDEN_DIFF.replace("my_derivative = ", 'globals()["my_" + "derivative"] = '), AWAITED_DIFF]
)
def test_deriving_by_a_hidden_diff_is_refused(verdicts, source):
    verdict = verdicts("softmax", "log-softmax-derivative", source)["log-softmax-derivative"]
    assert verdict.points == 0
    assert "diff, which would answer the task for you" in verdict.message


@pytest.mark.parametrize("way", DERIVED)
def test_what_sympy_derives_by_another_name_is_refused(verdicts, way):
    source = f'import sympy\nz, h = sympy.symbols("z h")\nmy_derivative = {DERIVED[way]} * delta_ij - s_j'
    verdict = verdicts("softmax", "log-softmax-derivative", source)["log-softmax-derivative"]
    assert verdict.points == 0
    assert "which would answer the task for you" in verdict.message


@pytest.mark.parametrize("look", LOOK_ALIKES)
def test_an_expression_is_made_of_what_sympy_made(verdicts, look):
    source = f"import numpy as np, sympy\n{LOOK_ALIKES[look]}"
    verdict = verdicts("masking", "large-enough-fill", source)["large-enough-fill"]
    assert verdict.points == 0
    assert "my_fill must be made of arithmetic and log; it holds" in verdict.message


def test_right_numbers_that_no_kernel_wrote_do_not_pass(verdicts):
    verdict = verdicts("flash", "row-lse-kernel", UNLAUNCHED)["row-lse-kernel"]
    assert verdict.points == 0
    assert "my_row_lse launches no kernel" in verdict.message


def test_what_a_worker_says_is_taken_as_text_of_limited_length(strict, toy_chapter, tmp_path):
    source = "def thrice(x): raise ValueError('\\x1b[31m\\u202e' + 'a' * 10**6)"
    message = grade(strict, tmp_path / "97_hostile.ipynb", {"thrice": source}).verdicts[1].message
    assert len(message) < 1_500
    assert message.isprintable()
