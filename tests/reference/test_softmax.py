"""Softmax and log-sum-exp against loops, sixty digits and torch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attn_course.reference import logsumexp, softmax
from tests.reference.softmax_exact import exact_logsumexp, exact_softmax, vectors
from tests.reference.support import EPS, assert_same


@pytest.mark.usefixtures("no_shape_check")  # beartype takes no int for a float, which Python does
@pytest.mark.parametrize("temperature", [0.3, 1, 2.5, np.float32(4.0), np.int64(3)])
def test_temperature_divides_the_scores(temperature):
    scores = np.random.default_rng(8).normal(size=11) * 5
    assert_same(softmax(scores, temperature=temperature), exact_softmax(scores, temperature), 1e-14)


@pytest.mark.parametrize("dtype", EPS)
def test_scores_that_overflow_exp_give_the_exact_weights(dtype):
    scores = np.array([12_000.0, 12_008.0, 11_992.0, -12_000.0]).astype(dtype)
    assert_same(softmax(scores), exact_softmax(scores), 8 * EPS[dtype], dtype)


@pytest.mark.parametrize("largest", [1e300, 1.7e308])
def test_a_spread_as_wide_as_the_floats_gives_one_hot_weights_without_a_warning(largest):
    np.testing.assert_array_equal(softmax(np.array([largest, -largest, 0.0])), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(softmax(np.array([-largest, -largest])), [0.5, 0.5])
    assert logsumexp(np.array([largest, -largest])) == largest


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("temperature", [1e-300, 5e-324, 1e-50])
def test_a_tiny_temperature_shares_the_weight_among_the_maxima_without_a_warning(temperature, dtype):
    weights = softmax(np.array([2.0, 3.0, -np.inf, 3.0, -4.0]).astype(dtype), temperature=temperature)
    np.testing.assert_array_equal(weights, [0.0, 0.5, 0.0, 0.5, 0.0])
    assert weights.dtype == dtype


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("temperature", [1e300, 1e40])
def test_a_huge_temperature_is_uniform_over_the_finite_entries_without_a_warning(temperature, dtype):
    weights = softmax(np.array([2.0, 3.0, -np.inf, -4.0]).astype(dtype), temperature=temperature)
    assert_same(weights, [1 / 3, 1 / 3, 0.0, 1 / 3], 8 * EPS[dtype], dtype)


@pytest.mark.parametrize("temperature", [1e-300, 0.5, 1e300])
def test_a_slice_of_minus_infinities_is_zero_and_its_neighbours_are_untouched(temperature):
    scores = np.random.default_rng(7).normal(size=(3, 5, 7))
    expected = softmax(scores, axis=1, temperature=temperature)
    scores[2, :, 3] = -np.inf
    expected[2, :, 3] = 0.0
    np.testing.assert_array_equal(softmax(scores, axis=1, temperature=temperature), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_or_plus_infinity_makes_its_own_slice_nan_and_no_other(bad):
    scores = np.random.default_rng(7).normal(size=(3, 5))
    scores[1] = [0.0, bad, 1.0, -np.inf, 2.0]
    weights, lse = softmax(scores), logsumexp(scores)
    assert np.isnan(weights[1]).all()
    assert np.isnan(lse[1])
    assert np.isfinite(weights[[0, 2]]).all()
    assert np.isfinite(lse[[0, 2]]).all()


@pytest.mark.parametrize(("shape", "axis", "lse_shape"), [((3, 0), 1, (3,)), ((0, 3), 1, (0,)), ((5, 0, 3), -2, (5, 3)), ((0,), 0, ())])
def test_empty_arrays_keep_their_shape_and_an_empty_sum_has_logarithm_minus_infinity(shape, axis, lse_shape):
    scores = np.empty(shape)
    assert softmax(scores, axis).shape == shape
    lse = logsumexp(scores, axis)
    assert isinstance(lse, np.ndarray)
    np.testing.assert_array_equal(lse, np.full(lse_shape, -np.inf), strict=True)


@given(vectors, st.floats(0.01, 100))
def test_weights_match_sixty_digits(scores, temperature):
    # A difference of scores carries an absolute rounding error, which exp makes relative.
    blur = 4 * np.spacing(2 * np.abs(scores).max()) / temperature + 1e-14
    np.testing.assert_allclose(softmax(scores, temperature=temperature), exact_softmax(scores, temperature), rtol=blur * 700, atol=1e-300)


@given(arrays(np.float32, array_shapes(min_dims=1, max_dims=4, max_side=5), elements=st.floats(-80, 80, width=32)), st.data())
def test_any_shape_and_axis_agrees_with_torch(scores, data):
    axis = data.draw(st.integers(-scores.ndim, scores.ndim - 1))
    tensor = torch.from_numpy(scores).double()
    assert_same(softmax(scores, axis), torch.softmax(tensor, axis).numpy(), 64 * EPS["float32"], "float32")
    assert_same(logsumexp(scores, axis), torch.logsumexp(tensor, axis).numpy(), 8 * EPS["float32"], "float32")


@given(vectors)
def test_logsumexp_matches_sixty_digits(scores):
    assert float(logsumexp(scores)) == pytest.approx(exact_logsumexp(scores), rel=1e-14, abs=1e-14)


def test_a_sum_that_float16_cannot_hold_is_taken_in_float32():
    scores = np.zeros(70_000, np.float16)
    assert_same(softmax(scores), np.full(70_000, 1 / 70_000), 1e-7, "float16")
    assert_same(logsumexp(scores), np.log(70_000), 1e-3, "float16")
