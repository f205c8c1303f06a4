"""The gradients of attention against finite differences, torch's autograd and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import attention, attention_backward
from tests.reference.oracles import by_autograd
from tests.reference.support import EPS, assert_same, attention_calls

NAMES = ("query", "key", "value", "mask")


def loss(arrays, options, d_output, d_lse):
    """A number whose gradients with respect to output and lse are d_output and d_lse."""
    output, lse = attention(*arrays, **options, return_lse=True)
    return float((output * d_output).sum() + (np.where(np.isfinite(lse), lse, 0.0) * d_lse).sum())


def upstream(arrays, options, seed=5):
    """Return random gradients of output and lse."""
    rng = np.random.default_rng(seed)
    output, lse = attention(*arrays, **options, return_lse=True)
    return rng.normal(size=output.shape), rng.normal(size=lse.shape)


def slope(function, step=1e-3):
    """Return the derivative at 0, central differences of order four."""
    near, far = function(step) - function(-step), function(2 * step) - function(-2 * step)
    return (8 * near - far) / (12 * step)


def differences(arrays, options, d_output, d_lse, name):
    """Return the gradient of `loss` with respect to one array, entry by entry."""
    everything = dict(zip(NAMES, arrays, strict=False)) | {"mask": options.get("mask")}
    array = everything[name]
    gradient = np.zeros(array.shape)
    for at in np.ndindex(*array.shape):
        if not np.isfinite(array[at]):
            continue

        def moved(step, at=at):
            copy = array.copy()
            copy[at] += step
            changed = everything | {name: copy}
            mask = {} if changed["mask"] is None else {"mask": changed["mask"]}
            return loss([changed[n] for n in NAMES[:3]], options | mask, d_output, d_lse)

        gradient[at] = slope(moved)
    return gradient


def small(seed=7, query=(2, 3, 2), key=(2, 5, 2), value=(2, 5, 3)):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape) for shape in (query, key, value))


BIAS = np.where(np.random.default_rng(1).random((3, 5)) < 0.7, np.random.default_rng(2).normal(size=(3, 5)), -np.inf)
BIAS[1] = -np.inf  # a row that may attend to nothing

CASES = {
    "softcap": (small(), {"softcap": 0.8, "scale": 2.0}),
    "float mask broadcast over keys": (small(), {"mask": np.array([[0.5], [-np.inf], [1.5]])}),
    "float mask for each batch element": (small(), {"mask": np.stack([BIAS, -np.abs(BIAS)])}),
    "a mask with the only batch axis": (small(query=(3, 2), key=(5, 2), value=(5, 3)), {"mask": np.stack([BIAS, BIAS[::-1]])}),
    "grouped queries with everything": (
        small(query=(2, 4, 3, 2), key=(2, 5, 2), value=(2, 2, 5, 3)),
        {"enable_gqa": True, "mask": BIAS, "softcap": 1.1, "is_causal": True, "q_offset": np.array([[3], [1]]), "window": (2, None)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_gradient_matches_finite_differences_entry_by_entry(name):
    arrays, options = CASES[name]
    d_output, d_lse = upstream(arrays, options)
    biased = "mask" in options and options["mask"].dtype != bool
    gradients = attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=biased, **options)
    assert len(gradients) == (4 if biased else 3)
    for gradient, array in zip(gradients, NAMES, strict=False):
        assert_same(gradient, differences(arrays, options, d_output, d_lse, array), 1e-9)


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


def test_the_gradients_worked_by_hand():
    query, key, value = np.array([[0.0]]), np.array([[1.0], [-1.0]]), np.array([[1.0], [0.0]])
    d_query, d_key, d_value = attention_backward(query, key, value, np.array([[1.0]]))
    # weights 1/2, 1/2; d_scores = w (dP - sum w dP) = 1/4, -1/4; d_query = 1/4 * 1 + 1/4 = 1/2; the query is 0
    assert_same(d_query, [[0.5]])
    assert_same(d_key, [[0.0], [0.0]])
    assert_same(d_value, [[0.5], [0.5]])
    assert_same(attention_backward(query, key, value, np.array([[0.0]]), d_lse=np.array([1.0]))[0], [[0.0]])  # mean of the keys


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


@pytest.mark.parametrize(("q_len", "kv_len", "d_v"), [(0, 5, 3), (3, 0, 3), (3, 5, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("gqa", [False, True])
def test_lengths_of_zero_and_one_give_zero_gradients_for_query_and_key(q_len, kv_len, d_v, gqa):
    arrays = small(query=(4, q_len, 2), key=(2 if gqa else 4, kv_len, 2), value=(2 if gqa else 4, kv_len, d_v))
    mask = np.zeros((q_len, kv_len))
    gradients = attention_backward(*arrays, np.ones((4, q_len, d_v)), mask=mask, return_d_mask=True, enable_gqa=gqa)
    assert [gradient.shape for gradient in gradients] == [*(array.shape for array in arrays), mask.shape]
    for gradient in (gradients[0], gradients[1], gradients[3]):
        assert not gradient.any()  # with one key its weight is 1 whatever the score
    assert_same(gradients[2], np.full(arrays[2].shape, q_len * (2.0 if gqa else 1.0)))


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


def test_the_difference_quotient_is_exact_to_order_four():
    assert slope(lambda x: 3 * x + x**4) == pytest.approx(3.0, abs=1e-12)
    assert slope(math.sin) == pytest.approx(1.0, abs=1e-12)
