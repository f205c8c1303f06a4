"""Attention with every option, alone and mixed, against loops and torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attn_course.reference import attention
from tests.reference.oracles import loop_attention
from tests.reference.support import EPS, assert_same, attention_arrays, attention_calls


def random_mask(shape=(5, 11), keep=0.6, seed=11):
    return np.random.default_rng(seed).random(shape) < keep


def random_bias(shape=(5, 11), seed=12):
    return np.where(random_mask(shape), np.random.default_rng(seed).normal(size=shape), -np.inf)


def assert_equals_loops(inputs, options, tolerance=1e-12, dtype="float64"):
    results = attention(*inputs, **options, return_weights=True, return_lse=True)
    for got, wanted in zip(results, loop_attention(*inputs, **options), strict=True):
        assert_same(got, wanted, tolerance, dtype)


# --- loops --------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(attention_calls(dtypes=("float64", "float16", "float32", "float64")))
def test_any_mix_of_options_and_dtypes_is_computed_in_float32_or_wider_and_returned_in_the_common_dtype(call):
    inputs, options = call
    dtype = np.result_type(*inputs)
    # scores reach a few tens: their rounding is an error of the exponent
    assert_equals_loops(inputs, options, EPS[dtype.name] + 100 * EPS["float32" if dtype == "float16" else dtype.name], dtype)


def test_results_come_in_the_order_output_weights_lse():
    inputs = attention_arrays()
    output = attention(*inputs)
    assert isinstance(output, np.ndarray)
    shapes = {"return_weights": (2, 3, 5, 11), "return_lse": (2, 3, 5)}
    for asked in (["return_weights"], ["return_lse"], ["return_lse", "return_weights"]):
        results = attention(*inputs, **dict.fromkeys(asked, True))
        assert isinstance(results, tuple)
        assert [part.shape for part in results] == [output.shape, *(shapes[name] for name in shapes if name in asked)]
        np.testing.assert_array_equal(results[0], output)


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
    inputs = attention_arrays(dtype=dtype)
    if "mask" in ours:
        assert ours["mask"].any(axis=-1).all() or ours["mask"].dtype != bool
    tensors = (torch.from_numpy(x) for x in inputs)
    theirs = {name: option if not isinstance(option, np.ndarray) else torch.from_numpy(option) for name, option in theirs.items()}
    if "attn_mask" in theirs and theirs["attn_mask"].dtype != torch.bool:
        theirs["attn_mask"] = theirs["attn_mask"].to(getattr(torch, dtype))
    wanted = torch.nn.functional.scaled_dot_product_attention(*tensors, **theirs)
    assert_same(attention(*inputs, **ours), wanted.numpy(), 40 * EPS[dtype], dtype)
