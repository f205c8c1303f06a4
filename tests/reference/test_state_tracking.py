"""Steps of the delta rule up to 2: what reflections follow without loss, and what no step up to 1 can."""

import numpy as np
import pytest

from attn_course.reference import delta_product_attention, delta_rule_attention
from tests.reference.support import assert_same, assert_says
from tests.reference.test_recurrences import loop_delta, sequences

FORMS = ("recurrent", "chunked")


def exchanges(n, length, seed=7):
    """Pairs of places to exchange, and where everything is after each."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.permutation(n)[:2] for _ in range(length)])
    order, orders = np.arange(n), []
    for a, b in pairs:
        order = order.copy()
        order[[a, b]] = order[[b, a]]
        orders.append(order)
    return pairs, orders


def mirrors(pairs, n):
    return (np.eye(n)[pairs[..., 0]] - np.eye(n)[pairs[..., 1]]) / np.sqrt(2)


def states_after(key, beta, start, form="recurrent", **options):
    """Return the state after each position: what all unit queries read."""
    value = np.zeros((*beta.shape[:-1], start.shape[-1]), start.dtype)
    read = [
        delta_rule_attention(np.tile(unit, (len(key), 1)), key, value, beta, form=form, initial_state=start, **options)
        for unit in np.eye(len(start), dtype=start.dtype)
    ]
    return np.stack(read, axis=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [0, 1, 3])
@pytest.mark.parametrize("length", [1, 65, 130])
def test_steps_up_to_2_are_the_definition_in_every_form_with_any_gates(form, features, length):
    query, key, value, beta, log_decay, state = sequences(length, features=features)
    beta = 2 * beta
    beta[:: length // 3 + 1] = 2.0
    options = {"log_decay": log_decay, "initial_state": state, "return_state": True}
    output, after = delta_rule_attention(query, key, value, beta, form=form, **options)
    wanted, s = loop_delta(query, key, value, beta, log_decay, state=state)
    assert_same(output, wanted, 1e-11)
    assert_same(after, s, 1e-11)


def test_few_keys_turned_round_again_and_again_leave_the_chunked_form_as_exact_as_the_recurrent():
    query, key, value, beta, _, state = sequences(130)
    key[:] = key[np.arange(130) % 3]
    beta[:] = 2.0
    recurrent, chunked = (delta_rule_attention(query, key, value, beta, form=form, initial_state=state) for form in FORMS)
    assert_same(chunked, recurrent, 1e-10)


@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_a_gate_of_1_is_none_and_a_gate_of_0_leaves_each_position_alone(form, features):
    query, key, value, beta, _, state = sequences(20)
    options = {"form": form, "initial_state": state, "chunk": 8}
    open_gate = delta_rule_attention(query, key, value, 2 * beta, log_decay=np.zeros((20, features)), **options)
    assert_same(open_gate, delta_rule_attention(query, key, value, 2 * beta, **options), 1e-12)
    shut = delta_rule_attention(query, key, value, 2 * beta, log_decay=np.full((20, features), -np.inf), **options)
    assert_same(shut, 2 * beta * (query * key).sum(-1, keepdims=True) * value, 1e-13)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-4)])
def test_reflections_follow_a_thousand_exchanges(form, dtype, tolerance):
    pairs, orders = exchanges(5, 1000)
    key, beta = mirrors(pairs, 5).astype(dtype), np.full((1000, 1), 2.0, dtype)
    states = states_after(key, beta, np.eye(5, dtype=dtype), form)
    assert_same(states, np.eye(5)[np.array(orders)], tolerance, dtype)


def test_a_step_of_1_forgets_what_it_should_exchange():
    pairs, orders = exchanges(5, 40)
    states = states_after(mirrors(pairs, 5), np.ones((40, 1)), np.eye(5))
    assert_same(states[-1], np.full((5, 5), 0.2), 0.02)
    assert np.abs(states[-1] - np.eye(5)[orders[-1]]).max() > 0.7


@pytest.mark.parametrize("form", FORMS)
def test_the_parity_of_ten_thousand_bits_is_exact(form):
    bits = np.random.default_rng(7).integers(0, 2, size=10_000)
    ones = np.ones((10_000, 1))
    signs = delta_rule_attention(ones, ones, 0 * ones, 2.0 * bits[:, None], form=form, initial_state=np.ones((1, 1)))
    np.testing.assert_array_equal(signs[:, 0], (-1.0) ** bits.cumsum())


@pytest.mark.parametrize("gate", [1.0, 0.97])
def test_equal_tokens_are_told_apart_by_their_number_only_with_steps_above_1(gate):
    """Whatever is written and read: from n tokens to n + 1 nothing changes by more than n^n / (n + 1)^(n + 1) of the first change."""
    query, key, value, _, _, start = sequences(1, d_k=5)
    tokens = {"query": query, "key": key, "value": value}
    n = np.arange(1, 60)
    bound = (n / (n + 1.0)) ** n / (n + 1)
    length = np.linalg.norm(query) * (np.linalg.norm(start, 2) + np.linalg.norm(value))
    for beta in (0.0, 0.02, 0.1, 0.5, 0.9, 1.0, 2.0):
        repeated = {name: np.tile(array, (61, 1)) for name, array in tokens.items()}
        read = delta_rule_attention(**repeated, beta=np.full((61, 1), beta), log_decay=np.full((61, 1), np.log(gate)), initial_state=start)
        change = np.linalg.norm(np.diff(read, axis=0), axis=1)
        within = change[:59] <= bound * length + 1e-12
        assert within.all() == (beta <= 1)


# --- several steps a position ------------------------------------------------------------------------


def several(length=7, steps=3, d_k=5, d_v=2, batch=()):
    rng = np.random.default_rng(7)
    key = rng.normal(size=(*batch, length, steps, d_k))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    value, beta = rng.normal(size=(*batch, length, steps, d_v)), rng.uniform(0, 2, size=(*batch, length, steps, 1))
    log_decay = -rng.exponential(0.3, size=(*batch, length, d_k))
    return rng.normal(size=(*batch, length, d_k)), key, value, beta, log_decay, rng.normal(size=(*batch, d_k, d_v))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_product_of_steps_is_the_loop_over_them(form, gated, steps):
    query, key, value, beta, log_decay, start = several(steps=steps)
    s, wanted = start.copy(), []
    for t in range(len(key)):
        s = np.diag(np.exp(log_decay[t])) @ s if gated else s
        for k, v, b in zip(key[t], value[t], beta[t, :, 0], strict=True):
            s = s - b * np.outer(k, k @ s) + b * np.outer(k, v)
        wanted.append(0.7 * query[t] @ s)
    options = {"log_decay": log_decay if gated else None, "form": form, "chunk": 4, "initial_state": start, "scale": 0.7}
    output, after = delta_product_attention(query, key, value, beta, return_state=True, **options)
    assert_same(output, wanted, 1e-12)
    assert_same(after, s, 1e-12)
    if steps == 1:
        assert_same(output, delta_rule_attention(query, key[:, 0], value[:, 0], beta[:, 0], **options), 1e-14)


def test_sequences_of_a_batch_are_on_their_own_and_none_is_none():
    arrays = several(batch=(2, 3))
    output = delta_product_attention(*arrays[:4], log_decay=arrays[4])
    for b, h in np.ndindex(2, 3):
        assert_same(output[b, h], delta_product_attention(*(x[b, h] for x in arrays[:4]), log_decay=arrays[4][b, h]), 1e-13)
    assert delta_product_attention(*(x[..., :0, :] if x is arrays[0] else x[:, :, :0] for x in arrays[:4])).shape == (2, 3, 0, 2)


@pytest.mark.parametrize("form", FORMS)
def test_four_mirrors_a_token_follow_any_permutation_of_five(form):
    """A token is a permutation, made of as many exchanges as it needs; steps of 0 fill up. One step makes exchanges only."""
    rng = np.random.default_rng(7)
    order, orders, key, beta = np.arange(5), [], np.zeros((200, 4, 5)), np.zeros((200, 4, 1))
    for t in range(200):
        moved, step = rng.permutation(5), 0
        order = order[moved]
        orders.append(order)
        places = np.arange(5)  # rows of the state become those of `moved`, place by place
        for place in range(5):
            source = np.flatnonzero(places == moved[place])[0]
            if source != place:
                places[[place, source]] = places[[source, place]]
                key[t, step], beta[t, step], step = mirrors(np.array([place, source]), 5), 2.0, step + 1
    read = [
        delta_product_attention(np.tile(unit, (200, 1)), key, np.zeros((200, 4, 5)), beta, form=form, initial_state=np.eye(5))
        for unit in np.eye(5)
    ]
    assert_same(np.stack(read, axis=1), np.eye(5)[np.array(orders)], 1e-12)


@pytest.mark.usefixtures("no_shape_check")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": np.ones((7, 5))}, "key must have the axes (..., len, n_steps, features); got shape (7, 5)"),
        ({"key": np.ones((7, 0, 5))}, "key must have at least one step, the axis before the last; got 0"),
        ({"value": np.ones((7, 2, 2))}, "value and key must share len and n_steps; got (7, 2) and (7, 3)"),
        ({"beta": np.ones((6, 3, 1))}, "beta and key must share len and n_steps; got (6, 3) and (7, 3)"),
        ({"query": np.ones((6, 5))}, "query and key must share len; got 6 and 7"),
        ({"log_decay": -np.ones((21, 5))}, "log_decay and key must share len; got 21 and 7"),
        ({"log_decay": np.ones((7, 5))}, "log_decay must be at most 0 everywhere; got 1.0"),
        ({"log_decay": -np.ones((7, 2))}, "log_decay must have 1 or d_k = 5 features, the last axis; got 2"),
        ({"beta": np.ones((7, 3, 5))}, "beta must have one number for each position, (..., len, 1); got shape (21, 5)"),
        ({"form": "parallel"}, "form must be one of 'recurrent', 'chunked'; got 'parallel'"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    given = dict(zip(("query", "key", "value", "beta"), several(), strict=False))
    assert_says(ValueError, message, delta_product_attention, **given | change)
