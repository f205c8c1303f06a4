"""The gradients of attention against finite differences, torch's autograd and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import attention, attention_backward
from tests.reference.oracles import by_autograd
from tests.reference.support import EPS, assert_same, attention_calls


def upstream(arrays, options, seed=5):
    rng = np.random.default_rng(seed)
    output, lse = attention(*arrays, **options, return_lse=True)
    return rng.normal(size=output.shape), rng.normal(size=lse.shape)


def small(seed=7, query=(2, 3, 2), key=(2, 5, 2), value=(2, 5, 3)):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape) for shape in (query, key, value))


@settings(max_examples=60)
@given(attention_calls(), st.booleans())
def test_any_mix_of_options_matches_autograd(call, with_lse):
    arrays, options = call
    d_output, d_lse = upstream(arrays, options)
    d_lse = d_lse if with_lse else None
    wanted = by_autograd(arrays, options, d_output, d_lse)
    gradients = attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=len(wanted) == 4, **options)
    for got, want in zip(gradients, wanted, strict=True):
        assert_same(got, want)


@settings(max_examples=60)
@given(attention_calls(dtypes=("float16", "float32")))
def test_gradients_have_the_shape_and_dtype_of_their_inputs_and_float32_accuracy(call):
    arrays, options = call
    d_output, d_lse = (gradient.astype(np.float32) for gradient in upstream(arrays, options))
    wanted = by_autograd(arrays, options, d_output.astype(np.float64), d_lse.astype(np.float64))
    gradients = attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=len(wanted) == 4, **options)
    inputs = [*arrays, *([options["mask"]] if len(wanted) == 4 else [])]
    for got, want, array in zip(gradients, wanted, inputs, strict=True):
        assert got.shape == array.shape
        assert_same(got, want, EPS[array.dtype.name] + 1000 * EPS["float32"], array.dtype)


# --- corners ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_hidden_keys_and_values_hold_leaves_every_gradient_as_it_was(poison, softcap, dtype):
    arrays = [array.astype(dtype) for array in small()]
    mask = np.broadcast_to(np.where(np.arange(5) < 3, 0.25, -np.inf), (3, 5)).astype(dtype)
    options = {"mask": mask, "softcap": softcap}
    d_output, d_lse = (gradient.astype(dtype) for gradient in upstream(arrays, options))
    wanted = attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=True, **options)
    arrays[1][:, 3:], arrays[2][:, 3:, 1] = poison, poison
    for got, want in zip(attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=True, **options), wanted, strict=True):
        assert_same(got, want, 8 * EPS[dtype], dtype)
        assert np.isfinite(got).all()


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_a_query_that_sees_nothing_has_gradient_zero_whatever_it_and_its_upstream_gradients_hold(poison):
    arrays = list(small())
    mask = np.ones((3, 5), dtype=bool)
    mask[1] = False
    d_output, d_lse = upstream(arrays, {"mask": mask})
    wanted = attention_backward(*arrays, d_output, d_lse=d_lse, mask=mask)
    arrays[0][:, 1], d_output[:, 1], d_lse[:, 1] = poison, poison, poison
    gradients = attention_backward(*arrays, d_output, d_lse=d_lse, mask=mask)
    assert not gradients[0][:, 1].any()
    for got, want in zip(gradients, wanted, strict=True):
        assert_same(got, want)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_a_capped_score_far_out_keeps_the_digits_of_its_small_slope(dtype, rtol):
    """Keys 10 and -10 caps away: 1 - tanh^2, as it is written, is 0 in float32; the gradient by the query is 20 w (1 - w) slope."""
    query, key, value = (np.array(rows, dtype) for rows in ([[1.0]], [[10.0], [-10.0]], [[1.0], [0.0]]))
    d_query = attention_backward(query, key, value, np.ones((1, 1), dtype), scale=1.0, softcap=1.0)[0]
    high, slope = 1.0 / (1.0 + math.exp(-2.0 * math.tanh(10.0))), 1.0 / math.cosh(10.0) ** 2
    np.testing.assert_allclose(d_query, [[20.0 * high * (1.0 - high) * slope]], rtol=rtol)


def test_a_float16_gradient_that_overflows_is_infinite_without_a_warning():
    query, key, value = np.zeros((3, 1), np.float16), np.zeros((1, 1), np.float16), np.zeros((1, 1), np.float16)
    d_value = attention_backward(query, key, value, np.full((3, 1), 60_000.0, np.float16))[2]
    assert_same(d_value, [[np.inf]], dtype="float16")
