"""Heads: how features are cut and put together, and multi-head attention against one head at a time and torch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import attention, merge_heads, multi_head_attention, repeat_key_value, split_heads
from tests.reference.oracles import loop_attention
from tests.reference.support import EPS, assert_same

batches = st.lists(st.integers(0, 3), max_size=2).map(tuple)
sizes = st.sampled_from([0, 1, 2, 3, 5])


# --- splitting, merging, repeating --------------------------------------------------------------------


@given(batches, sizes, st.integers(1, 4), sizes)
def test_head_h_holds_the_h_th_block_of_features_and_merging_undoes_it(batch, length, n_heads, d_head):
    x = np.random.default_rng(7).normal(size=(*batch, length, n_heads * d_head))
    heads = split_heads(x, n_heads)
    assert heads.shape == (*batch, n_heads, length, d_head)
    for h in range(n_heads):
        np.testing.assert_array_equal(heads[..., h, :, :], x[..., h * d_head : (h + 1) * d_head])
    np.testing.assert_array_equal(merge_heads(heads), x, strict=True)


@given(batches, st.integers(0, 3), sizes, sizes, st.integers(1, 3))
def test_repeated_heads_stand_next_to_each_other(batch, n_kv_heads, length, d_head, n_repeats):
    x = np.random.default_rng(7).normal(size=(*batch, n_kv_heads, length, d_head))
    repeated = repeat_key_value(x, n_repeats)
    assert repeated.shape == (*batch, n_kv_heads * n_repeats, length, d_head)
    for h in range(n_kv_heads * n_repeats):
        np.testing.assert_array_equal(repeated[..., h, :, :], x[..., h // n_repeats, :, :])


# --- multi-head attention -----------------------------------------------------------------------------


def problem(
    seed=7, *, batch=(2,), q_len=5, kv_len=7, d_query=11, d_key_value=13, n_heads=4, n_kv_heads=2, d_k=3, d_v=2, d_output=5, dtype="float64"
):
    rng = np.random.default_rng(seed)
    shapes = {
        "x_query": (*batch, q_len, d_query),
        "x_key_value": (*batch, kv_len, d_key_value),
        "w_query": (d_query, n_heads * d_k),
        "w_key": (d_key_value, n_kv_heads * d_k),
        "w_value": (d_key_value, n_kv_heads * d_v),
        "w_output": (n_heads * d_v, d_output),
    }
    biases = {f"b_{name[2:]}": shape[1:] for name, shape in shapes.items() if name.startswith("w")}
    draw = [rng.normal(size=shape).astype(dtype) for shape in (*shapes.values(), *biases.values())]
    return draw[:6], dict(zip(biases, draw[6:], strict=True))


def one_head_at_a_time(inputs, n_heads, n_kv_heads, biases, mask=None, **options):
    """Slice each head's columns out of the weights, attend by loops, add up the heads' parts of the output."""
    x_query, x_key_value, w_query, w_key, w_value, w_output = inputs
    d_k, d_v = w_query.shape[1] // n_heads, w_value.shape[1] // n_kv_heads
    total, all_weights, all_lse = 0.0, [], []
    for h in range(n_heads):
        shared = h // (n_heads // n_kv_heads)
        columns, shared_columns = slice(h * d_k, (h + 1) * d_k), slice(shared * d_k, (shared + 1) * d_k)
        value_columns, rows = slice(shared * d_v, (shared + 1) * d_v), slice(h * d_v, (h + 1) * d_v)
        query = np.einsum("...ic,cd->...id", x_query, w_query[:, columns]) + biases.get("b_query", np.zeros(w_query.shape[1]))[columns]
        key = (
            np.einsum("...jc,cd->...jd", x_key_value, w_key[:, shared_columns])
            + biases.get("b_key", np.zeros(w_key.shape[1]))[shared_columns]
        )
        value = (
            np.einsum("...jc,cd->...jd", x_key_value, w_value[:, value_columns])
            + biases.get("b_value", np.zeros(w_value.shape[1]))[value_columns]
        )
        own = {} if mask is None else {"mask": mask if mask.ndim == 2 else mask[..., h if mask.shape[-3] > 1 else 0, :, :]}
        output, weights, lse = loop_attention(query, key, value, **own, **options)
        total = total + np.einsum("...id,dc->...ic", output, w_output[rows])
        all_weights.append(weights)
        all_lse.append(lse)
    return total + biases.get("b_output", 0.0), np.stack(all_weights, axis=-3), np.stack(all_lse, axis=-2)


BIAS = np.where(np.random.default_rng(1).random((4, 5, 7)) < 0.7, np.random.default_rng(2).normal(size=(4, 5, 7)), -np.inf)
BIAS[:, 2] = -np.inf


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True, "q_offset": 2},
        {"window": (2, 1), "q_offset": 1},
        {"scale": 0.4, "softcap": 1.5},
        {"mask": BIAS[0]},
        {"mask": ~np.isneginf(BIAS)},
        {"mask": BIAS, "is_causal": True, "q_offset": 1},
        {"mask": np.random.default_rng(3).random((2, 1, 1, 7)) < 0.7},
    ],
)
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_many_heads_equal_one_head_at_a_time(options, n_kv_heads, biased):
    inputs, biases = problem(n_kv_heads=n_kv_heads)
    biases = biases if biased else {}
    got = multi_head_attention(*inputs, n_heads=4, n_kv_heads=n_kv_heads, return_weights=True, return_lse=True, **biases, **options)
    for part, wanted in zip(got, one_head_at_a_time(inputs, 4, n_kv_heads, biases, **options), strict=True):
        assert_same(part, wanted)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0, 1, 2]), max_size=2).map(tuple),
    st.sampled_from([0, 1, 2, 5]),
    st.sampled_from([0, 1, 2, 5]),
    st.sampled_from([(1, 1), (2, 1), (3, 3), (4, 2)]),
    st.sets(st.sampled_from(["b_query", "b_key", "b_value", "b_output"])),
    st.sampled_from([0, 1, 3]),
)
def test_any_lengths_batch_axes_heads_and_choice_of_biases(batch, q_len, kv_len, heads, chosen, d_v):
    inputs, biases = problem(batch=batch, q_len=q_len, kv_len=kv_len, n_heads=heads[0], n_kv_heads=heads[1], d_v=d_v)
    biases = {name: bias for name, bias in biases.items() if name in chosen}
    got = multi_head_attention(*inputs, n_heads=heads[0], n_kv_heads=heads[1], **biases)
    assert_same(got, one_head_at_a_time(inputs, *heads, biases)[0])


def test_batch_axes_of_queries_and_keys_broadcast():
    inputs, _ = problem(batch=(3,))
    inputs[0] = inputs[0][0]
    got = multi_head_attention(*inputs, n_heads=4, n_kv_heads=2)
    assert_same(got, one_head_at_a_time([np.broadcast_to(inputs[0], (3, 5, 11)), *inputs[1:]], 4, 2, {})[0])


def test_projections_beyond_the_range_of_float16_are_kept_wide_until_the_end():
    x = np.array([[300.0, -300.0], [300.0, 300.0]], np.float16)
    grow, shrink = np.eye(2, dtype=np.float16) * 300, np.eye(2, dtype=np.float16) / 300
    output = multi_head_attention(x, x, shrink, shrink, grow, shrink, n_heads=1)  # 90 000 is no float16
    wanted = attention(*(x.astype(np.float64) * factor for factor in (shrink[0, 0], shrink[0, 0], 1.0)))
    assert_same(output, wanted, 2 * EPS["float16"], "float16")


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_padding_holds_does_not_matter(poison):
    inputs, biases = problem()
    may = np.arange(7) < 5
    wanted = multi_head_attention(*inputs, n_heads=4, n_kv_heads=2, mask=may[None], **biases)
    inputs[1][:, 5:] = poison
    assert_same(multi_head_attention(*inputs, n_heads=4, n_kv_heads=2, mask=may[None], **biases), wanted)
