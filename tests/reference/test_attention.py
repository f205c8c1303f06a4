"""Attention with every option, alone and mixed, against loops and torch."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attn_course.reference import attention, causal_mask
from tests.reference.oracles import allowed_pairs, loop_attention
from tests.reference.support import EPS, assert_same, assert_untouched, attention_calls


def arrays(seed=7, *, batch=(2, 3), q_len=5, kv_len=11, d_k=7, d_v=13, spread=1.0, dtype="float64"):
    rng = np.random.default_rng(seed)
    shapes = ((*batch, q_len, d_k), (*batch, kv_len, d_k), (*batch, kv_len, d_v))
    return tuple((rng.normal(size=shape) * spread).astype(dtype) for shape in shapes)


def random_mask(shape=(5, 11), keep=0.6, seed=11):
    return np.random.default_rng(seed).random(shape) < keep


def random_bias(shape=(5, 11), seed=12):
    return np.where(random_mask(shape), np.random.default_rng(seed).normal(size=shape), -np.inf)


def assert_equals_loops(inputs, options, tolerance=1e-12):
    results = attention(*inputs, **options, return_weights=True, return_lse=True)
    for got, wanted in zip(results, loop_attention(*inputs, **options), strict=True):
        assert_same(got, wanted, tolerance)


# --- the contract, keyword by keyword -----------------------------------------------------------------

ALONE = {
    "nothing": {},
    "boolean mask": {"mask": random_mask()},
    "boolean mask for all queries": {"mask": random_mask((2, 1, 1, 11))},
    "boolean mask for all keys": {"mask": random_mask((3, 5, 1))},
    "one entry as a mask": {"mask": np.zeros((1, 1), dtype=bool)},
    "mask with an axis more than the query": {"mask": random_mask((2, 2, 3, 5, 11))},
    "float mask": {"mask": random_bias()},
    "float mask without infinities": {"mask": np.random.default_rng(3).normal(size=(2, 1, 5, 11))},
    "causal": {"is_causal": True},
    "causal, aligned at the bottom right": {"is_causal": True, "q_offset": 6},
    "causal, offset below zero": {"is_causal": True, "q_offset": -2},
    "causal, one offset for each batch element": {"is_causal": True, "q_offset": np.array([[4], [-1]])},
    "causal, one offset for each head": {"is_causal": True, "q_offset": np.array([0, 6, 20], dtype=np.int32)},
    "offset without causal": {"q_offset": 3},
    "window": {"window": (2, 1)},
    "window open on the left": {"window": (None, 1)},
    "window open on the right": {"window": (2, None)},
    "window open on both sides": {"window": (None, None)},
    "window of one": {"window": (0, 0)},
    "window with offsets": {"window": (2, 0), "q_offset": np.array([[6], [2]])},
    "scale": {"scale": 0.3},
    "scale zero": {"scale": 0.0},
    "negative scale": {"scale": -1.5},
    "softcap": {"softcap": 0.7},
    "softcap before a float mask": {"softcap": 0.7, "mask": random_bias() * 3},
    "softcap after the scale": {"softcap": 0.7, "scale": 2.0},
    "everything": {
        "mask": random_mask((2, 1, 5, 11), 0.8),
        "is_causal": True,
        "q_offset": np.array([[6], [4]]),
        "window": (5, 3),
        "scale": 0.9,
        "softcap": 1.3,
    },
}


@pytest.mark.parametrize("name", ALONE)
def test_each_option_gives_what_the_loops_give(name):
    assert_equals_loops(arrays(), ALONE[name])


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (6, 6), (5, 1), (1, 1)])
def test_grouped_queries_share_heads_as_the_loops_say(heads, kv_heads):
    rng = np.random.default_rng(7)
    query, key, value = (rng.normal(size=(2, n, length, 3)) for n, length in ((heads, 5), (kv_heads, 7), (kv_heads, 7)))
    assert_equals_loops((query, key, value), {"enable_gqa": True, "mask": random_mask((heads, 5, 7))})


def test_a_shared_head_serves_neighbours_by_repeat_and_not_by_tile():
    value = np.array([[[1.0]], [[2.0]]])  # (kv_heads, kv_len, d_v)
    output = attention(np.zeros((4, 1, 3)), np.zeros((2, 1, 3)), value, enable_gqa=True)
    np.testing.assert_array_equal(output.ravel(), [1.0, 1.0, 2.0, 2.0])


@pytest.mark.parametrize("shapes", list(itertools.product([(2, 3), (1, 3), (2, 1), (3,), ()], repeat=3))[::7])
def test_leading_axes_broadcast_as_in_the_loops(shapes):
    rng = np.random.default_rng(7)
    inputs = tuple(rng.normal(size=(*shape, *own)) for shape, own in zip(shapes, ((5, 7), (11, 7), (11, 2)), strict=True))
    assert_equals_loops(inputs, {"is_causal": True, "q_offset": 2})


@settings(max_examples=250)
@given(attention_calls())
def test_any_mix_of_options_gives_what_the_loops_give(call):
    assert_equals_loops(*call)


@settings(max_examples=80)
@given(attention_calls(dtypes=("float16", "float32", "float64", "float32")))
def test_any_mix_of_dtypes_is_computed_in_float32_or_wider_and_returned_in_the_common_dtype(call):
    inputs, options = call
    dtype = np.result_type(*inputs)
    results = attention(*inputs, **options, return_weights=True, return_lse=True)
    for got, wanted in zip(results, loop_attention(*inputs, **options), strict=True):
        # scores reach a few tens: their rounding is an error of the exponent
        assert_same(got, wanted, EPS[dtype.name] + 100 * EPS["float32" if dtype == "float16" else dtype.name], dtype)


@settings(max_examples=60)
@given(attention_calls(dtypes=("float16", "float64")))
def test_inputs_may_be_read_only_and_stay_as_they_are(call):
    inputs, options = call
    assert_untouched(attention, *inputs, **options, return_weights=True, return_lse=True)


def test_results_come_in_the_order_output_weights_lse():
    inputs = arrays()
    output = attention(*inputs)
    assert isinstance(output, np.ndarray)
    shapes = {"return_weights": (2, 3, 5, 11), "return_lse": (2, 3, 5)}
    for asked in (["return_weights"], ["return_lse"], ["return_lse", "return_weights"]):
        results = attention(*inputs, **dict.fromkeys(asked, True))
        assert isinstance(results, tuple)
        assert [part.shape for part in results] == [output.shape, *(shapes[name] for name in shapes if name in asked)]
        np.testing.assert_array_equal(results[0], output)


def test_any_strides_and_byte_order_give_the_same_numbers():
    inputs = arrays()
    wanted = attention(*inputs, mask=random_mask())
    strided = [np.repeat(x, 2, axis=-1)[..., ::2] for x in inputs]
    fortran = [np.asfortranarray(x) for x in inputs]
    for variant in (strided, fortran, [x.astype(">f8") for x in inputs]):
        assert_same(attention(*variant, mask=np.asfortranarray(random_mask())), wanted)


# --- torch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"scale": 0.4}, {"scale": 0.4}),
        ({"is_causal": True}, {"is_causal": True}),  # both align the top left corners
        ({"mask": random_mask()}, {"attn_mask": random_mask()}),  # both: True = may attend
        ({"mask": random_bias()}, {"attn_mask": random_bias()}),
        ({"mask": random_mask((2, 1, 1, 11))}, {"attn_mask": random_mask((2, 1, 1, 11))}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torchs_scaled_dot_product_attention_agrees(ours, theirs, dtype):
    inputs = arrays(dtype=dtype)
    if "mask" in ours:
        assert ours["mask"].any(axis=-1).all() or ours["mask"].dtype != bool
    tensors = (torch.from_numpy(x) for x in inputs)
    theirs = {name: option if not isinstance(option, np.ndarray) else torch.from_numpy(option) for name, option in theirs.items()}
    if "attn_mask" in theirs and theirs["attn_mask"].dtype != torch.bool:
        theirs["attn_mask"] = theirs["attn_mask"].to(getattr(torch, dtype))
    wanted = torch.nn.functional.scaled_dot_product_attention(*tensors, **theirs)
    assert_same(attention(*inputs, **ours), wanted.numpy(), 40 * EPS[dtype], dtype)


def test_torchs_grouped_queries_agree():
    rng = np.random.default_rng(7)
    inputs = tuple(rng.normal(size=(2, heads, length, 3)) for heads, length in ((6, 5), (2, 7), (2, 7)))
    wanted = torch.nn.functional.scaled_dot_product_attention(*(torch.from_numpy(x) for x in inputs), enable_gqa=True)
    assert_same(attention(*inputs, enable_gqa=True), wanted.numpy())


def test_a_cache_of_past_keys_is_an_offset_and_agrees_with_the_last_rows_of_the_whole():
    query, key, value = arrays(q_len=11)
    whole = attention(query, key, value, is_causal=True)
    for past in range(11):
        last = attention(query[..., past : past + 1, :], key[..., : past + 1, :], value[..., : past + 1, :], is_causal=True, q_offset=past)
        assert_same(last, whole[..., past : past + 1, :])


# --- corners ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", EPS)
def test_a_fully_masked_row_is_zero_and_its_neighbours_are_untouched(dtype):
    inputs = arrays(dtype=dtype)
    mask = np.ones((5, 11), dtype=bool)
    mask[2] = False
    wanted = attention(*inputs, return_weights=True, return_lse=True)
    for part, nothing in zip(wanted, (0.0, 0.0, -np.inf), strict=True):
        part[:, :, 2] = nothing
    for given_mask in (mask, np.where(mask, 0.0, -np.inf)):
        for got, part in zip(attention(*inputs, mask=given_mask, return_weights=True, return_lse=True), wanted, strict=True):
            np.testing.assert_array_equal(got, part, strict=True)


@pytest.mark.parametrize(
    "options",
    [
        {"is_causal": True, "q_offset": -5},
        {"window": (0, 0), "q_offset": 11},
        {"mask": np.zeros((1, 1), bool)},
        {"mask": np.full((5, 1), -np.inf)},
    ],
)
def test_queries_that_see_nothing_by_any_rule_are_zero(options):
    output, weights, lse = attention(*arrays(), **options, return_weights=True, return_lse=True)
    assert_same(output, np.zeros((2, 3, 5, 13)))
    assert_same(weights, np.zeros((2, 3, 5, 11)))
    assert_same(lse, np.full((2, 3, 5), -np.inf))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "rule", [{"mask": True}, {"mask": True, "softcap": 2.0}, {"is_causal": True, "q_offset": 2}, {"window": (3, 0), "q_offset": 2}]
)
def test_what_hidden_keys_and_values_hold_does_not_matter(dtype, poison, rule):
    query, key, value = arrays(dtype=dtype)
    hidden = 8  # beyond every causal limit and window of five queries from 2 on
    rule = {**rule, "mask": np.arange(11) < np.full((5, 1), hidden)} if "mask" in rule else rule
    wanted = attention(query, key, value, **rule, return_weights=True, return_lse=True)
    key[..., hidden:, :], value[..., hidden:, 0] = poison, poison
    for got, part in zip(attention(query, key, value, **rule, return_weights=True, return_lse=True), wanted, strict=True):
        assert_same(got, part, 4 * EPS[dtype], dtype)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_value_visible_to_one_query_and_hidden_from_another_reaches_only_the_first(poison):
    query, key, value = arrays(batch=())
    mask = np.ones((5, 11), dtype=bool)
    mask[[0, 2, 4], 3] = False
    wanted = attention(query, key, value, mask=mask)
    value[3, 1] = poison
    wanted[[1, 3], 1] = poison
    assert_same(attention(query, key, value, mask=mask), wanted)


def test_infinities_of_both_signs_give_nan_only_where_both_are_seen():
    value = np.array([[np.inf], [-np.inf], [1.0], [np.nan]])
    mask = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
    output = attention(np.zeros((6, 2)), np.zeros((4, 2)), value, mask=mask)
    np.testing.assert_array_equal(output.ravel(), [np.inf, -np.inf, np.nan, np.nan, 1.0, np.nan])


def test_a_key_visible_to_one_query_and_hidden_from_another_makes_only_the_first_nan():
    query, key, value = arrays(batch=())
    mask = np.ones((5, 11), dtype=bool)
    mask[[0, 2, 4], 3] = False
    wanted = attention(query, key, value, mask=mask, return_weights=True, return_lse=True)
    key[3] = np.nan
    for got, part in zip(attention(query, key, value, mask=mask, return_weights=True, return_lse=True), wanted, strict=True):
        assert np.isnan(got[[1, 3]]).any(axis=-1).all()
        np.testing.assert_array_equal(got[[0, 2, 4]], part[[0, 2, 4]])


def test_a_query_of_nans_that_sees_nothing_is_zero():
    query, key, value = arrays(batch=())
    query[2] = np.nan
    mask = np.ones((5, 11), dtype=bool)
    mask[2] = False
    output, weights, lse = attention(query, key, value, mask=mask, return_weights=True, return_lse=True)
    assert not output[2].any()
    assert not weights[2].any()
    assert lse[2] == -np.inf


def test_a_hidden_entry_of_a_float_mask_may_be_nan():
    query, key, value = arrays(batch=())
    bias = np.where(causal_mask(5, 11), 0.5, np.nan)
    assert_same(attention(query, key, value, mask=bias, is_causal=True), attention(query, key, value, is_causal=True))


@pytest.mark.parametrize("dtype", EPS)
def test_all_equal_scores_give_the_plain_mean_and_the_logarithm_of_the_number_of_keys(dtype):
    _, key, value = arrays(dtype=dtype)
    output, weights, lse = attention(np.zeros((2, 3, 5, 7), dtype), key, value, return_weights=True, return_lse=True)
    mean = np.broadcast_to(value.astype(np.float64).mean(axis=-2, keepdims=True), output.shape)
    assert_same(output, mean, 4 * EPS[dtype], dtype)
    assert_same(weights, np.full((2, 3, 5, 11), 1 / 11), EPS[dtype], dtype)
    assert_same(lse, np.full((2, 3, 5), math.log(11)), EPS[dtype], dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_one_key_gets_all_the_weight(dtype, spread):
    query, key, value = arrays(kv_len=1, spread=spread, dtype=dtype)
    output, weights = attention(query, key, value, return_weights=True)
    np.testing.assert_array_equal(output, np.broadcast_to(value, output.shape))
    np.testing.assert_array_equal(weights, 1.0)


@pytest.mark.parametrize(("q_len", "kv_len", "d_v"), [(0, 11, 13), (5, 0, 13), (5, 11, 0), (0, 0, 0), (1, 0, 1), (0, 1, 1)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"window": (1, 1)}, {"mask": np.ones((1, 1), bool)}, {"softcap": 2.0}])
def test_lengths_of_zero_give_empty_or_zero_results(q_len, kv_len, d_v, options):
    inputs = arrays(q_len=q_len, kv_len=kv_len, d_v=d_v)
    output, weights, lse = attention(*inputs, **options, return_weights=True, return_lse=True)
    assert (output.shape, weights.shape, lse.shape) == ((2, 3, q_len, d_v), (2, 3, q_len, kv_len), (2, 3, q_len))
    if kv_len == 0:
        np.testing.assert_array_equal(output, 0.0)
        np.testing.assert_array_equal(lse, -np.inf)


def test_no_features_of_the_key_and_a_scale_give_the_plain_mean():
    value = np.array([[1.0], [3.0]])
    np.testing.assert_array_equal(attention(np.zeros((1, 0)), np.zeros((2, 0)), value, scale=1.0), [[2.0]])


def test_float16_scores_beyond_65504_do_not_overflow():
    query, key, value = np.full((1, 8), 200.0, np.float16), np.zeros((2, 8), np.float16), np.array([[60_000.0], [-1.0]], np.float16)
    key[0] = 200.0
    output, lse = attention(query, key, value, scale=1.0, return_lse=True)
    assert_same(output, value[:1], 0.0, "float16")
    assert_same(lse, [np.inf], dtype="float16")  # 320 000 is no float16; the result says so without a warning


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_scores_pick_the_largest(dtype):
    query, key = np.array([[1e15]], dtype), np.array([[1e15], [-1e15], [0.0]], dtype)
    output, weights = attention(query, key, np.array([[3.0], [5.0], [7.0]], dtype), return_weights=True)
    np.testing.assert_array_equal(weights, [[1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(output, [[3.0]])


def test_scores_beyond_the_largest_float_are_nan_in_their_row_only():
    query, key, value = np.array([[1e200], [1.0]]), np.array([[1e200], [0.0]]), np.ones((2, 1))
    output, lse = attention(query, key, value, return_lse=True)
    np.testing.assert_array_equal(output, [[np.nan], [1.0]])
    assert np.isnan(lse[0])
    assert_same(attention(query, key, value, softcap=5.0), [[1.0], [1.0]])  # a cap bounds infinity too


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("softcap", [1e-300, 1e-45])
def test_a_tiny_cap_makes_all_scores_equal(dtype, softcap):
    query, key, value = arrays(dtype=dtype)
    key[..., 0, :] = 0.0  # 0 / 0 if the cap were rounded to 0
    weights = attention(query, key, value, softcap=softcap, return_weights=True)[1]
    assert_same(weights, np.full(weights.shape, 1 / 11), EPS[dtype], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_huge_cap_changes_nothing(dtype):
    inputs = arrays(dtype=dtype)
    assert_same(attention(*inputs, softcap=1e300), attention(*inputs), 1e-6 if dtype == "float32" else 1e-12, dtype)


@pytest.mark.parametrize("far", [2**31, 2**63 - 1, 2**70])
def test_offsets_and_sides_beyond_any_length_open_or_close_everything(far):
    inputs = arrays()
    everything = attention(*inputs)
    np.testing.assert_array_equal(attention(*inputs, is_causal=True, q_offset=far), everything)
    np.testing.assert_array_equal(attention(*inputs, window=(far, far)), everything)
    np.testing.assert_array_equal(attention(*inputs, window=(0, far), q_offset=-far), attention(*inputs, is_causal=True))
    np.testing.assert_array_equal(attention(*inputs, window=(0, 0), q_offset=-far), np.zeros_like(everything))
    np.testing.assert_array_equal(attention(*inputs, window=(far, None), q_offset=far), attention(*inputs, window=(0, None)))
    np.testing.assert_array_equal(attention(*inputs, is_causal=True, q_offset=-far), np.zeros_like(everything))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64, np.uint64])
def test_offsets_may_be_integers_of_any_kind(kind):
    inputs = arrays()
    offset = np.array([[6], [2]], dtype=kind)
    wanted = attention(*inputs, is_causal=True, q_offset=np.array([[6], [2]]), window=(9, 0))
    np.testing.assert_array_equal(attention(*inputs, is_causal=True, q_offset=offset, window=(9, 0)), wanted)


def test_a_wide_mask_is_rounded_to_the_computation_without_a_warning():
    inputs = arrays(dtype="float32", batch=())
    bias = np.zeros((5, 11))
    bias[:, 3] = -1e300  # no float32
    keep = np.arange(11) != 3
    assert_same(attention(*inputs, mask=bias), attention(*inputs, mask=keep[None]), 1e-6, "float32")


# --- what attention is --------------------------------------------------------------------------------


@settings(max_examples=100)
@given(attention_calls())
def test_rows_of_weights_sum_to_one_or_to_zero_and_are_never_negative(call):
    inputs, options = call
    _, weights, lse = attention(*inputs, **options, return_weights=True, return_lse=True)
    assert (weights >= 0.0).all()
    assert_same(weights.sum(axis=-1), np.where(np.isneginf(lse), 0.0, 1.0))


@settings(max_examples=100)
@given(attention_calls(lengths=(1, 2, 3, 5)))
def test_outputs_lie_between_the_smallest_and_the_largest_visible_value(call):
    inputs, options = call
    output, weights = attention(*inputs, **options, return_weights=True)
    value = inputs[2]
    if options.get("enable_gqa"):
        value = np.repeat(value, inputs[0].shape[-3] // value.shape[-3], axis=-3)
    each = np.where(weights[..., None] > 0.0, value[..., None, :, :], np.nan)  # (..., q_len, kv_len, d_v)
    some = (weights > 0.0).any(axis=-1)
    low, high = np.where(np.isnan(each), np.inf, each).min(axis=-2), np.where(np.isnan(each), -np.inf, each).max(axis=-2)
    assert (output[some] >= low[some] - 1e-13).all()
    assert (output[some] <= high[some] + 1e-13).all()


@settings(max_examples=100)
@given(attention_calls(lengths=(1, 2, 3, 5)))
def test_the_order_of_keys_and_values_changes_nothing(call):
    (query, key, value), options = call
    options = {name: option for name, option in options.items() if name not in ("is_causal", "window", "q_offset")}
    output, weights, lse = attention(query, key, value, **options, return_weights=True, return_lse=True)
    order = np.random.default_rng(7).permutation(key.shape[-2])
    if "mask" in options:
        mask = options["mask"]
        options["mask"] = np.broadcast_to(mask, (*mask.shape[:-1], key.shape[-2]))[..., order]
    shuffled = attention(query, key[..., order, :], value[..., order, :], **options, return_weights=True, return_lse=True)
    for got, wanted in zip(shuffled, (output, weights[..., order], lse), strict=True):
        assert_same(got, wanted)


@settings(max_examples=60)
@given(attention_calls(lengths=(2, 3, 5)))
def test_adding_minus_infinity_is_removing_the_key(call):
    (query, key, value), options = call
    options = {name: option for name, option in options.items() if name in ("scale", "softcap", "enable_gqa")}
    keep = np.arange(key.shape[-2]) != 1
    wanted = attention(query, key[..., keep, :], value[..., keep, :], **options, return_weights=True, return_lse=True)
    hidden = attention(query, key, value, mask=np.where(keep, 0.0, -np.inf)[None], **options, return_weights=True, return_lse=True)
    assert not hidden[1][..., 1].any()
    for got, part in zip((hidden[0], hidden[1][..., keep], hidden[2]), wanted, strict=True):
        assert_same(got, part)


@settings(max_examples=60)
@given(attention_calls())
def test_every_rule_can_be_written_as_a_boolean_or_a_float_mask(call):
    inputs, options = call
    if "mask" in options and options["mask"].dtype != bool:
        options["mask"] = ~np.isneginf(options["mask"])
    wanted = attention(*inputs, **options)
    allowed = allowed_pairs(*inputs, **options)
    rest = {name: option for name, option in options.items() if name in ("scale", "softcap", "enable_gqa")}
    for mask in (allowed, np.where(allowed, 0.0, -np.inf)):
        assert_same(attention(*inputs, mask=mask, **rest), wanted)


def test_adding_a_constant_to_a_row_of_scores_moves_only_the_lse():
    inputs = arrays()
    row = np.random.default_rng(7).normal(size=(5, 1))
    plain = attention(*inputs, return_weights=True, return_lse=True)
    moved = attention(*inputs, mask=np.broadcast_to(row, (5, 11)), return_weights=True, return_lse=True)
    for got, wanted in zip(moved, (plain[0], plain[1], plain[2] + row[:, 0]), strict=True):
        assert_same(got, wanted)
