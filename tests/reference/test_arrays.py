"""The shared edges: checks, broadcasting and its gradient, and sums that forget what has no weight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference.arrays import (
    checked_floats,
    narrowed,
    require_integer,
    sum_to_shape,
    weighted_sum,
    within_range,
)
from tests.reference.support import assert_same, sub_shape


@pytest.mark.parametrize(
    ("dtypes", "wanted"),
    [(["float16"], "float32"), (["float16", "float32"], "float32"), (["float16", "float64"], "float64"), ([">f8", "float32"], "float64")],
)
def test_floats_are_widened_together_to_float32_or_more(dtypes, wanted):
    arrays = {f"x{i}": np.ones(3, dtype) for i, dtype in enumerate(dtypes)}
    assert [array.dtype for array in checked_floats(**arrays)] == [wanted] * len(dtypes)


@given(st.data())
def test_a_gradient_is_summed_over_the_axes_that_were_stretched(data):
    whole = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))
    shape = sub_shape(data.draw, whole)
    gradient = np.random.default_rng(7).normal(size=whole)
    wanted = np.zeros(shape)
    for index in np.ndindex(*whole):
        own = index[len(whole) - len(shape) :]
        wanted[tuple(0 if length == 1 else at for at, length in zip(own, shape, strict=True))] += gradient[index]
    assert_same(sum_to_shape(gradient, shape), wanted)


entries = st.sampled_from([0.0, 1.5, -2.0, np.nan, np.inf, -np.inf])


@given(st.data())
def test_a_weight_of_zero_forgets_its_row_and_the_rest_adds_up_as_ieee_says(data):
    m, n, f = (data.draw(st.integers(0, 3)) for _ in range(3))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, -1.0]), min_size=m * n, max_size=m * n))).reshape(m, n)
    rows = np.array(data.draw(st.lists(entries, min_size=n * f, max_size=n * f))).reshape(n, f)
    wanted = np.zeros((m, f))
    with np.errstate(invalid="ignore"):
        for i, j, k in np.ndindex(m, n, f):
            if weights[i, j] != 0.0:
                wanted[i, k] += weights[i, j] * rows[j, k]
    assert_same(weighted_sum(weights, rows), wanted)


def test_a_weight_that_is_not_a_number_makes_the_sum_none():
    weights = np.array([[np.nan, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(weighted_sum(weights, np.array([[1.0], [np.inf]])), [[np.nan], [1.0]])


def test_leading_axes_of_weights_and_rows_broadcast_in_both_ways_of_summing():
    rng = np.random.default_rng(7)
    weights, rows = rng.random((3, 1, 2, 5)), rng.normal(size=(4, 5, 2))
    wanted = np.einsum("abij,bjf->abif", np.broadcast_to(weights, (3, 4, 2, 5)), rows)
    assert_same(weighted_sum(weights, rows), wanted)
    rows[1, 2, 0] = np.inf
    wanted[:, 1, :, 0] = np.inf
    assert_same(weighted_sum(weights, rows), wanted)


def test_narrowing_overflows_to_infinity_without_a_warning_and_always_copies():
    x = np.array([70_000.0, -70_000.0, 1.0])
    assert_same(narrowed(x, np.dtype("float16")), [np.inf, -np.inf, 1.0], dtype="float16")
    assert not np.shares_memory(narrowed(x, x.dtype), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_in_range_is_neither_zero_nor_infinite_in_the_dtype(dtype):
    for value in (5e-324, 1e300, 1.7e308):
        assert 0.0 < np.dtype(dtype).type(within_range(value, np.dtype(dtype))) < np.inf
    assert within_range(0.25, np.dtype(dtype)) == 0.25


@pytest.mark.parametrize(("value", "error"), [(True, TypeError), (1.0, TypeError), (None, TypeError), ("1", TypeError), (1, ValueError)])
def test_an_integer_is_an_integer_and_large_enough(value, error):
    assert require_integer("n", np.int8(2), 2) == 2
    with pytest.raises(error, match=r"^n must be .*; got "):
        require_integer("n", value, 2)
