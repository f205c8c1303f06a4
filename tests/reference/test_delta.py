"""The delta rule: what it stores, how far beta may go, and the triangular system of its chunks."""

import numpy as np
import pytest
import torch

from attn_course.reference import delta_rule_attention, linear_attention
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


@pytest.mark.parametrize("form", FORMS)
def test_a_new_value_overwrites_the_old_one_where_linear_attention_adds(form):
    key = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    value, ones = np.array([[5.0], [7.0], [9.0]]), np.ones((3, 1))
    np.testing.assert_allclose(delta_rule_attention(key, key, value, ones, form=form).ravel(), [5.0, 7.0, 9.0], rtol=1e-15)
    np.testing.assert_allclose(linear_attention(key, key, value).ravel(), [5.0, 7.0, 14.0], rtol=1e-15)
    np.testing.assert_allclose(delta_rule_attention(key, key, value, ones / 2, form=form).ravel(), [2.5, 3.5, 5.75], rtol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_with_orthogonal_keys_and_full_strength_it_is_linear_attention(form):
    rng = np.random.default_rng(7)
    key, query, value = np.linalg.qr(rng.normal(size=(7, 7)))[0], rng.normal(size=(7, 7)), rng.normal(size=(7, 5))
    assert_same(delta_rule_attention(query, key, value, np.ones((7, 1)), form=form), linear_attention(query, key, value))


def test_one_step_is_a_gradient_step_on_the_squared_error_of_recall():
    query, key, value, beta, _, state = sequences(1)
    s = torch.from_numpy(state).requires_grad_()
    (0.5 * ((s.T @ torch.from_numpy(key[0]) - torch.from_numpy(value[0])) ** 2).sum()).backward()
    _, after = delta_rule_attention(query, key, value, beta, initial_state=state, return_state=True)
    assert_same(after, state - beta[0, 0] * s.grad.numpy())


def test_forward_substitution_solves_the_unit_triangular_system():
    rng = np.random.default_rng(7)
    lower, right = np.tril(rng.normal(size=(2, 9, 9)), -1), rng.normal(size=(2, 9, 4))
    solution = assert_untouched(forward_substitution, lower, right)
    assert_same((np.eye(9) + lower) @ solution, right, 1e-12 * np.abs(solution).max())
    assert forward_substitution(np.zeros((0, 0)), np.zeros((0, 4))).shape == (0, 4)


# --- heads, broadcasting, dtypes ---------------------------------------------------------------------
