"""Latent attention and absorbed matrices: three ways to the same output, each counted."""

from dataclasses import fields

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Counted, Tally, average, dot, normalise, project, values

SIZES = costs.LatentSizes(d_model=7, n_heads=3, d_query_latent=5, d_latent=4, d_head=3, d_rope=2, d_v=6)


def drawn(sizes=SIZES):
    rng = np.random.default_rng(7)
    s = sizes
    shapes = {
        "w_query_down": (s.d_model, s.d_query_latent),
        "w_query_up": (s.d_query_latent, s.n_heads * s.d_head),
        "w_query_rope": (s.d_query_latent, s.n_heads * s.d_rope),
        "w_latent_down": (s.d_model, s.d_latent),
        "w_key_up": (s.d_latent, s.n_heads * s.d_head),
        "w_key_rope": (s.d_model, s.d_rope),
        "w_value_up": (s.d_latent, s.n_heads * s.d_v),
        "w_output": (s.n_heads * s.d_v, s.d_model),
    }
    return reference.LatentWeights(**{name: rng.normal(size=shape) for name, shape in shapes.items()})


def columns(rows, head, width):
    return [row[head * width : (head + 1) * width] for row in rows]


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def head_output(query, key, value, past, tally):
    """Causal attention of one head in loops, with the scale of the reference."""
    output = []
    scale = 1.0 / np.sqrt(SIZES.d_head + SIZES.d_rope)
    for i, row in enumerate(query):
        scores = [Counted(dot(row, key[j], tally).value * scale, tally) for j in range(past + i + 1)]
        weights = [Counted(w, tally) for w in normalise(scores, Tally())]
        output.append(average(weights, value[: past + i + 1], len(value[0]), tally))
    return output


def summed(parts):
    """Outputs of heads added up; each continues the sum of the one before, so this is no operation of its own."""
    return np.sum([values(part) for part in parts], axis=0)


def latent_loops(x, weights, past, form, tally):
    """Return the output for the last tokens, those before being in the cache; positions are all 0, so that RoPE is the identity."""
    s = SIZES
    w = {field.name: tally.numbers(getattr(weights, field.name)) for field in fields(weights)}
    cached = [tally.numbers(part) for part in (x[:past] @ weights.w_latent_down, x[:past] @ weights.w_key_rope)]
    new = tally.numbers(x[past:])
    query_latent = project(new, w["w_query_down"], tally)
    latent = cached[0] + project(new, w["w_latent_down"], tally)
    key_rope = cached[1] + project(new, w["w_key_rope"], tally)
    query_rope = project(query_latent, w["w_query_rope"], tally)
    parts = []
    for head in range(s.n_heads):
        w_query, w_key, w_value = (
            columns(w[name], head, width) for name, width in (("w_query_up", s.d_head), ("w_key_up", s.d_head), ("w_value_up", s.d_v))
        )
        w_output = w["w_output"][head * s.d_v : (head + 1) * s.d_v]
        rope = columns(query_rope, head, s.d_rope)
        if form == "naive":
            query, key, value = project(query_latent, w_query, tally), project(latent, w_key, tally), project(latent, w_value, tally)
        elif form == "factored":
            query, key, value = project(project(query_latent, w_query, tally), transposed(w_key), tally), latent, latent
        else:  # the products of matrices are made once, before the count begins
            query_key, value_output = (tally.numbers(values(a) @ values(b)) for a, b in ((w_query, transposed(w_key)), (w_value, w_output)))
            query, key, value = project(query_latent, query_key, tally), latent, latent
        whole = head_output(
            [a + b for a, b in zip(query, rope, strict=True)], [a + b for a, b in zip(key, key_rope, strict=True)], value, past, tally
        )
        if form == "factored":
            whole = project(whole, w_value, tally)
        parts.append(project(whole, w_output if form != "absorbed" else value_output, tally))
    return summed(parts)


@pytest.mark.parametrize("form", ["naive", "factored", "absorbed"])
@pytest.mark.parametrize(("past", "new"), [(0, 5), (6, 1), (3, 2), (0, 1)])
def test_each_form_takes_what_loops_take(form, past, new):
    tally, weights = Tally(), drawn()
    x = np.random.default_rng(11).normal(size=(past + new, SIZES.d_model))
    output = latent_loops(x, weights, past, form, tally)
    wanted = reference.latent_attention(x, weights, n_heads=SIZES.n_heads, positions=np.zeros(past + new, int))[past:]
    np.testing.assert_allclose(output, wanted, atol=1e-11)
    pairs = costs.attended_pairs(new, past + new, is_causal=True, q_offset=past)
    assert tally.flops == costs.latent_attention_flops(SIZES, new, past + new, form=form, pairs=pairs)


def test_parameters_are_those_of_the_matrices():
    weights = drawn()
    assert costs.latent_attention_parameters(SIZES) == sum(getattr(weights, field.name).size for field in fields(weights))
    absorbed = (
        reference.absorb_query_key(weights.w_query_up, weights.w_key_up, SIZES.n_heads),
        reference.absorb_value_output(weights.w_value_up, weights.w_output, SIZES.n_heads),
    )
    kept = (weights.w_query_down, weights.w_query_rope, weights.w_latent_down, weights.w_key_rope)
    assert costs.latent_attention_parameters(SIZES, absorbed=True) == sum(array.size for array in (*absorbed, *kept))


V2 = costs.LatentSizes(d_model=5120, n_heads=128, d_query_latent=1536, d_latent=512, d_head=128, d_rope=64, d_v=128)


def test_at_decoding_the_latent_space_wins_and_at_prefill_it_loses():
    decode = {form: costs.latent_attention_flops(V2, 1, 4096, form=form) for form in ("naive", "factored", "absorbed")}
    prefill = {form: costs.latent_attention_flops(V2, 4096, 4096, form=form) for form in ("naive", "factored", "absorbed")}
    assert decode["naive"] > 50 * decode["absorbed"] > 50 * decode["factored"]
    assert prefill["absorbed"] > prefill["factored"] > 2 * prefill["naive"]


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize(("q_len", "kv_len", "projected"), [(3, 5, 5), (1, 7, 1), (2, 0, 0), (0, 3, 3)])
def test_scores_through_one_matrix_or_two_take_what_loops_take(absorbed, q_len, kv_len, projected):
    d_query, d_key, d_k, n_heads = 7, 5, 3, 2
    rng, tally = np.random.default_rng(7), Tally()
    x, y = rng.normal(size=(q_len, d_query)), rng.normal(size=(kv_len, d_key))
    w_query, w_key = rng.normal(size=(d_query, n_heads * d_k)), rng.normal(size=(d_key, n_heads * d_k))
    matrices = reference.absorb_query_key(w_query, w_key, n_heads)
    for head, matrix in enumerate(matrices):
        part = slice(head * d_k, (head + 1) * d_k)
        if absorbed:
            query, key = project(tally.numbers(x), tally.numbers(matrix), tally), tally.numbers(y)
        else:
            cached = tally.numbers(y[: kv_len - projected] @ w_key[:, part])
            query, key = project(tally.numbers(x), tally.numbers(w_query[:, part]), tally), cached
            key = key + project(tally.numbers(y[kv_len - projected :]), tally.numbers(w_key[:, part]), tally)
        scores = [[dot(q, k, tally) for k in key] for q in query]
        np.testing.assert_allclose(values(scores).reshape(q_len, kv_len), x @ matrix @ y.T, atol=1e-12)
    options = {"n_heads": n_heads, "absorbed": absorbed}
    assert tally.flops == costs.query_key_flops(q_len, kv_len, d_query, d_key, d_k, projected_kv_len=projected, **options)
    assert costs.query_key_parameters(d_query, d_key, d_k, **options) == (matrices.size if absorbed else w_query.size + w_key.size)


@pytest.mark.parametrize(("d_query", "d_key"), [(12, 12), (7, 5), (1, 1), (30, 6)])
def test_absorbing_saves_parameters_only_above_the_break_even(d_query, d_key):
    even = costs.absorption_break_even_d_k(d_query, d_key)
    for d_k in range(1, 40):
        apart = costs.query_key_parameters(d_query, d_key, d_k)
        together = costs.query_key_parameters(d_query, d_key, d_k, absorbed=True)
        assert (together < apart, together == apart) == (d_k > even, d_k == even)
