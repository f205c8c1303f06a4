"""The functions every formula knows, on values."""

import functools
import math
from collections.abc import Callable

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, Value, check_form, entrywise, fitted, oriented, rank, softmax

ENTRYWISE = {
    r"\ln": "ln",
    r"\exp": "exp",
    r"\cos": "cos",
    r"\sin": "sin",
    r"\tan": "tan",
    r"\tanh": "tanh",
    r"\sinh": "sinh",
    r"\cosh": "cosh",
    r"\sqrt": "sqrt",
    "Re": "Re",
    "sign": "sign",
}


def _largest(*values: Value) -> Value:
    """Return the largest of several numbers, or of the entries of one vector."""
    if len(values) == 1 and values[0].form in FLAT and not values[0].lists:
        return Value(np.maximum.reduce(values[0].indexed, axis=-1))
    for value in values:
        check_form("the extreme", value, "scalar")
    return Value(functools.reduce(np.maximum, (value.data for value in values)))


def _smallest(*values: Value) -> Value:
    return Value(-_largest(*(value.like(-value.data) for value in values)).data)


def _log(value: Value, base: Node) -> Value:
    """Return a logarithm: natural, or to the base beneath."""
    natural = entrywise("ln", value)
    if base.kind == "none":
        return natural
    if base.kind != "number":
        raise Malformed("the base of a logarithm is a number")
    return natural.like(natural.data / entrywise("ln", Value(np.asarray(int(base.value), dtype=value.data.dtype))).data)


def _softmax(value: Value, along: Node) -> Value:
    """Return the softmax of a vector, or of a matrix row by row, or as the word beneath says."""
    if along.kind not in ("none", "word") or along.value not in ("", "rows", "columns"):
        raise Malformed("beneath softmax stands rows or columns")
    return softmax(value, columns=along.value == "columns")


def lse(value: Value) -> Value:
    """Return the logarithm of the sum of the exponentials of a vector, or of each row of a matrix as a column."""
    check_form("lse", value, *FLAT, "matrix")
    data = value.indexed
    top = data.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0)
    found = np.log(np.exp(data - safe).sum(axis=-1)) + safe[..., 0]
    return oriented(found, "column") if value.form == "matrix" else Value(found)


def _diagonal(value: Value) -> Value:
    """Return the matrix with a vector on its diagonal, or the diagonal of a matrix as a column."""
    if value.form == "matrix" and value.shape[:1] == value.shape[1:]:
        return oriented(np.diagonal(value.indexed, axis1=-2, axis2=-1), "column")
    check_form("diag", value, *FLAT)
    return Value(value.indexed[..., None, :] * np.eye(value.indexed.shape[-1], dtype=int), "matrix")


def _trace(value: Value) -> Value:
    check_form("the trace", value, *(["matrix"] if value.shape[:1] == value.shape[1:] else []))
    return Value(np.trace(value.data, axis1=-2, axis2=-1))


def _stacked(value: Value) -> Value:
    """Return the columns of a matrix, one beneath the other."""
    check_form("vec", value, "matrix")
    turned = np.swapaxes(value.data, -1, -2)
    return oriented(turned.reshape((*turned.shape[:-2], -1)), "column")


def _strictly_lower(value: Value) -> Value:
    check_form("the strictly lower part", value, "matrix")
    return Value(np.where(np.tril(np.ones(value.shape), -1) > 0, value.data, 0), "matrix")


def _logit(value: Value) -> Value:
    check_form("the logit", value, "scalar", "matrix", *FLAT)
    return value.like(np.log(value.data / (1 - value.data)))


def _erf(value: Value) -> Value:
    check_form("erf", value, "scalar", "matrix", *FLAT)
    return value.like(np.vectorize(math.erf, otypes=[float])(value.data))


def _deviation(value: Value) -> Value:
    """Return the standard deviation of the entries of a vector, as NumPy has it: of all that there are."""
    check_form("the standard deviation", value, *FLAT)
    return Value(value.indexed.std(axis=-1))


def _divergence(p: Value, q: Value) -> Value:
    """Return the Kullback-Leibler divergence of two distributions."""
    a, b, fit = fitted(p, q)
    check_form("KL", fit, *FLAT)
    return Value(fit.like(a * entrywise("ln", fit.like(a / b)).data).indexed.sum(axis=-1))


BUILT_IN: dict[str, Callable[..., Value] | None] = {
    **{name: functools.partial(entrywise, plain) for name, plain in ENTRYWISE.items()},
    r"\max": _largest,
    r"\min": _smallest,
    r"\log": _log,
    **dict.fromkeys(("softmax", r"\sigma"), _softmax),
    "lse": lse,
    "diag": _diagonal,
    "tr": _trace,
    "rank": rank,
    "vec": _stacked,
    "strictly lower": _strictly_lower,
    "KL": _divergence,
    "logit": _logit,
    "erf": _erf,
    "std": _deviation,
    **dict.fromkeys(("E", "Var", "Cov")),  # the evaluator knows the outcomes
}
"""Functions of values; the logarithm and the softmax take what stands beneath them too."""
BENEATH = (r"\log", "softmax", r"\sigma")
