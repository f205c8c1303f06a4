"""Online softmax, tiled attention and merging against loops and dense attention, at block sizes that do not fit."""

import math
import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attn_course.reference import attention, flash_attention, logsumexp, merge_partial_attention, online_softmax, softmax
from tests.reference.oracles import loop_attention
from tests.reference.support import EPS, assert_same, assert_untouched, attention_calls

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


def test_the_largest_score_may_come_first_or_last_and_far_from_the_others():
    for scores in ([1000.0, 0.0, -1000.0], [-1000.0, 0.0, 1000.0]):
        np.testing.assert_array_equal(online_softmax([np.array([x]) for x in scores]), softmax(np.array(scores)))


def test_blocks_of_minus_infinity_come_and_go():
    scores = np.array([[-np.inf, -np.inf, 1.0, 2.0, -np.inf], [-np.inf] * 5, [3.0, -np.inf, -np.inf, -np.inf, -np.inf]])
    weights = online_softmax(cut(scores, [1, 2, 4]))
    assert_same(weights, softmax(scores))
    np.testing.assert_array_equal(weights[1], 0.0)


def test_nan_and_infinity_make_their_own_row_nan_and_no_other():
    scores = np.random.default_rng(7).normal(size=(4, 6))
    scores[1, 4], scores[2, 0] = np.nan, np.inf
    weights = online_softmax(cut(scores, [2, 5]))
    assert np.isnan(weights[[1, 2]]).all()
    assert_same(weights[[0, 3]], softmax(scores[[0, 3]]))


@pytest.mark.parametrize("dtype", EPS)
def test_online_softmax_keeps_the_dtype(dtype):
    blocks = [(np.random.default_rng(n).normal(size=(2, 3, n)) * 5).astype(dtype) for n in (5, 0, 1, 7)]
    before = [block.copy() for block in blocks]
    assert_same(online_softmax(iter(blocks)), softmax(np.concatenate(blocks, -1).astype(float)), 4 * EPS[dtype], dtype)
    for block, copy in zip(blocks, before, strict=True):
        np.testing.assert_array_equal(block, copy)


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


OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "bottom right": {"is_causal": True, "q_offset": 135},
    "an offset for each sequence": {"is_causal": True, "q_offset": np.array([[3], [150]])},
    "rows that see nothing": {"is_causal": True, "q_offset": -30},
    "window": {"window": (40, 7), "q_offset": 50},
    "bool mask": {"mask": np.random.default_rng(1).random((65, 200)) < 0.3},
    "float mask with softcap": {"mask": np.random.default_rng(2).normal(size=(2, 1, 65, 200)) * 4, "softcap": 3.0},
    "everything": {
        "mask": np.where(np.random.default_rng(3).random((2, 1, 1, 200)) < 0.8, 0.5, -np.inf),
        "is_causal": True,
        "q_offset": np.array([[60], [0]]),
        "window": (90, None),
        "softcap": 5.0,
        "scale": 0.9,
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("block_q", "block_kv"), [(64, 64), (17, 23), (1, 200), (100, 7)])
def test_many_ragged_blocks_give_dense_attention(options, block_q, block_kv):
    given_arrays = large()
    tiled = flash_attention(*given_arrays, **options, enable_gqa=True, block_q=block_q, block_kv=block_kv, return_lse=True)
    dense = attention(*given_arrays, **options, enable_gqa=True, return_lse=True)
    for got, wanted in zip(tiled, dense, strict=True):
        assert_same(got, wanted)


@pytest.mark.parametrize("q_len", [0, 1, 63, 64, 65])
@pytest.mark.parametrize("kv_len", [0, 1, 63, 64, 65])
def test_lengths_on_and_off_the_block(q_len, kv_len):
    given_arrays = large(q_len, kv_len)
    output, lse = flash_attention(*given_arrays, enable_gqa=True, is_causal=True, block_q=32, block_kv=32, return_lse=True)
    wanted, wanted_lse = attention(*given_arrays, enable_gqa=True, is_causal=True, return_lse=True)
    assert_same(output, wanted)
    assert_same(lse, wanted_lse)


def test_what_a_mask_hides_may_hold_anything():
    query, key, value = large(9, 11, heads=(2, 2))
    mask = np.ones((9, 11), dtype=bool)
    mask[:, [0, 3, 10]], mask[4] = False, False
    wanted = flash_attention(query, key, value, mask=mask, block_q=4, block_kv=3)
    key[..., [0, 3], :], value[..., [3, 10], :] = np.nan, np.inf
    np.testing.assert_array_equal(flash_attention(query, key, value, mask=mask, block_q=4, block_kv=3), wanted)
    np.testing.assert_array_equal(wanted[..., 4, :], 0.0)


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


def test_no_more_than_a_block_of_scores_exists_at_a_time():
    query, key, value = np.random.default_rng(7).normal(size=(3, 1000, 2))
    tracemalloc.start()
    flash_attention(query, key, value, block_q=100, block_kv=50, is_causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1000**2 / 10


@pytest.mark.parametrize("dtype", EPS)
def test_flash_attention_keeps_the_dtype_and_leaves_its_inputs_alone(dtype):
    given_arrays = [x.astype(dtype) for x in large(9, 11)]
    options = {"mask": np.random.default_rng(1).random((9, 11)) < 0.7, "enable_gqa": True}
    output, lse = assert_untouched(flash_attention, *given_arrays, **options, block_q=4, block_kv=3, return_lse=True)
    wanted, _, wanted_lse = loop_attention(*given_arrays, **options)
    assert_same(output, wanted, 32 * EPS[dtype], dtype)
    assert_same(lse, wanted_lse, 32 * EPS[dtype], dtype)


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


def test_merging_does_not_depend_on_the_order_or_on_what_is_merged_first():
    rng = np.random.default_rng(7)
    outputs, lses = list(rng.normal(size=(4, 2, 5, 3))), list(rng.normal(size=(4, 2, 5)) * 300)
    wanted = merge_partial_attention(outputs, lses)
    order = [2, 0, 3, 1]
    for got in (
        merge_partial_attention([outputs[i] for i in order], [lses[i] for i in order]),
        merge_partial_attention(
            *zip(merge_partial_attention(outputs[:2], lses[:2]), merge_partial_attention(outputs[2:], lses[2:]), strict=True)
        ),
        merge_partial_attention(iter(outputs), np.array(lses)),
    ):
        assert_same(got[0], wanted[0])
        assert_same(got[1], wanted[1])
    assert_same(wanted[1], logsumexp(np.array(lses), axis=0))


def test_parts_that_see_nothing_change_nothing():
    output, lse = np.random.default_rng(7).normal(size=(5, 3)), np.array([1.0, -900.0, 900.0, 0.0, -np.inf])
    output[4] = 0.0
    nothing = (np.zeros((5, 3)), np.full(5, -np.inf))
    merged = merge_partial_attention([nothing[0], output, nothing[0]], [nothing[1], lse, nothing[1]])
    np.testing.assert_array_equal(merged[0], output)
    np.testing.assert_array_equal(merged[1], lse)


@pytest.mark.parametrize("dtype", EPS)
def test_merging_keeps_the_dtypes(dtype):
    rng = np.random.default_rng(7)
    outputs, lses = [rng.normal(size=(5, 3)).astype(dtype) for _ in range(3)], [rng.normal(size=5).astype(dtype) for _ in range(3)]
    output, lse = merge_partial_attention(outputs, lses)
    terms = np.exp(np.array(lses, dtype=float))
    assert_same(output, (terms[..., None] * np.array(outputs, dtype=float)).sum(0) / terms.sum(0)[:, None], 4 * EPS[dtype], dtype)
    assert_same(lse, np.log(terms.sum(0)), 4 * EPS[dtype], dtype)


# --- errors ------------------------------------------------------------------------------------------


def flash(**changed):
    call = {"query": np.zeros((5, 3)), "key": np.zeros((7, 3)), "value": np.zeros((7, 4)), "block_q": 2, "block_kv": 3} | changed
    return flash_attention(**call)


@pytest.mark.usefixtures("no_shape_check")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: online_softmax(3.0), TypeError, "blocks must be an iterable of ndarrays; got float"),
        (lambda: online_softmax([]), ValueError, "blocks must hold at least one block; got none"),
        (lambda: online_softmax([np.zeros(2), [0.0]]), TypeError, "blocks[1] must be an ndarray of floats; got list"),
        (lambda: online_softmax([np.array(1.0)]), ValueError, "blocks[0] must have at least one axis; got shape ()"),
        (
            lambda: online_softmax([np.zeros((2, 3)), np.zeros((4, 3))]),
            ValueError,
            "leading axes must broadcast; got blocks[0] (2,), blocks[1] (4,)",
        ),
        (lambda: flash(block_q=0), ValueError, "block_q must be 1 or more; got 0"),
        (lambda: flash(block_kv=2.0), TypeError, "block_kv must be an integer; got float 2.0"),
        (lambda: flash(query=[[0.0]]), TypeError, "query must be an ndarray of floats; got list"),
        (lambda: flash(query=np.zeros(3)), ValueError, "query must have the axes (..., len, features); got shape (3,)"),
        (lambda: flash(key=np.zeros((7, 2))), ValueError, "query and key must share d_k, the last axis; got 3 and 2"),
        (lambda: flash(value=np.zeros((6, 4))), ValueError, "key and value must share kv_len, the axis before the last; got 7 and 6"),
        (lambda: flash(mask=[[True]]), TypeError, "mask must be an ndarray of bool or float; got list"),
        (lambda: flash(mask=np.ones((5, 7), int)), TypeError, "mask must be an ndarray of bool or float; got int64 ndarray"),
        (
            lambda: flash(mask=np.ones((5, 6), bool)),
            ValueError,
            "mask must broadcast to (..., q_len, kv_len) = (..., 5, 7); got shape (5, 6)",
        ),
        (lambda: flash(mask=np.ones(7, bool)), ValueError, "mask must broadcast to (..., q_len, kv_len) = (..., 5, 7); got shape (7,)"),
        (lambda: flash(q_offset=1.5), TypeError, "q_offset must be an integer or an ndarray of integers; got float"),
        (lambda: flash(is_causal=1), TypeError, "is_causal must be True or False; got int"),
        (lambda: flash(return_lse="yes"), TypeError, "return_lse must be True or False; got str"),
        (lambda: flash(softcap=-1.0), ValueError, "softcap must be positive and finite; got -1.0"),
        (lambda: flash(scale="1"), TypeError, "scale must be a number or None; got str"),
        (
            lambda: merge_partial_attention([], []),
            ValueError,
            "outputs and lses must hold the same number of arrays, at least one; got 0 and 0",
        ),
        (
            lambda: merge_partial_attention([np.zeros((5, 3))], [np.zeros(5)] * 2),
            ValueError,
            "outputs and lses must hold the same number of arrays, at least one; got 1 and 2",
        ),
        (
            lambda: merge_partial_attention([np.zeros((5, 3))], [np.zeros(4)]),
            ValueError,
            "lses[0] must have shape (5,), that of its output but for d_v; got (4,)",
        ),
        (
            lambda: merge_partial_attention([np.zeros((5, 3)), np.zeros((5, 4))], [np.zeros(5)] * 2),
            ValueError,
            "outputs[1] must have shape (5, 3), that of outputs[0]; got (5, 4)",
        ),
        (lambda: merge_partial_attention([np.zeros((5, 3))], [[0.0]]), TypeError, "lses[0] must be an ndarray of floats; got list"),
        (
            lambda: merge_partial_attention([np.zeros(3)], [np.zeros(())]),
            ValueError,
            "outputs[0] must have the axes (..., q_len, d_v); got shape (3,)",
        ),
    ],
)
def test_a_malformed_call_names_the_argument(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_the_weights_cannot_be_asked_for():
    with pytest.raises(TypeError, match="return_weights"):
        flash(return_weights=True)
