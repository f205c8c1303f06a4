"""Linear attention and the delta rule in all their forms against their definitions as loops: decay, states, chunks, shared heads."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference import delta_rule_attention, linear_attention
from tests.reference.support import assert_same

FORMS = {linear_attention: ("parallel", "recurrent", "chunked"), delta_rule_attention: ("recurrent", "chunked")}
every_form = pytest.mark.parametrize(
    ("rule", "form"), [(rule, form) for rule, forms in FORMS.items() for form in forms], ids=lambda each: getattr(each, "__name__", each)
)


def loop_linear(query, key, value, log_decay=None, scale=1.0, state=None, phi=lambda x: x, normalize=False):
    """One sequence of the definition, entry by entry; returns outputs, S and z."""
    length, d_v = value.shape
    q, k = phi(query), phi(key)
    d_k = k.shape[1]
    s, z = (np.zeros((d_k, d_v)), np.zeros(d_k)) if state is None else (state[0].copy(), state[1].copy())
    outputs = np.zeros((length, d_v))
    for t in range(length):
        for a in range(d_k):
            kept = 1.0 if log_decay is None else np.exp(log_decay[t, a if log_decay.shape[1] > 1 else 0])
            z[a] = kept * z[a] + k[t, a]
            for f in range(d_v):
                s[a, f] = kept * s[a, f] + k[t, a] * value[t, f]
        mass = sum(z[a] * q[t, a] for a in range(d_k))
        for f in range(d_v):
            read = scale * sum(s[a, f] * q[t, a] for a in range(d_k))
            outputs[t, f] = read if not normalize else (read / mass if mass != 0 else 0.0)
    return outputs, s, z


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


def definition(rule, query, key, value, beta, log_decay=None, scale=1.0, state=None):
    if rule is delta_rule_attention:
        return loop_delta(query, key, value, beta, log_decay, scale, state)
    pair = None if state is None else (state, np.zeros(len(state)))
    return loop_linear(query, key, value, log_decay, scale, pair)[:2]


def sequences(length, d_k=3, d_v=5, features=1, batch=(), seed=7):
    rng = np.random.default_rng(seed + length)
    query, key, value = (rng.normal(size=(*batch, length, width)) for width in (d_k, d_k, d_v))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    beta = rng.random(size=(*batch, length, 1))
    log_decay = None if features == 0 else -rng.exponential(0.3, size=(*batch, length, features))
    return query, key, value, beta, log_decay, rng.normal(size=(*batch, d_k, d_v)) * 3


def run(rule, query, key, value, beta, **options):
    return rule(query, key, value, *([beta] if rule is delta_rule_attention else []), **options, return_state=True)


@every_form
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("features", [0, 1, 7])
def test_every_form_is_the_definition_from_any_state_with_any_decay(rule, form, length, features):
    *arrays, log_decay, state = sequences(length, d_k=7, features=features)
    output, after = run(rule, *arrays, log_decay=log_decay, scale=0.7, initial_state=state, form=form)
    wanted, s = definition(rule, *arrays, log_decay, 0.7, state)
    assert_same(output, wanted, 1e-10)
    assert_same(after, s, 1e-10)


@pytest.mark.parametrize("rule", FORMS)
@given(st.integers(1, 90), st.integers(0, 40), st.integers(0, 1000))
def test_the_size_of_a_chunk_does_not_matter(rule, chunk, length, seed):
    *arrays, log_decay, state = sequences(length, features=3, seed=seed)
    options = {"log_decay": log_decay, "initial_state": state}
    recurrent, _ = run(rule, *arrays, form="recurrent", **options)
    assert_same(run(rule, *arrays, form="chunked", chunk=chunk, **options)[0], recurrent, 1e-11)


@every_form
@pytest.mark.parametrize("features", [1, 3])
def test_violent_decay_neither_overflows_nor_cancels(rule, form, features):
    *arrays, log_decay, state = sequences(65, features=features)
    log_decay = log_decay * 1e4
    log_decay[7], log_decay[20:23] = -np.inf, 0.0  # forget everything, keep everything
    output, after = run(rule, *arrays, log_decay=log_decay, initial_state=state, form=form)
    wanted, s = definition(rule, *arrays, log_decay, state=state)
    assert_same(output, wanted, 1e-12)
    assert_same(after, s, 1e-12)


@every_form
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_shared_heads_are_repeated_and_have_one_state_each(rule, form, kv_heads):
    query = np.random.default_rng(1).normal(size=(2, 6, 9, 3))
    _, *shared, log_decay, state = sequences(9, batch=(2, kv_heads))
    output, after = run(rule, query, *shared, log_decay=log_decay, initial_state=state, form=form, chunk=4, enable_gqa=True)
    assert after.shape == (2, kv_heads, 3, 5)
    for b, h in np.ndindex(2, 6):
        r = h // (6 // kv_heads)
        wanted, s = definition(rule, query[b, h], *(x[b, r] for x in shared), log_decay[b, r], state=state[b, r])
        assert_same(output[b, h], wanted, 1e-12)
        assert_same(after[b, r], s, 1e-12)


@every_form
def test_leading_axes_broadcast(rule, form):
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(2, 1, 6, 3)), rng.normal(size=(4, 6, 3)) / 3, rng.normal(size=(1, 6, 5))
    beta, log_decay, state = rng.random(size=(2, 1, 6, 1)), -rng.random(size=(6, 3)), rng.normal(size=(4, 3, 5))
    output, after = run(rule, query, key, value, beta, log_decay=log_decay, initial_state=state, form=form, chunk=4)
    assert after.shape == (2, 4, 3, 5)
    for a, b in np.ndindex(2, 4):
        wanted, s = definition(rule, query[a, 0], key[b], value[0], beta[a, 0], log_decay, state=state[b])
        assert_same(output[a, b], wanted, 1e-12)
        assert_same(after[a, b], s, 1e-12)


@every_form
@pytest.mark.parametrize("features", [0, 1, 3])
def test_what_the_future_holds_does_not_matter_not_even_nan(rule, form, features):
    *arrays, log_decay, _ = sequences(9, features=features)
    _, key, value, _ = arrays
    before, _ = run(rule, *arrays, log_decay=log_decay, form=form, chunk=5)
    key[7, 1], value[7, 2], value[8] = np.nan, np.inf, np.nan
    after, _ = run(rule, *arrays, log_decay=log_decay, form=form, chunk=5)
    np.testing.assert_allclose(after[:7], before[:7], rtol=1e-13)
    assert np.isnan(after[7:]).any(axis=-1).all()


@every_form
def test_only_the_parallel_form_holds_a_number_for_each_pair_of_positions(rule, form):
    arrays = sequences(1000)[:4]
    tracemalloc.start()
    run(rule, *arrays, form=form, chunk=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak > 8 * 1000**2 if form == "parallel" else peak < 8 * 1000**2 / 20
