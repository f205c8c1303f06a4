"""Symbols and small formulas that the symbolic equations of several chapters share."""

from typing import Any, TypeAlias

import sympy

Expr: TypeAlias = Any


def real_symbols(letter: str, count: int) -> tuple[Expr, ...]:
    """Return letter_1 ... letter_count, all real, counted as in the formulas."""
    return sympy.symbols(f"{letter}_1:{count + 1}", real=True)


def positive_symbols(letter: str, count: int) -> tuple[Expr, ...]:
    """Return letter_1 ... letter_count, all positive."""
    return sympy.symbols(f"{letter}_1:{count + 1}", positive=True)


def softmax_symbols(scores: Any) -> Expr:
    """Return the softmax of the scores as a column, written out as in Eq. softmax."""
    exponentials = [sympy.exp(score) for score in scores]
    return column([exponential / total(exponentials) for exponential in exponentials])


def lse_symbols(scores: Any) -> Expr:
    """Return the log-sum-exp of the scores, ln(e^{z_1} + ... + e^{z_n})."""
    return sympy.log(total(sympy.exp(score) for score in scores))


def entropy_symbols(weights: Any) -> Expr:
    """Return the entropy of the weights in nats, -(p_1 ln p_1 + ... + p_n ln p_n)."""
    return -total(weight * sympy.log(weight) for weight in weights)


def column(entries: Any) -> Expr:
    """Return the entries as a column vector."""
    return sympy.Matrix(list(entries))


def total(terms: Any) -> Expr:
    """Return the sum of the terms."""
    return sympy.Add(*terms)


def dot(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> Expr:
    """Return the dot product of two tuples of symbols."""
    return total(a_i * b_i for a_i, b_i in zip(a, b, strict=True))


def squared_distance(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> Expr:
    """Return the squared distance of two points."""
    return total((a_i - b_i) ** 2 for a_i, b_i in zip(a, b, strict=True))


def delta(i: int, j: int) -> int:
    """Return Kronecker's delta: 1 if the indices agree, else 0."""
    return int(i == j)
