"""Attention where it could break: nothing to attend to, NaN and infinity, no keys, no room in the dtype."""

import numpy as np
import pytest

from attn_course.reference import attention, causal_mask
from tests.reference.support import EPS, assert_same, attention_arrays


def test_a_hidden_entry_of_a_float_mask_may_be_nan():
    query, key, value = attention_arrays(batch=())
    bias = np.where(causal_mask(5, 11), 0.5, np.nan)
    assert_same(attention(query, key, value, mask=bias, is_causal=True), attention(query, key, value, is_causal=True))


def test_no_features_of_the_key_and_a_scale_give_the_plain_mean():
    value = np.array([[1.0], [3.0]])
    np.testing.assert_array_equal(attention(np.zeros((1, 0)), np.zeros((2, 0)), value, scale=1.0), [[2.0]])


def test_float16_scores_beyond_65504_do_not_overflow():
    query, key, value = np.full((1, 8), 200.0, np.float16), np.zeros((2, 8), np.float16), np.array([[60_000.0], [-1.0]], np.float16)
    key[0] = 200.0
    output, lse = attention(query, key, value, scale=1.0, return_lse=True)
    assert_same(output, value[:1], 0.0, "float16")
    assert_same(lse, [np.inf], dtype="float16")  # 320 000 is no float16; the result says so without a warning


def test_scores_beyond_the_largest_float_are_nan_in_their_row_only():
    query, key, value = np.array([[1e200], [1.0]]), np.array([[1e200], [0.0]]), np.ones((2, 1))
    output, lse = attention(query, key, value, return_lse=True)
    np.testing.assert_array_equal(output, [[np.nan], [1.0]])
    assert np.isnan(lse[0])
    assert_same(attention(query, key, value, softcap=5.0), [[1.0], [1.0]])  # a cap bounds infinity too


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("softcap", [1e-300, 1e-45])
def test_a_tiny_cap_makes_all_scores_equal(dtype, softcap):
    query, key, value = attention_arrays(dtype=dtype)
    key[..., 0, :] = 0.0  # 0 / 0 if the cap were rounded to 0
    weights = attention(query, key, value, softcap=softcap, return_weights=True)[1]
    assert_same(weights, np.full(weights.shape, 1 / 11), EPS[dtype], dtype)


def test_a_wide_mask_is_rounded_to_the_computation_without_a_warning():
    inputs = attention_arrays(dtype="float32", batch=())
    bias = np.zeros((5, 11))
    bias[:, 3] = -1e300  # no float32
    keep = np.arange(11) != 3
    assert_same(attention(*inputs, mask=bias), attention(*inputs, mask=keep[None]), 1e-6, "float32")


@pytest.mark.parametrize("dtype", EPS)
def test_the_mean_of_the_largest_floats_is_the_largest_up_to_a_rounding_and_raises_no_warning(dtype):
    largest = np.finfo(dtype).max
    for kv_len in range(1, 60):  # 15 of these sums pass the largest float64 by half a rounding, and are infinite
        output = attention(np.zeros((1, 1), dtype), np.zeros((kv_len, 1), dtype), np.full((kv_len, 1), largest))
        assert output[0, 0] >= largest * (1 - 4 * EPS[dtype])


def test_plus_infinity_or_nan_in_a_visible_entry_of_a_mask_makes_its_row_nan_and_no_other():
    inputs = attention_arrays(batch=())
    for bad in (np.inf, np.nan):
        bias = np.zeros((5, 11))
        bias[2, 3] = bad
        output = attention(*inputs, mask=bias)
        assert np.isnan(output[2]).all()
        assert_same(np.delete(output, 2, axis=0), np.delete(attention(*inputs), 2, axis=0))
