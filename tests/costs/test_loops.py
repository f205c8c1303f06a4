"""The formulas for softmax attention against counted loops, and the loops against the reference."""

import math

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Counted, Tally, attend, average, dot, normalise, project, values

SIZES = [(5, 7, 3, 11), (1, 1, 1, 1), (1, 13, 2, 3), (7, 1, 5, 2), (0, 5, 3, 2), (5, 0, 3, 2), (3, 2, 1, 0)]  # q_len, kv_len, d_k, d_v


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def everything(kv_len):
    return lambda i: list(range(kv_len))


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
def test_attention_takes_the_flops_and_exponentials_that_loops_take(q_len, kv_len, d_k, d_v):
    tally, quiet = Tally(), Tally()
    arrays = normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v) - 1
    output = attend(*map(tally.numbers, arrays), d_v, everything(kv_len), tally, quiet)
    np.testing.assert_allclose(values(output).reshape(q_len, d_v), reference.attention(*arrays), atol=1e-13)
    assert tally.flops == costs.attention_flops(q_len * kv_len, d_k, d_v)
    assert quiet["exp"] == costs.attention_exps(q_len * kv_len)
    assert tally["multiply"] == tally["add"]  # one multiply-add is two FLOPs


@pytest.mark.parametrize(
    "mask",
    [{"is_causal": True}, {"is_causal": True, "q_offset": 6}, {"window": (2, 1), "q_offset": 3}, {"is_causal": True, "q_offset": -2}],
)
def test_masked_pairs_cost_nothing_where_loops_skip_them(mask):
    tally, quiet = Tally(), Tally()
    arrays = normal(5, 3), normal(11, 3), normal(11, 2)
    offset, (left, right) = mask.get("q_offset", 0), mask.get("window", (None, None))

    def visible(i):
        place = i + offset
        return [
            j
            for j in range(11)
            if not (mask.get("is_causal") and j > place)
            and not (left is not None and j < place - left)
            and not (right is not None and j > place + right)
        ]

    output = attend(*map(tally.numbers, arrays), 2, visible, tally, quiet)
    np.testing.assert_allclose(values(output), reference.attention(*arrays, **mask), atol=1e-13)
    pairs = costs.attended_pairs(5, 11, **mask)
    assert tally.flops == costs.attention_flops(pairs, 3, 2)
    assert quiet["exp"] == pairs


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
@pytest.mark.parametrize("recompute", [True, False])
def test_the_gradients_take_five_products_or_four(q_len, kv_len, d_k, d_v, recompute):
    tally = Tally()
    arrays = normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v), normal(q_len, d_v) - 1
    query, key, value, d_output = map(tally.numbers, arrays)
    _, weights = reference.attention(*arrays[:3], return_weights=True)
    scale = 1.0 / math.sqrt(d_k)
    d_query = [[tally.zero() for _ in range(d_k)] for _ in range(q_len)]
    d_key = [[tally.zero() for _ in range(d_k)] for _ in range(kv_len)]
    d_value = [[tally.zero() for _ in range(d_v)] for _ in range(kv_len)]
    for i in range(q_len):
        p = [Counted(w, tally) for w in weights[i]]
        if recompute:
            p = (
                [Counted(w, tally) for w in normalise([Counted(dot(query[i], k, tally).value * scale, tally) for k in key], Tally())]
                if key
                else []
            )
        d_p = [dot(d_output[i], v, tally) for v in value]
        delta = sum(a.value * b.value for a, b in zip(p, d_p, strict=True))
        d_s = [Counted(a.value * (b.value - delta) * scale, tally) for a, b in zip(p, d_p, strict=True)]
        d_query[i] = average(d_s, key, d_k, tally)
        for j in range(kv_len):
            d_key[j] = [have + d_s[j] * entry for have, entry in zip(d_key[j], query[i], strict=True)]
            d_value[j] = [have + p[j] * entry for have, entry in zip(d_value[j], d_output[i], strict=True)]
    for got, wanted in zip((d_query, d_key, d_value), reference.attention_backward(*arrays), strict=True):
        np.testing.assert_allclose(values(got).reshape(wanted.shape), wanted, atol=1e-13)
    assert tally.flops == costs.attention_backward_flops(q_len * kv_len, d_k, d_v, recompute_scores=recompute)


@pytest.mark.parametrize(("q_len", "kv_len", "d_k"), [(5, 7, 3), (1, 2, 11), (0, 3, 2)])
def test_cosine_scores_cost_norms_and_divisions_on_top_of_dot_products(q_len, kv_len, d_k):
    tally = Tally()
    arrays = normal(q_len, d_k), normal(kv_len, d_k) + 1
    units = []
    for rows in map(tally.numbers, arrays):
        lengths = [dot(row, row, tally).root() for row in rows]
        units.append([[entry / length for entry in row] for row, length in zip(rows, lengths, strict=True)])
    assert tally.flops + tally["divide"] == costs.cosine_norm_flops(q_len, kv_len, d_k)
    assert tally["root"] == q_len + kv_len
    scores = [[dot(query, key, tally) for key in units[1]] for query in units[0]]
    np.testing.assert_allclose(values(scores).reshape(q_len, kv_len), reference.cosine_scores(*arrays), atol=1e-13)
    assert tally.flops + tally["divide"] == costs.cosine_norm_flops(q_len, kv_len, d_k) + costs.attention_flops(q_len * kv_len, d_k, 0)


@pytest.mark.parametrize(
    ("q_len", "kv_len", "d_query", "d_key", "d_hidden", "d_v"), [(5, 7, 2, 3, 11, 13), (1, 1, 1, 1, 1, 1), (0, 3, 2, 5, 7, 1)]
)
def test_additive_attention_takes_what_loops_take(q_len, kv_len, d_query, d_key, d_hidden, d_v):
    tally, quiet = Tally(), Tally()
    arrays = normal(q_len, d_query), normal(kv_len, d_key), normal(d_query, d_hidden), normal(d_key, d_hidden), normal(d_hidden)
    value = normal(kv_len, d_v)
    query, key, w_query, w_key, w_score = map(tally.numbers, arrays)
    query, key = project(query, w_query, tally), project(key, w_key, tally)
    hidden = [[[(a + b).tanh() for a, b in zip(q, k, strict=True)] for k in key] for q in query]  # (q_len, kv_len, d_hidden)
    scores = [[dot(cell, w_score, tally) for cell in row] for row in hidden]
    np.testing.assert_allclose(values(scores).reshape(q_len, kv_len), reference.additive_scores(*arrays), atol=1e-13)
    for row in scores:
        average([Counted(w, tally) for w in normalise(row, quiet)], tally.numbers(value), d_v, tally)
    assert tally.flops == costs.additive_attention_flops(q_len, kv_len, d_query, d_key, d_hidden, d_v)
    assert tally["tanh"] == costs.additive_tanhs(q_len * kv_len, d_hidden)
    assert costs.additive_intermediate_bytes(q_len, kv_len, d_hidden) == values(hidden).astype(np.float32).nbytes
    assert costs.additive_parameters(d_query, d_key, d_hidden) == sum(array.size for array in arrays[2:])


@pytest.mark.parametrize(
    ("q_len", "kv_len", "n_heads", "n_kv_heads"), [(3, 5, 2, 2), (3, 5, 6, 3), (2, 3, 4, 1), (0, 2, 1, 1), (2, 0, 2, 1)]
)
def test_multi_head_attention_takes_what_loops_take(q_len, kv_len, n_heads, n_kv_heads):
    d_model, d_key_value, d_k, d_v = 7, 5, 3, 2
    tally, quiet = Tally(), Tally()
    weights = (
        normal(d_model, n_heads * d_k),
        normal(d_key_value, n_kv_heads * d_k),
        normal(d_key_value, n_kv_heads * d_v),
        normal(n_heads * d_v, d_model),
    )
    x, y = normal(q_len, d_model), normal(kv_len, d_key_value)
    w_query, w_key, w_value, w_output = map(tally.numbers, weights)
    query, key, value = (
        project(tally.numbers(x), w_query, tally),
        project(tally.numbers(y), w_key, tally),
        project(tally.numbers(y), w_value, tally),
    )
    heads = []
    for head in range(n_heads):
        kv_head = head // (n_heads // n_kv_heads)
        parts = (
            [row[at * width : (at + 1) * width] for row in rows]
            for rows, at, width in ((query, head, d_k), (key, kv_head, d_k), (value, kv_head, d_v))
        )
        heads.append(attend(*parts, d_v, everything(kv_len), tally, quiet))
    merged = [[entry for head in heads for entry in head[i]] for i in range(q_len)]
    output = project(merged, w_output, tally)
    wanted = reference.multi_head_attention(x, y, *weights, n_heads=n_heads, n_kv_heads=n_kv_heads)
    np.testing.assert_allclose(values(output).reshape(q_len, d_model), wanted, atol=1e-12)
    sizes = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "d_k": d_k, "d_v": d_v, "d_key_value": d_key_value}
    assert tally.flops == costs.multi_head_attention_flops(q_len, kv_len, d_model, **sizes)
    assert costs.multi_head_parameters(d_model, **sizes) == sum(weight.size for weight in weights)
    assert quiet["exp"] == n_heads * costs.attention_exps(q_len * kv_len)


def test_a_step_of_decoding_projects_only_the_new_position():
    step = costs.multi_head_attention_flops(1, 11, 12, n_heads=3, projected_kv_len=1)
    assert step == 4 * costs.projection_flops(1, 12, 12) + 3 * costs.attention_flops(11, 4, 4)


def test_steps_of_decoding_cost_what_the_causal_pass_costs():
    steps = [costs.multi_head_attention_flops(1, past + 1, 12, n_heads=3, projected_kv_len=1) for past in range(7)]
    assert sum(steps) == costs.multi_head_attention_flops(7, 7, 12, n_heads=3, pairs=costs.attended_pairs(7, 7, is_causal=True))


def test_full_size_heads_cost_as_many_times_more_as_there_are_heads():
    usual = costs.multi_head_attention_flops(5, 7, 12, n_heads=4)
    assert costs.multi_head_attention_flops(5, 7, 12, n_heads=1) == usual
    assert costs.multi_head_attention_flops(5, 7, 12, n_heads=4, d_k=12) == 4 * usual


def test_biases_are_one_for_each_column():
    sizes = {"n_heads": 6, "n_kv_heads": 2, "d_k": 5, "d_v": 3, "d_key_value": 11}
    assert costs.multi_head_parameters(7, **sizes, bias=True) - costs.multi_head_parameters(7, **sizes) == 6 * 5 + 2 * 5 + 2 * 3 + 7


def test_exponentials_are_few_against_the_multiply_adds_they_come_with():
    pairs, d = 1000, 64
    assert costs.attention_flops(pairs, d, d) / 2 / costs.attention_exps(pairs) == 2 * d
