"""The delta rule: both forms against the definition and against products of (I - beta k k^T), and what it stores."""

import re
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference import delta_rule_attention, linear_attention
from attn_course.reference.delta import forward_substitution
from tests.reference.support import EPS, assert_same, assert_untouched

FORMS = ("recurrent", "chunked")


def loop_delta(query, key, value, beta, log_decay=None, scale=1.0, state=None):
    """One sequence, with the state transposed as in the papers: S <- S diag(a) (I - b k k^T) + b v k^T; return outputs and S^T."""
    length, d_k = key.shape
    s = np.zeros((value.shape[1], d_k)) if state is None else state.T.copy()
    outputs = np.zeros(value.shape)
    for t in range(length):
        kept = np.ones(d_k) if log_decay is None else np.exp(np.broadcast_to(log_decay[t], d_k))
        s = s @ np.diag(kept) @ (np.eye(d_k) - beta[t, 0] * np.outer(key[t], key[t])) + beta[t, 0] * np.outer(value[t], key[t])
        outputs[t] = scale * s @ query[t]
    return outputs, s.T


def sequences(length, d_k=7, d_v=5, features=1, batch=(), seed=7):
    """Queries, unit keys, values, beta in [0, 1], decays and a state."""
    rng = np.random.default_rng(seed + length)
    query, key, value = (rng.normal(size=(*batch, length, width)) for width in (d_k, d_k, d_v))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    beta = rng.random(size=(*batch, length, 1))
    log_decay = None if features == 0 else -rng.exponential(0.2, size=(*batch, length, features))
    return query, key, value, beta, log_decay, rng.normal(size=(*batch, d_k, d_v)) * 3


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("features", [0, 1, 7])
def test_both_forms_are_the_definition_from_any_state_with_any_decay(length, features):
    *arrays, log_decay, state = sequences(length, features=features)
    wanted, s = loop_delta(*arrays, log_decay, 0.7, state)
    for form in FORMS:
        options = {"log_decay": log_decay, "scale": 0.7, "initial_state": state, "return_state": True}
        output, after = delta_rule_attention(*arrays, form=form, **options)
        assert_same(output, wanted, 1e-10)
        assert_same(after, s, 1e-10)


@pytest.mark.parametrize("ends", [0.0, 1.0])
def test_beta_may_reach_both_ends_and_keys_may_repeat(ends):
    query, key, value, beta, _, state = sequences(130)
    key[:] = key[np.arange(130) % 3]  # the triangular systems are as ill as they get
    beta[:] = ends
    outputs = [delta_rule_attention(query, key, value, beta, form=form, initial_state=state) for form in FORMS]
    assert_same(outputs[0], loop_delta(query, key, value, beta, state=state)[0], 1e-10)
    assert_same(outputs[1], outputs[0], 1e-10)


@given(st.integers(1, 90), st.integers(0, 40), st.integers(0, 1000))
def test_the_size_of_a_chunk_does_not_matter(chunk, length, seed):
    *arrays, log_decay, state = sequences(length, features=7, seed=seed)
    recurrent = delta_rule_attention(*arrays, log_decay=log_decay, initial_state=state)
    assert_same(delta_rule_attention(*arrays, log_decay=log_decay, initial_state=state, form="chunked", chunk=chunk), recurrent, 1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", [0, 1, 17, 64, 70])
def test_two_parts_with_a_carried_state_are_one_pass(form, cut):
    *arrays, log_decay, _ = sequences(70, features=7, batch=(2,))
    options = {"form": form, "chunk": 16, "return_state": True}
    whole, end = delta_rule_attention(*arrays, log_decay=log_decay, **options)
    first, state = delta_rule_attention(*(x[:, :cut] for x in arrays), log_decay=log_decay[:, :cut], **options)
    second, last = delta_rule_attention(*(x[:, cut:] for x in arrays), log_decay=log_decay[:, cut:], initial_state=state, **options)
    assert_same(np.concatenate([first, second], axis=1), whole, 1e-11)
    assert_same(last, end, 1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [1, 7])
def test_violent_decay_neither_overflows_nor_cancels(form, features):
    *arrays, log_decay, state = sequences(65, features=features)
    log_decay = log_decay * 1e4
    log_decay[7], log_decay[20:23] = -np.inf, 0.0
    wanted, s = loop_delta(*arrays, log_decay, state=state)
    output, after = delta_rule_attention(*arrays, log_decay=log_decay, initial_state=state, form=form, return_state=True)
    assert_same(output, wanted, 1e-12)
    assert_same(after, s, 1e-12)


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


def test_chunks_hold_no_number_for_each_pair_of_positions():
    arrays = sequences(1000)[:4]
    tracemalloc.start()
    delta_rule_attention(*arrays, form="chunked", chunk=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1000**2 / 20


# --- heads, broadcasting, dtypes ---------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_shared_heads_are_repeated_and_have_one_state_each(form, kv_heads):
    query = np.random.default_rng(1).normal(size=(2, 6, 9, 7))
    _, key, value, beta, log_decay, state = sequences(9, batch=(2, kv_heads), features=1)
    options = {"log_decay": log_decay, "initial_state": state, "return_state": True, "form": form, "chunk": 4}
    output, after = delta_rule_attention(query, key, value, beta, enable_gqa=True, **options)
    assert after.shape == (2, kv_heads, 7, 5)
    for b, h in np.ndindex(2, 6):
        r = h // (6 // kv_heads)
        wanted, s = loop_delta(query[b, h], key[b, r], value[b, r], beta[b, r], log_decay[b, r], state=state[b, r])
        assert_same(output[b, h], wanted, 1e-12)
        assert_same(after[b, r], s, 1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_broadcast(form):
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(2, 1, 6, 3)), rng.normal(size=(4, 6, 3)) / 3, rng.normal(size=(1, 6, 5))
    beta, log_decay, state = rng.random(size=(2, 1, 6, 1)), -rng.random(size=(6, 3)), rng.normal(size=(4, 3, 5))
    output, after = delta_rule_attention(
        query, key, value, beta, log_decay=log_decay, initial_state=state, form=form, chunk=4, return_state=True
    )
    for a, b in np.ndindex(2, 4):
        wanted, s = loop_delta(query[a, 0], key[b], value[0], beta[a, 0], log_decay, state=state[b])
        assert_same(output[a, b], wanted, 1e-12)
        assert_same(after[a, b], s, 1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [0, 1, 7])
def test_what_the_future_holds_does_not_matter_not_even_nan(form, features):
    query, key, value, beta, log_decay, _ = sequences(9, features=features)
    before = delta_rule_attention(query, key, value, beta, log_decay=log_decay, form=form, chunk=5)
    key[7, 1], value[7, 2], value[8] = np.nan, np.inf, np.nan
    after = delta_rule_attention(query, key, value, beta, log_decay=log_decay, form=form, chunk=5)
    np.testing.assert_allclose(after[:7], before[:7], rtol=1e-13)
    assert np.isnan(after[7:]).any(axis=-1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", EPS)
def test_dtypes_are_kept_and_arithmetic_is_wide(form, dtype):
    arrays = [x.astype(dtype) for x in sequences(20)]
    wide = [x.astype(float) for x in arrays]
    options = {"log_decay": arrays[4], "initial_state": arrays[5], "form": form, "return_state": True}
    output, after = assert_untouched(delta_rule_attention, *arrays[:4], **options)
    wanted, s = loop_delta(*wide[:5], state=wide[5])
    assert_same(output, wanted, 16 * EPS[dtype], dtype)
    assert_same(after, s, 16 * EPS[dtype], dtype)


@pytest.mark.usefixtures("no_shape_check")
@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"query": None}, TypeError, "query must be an ndarray of floats; got NoneType"),
        ({"beta": None}, TypeError, "beta must be an ndarray of floats; got NoneType"),
        ({"beta": 0.5}, TypeError, "beta must be an ndarray of floats; got float"),
        ({"beta": np.ones(5)}, ValueError, "beta must have the axes (..., len, features); got shape (5,)"),
        ({"beta": np.ones((5, 3))}, ValueError, "beta must have one number for each position, (..., len, 1); got shape (5, 3)"),
        ({"beta": np.ones((4, 1))}, ValueError, "beta and key must share len, the axis before the last; got 4 and 5"),
        ({"key": np.zeros((5, 2))}, ValueError, "query and key must share d_k, the last axis; got 3 and 2"),
        ({"query": np.zeros((6, 3))}, ValueError, "query and key must share len, the axis before the last; got 6 and 5"),
        ({"log_decay": np.full((5, 1), 1.5)}, ValueError, "log_decay must be at most 0 everywhere; got 1.5"),
        ({"log_decay": np.zeros((5, 4))}, ValueError, "log_decay must have 1 or d_k = 3 features, the last axis; got 4"),
        ({"form": "parallel"}, ValueError, "form must be one of 'recurrent', 'chunked'; got 'parallel'"),
        ({"chunk": -1}, ValueError, "chunk must be 1 or more; got -1"),
        ({"scale": "1"}, TypeError, "scale must be a number; got str"),
        ({"return_state": 1}, TypeError, "return_state must be True or False; got int"),
        ({"initial_state": np.zeros((4, 3))}, ValueError, "initial_state must have shape (3, 4), or broadcast to it; got (4, 3)"),
        ({"initial_state": np.zeros(4)}, ValueError, "initial_state must have shape (3, 4), or broadcast to it; got (4,)"),
        ({"enable_gqa": True}, ValueError, "query must have the axes (..., heads, len, features); got shape (5, 3)"),
    ],
)
def test_a_malformed_call_names_the_argument(changed, error, message):
    call = {"query": np.zeros((5, 3)), "key": np.zeros((5, 3)), "value": np.zeros((5, 4)), "beta": np.ones((5, 1))} | changed
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        delta_rule_attention(**call)
