"""What attention is, whatever the numbers: an average of visible values that knows no order of keys."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import attention, attention_backward
from tests.reference.oracles import allowed_pairs
from tests.reference.support import assert_same, attention_arrays, attention_calls


@settings(max_examples=40)
@given(attention_calls())
def test_rows_of_weights_sum_to_one_or_to_zero_and_are_never_negative(call):
    inputs, options = call
    _, weights, lse = attention(*inputs, **options, return_weights=True, return_lse=True)
    assert (weights >= 0.0).all()
    assert_same(weights.sum(axis=-1), np.where(np.isneginf(lse), 0.0, 1.0))


@settings(max_examples=40)
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


@settings(max_examples=40)
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


@settings(max_examples=40)
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


@settings(max_examples=40)
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
    inputs = attention_arrays()
    row = np.random.default_rng(7).normal(size=(5, 1))
    plain = attention(*inputs, return_weights=True, return_lse=True)
    moved = attention(*inputs, mask=np.broadcast_to(row, (5, 11)), return_weights=True, return_lse=True)
    for got, wanted in zip(moved, (plain[0], plain[1], plain[2] + row[:, 0]), strict=True):
        assert_same(got, wanted)


def poisoned(call, bad):
    """Return a copy of the arrays with `bad` in some rows, and which queries neither are nor see such a row."""
    (query, key, value), options = call
    rng = np.random.default_rng(7)
    arrays, hit = [], []
    for array in (query, key, value):
        array, rows = array.copy(), rng.random(array.shape[:-1]) < 0.25
        array[rows] = bad
        arrays.append(array)
        hit.append(rows)
    hit_query, hit_key, hit_value = hit
    seen = hit_key[..., None, :] | hit_value[..., None, :]
    if options.get("enable_gqa"):
        seen = np.repeat(seen, query.shape[-3] // key.shape[-3], axis=-3)
    allowed = allowed_pairs(*arrays, **options)
    return arrays, ~((allowed & seen).any(axis=-1) | (hit_query & allowed.any(axis=-1)))


@settings(max_examples=40)
@given(attention_calls(dtypes=("float64", "float32")), st.sampled_from([np.nan, np.inf, -np.inf, 1e38]), st.booleans())
def test_nan_and_infinity_anywhere_raise_no_warning_and_spoil_only_the_queries_that_see_them(call, bad, with_lse):
    arrays, clean = poisoned(call, bad)
    options = call[1]
    wanted, got = (attention(*inputs, **options, return_weights=True, return_lse=True) for inputs in (call[0], arrays))
    dtype = wanted[0].dtype
    for spoilt, part in zip(got, wanted, strict=True):
        assert_same(spoilt[clean], part[clean], 1e-12 if dtype == "float64" else 1e-5, dtype)
    d_output, d_lse = np.ones_like(wanted[0]), np.ones_like(wanted[2]) if with_lse else None
    wanted, got = (attention_backward(*inputs, d_output, d_lse=d_lse, **options) for inputs in (call[0], arrays))
    if arrays[0].shape[:-1] == clean.shape:  # no axis of the query was broadcast: its gradients are its own
        assert_same(got[0][clean], wanted[0][clean], 1e-12 if dtype == "float64" else 1e-4, arrays[0].dtype)
