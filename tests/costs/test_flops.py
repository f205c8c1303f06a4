"""The formulas for FLOPs and parameters against counted loops, and the loops against the reference."""

from dataclasses import fields

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Tally, attend, values
from tests.reference.support import latent_weights

SIZES = [(5, 7, 3, 11), (1, 1, 1, 1), (1, 13, 2, 3), (7, 1, 5, 2), (0, 5, 3, 2), (5, 0, 3, 2), (3, 2, 1, 0)]  # q_len, kv_len, d_k, d_v
LATENT = costs.LatentSizes(d_model=7, n_heads=3, d_query_latent=5, d_latent=4, d_head=3, d_rope=2, d_v=6)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def every(q_len, kv_len):
    return np.ones((q_len, kv_len), dtype=bool)


def test_a_tally_counts_a_product_of_matrices_by_multiplications():
    tally = Tally()
    product = tally.numbers(normal(5, 7)) @ tally.numbers(normal(7, 3))
    np.testing.assert_allclose(values(product), normal(5, 7) @ normal(7, 3), atol=1e-14)
    assert tally.flops == 2 * 5 * 7 * 3 == costs.projection_flops(5, 7, 3)


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
def test_attention_takes_the_flops_that_loops_take(q_len, kv_len, d_k, d_v):
    tally, arrays = Tally(), (normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v) - 1)
    output = attend(*map(tally.numbers, arrays), every(q_len, kv_len), tally)
    np.testing.assert_allclose(values(output), reference.attention(*arrays), atol=1e-13)
    assert tally.flops == costs.attention_flops(q_len * kv_len, d_k, d_v)


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
def test_the_gradients_take_five_products(q_len, kv_len, d_k, d_v):
    tally = Tally()
    arrays = normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v), normal(q_len, d_v) - 1
    query, key, value, d_output = map(tally.numbers, arrays)
    scale = 1.0 / np.sqrt(d_k)
    weights = reference.softmax(values(query @ key.T) * scale)
    d_scores = tally.numbers(reference.softmax_vjp(weights, values(d_output @ value.T)) * scale)
    gradients = d_scores @ key, d_scores.T @ query, tally.numbers(weights).T @ d_output
    for got, wanted in zip(gradients, reference.attention_backward(*arrays), strict=True):
        np.testing.assert_allclose(values(got), wanted, atol=1e-13)
    assert tally.flops == costs.attention_backward_flops(q_len * kv_len, d_k, d_v)


@pytest.mark.parametrize("n_gates", [1, 3, 4])
@pytest.mark.parametrize(("length", "d_in", "d_hidden"), [(5, 3, 7), (1, 2, 1), (0, 3, 5)])
def test_a_recurrent_layer_takes_what_loops_take(length, d_in, d_hidden, n_gates):
    tally, state = Tally(), np.zeros(d_hidden)
    pairs = [(tally.numbers(normal(d_in, d_hidden)), tally.numbers(normal(d_hidden, d_hidden))) for _ in range(n_gates)]
    for x in tally.numbers(normal(length, d_in)):
        state = np.tanh(sum(values(x @ w) + values(tally.numbers(state) @ u) for w, u in pairs))
    assert tally.flops == costs.recurrent_flops(length, d_in, d_hidden, n_gates=n_gates)


def latent_loops(x, weights, past, form, tally):
    """Return the output for the last tokens, those before being in the cache; positions are all 0, so that RoPE is the identity."""
    s = LATENT
    w = {field.name: tally.numbers(getattr(weights, field.name)) for field in fields(weights)}
    new = tally.numbers(x[past:])
    query_latent = new @ w["w_query_down"]
    latent, key_rope = (
        np.concatenate([tally.numbers(x[:past] @ getattr(weights, name)), new @ w[name]]) for name in ("w_latent_down", "w_key_rope")
    )
    query_rope = query_latent @ w["w_query_rope"]
    mask = np.tri(len(new), len(x), past, dtype=bool)
    output = np.zeros((len(new), s.d_model))
    for head in range(s.n_heads):
        here, here_rope, here_v = (slice(head * width, (head + 1) * width) for width in (s.d_head, s.d_rope, s.d_v))
        w_query, w_key, w_value, w_output = (
            w["w_query_up"][:, here],
            w["w_key_up"][:, here],
            w["w_value_up"][:, here_v],
            w["w_output"][here_v],
        )
        if form == "naive":
            query, key, value = query_latent @ w_query, latent @ w_key, latent @ w_value
        elif form == "factored":
            query, key, value = query_latent @ w_query @ w_key.T, latent, latent
        else:  # the products of matrices are made once, before the count begins
            query_key, value_output = (tally.numbers(values(a) @ values(b)) for a, b in ((w_query, w_key.T), (w_value, w_output)))
            query, key, value = query_latent @ query_key, latent, latent
        query, key = np.concatenate([query, query_rope[:, here_rope]], axis=1), np.concatenate([key, key_rope], axis=1)
        rows = attend(query, key, value, mask, tally, scale=1.0 / np.sqrt(s.d_head + s.d_rope))
        rows = rows @ w_value if form == "factored" else rows
        output += values(rows @ (value_output if form == "absorbed" else w_output))
    return output


@pytest.mark.parametrize("form", ["naive", "factored", "absorbed"])
@pytest.mark.parametrize(("past", "new"), [(0, 5), (6, 1), (3, 2), (0, 1)])
def test_each_form_of_latent_attention_takes_what_loops_take(form, past, new):
    tally, weights = Tally(), latent_weights(**vars(LATENT))
    x = normal(past + new, LATENT.d_model)
    output = latent_loops(x, weights, past, form, tally)
    wanted = reference.latent_attention(x, weights, n_heads=LATENT.n_heads, positions=np.zeros(past + new, int))[past:]
    np.testing.assert_allclose(output, wanted, atol=1e-11)
    pairs = costs.attended_pairs(new, past + new, is_causal=True, q_offset=past)
    assert tally.flops == costs.latent_attention_flops(LATENT, new, past + new, form=form, pairs=pairs)
