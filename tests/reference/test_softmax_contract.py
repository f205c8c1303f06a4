"""What the four functions of the reference share: inputs left alone, views, errors, examples."""

import doctest
import re
import sys

import numpy as np
import pytest
import torch

from attn_course.reference import logsumexp, softmax, softmax_jacobian, softmax_vjp
from tests.reference.softmax_exact import DTYPES

FUNCTIONS = {
    "softmax": softmax,
    "logsumexp": logsumexp,
    "jacobian": softmax_jacobian,
    "vjp": lambda array: softmax_vjp(array, np.ones_like(array)),
}


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


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_underflow_is_a_zero_and_no_error_where_floating_point_flags_raise(name, dtype):
    for row in ([0.0, -9.0, -14.0], [1.0, -np.inf, -3e4], [1.0, float(np.finfo(dtype).tiny), 0.0]):
        array = np.array(row, dtype=dtype)
        if name in ("jacobian", "vjp"):
            array = softmax(array)
        calm = FUNCTIONS[name](array)
        with np.errstate(all="raise"):
            strict = FUNCTIONS[name](array)
        np.testing.assert_array_equal(strict, calm, strict=True)


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
