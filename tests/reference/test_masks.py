"""Masks entry by entry, and how they compose."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference import causal_mask, padding_mask, window_mask

lengths, offsets, sides = st.integers(0, 7), st.integers(-9, 9), st.none() | st.integers(0, 8)


@given(lengths, lengths, offsets)
def test_a_query_sees_the_keys_up_to_its_own_position(q_len, kv_len, q_offset):
    mask = causal_mask(q_len, kv_len, q_offset)
    assert mask.shape == (q_len, kv_len)
    assert mask.dtype == bool
    for i, j in np.ndindex(q_len, kv_len):
        assert mask[i, j] == (j <= i + q_offset)


@given(lengths, lengths, sides, sides, offsets)
def test_a_window_reaches_as_far_as_its_sides(q_len, kv_len, left, right, q_offset):
    mask = window_mask(q_len, kv_len, left, right, q_offset)
    assert mask.shape == (q_len, kv_len)
    assert mask.dtype == bool
    for i, j in np.ndindex(q_len, kv_len):
        behind, ahead = i + q_offset - j, j - i - q_offset
        assert mask[i, j] == ((left is None or behind <= left) and (right is None or ahead <= right))


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64])
def test_an_array_of_offsets_gives_one_mask_for_each(shape, dtype):
    q_offset = np.random.default_rng(7).integers(0, 7, size=shape).astype(dtype)
    causal, window = causal_mask(5, 7, q_offset), window_mask(5, 7, 2, 1, q_offset)
    assert causal.shape == window.shape == (*shape, 5, 7)
    for index in np.ndindex(*shape):
        np.testing.assert_array_equal(causal[index], causal_mask(5, 7, int(q_offset[index])))
        np.testing.assert_array_equal(window[index], window_mask(5, 7, 2, 1, int(q_offset[index])))


@pytest.mark.parametrize("far", [2**31, 2**40, 2**63 - 1, 2**70])
def test_numbers_beyond_any_length_do_not_wrap_around(far):
    assert window_mask(3, 5, far, far).all()
    assert causal_mask(3, 5, far).all()
    assert not causal_mask(3, 5, -far).any()
    assert causal_mask(3, 5, np.array([2**63 - 1])).all()
    assert not window_mask(3, 5, 0, 0, -far).any()
    np.testing.assert_array_equal(window_mask(3, 5, far, far, far), window_mask(3, 5, 0, None))
    np.testing.assert_array_equal(window_mask(3, 5, far, None, far), window_mask(3, 5, 0, None))
    np.testing.assert_array_equal(window_mask(3, 5, 0, far, -far), causal_mask(3, 5))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_padding_hides_what_lies_behind_each_length(shape):
    lengths = np.random.default_rng(7).integers(0, 6, size=shape)
    mask = padding_mask(lengths, 5)
    assert mask.shape == (*shape, 1, 5)
    assert mask.dtype == bool
    for index in np.ndindex(*shape):
        assert mask[index].tolist() == [[j < lengths[index] for j in range(5)]]
