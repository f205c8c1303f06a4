"""The delta rule: how far beta may go, and the triangular system of its chunks."""

import numpy as np
import pytest

from attn_course.reference import delta_rule_attention
from attn_course.reference.delta import forward_substitution
from tests.reference.support import assert_same, assert_untouched
from tests.reference.test_recurrences import loop_delta, sequences

FORMS = ("recurrent", "chunked")


@pytest.mark.parametrize("ends", [0.0, 1.0])
def test_beta_may_reach_both_ends_and_keys_may_repeat(ends):
    query, key, value, beta, _, state = sequences(130)
    key[:] = key[np.arange(130) % 3]  # the triangular systems are as ill as they get
    beta[:] = ends
    outputs = [delta_rule_attention(query, key, value, beta, form=form, initial_state=state) for form in FORMS]
    assert_same(outputs[0], loop_delta(query, key, value, beta, state=state)[0], 1e-10)
    assert_same(outputs[1], outputs[0], 1e-10)


# --- what the rule is for ----------------------------------------------------------------------------


def test_forward_substitution_solves_the_unit_triangular_system():
    rng = np.random.default_rng(7)
    lower, right = np.tril(rng.normal(size=(2, 9, 9)), -1), rng.normal(size=(2, 9, 4))
    solution = assert_untouched(forward_substitution, lower, right)
    assert_same((np.eye(9) + lower) @ solution, right, 1e-12 * np.abs(solution).max())
    assert forward_substitution(np.zeros((0, 0)), np.zeros((0, 4))).shape == (0, 4)
