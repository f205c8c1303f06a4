"""The lesson on gradients checks backward passes by differences, and plants mistakes that its equations know by name."""

import numpy as np
import pytest

from attn_course.equations.core import REGISTRY
from attn_course.lessons.gradients import tasks_checking as checking
from attn_course.reference import attention_backward

LINES = {  # what each line of the program makes: the equation that it is, and the gradients that it spoils
    "dV": ("gradient-of-values", "dV"),
    "dP": ("gradient-of-weights", "dQ dK"),
    "dS": ("gradient-of-scores", "dQ dK"),
    "dQ": ("query-and-key-gradients", "dQ"),
}


def drawn(seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2))], rng.normal(size=(3, 2))


@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_a_right_backward_pass_agrees_with_differences_and_zeros_do_not_however_small_the_gradient(size):
    arrays, d_output = drawn(0)
    assert checking.check_gradient(attention_backward, arrays, size * d_output) == "dQ agrees, dK agrees, dV agrees"
    nothing = checking.check_gradient(lambda *given: [np.zeros_like(array) for array in given[:3]], arrays, size * d_output)
    assert nothing == "dQ differs, dK differs, dV differs"


@pytest.mark.parametrize("mistake", checking.MISTAKES)
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_mistake_is_one_that_the_equation_rejects_and_spoils_what_comes_behind_its_line(mistake, seed):
    arrays, d_output = drawn(seed)
    suspect = checking.Suspect(mistake)
    label, spoilt = LINES[suspect.line]
    assert mistake in {wrong.name for wrong in REGISTRY.get_equation(label).wrongs}
    wanted = ", ".join(f"{name} {'differs' if name in spoilt.split() else 'agrees'}" for name in ("dQ", "dK", "dV"))
    assert checking.check_gradient(suspect, arrays, d_output) == wanted
    sums_to_zero = np.allclose(suspect(*arrays, d_output)[1].sum(axis=0), 0.0)
    assert sums_to_zero == (suspect.line != "dS")


def test_the_suspects_of_a_seed_are_the_same_each_time_and_all_differ():
    assert [each.mistake for each in checking.suspects(3)] == [each.mistake for each in checking.suspects(3)]
    assert len({each.mistake for each in checking.suspects(1, count=6)}) == len(checking.MISTAKES)
