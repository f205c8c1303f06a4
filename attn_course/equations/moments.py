"""Moment algebra: expectations of polynomials in independent random variables, from a table of their moments."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import sympy

Expr: TypeAlias = Any
Table: TypeAlias = Mapping[Expr, Sequence[Any]]
"""Random variable -> its moments E[x^0], E[x^1], E[x^2], ... as far as they are needed."""

NORMAL = (1, 0, 1, 0, 3, 0, 15, 0, 105)
"""The moments of a standard normal variable."""


def standard(kurtosis: Any, skewness: Any = 0) -> tuple[Any, ...]:
    """Return the moments of any variable with mean 0 and variance 1, up to the fourth.

    `kurtosis`: E[x^4].
    `skewness`: E[x^3].

    Returns `moments`: E[x^0] to E[x^4].
    """
    return (1, 0, 1, skewness, kurtosis)


def expectation(expression: Expr, table: Table) -> Expr:
    """Return the mean of a polynomial in independent random variables.

    `expression`: a polynomial in the variables of the table; whatever else it holds is constant.

    Returns `mean`: the sum over its terms: coefficient times the moments of the powers.

    Raises ValueError if a moment is needed that the table does not give.
    """
    mean: list[Expr] = []
    for powers, coefficient in sympy.Poly(expression, *table).terms():
        for variable, power in zip(table, powers, strict=True):
            if power >= len(table[variable]):
                raise ValueError(f"the table wants moment {power} of {variable}; it has {len(table[variable]) - 1}")
        mean.append(coefficient * sympy.prod(table[variable][power] for variable, power in zip(table, powers, strict=True)))
    return sympy.Add(*mean)


def covariance(first: Expr, second: Expr, table: Table) -> Expr:
    """Return E[first second] - E[first] E[second]."""
    return sympy.expand(expectation(first * second, table) - expectation(first, table) * expectation(second, table))


def variance(expression: Expr, table: Table) -> Expr:
    """Return the covariance of an expression with itself."""
    return covariance(expression, expression, table)
