"""The functions every formula knows, on values."""

import functools
from collections.abc import Callable

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, Value, entrywise, fitted, one_by_one, oriented, rank, softmax

ENTRYWISE = {r"\ln": "ln", r"\exp": "exp", r"\cos": "cos", r"\sin": "sin", r"\tan": "tan", r"\tanh": "tanh", r"\sqrt": "sqrt", "Re": "Re"}


def larger(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the larger of each two entries."""
    if object not in (left.dtype, right.dtype):
        return np.maximum(left, right)
    import sympy

    return one_by_one(sympy.Max, left, right)


def largest(values: list[Value], under: Node) -> Value:
    """Return the largest of several numbers, or of the entries of one vector."""
    if len(values) == 1 and values[0].form in FLAT:
        only = values[0]
        data = only.data.reshape((*only.data.shape[: only.letters], -1))
        return Value(functools.reduce(larger, (data[..., place] for place in range(data.shape[-1]))))
    if any(value.form != "scalar" or value.lists for value in values):
        raise Malformed(f"the extreme of {' and '.join(map(str, values))} has no meaning")
    return Value(functools.reduce(larger, (value.data for value in values)))


def smallest(values: list[Value], under: Node) -> Value:
    """Return the smallest of several numbers, or of the entries of one vector."""
    found = largest([value.like(-value.data) for value in values], under)
    return found.like(-found.data)


def log(values: list[Value], under: Node) -> Value:
    """Return a logarithm: natural, or to the base beneath."""
    (value,) = values
    natural = entrywise("ln", value)
    if under.kind == "none":
        return natural
    if under.kind != "number":
        raise Malformed("the base of a logarithm is a number")
    base = entrywise("ln", Value(np.asarray(int(under.value), dtype=value.data.dtype))).data
    return natural.like(natural.data / base)


def lse(values: list[Value], under: Node) -> Value:
    """Return the logarithm of the sum of the exponentials of a vector, or of each row of a matrix as a column."""
    (value,) = values
    if value.form not in (*FLAT, "matrix") or value.lists:
        raise Malformed(f"lse of {value} has no meaning")
    data = value.data if value.form == "matrix" else value.indexed
    if value.exact:
        return entrywise("ln", Value(entrywise("exp", Value(data)).data.sum(axis=-1)))
    top = data.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0)
    found = np.log(np.exp(data - safe).sum(axis=-1)) + safe[..., 0]
    return Value(found[..., None], "column") if value.form == "matrix" else Value(found)


def softmax_of(values: list[Value], under: Node) -> Value:
    """Return the softmax of a vector, or of a matrix row by row, or as the word beneath says."""
    if under.kind not in ("none", "word") or under.value not in ("", "rows", "columns"):
        raise Malformed("beneath softmax stands rows or columns")
    return softmax(values[0], columns=under.value == "columns")


def diagonal(values: list[Value], under: Node) -> Value:
    """Return the matrix with a vector on its diagonal."""
    (value,) = values
    if value.form not in FLAT or value.lists:
        raise Malformed(f"diag of {value} has no meaning")
    return Value(value.indexed[..., None, :] * np.eye(value.indexed.shape[-1], dtype=int), "matrix")


def trace(values: list[Value], under: Node) -> Value:
    """Return the sum of the diagonal of a square matrix."""
    (value,) = values
    if value.form != "matrix" or value.lists or value.shape[0] != value.shape[1]:
        raise Malformed(f"the trace of {value} has no meaning")
    return Value(np.trace(value.data, axis1=-2, axis2=-1))


def strictly_lower(values: list[Value], under: Node) -> Value:
    """Return a square matrix with zeros on and above the diagonal."""
    (value,) = values
    if value.form != "matrix" or value.lists:
        raise Malformed(f"the strictly lower part of {value} has no meaning")
    return Value(np.where(np.tril(np.ones(value.shape), -1) > 0, value.data, 0), "matrix")


def divergence(values: list[Value], under: Node) -> Value:
    """Return the Kullback-Leibler divergence of two distributions."""
    if len(values) != 2:
        raise Malformed("KL wants two distributions")
    p, q, fit = fitted(*values)
    if fit.form not in FLAT:
        raise Malformed(f"KL of {values[0]} and {values[1]} has no meaning")
    ratio = entrywise("ln", oriented(p / q, "vector")).data
    return Value(Value(p * ratio, fit.form).indexed.sum(axis=-1))


def _entrywise(name: str) -> Callable[[list[Value], Node], Value]:
    return lambda values, under: entrywise(name, values[0])


BUILT_IN: dict[str, Callable[[list[Value], Node], Value] | None] = {
    **{name: _entrywise(plain) for name, plain in ENTRYWISE.items()},
    r"\log": log,
    r"\max": largest,
    r"\min": smallest,
    "lse": lse,
    "softmax": softmax_of,
    r"\sigma": softmax_of,
    "diag": diagonal,
    "tr": trace,
    "rank": lambda values, under: rank(values[0]),
    "strictly lower": strictly_lower,
    "KL": divergence,
    **dict.fromkeys(("E", "Var", "Cov")),  # the evaluator knows the outcomes
}
"""A function of its arguments and of what stands beneath it."""
