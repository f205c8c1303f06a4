"""Moment algebra against integrals worked out by SymPy."""

import pytest
import sympy
from sympy import Symbol

from attn_course.equations.moments import NORMAL, covariance, expectation, standard, variance

x, y, a = Symbol("x", real=True), Symbol("y", real=True), Symbol("a", real=True)


@pytest.mark.parametrize("power", range(9))
def test_the_moments_of_a_normal_variable_are_its_integrals(power: int):
    density = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)
    assert NORMAL[power] == sympy.integrate(x**power * density, (x, -sympy.oo, sympy.oo))


def test_independent_variables_multiply_and_constants_stay():
    table = {x: NORMAL, y: standard(kurtosis=5, skewness=7)}
    assert expectation((a * x**2 + y) ** 2, table) == 3 * a**2 + 1  # the cross term is 2 a E[x^2] E[y] = 0
    assert expectation(x**2 * y**3 + a, table) == 7 + a


def test_variance_subtracts_the_square_of_the_mean():
    table = {x: NORMAL, y: NORMAL}
    assert variance(x**2, table) == 2
    assert variance(a + 3 * x, table) == 9
    assert covariance(x + y, x - y, table) == 0
    assert covariance(x, a * x + y, table) == a


def test_a_moment_that_is_not_given_is_asked_for():
    with pytest.raises(ValueError, match=r"wants moment 6 of x; it has 4"):
        expectation(x**6, {x: standard(kurtosis=3)})
