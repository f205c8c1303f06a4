"""Softmax, log-sum-exp, Jacobian and vector-Jacobian product against loops, high precision, torch and finite differences."""

import doctest
import math
import re
import sys

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attn_course.reference import logsumexp, softmax, softmax_jacobian, softmax_vjp

EPS = {"float16": 1e-3, "float32": 3e-7, "float64": 1e-15}  # about twice the spacing of floats at 1
DTYPES = tuple(EPS)
FUNCTIONS = {
    "softmax": softmax,
    "logsumexp": logsumexp,
    "jacobian": softmax_jacobian,
    "vjp": lambda array: softmax_vjp(array, np.ones_like(array)),
}

reals = st.floats(-700, 700, width=64)
vectors = arrays(np.float64, st.integers(1, 13), elements=reals)


def exact_softmax(scores, temperature=1.0):
    """Eq. (2.1) with 60 digits and exponents without bound: no maximum is subtracted."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(mpmath.mpf(float(z)) / mpmath.mpf(float(temperature))) for z in scores]
        return np.array([float(term / mpmath.fsum(terms)) for term in terms])


def exact_logsumexp(scores):
    with mpmath.workdps(60):
        return float(mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(float(z))) for z in scores)))


def same(got, wanted, dtype="float64", factor=8.0, least=1e-30):
    """Assert equality up to a few roundings of `dtype`, relative to the largest entry (at least `least`)."""
    assert got.dtype == np.dtype(dtype)
    assert got.shape == np.shape(wanted)
    scale = np.abs(wanted).max(initial=least)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=0, atol=factor * EPS[dtype] * scale)


@pytest.mark.parametrize(("got", "dtype"), [([1.0 + 1e-13], "float64"), ([np.nan], "float64"), ([[1.0]], "float64"), ([1.0], "float32")])
def test_the_assertion_helper_fails_on_a_wrong_value_nan_shape_or_dtype(got, dtype):
    same(np.array([1.0]), [1.0])
    with pytest.raises(AssertionError):
        same(np.array(got, dtype=dtype), [1.0])


# --- softmax -----------------------------------------------------------------------------------------


def test_softmax_matches_the_formula_written_as_loops():
    scores = np.random.default_rng(7).normal(size=(2, 3, 5)) * 4
    weights = softmax(scores)
    for batch, row in np.ndindex(2, 3):
        denominator = sum(math.exp(scores[batch, row, j]) for j in range(5))
        for i in range(5):
            assert weights[batch, row, i] == pytest.approx(math.exp(scores[batch, row, i]) / denominator, rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_agrees_with_torch_on_every_axis_and_keeps_the_dtype(axis, dtype):
    scores = (np.random.default_rng(7).normal(size=(3, 5, 7)) * 6).astype(dtype)
    wanted = torch.softmax(torch.from_numpy(scores).double(), dim=axis).numpy()
    same(softmax(scores, axis), wanted, dtype)


@pytest.mark.usefixtures("no_shape_check")  # beartype takes no int for a float, which Python does
@pytest.mark.parametrize("temperature", [0.3, 1, 2.5, np.float32(4.0), np.int64(3)])
def test_temperature_divides_the_scores(temperature):
    scores = np.random.default_rng(8).normal(size=11) * 5
    same(softmax(scores, temperature=temperature), exact_softmax(scores, temperature))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_that_overflow_exp_give_the_exact_weights(dtype):
    scores = np.array([12_000.0, 12_008.0, 11_992.0, -12_000.0]).astype(dtype)
    same(softmax(scores), exact_softmax(scores), dtype)


@pytest.mark.parametrize("largest", [1e300, 1.7e308])
def test_a_spread_as_wide_as_the_floats_gives_one_hot_weights_without_a_warning(largest):
    np.testing.assert_array_equal(softmax(np.array([largest, -largest, 0.0])), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(softmax(np.array([-largest, -largest])), [0.5, 0.5])
    assert logsumexp(np.array([largest, -largest])) == largest


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1e-300, 5e-324, 1e-50])
def test_a_tiny_temperature_shares_the_weight_among_the_maxima_without_a_warning(temperature, dtype):
    weights = softmax(np.array([2.0, 3.0, -np.inf, 3.0, -4.0]).astype(dtype), temperature=temperature)
    np.testing.assert_array_equal(weights, [0.0, 0.5, 0.0, 0.5, 0.0])
    assert weights.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1e300, 1e40])
def test_a_huge_temperature_is_uniform_over_the_finite_entries_without_a_warning(temperature, dtype):
    weights = softmax(np.array([2.0, 3.0, -np.inf, -4.0]).astype(dtype), temperature=temperature)
    same(weights, [1 / 3, 1 / 3, 0.0, 1 / 3], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_minus_infinity_gets_no_weight_and_leaves_the_others_as_if_it_were_absent(dtype):
    scores = np.array([[1.5, -np.inf, 0.25, -np.inf, -2.0], [0.5, 1.0, 2.0, 3.0, 4.0]]).astype(dtype)
    weights = softmax(scores)
    np.testing.assert_array_equal(weights[0, [1, 3]], 0.0)
    np.testing.assert_array_equal(weights[0, [0, 2, 4]], softmax(scores[0, [0, 2, 4]]))
    np.testing.assert_array_equal(weights[1], softmax(scores[1]))


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


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_entry_has_weight_one(dtype):
    np.testing.assert_array_equal(softmax(np.array([[-3.0], [60_000.0], [0.0]]).astype(dtype)), [[1.0], [1.0], [1.0]])


@pytest.mark.parametrize(("shape", "axis", "lse_shape"), [((3, 0), 1, (3,)), ((0, 3), 1, (0,)), ((5, 0, 3), -2, (5, 3)), ((0,), 0, ())])
def test_empty_arrays_keep_their_shape_and_an_empty_sum_has_logarithm_minus_infinity(shape, axis, lse_shape):
    scores = np.empty(shape)
    assert softmax(scores, axis).shape == shape
    lse = logsumexp(scores, axis)
    assert isinstance(lse, np.ndarray)
    np.testing.assert_array_equal(lse, np.full(lse_shape, -np.inf), strict=True)


@given(vectors)
def test_weights_lie_between_zero_and_one_and_sum_to_one(scores):
    weights = softmax(scores)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)


@given(vectors, st.floats(0.01, 100))
def test_weights_match_sixty_digits(scores, temperature):
    # A difference of scores carries an absolute rounding error, which exp makes relative.
    blur = 4 * np.spacing(2 * np.abs(scores).max()) / temperature + 1e-14
    np.testing.assert_allclose(softmax(scores, temperature=temperature), exact_softmax(scores, temperature), rtol=blur * 700, atol=1e-300)


@given(vectors, st.integers(-1000, 1000))
def test_adding_a_constant_to_every_score_changes_nothing(scores, shift):
    scores = np.round(scores * 4) / 4  # multiples of 1/4: the shift is exact
    np.testing.assert_array_equal(softmax(scores + shift), softmax(scores))


@given(st.data(), vectors)
def test_permuting_scores_permutes_weights(data, scores):
    order = np.array(data.draw(st.permutations(range(len(scores)))))
    np.testing.assert_allclose(softmax(scores[order]), softmax(scores)[order], rtol=1e-14)


@given(vectors)
def test_a_larger_score_never_has_a_smaller_weight(scores):
    order = np.argsort(scores)
    assert (np.diff(softmax(scores)[order]) >= 0).all()


@given(arrays(np.float32, array_shapes(min_dims=1, max_dims=4, max_side=5), elements=st.floats(-80, 80, width=32)), st.data())
def test_any_shape_and_axis_agrees_with_torch(scores, data):
    axis = data.draw(st.integers(-scores.ndim, scores.ndim - 1))
    tensor = torch.from_numpy(scores).double()
    same(softmax(scores, axis), torch.softmax(tensor, axis).numpy(), "float32", factor=64)
    same(logsumexp(scores, axis), torch.logsumexp(tensor, axis).numpy(), "float32", least=1.0)  # ln(1 + x) rounds like 1 + x


# --- log-sum-exp -------------------------------------------------------------------------------------


def test_logsumexp_matches_the_formula_written_as_loops():
    scores = np.random.default_rng(7).normal(size=(2, 5)) * 4
    wanted = [math.log(sum(math.exp(z) for z in row)) for row in scores]
    same(logsumexp(scores), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_logsumexp_agrees_with_torch_on_every_axis_and_keeps_the_dtype(axis, dtype):
    scores = (np.random.default_rng(9).normal(size=(3, 5, 7)) * 300).astype(dtype)
    same(logsumexp(scores, axis), torch.logsumexp(torch.from_numpy(scores).double(), dim=axis).numpy(), dtype)


@given(vectors)
def test_logsumexp_matches_sixty_digits(scores):
    assert float(logsumexp(scores)) == pytest.approx(exact_logsumexp(scores), rel=1e-14, abs=1e-14)


@given(vectors)
def test_logsumexp_lies_between_the_maximum_and_the_maximum_plus_log_n(scores):
    lse, slack = float(logsumexp(scores)), 1e-15 * (1 + np.abs(scores).max())
    assert scores.max() <= lse <= scores.max() + math.log(len(scores)) + slack


def test_the_bounds_of_logsumexp_are_reached():
    assert logsumexp(np.array([4.0, -np.inf])) == 4.0
    assert float(logsumexp(np.full(7, 4.0))) == pytest.approx(4.0 + math.log(7), rel=1e-15)


def test_logsumexp_of_minus_infinities_is_minus_infinity_and_its_neighbours_are_untouched():
    scores = np.random.default_rng(7).normal(size=(3, 5))
    expected = logsumexp(scores)
    scores[1], expected[1] = -np.inf, -np.inf
    np.testing.assert_array_equal(logsumexp(scores), expected)


# --- Jacobian and vector-Jacobian product ------------------------------------------------------------


def test_the_jacobian_matches_central_differences_of_the_definition():
    scores, step = np.random.default_rng(7).normal(size=5), 1e-5
    jacobian = softmax_jacobian(softmax(scores))
    for j in range(5):
        above, below = scores.copy(), scores.copy()
        above[j], below[j] = above[j] + step, below[j] - step
        slope = (exact_softmax(above) - exact_softmax(below)) / (2 * step)
        np.testing.assert_allclose(jacobian[:, j], slope, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_jacobian_matches_autograd_for_every_row_of_a_batch(dtype):
    weights = softmax(np.random.default_rng(7).normal(size=(2, 3, 5)) * 2).astype(dtype)
    jacobian = softmax_jacobian(weights)
    for batch, row in np.ndindex(2, 3):
        scores = torch.from_numpy(weights[batch, row].astype(np.float64)).log()
        # softmax(log s) = s / sum(s), and a rounded s sums to 1 only up to its own rounding
        wanted = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, -1), scores).numpy()
        same(jacobian[batch, row], wanted, dtype)
    assert jacobian.shape == (2, 3, 5, 5)


@given(vectors)
def test_the_jacobian_is_symmetric_positive_semidefinite_and_blind_to_a_common_shift(scores):
    jacobian = softmax_jacobian(softmax(scores))
    np.testing.assert_array_equal(jacobian, jacobian.T)
    np.testing.assert_allclose(jacobian.sum(axis=0), 0.0, atol=1e-15)
    assert np.linalg.eigvalsh(jacobian).min() >= -1e-15
    assert np.linalg.norm(jacobian, 2) <= 0.5 + 1e-15


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_vjp_matches_autograd(dtype):
    rng = np.random.default_rng(7)
    scores = torch.from_numpy(rng.normal(size=(2, 3, 5)) * 2).requires_grad_()
    d_weights = rng.normal(size=(2, 3, 5)).astype(dtype)
    weights = torch.softmax(scores, -1)
    weights.backward(torch.from_numpy(d_weights.astype(np.float64)))
    same(softmax_vjp(weights.detach().numpy().astype(dtype), d_weights), scores.grad.numpy(), dtype)


@given(vectors, st.integers(0, 2**32 - 1))
def test_the_vjp_is_the_gradient_times_the_jacobian_and_sums_to_zero(scores, seed):
    weights = softmax(scores)
    d_weights = np.random.default_rng(seed).normal(size=len(scores))
    d_scores = softmax_vjp(weights, d_weights)
    for j in range(len(scores)):  # sum_i g_i ds_i/dz_j with Eq. (2.20), entry by entry
        wanted = sum(d_weights[i] * weights[i] * ((i == j) - weights[j]) for i in range(len(scores)))
        assert d_scores[j] == pytest.approx(wanted, abs=1e-14)
    assert d_scores.sum() == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("n", [0, 1])
def test_derivatives_of_no_entry_and_of_one_entry_are_empty_and_zero(n):
    weights = np.ones((3, n))
    np.testing.assert_array_equal(softmax_jacobian(weights), np.zeros((3, n, n)), strict=True)
    np.testing.assert_array_equal(softmax_vjp(weights, np.full((3, n), 7.0)), np.zeros((3, n)), strict=True)


def test_weights_of_a_masked_row_have_zero_derivatives():
    np.testing.assert_array_equal(softmax_jacobian(np.zeros(3)), np.zeros((3, 3)))
    np.testing.assert_array_equal(softmax_vjp(np.zeros(3), np.array([1e30, -5.0, 2.0])), np.zeros(3))


def test_float16_sums_do_not_overflow():
    weights, d_weights = np.full(4, 0.25, np.float16), np.full(4, 60_000.0, np.float16)
    np.testing.assert_array_equal(softmax_vjp(weights, d_weights), np.zeros(4, np.float16), strict=True)
    assert logsumexp(np.zeros(70_000, np.float16)) == np.float16(math.log(70_000))


# --- what all four share -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_are_never_written_to(name, dtype):
    array = np.random.default_rng(7).random(size=(3, 5)).astype(dtype)
    before = array.copy()
    array.flags.writeable = False  # a write raises
    result = FUNCTIONS[name](array)
    np.testing.assert_array_equal(array, before, strict=True)
    assert not np.shares_memory(result, array)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_with_any_strides_and_byte_order_give_the_same_numbers(name):
    array = np.random.default_rng(7).random(size=(3, 5))
    wide = np.empty((3, 10))
    wide[:, ::2] = array
    for view in (wide[:, ::2], np.asfortranarray(array), array.astype(">f8")):
        np.testing.assert_allclose(FUNCTIONS[name](view), FUNCTIONS[name](array), rtol=1e-14, atol=1e-16)


@pytest.mark.usefixtures("no_shape_check")
class TestErrors:
    """Each names the argument, what was wanted and what came."""

    @pytest.mark.parametrize("name", FUNCTIONS)
    @pytest.mark.parametrize(
        ("array", "got"),
        [
            (np.arange(3), "int64 ndarray"),
            (np.array([True, False]), "bool ndarray"),
            (np.array([1j]), "complex128 ndarray"),
            (np.array([1.0], dtype=object), "object ndarray"),
            ([1.0, 2.0], "list"),
            (1.0, "float"),
            (torch.zeros(3), "Tensor"),
        ],
    )
    def test_anything_but_an_ndarray_of_floats(self, name, array, got):
        argument = "scores" if name in ("softmax", "logsumexp") else "weights"
        with pytest.raises(TypeError, match=rf"^{argument} must be an ndarray of floats; got {got}$"):
            FUNCTIONS[name](array)

    def test_a_gradient_that_is_no_ndarray_of_floats(self):
        with pytest.raises(TypeError, match=r"^d_weights must be an ndarray of floats; got int64 ndarray$"):
            softmax_vjp(np.array([0.5, 0.5]), np.array([1, 0]))

    @pytest.mark.parametrize("function", [softmax, logsumexp])
    @pytest.mark.parametrize("axis", [2, -3, 100])
    def test_an_axis_that_is_not_there(self, function, axis):
        wanted = f"axis must be one of the 2 axes of scores; got {axis} for shape (3, 5)"
        with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
            function(np.zeros((3, 5)), axis)

    @pytest.mark.parametrize("function", [softmax, logsumexp])
    @pytest.mark.parametrize(("axis", "got"), [(None, "NoneType"), (1.0, "float"), ((0, 1), "tuple")])
    def test_an_axis_that_is_no_integer(self, function, axis, got):
        with pytest.raises(TypeError, match=f"^axis must be an integer; got {got}$"):
            function(np.zeros((3, 5)), axis)

    @pytest.mark.parametrize("function", [softmax, logsumexp, softmax_jacobian])
    def test_an_array_without_axes(self, function):
        with pytest.raises(ValueError, match=r"(scores|weights).*; got .*shape \(\)"):
            function(np.array(1.0))

    @pytest.mark.parametrize("temperature", [0.0, -1.0, np.inf, np.nan, 0])
    def test_a_temperature_that_is_not_positive_and_finite(self, temperature):
        with pytest.raises(ValueError, match=f"^temperature must be a positive finite number; got {temperature}$"):
            softmax(np.zeros(3), temperature=temperature)

    @pytest.mark.parametrize(("temperature", "got"), [("1", "str"), (None, "NoneType"), (np.ones(3), "ndarray"), (1j, "complex")])
    def test_a_temperature_that_is_no_number(self, temperature, got):
        with pytest.raises(TypeError, match=f"^temperature must be a number; got {got}$"):
            softmax(np.zeros(3), temperature=temperature)

    def test_a_gradient_of_another_shape(self):
        with pytest.raises(ValueError, match=r"^d_weights must have the shape of weights, \(3, 5\); got \(5,\)$"):
            softmax_vjp(np.zeros((3, 5)), np.zeros(5))


def test_the_shape_check_of_the_tests_is_on():
    with pytest.raises(Exception, match="d_weights"):
        softmax_vjp(np.zeros((3, 5)), np.zeros((3, 7)))
    with pytest.raises(Exception, match="scores"):
        softmax(np.arange(3))


def test_the_examples_in_the_docstrings_hold():
    outcome = doctest.testmod(sys.modules["attn_course.reference.softmax"])  # the attribute of that name is the function
    assert outcome.attempted >= 5
    assert outcome.failed == 0
