"""Tiled gradients against autograd on the whole matrix and against the dense backward pass, at block sizes that do not fit."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings

from attn_course.reference import attention_backward, flash_attention, flash_attention_backward
from tests.reference.oracles import by_autograd
from tests.reference.support import assert_same, attention_calls
from tests.reference.test_tiling import BLOCKS, large

OPTIONS = {
    "an offset for each sequence, some rows see nothing": {"is_causal": True, "q_offset": np.array([[-30], [150]])},
    "float mask with softcap": {"mask": np.random.default_rng(2).normal(size=(2, 1, 65, 200)) * 4, "softcap": 3.0, "scale": 0.9},
    "a mask of keys and a window": {"mask": np.random.default_rng(3).random((2, 1, 1, 200)) < 0.8, "window": (90, 7), "q_offset": 50},
}


def upstream(arrays, options, seed=5):
    rng = np.random.default_rng(seed)
    output, lse = flash_attention(*arrays, **options, block_q=1000, block_kv=1000, return_lse=True)
    return rng.normal(size=output.shape), rng.normal(size=lse.shape), output, lse


@settings(max_examples=60)
@given(attention_calls(), BLOCKS, BLOCKS)
def test_every_call_has_the_gradients_of_autograd_in_blocks_of_any_size(call, block_q, block_kv):
    arrays, options = call
    d_output, d_lse, _, _ = upstream(arrays, options)
    return_d_mask = "mask" in options and options["mask"].dtype != bool
    blocks = {"block_q": block_q, "block_kv": block_kv, "return_d_mask": return_d_mask}
    got = flash_attention_backward(*arrays, d_output, d_lse=d_lse, **blocks, **options)
    wanted = by_autograd(arrays, options, d_output, d_lse)
    assert len(got) == len(wanted) == 3 + return_d_mask
    for gradient, by_torch in zip(got, wanted, strict=True):
        assert_same(gradient, by_torch, 1e-11)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("block_q", "block_kv"), [(64, 64), (17, 23), (100, 7)])
def test_many_ragged_blocks_give_the_dense_gradients(options, block_q, block_kv):
    arrays, options = large(), options | {"enable_gqa": True}
    d_output, d_lse, output, lse = upstream(arrays, options)
    d_mask = "mask" in options and options["mask"].dtype != bool
    dense = attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=d_mask, **options)
    blocks = {"block_q": block_q, "block_kv": block_kv, "return_d_mask": d_mask}
    for saved in ({}, {"output": output, "lse": lse}):
        tiled = flash_attention_backward(*arrays, d_output, d_lse=d_lse, **blocks, **saved, **options)
        for got, wanted in zip(tiled, dense, strict=True):
            assert_same(got, wanted)


def test_a_saved_output_is_used_and_not_computed_again():
    arrays = large(5, 7)
    d_output, _, output, lse = upstream(arrays, {"enable_gqa": True})
    right, wrong = (
        flash_attention_backward(*arrays, d_output, output=saved, lse=lse, enable_gqa=True, block_q=2, block_kv=3)
        for saved in (output, output + 1.0)
    )
    np.testing.assert_array_equal(right[2], wrong[2])  # the value's gradient needs no delta
    assert np.abs(right[0] - wrong[0]).max() > 1e-3


@pytest.mark.parametrize(("function", "inputs"), [(flash_attention, 3), (flash_attention_backward, 4)])
def test_no_more_than_a_block_of_scores_exists_at_a_time(function, inputs):
    arrays = np.random.default_rng(7).normal(size=(inputs, 1000, 2))
    tracemalloc.start()
    function(*arrays, block_q=100, block_kv=50, is_causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1000**2 / 10


def test_rows_that_see_nothing_and_what_a_mask_hides_get_no_gradient():
    query, key, value = large(9, 11, heads=(2, 2))
    mask = np.ones((9, 11), dtype=bool)
    mask[:, [0, 3, 10]], mask[4] = False, False
    d_output, d_lse = np.random.default_rng(3).normal(size=(2, 2, 9, 5)), np.random.default_rng(4).normal(size=(2, 2, 9))
    options = {"mask": mask, "block_q": 4, "block_kv": 3, "d_lse": d_lse}
    wanted = flash_attention_backward(query, key, value, d_output, **options)
    key[..., [0, 3], :], value[..., [3, 10], :], query[..., 4, :] = np.nan, np.inf, np.nan
    got = flash_attention_backward(query, key, value, d_output, **options)
    for gradient, same in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(gradient, same)
    np.testing.assert_array_equal(got[0][..., 4, :], 0.0)
    for gradient in got[1:]:
        np.testing.assert_array_equal(gradient[..., [0, 3, 10], :], 0.0)
