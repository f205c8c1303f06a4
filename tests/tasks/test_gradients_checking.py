"""The lesson on gradients plants mistakes that its equations know by name."""

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


@pytest.mark.parametrize("mistake", checking.MISTAKES)
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_mistake_is_one_that_the_equation_rejects_and_spoils_what_comes_behind_its_line(mistake, seed):
    arrays, d_output = drawn(seed)
    suspect = checking.Suspect(mistake)
    label, spoilt = LINES[suspect.line]
    assert mistake in {wrong.name for wrong in REGISTRY.get_equation(label).wrongs}
    found, right = suspect(*arrays, d_output), attention_backward(*arrays, d_output)
    differ = [name for name, one, other in zip(("dQ", "dK", "dV"), found, right, strict=True) if not np.allclose(one, other)]
    assert differ == spoilt.split()
    sums_to_zero = np.allclose(found[1].sum(axis=0), 0.0)
    assert sums_to_zero == (suspect.line != "dS")


def test_the_suspects_of_a_seed_are_the_same_each_time_and_all_differ():
    assert [each.mistake for each in checking.suspects(3)] == [each.mistake for each in checking.suspects(3)]
    assert len({each.mistake for each in checking.suspects(1, count=6)}) == len(checking.MISTAKES)


def test_an_open_turn_is_filled_and_a_written_one_is_kept():
    assert checking.or_ours(..., max) == (checking.score_gradient, max)
    assert checking.or_ours(min, ...) == (min, checking.key_gradient)


@pytest.mark.parametrize("mistake", checking.MISTAKES)
def test_differences_find_the_gradients_that_a_mistake_left_right(mistake):
    arrays, d_output = drawn(0)
    suspect = checking.Suspect(mistake)
    _, spoilt = LINES[suspect.line]
    found = checking.agreeing(suspect(*arrays, d_output), arrays, d_output)
    assert found == [name for name in ("dQ", "dK", "dV") if name not in spoilt.split()]
