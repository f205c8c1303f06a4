"""The oracles give numbers worked by hand, and the shared assertions can fail."""

import math

import numpy as np
import pytest

from tests.reference.oracles import loop_attention
from tests.reference.support import assert_same, assert_says, assert_untouched, refusals, unlike


@pytest.mark.parametrize(
    ("got", "dtype"),
    [
        ([1.0 + 1e-11, 2.0], "float64"),
        ([1.0, 2.0, 3.0], "float64"),
        ([[1.0, 2.0]], "float64"),
        ([1.0, 2.0], "float32"),
        ([np.nan, 2.0], "float64"),
        ([np.inf, 2.0], "float64"),
        ([1.0, -2.0], "float64"),
    ],
)
def test_assert_same_fails_on_a_wrong_value_shape_dtype_nan_infinity_or_sign(got, dtype):
    assert_same(np.array([1.0, 2.0]), [1.0, 2.0])
    with pytest.raises(AssertionError):
        assert_same(np.array(got, dtype=dtype), [1.0, 2.0])


def test_assert_untouched_fails_on_a_write_and_on_shared_memory():
    assert_untouched(lambda x: x + 1, np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        assert_untouched(lambda x: np.add(x, 1, out=x), np.ones(3))
    with pytest.raises(AssertionError):
        assert_untouched(lambda x: x[1:], np.ones(3))
    with pytest.raises(AssertionError):
        assert_untouched(lambda *, x: (x + 1, x), x=np.ones(3))


def test_assert_untouched_notices_a_change_behind_a_read_only_view():
    base = np.ones(3)

    def sneak(x):
        base[0] = 7.0
        return x + 1

    with pytest.raises(AssertionError):
        assert_untouched(sneak, base[:])


def test_the_loops_give_the_numbers_worked_by_hand():
    query, key, value = np.array([[1.0], [0.0]]), np.array([[0.0], [math.log(3)]]), np.array([[4.0], [8.0]])
    output, weights, lse = loop_attention(query, key, value)
    assert_same(weights, [[0.25, 0.75], [0.5, 0.5]])  # e^0 : e^ln 3 = 1 : 3
    assert_same(output, [[7.0], [6.0]])
    assert_same(lse, [math.log(4), math.log(2)])
    output, weights, lse = loop_attention(query, key, value, is_causal=True, q_offset=-1)
    assert_same(weights, [[0.0, 0.0], [1.0, 0.0]])
    assert_same(output, [[0.0], [4.0]])
    assert_same(lse, [-np.inf, 0.0])


def test_assert_says_fails_on_another_message_another_error_and_no_error():
    def fail(error):
        raise error

    assert_says(ValueError, "x must be 1; got 2", fail, ValueError("x must be 1; got 2"))
    for wrong in (ValueError("x must be 1; got 3"), UnicodeError("x must be 1; got 2")):
        with pytest.raises(AssertionError):
            assert_says(ValueError, "x must be 1; got 2", fail, wrong)
    with pytest.raises(pytest.fail.Exception):
        assert_says(ValueError, "x", lambda: None)


def test_a_table_of_refused_calls_tells_another_message_another_error_and_no_error():
    table = """
int("a b")
    -> ValueError: invalid literal for int() with base 10: 'a b'
int("c") -> ValueError: invalid literal for int() with base 10: 'd'
int([]) -> ValueError: int() argument must be a string, a bytes-like object or a real number, not 'list'
int(5) -> ValueError: five
"""
    assert [call for call, _, _ in unlike(refusals(table, {}))] == ['int("c")', "int([])", "int(5)"]
