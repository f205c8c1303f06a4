"""Online softmax, tiled attention and merging against loops and dense attention, at block sizes that do not fit."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attn_course.reference import attention, flash_attention, merge_partial_attention, online_softmax, softmax
from tests.reference.oracles import loop_attention
from tests.reference.support import assert_same, attention_calls

BLOCKS = st.integers(1, 9)


def cut(array, places, axis=-1):
    return np.split(array, sorted(places), axis=axis)


# --- online softmax ----------------------------------------------------------------------------------


@given(arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(0, 13)), elements=st.floats(-700, 700)), st.lists(st.integers(0, 13)))
def test_online_softmax_is_softmax_wherever_the_row_is_cut(scores, places):
    wanted = np.zeros(scores.shape)
    for row, j in np.ndindex(*scores.shape):
        wanted[row, j] = 1 / math.fsum(math.exp(min(other - scores[row, j], 600.0)) for other in scores[row])
    assert_same(online_softmax(cut(scores, places)), wanted, 1e-13)


def test_blocks_of_minus_infinity_come_and_go():
    scores = np.array([[-np.inf, -np.inf, 1.0, 2.0, -np.inf], [-np.inf] * 5, [3.0, -np.inf, -np.inf, -np.inf, -np.inf]])
    weights = online_softmax(cut(scores, [1, 2, 4]))
    assert_same(weights, softmax(scores))
    np.testing.assert_array_equal(weights[1], 0.0)


# --- tiled attention ---------------------------------------------------------------------------------


@given(attention_calls(), BLOCKS, BLOCKS)
def test_every_call_of_attention_gives_the_same_in_blocks_of_any_size(call, block_q, block_kv):
    arrays_given, options = call
    output, lse = flash_attention(*arrays_given, **options, block_q=block_q, block_kv=block_kv, return_lse=True)
    wanted_output, _, wanted_lse = loop_attention(*arrays_given, **options)
    assert_same(output, wanted_output)
    assert_same(lse, wanted_lse)


def large(q_len=65, kv_len=200, heads=(4, 2), seed=7):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(2, heads[0], q_len, 7)) * 3,
        rng.normal(size=(2, heads[1], kv_len, 7)),
        rng.normal(size=(2, heads[1], kv_len, 5)),
    )


def test_a_value_whose_weight_vanishes_against_a_later_key_leaves_no_trace():
    query, key = np.array([[1.0]]), np.array([[0.0], [5000.0]])
    for bad in (np.nan, np.inf):
        value = np.array([[bad], [3.0]])
        np.testing.assert_array_equal(attention(query, key, value), [[3.0]])
        np.testing.assert_array_equal(flash_attention(query, key, value, block_q=1, block_kv=1), [[3.0]])


def test_a_visible_nan_or_infinity_makes_its_row_nan_as_in_dense_attention():
    query, key, value = large(9, 11, heads=(2, 2))
    query[0, 0, 3, 1], key[0, 1, 6] = np.nan, np.inf
    value[1, 0, 2, 4] = np.inf
    for block_kv in (1, 4, 11):
        got = flash_attention(query, key, value, block_q=4, block_kv=block_kv, is_causal=True)
        assert_same(got, attention(query, key, value, is_causal=True))
    assert np.isnan(got[0, 0, 3]).all()
    assert np.isposinf(got[1, 0, 2:, 4]).all()


# --- merging -----------------------------------------------------------------------------------------


@given(attention_calls(lengths=(1, 2, 3, 5, 7)), st.lists(st.integers(0, 7), max_size=4))
def test_attention_over_parts_of_the_keys_merges_to_attention_over_all(call, places):
    (query, key, value), options = call
    edges, parts = [0, *sorted(places), key.shape[-2]], []
    for start, stop in pairwise(edges):
        mask, part = options.get("mask"), dict(options)
        if mask is not None and mask.shape[-1] > 1:
            part["mask"] = mask[..., start:stop]
        part["q_offset"] = np.asarray(options.get("q_offset", 0) - start)
        parts.append(attention(query, key[..., start:stop, :], value[..., start:stop, :], **part, return_lse=True))
    output, lse = merge_partial_attention(*zip(*parts, strict=True))
    wanted, _, wanted_lse = loop_attention(query, key, value, **options)
    assert_same(output, wanted)
    assert_same(lse, wanted_lse)


def test_parts_that_see_nothing_change_nothing():
    output, lse = np.random.default_rng(7).normal(size=(5, 3)), np.array([1.0, -900.0, 900.0, 0.0, -np.inf])
    output[4] = 0.0
    nothing = (np.zeros((5, 3)), np.full(5, -np.inf))
    merged = merge_partial_attention([nothing[0], output, nothing[0]], [nothing[1], lse, nothing[1]])
    np.testing.assert_array_equal(merged[0], output)
    np.testing.assert_array_equal(merged[1], lse)
