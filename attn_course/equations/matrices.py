"""Matrices that the equations of several chapters share: symbolic ones, softmax over an axis, masks."""

import numpy as np
import sympy

from attn_course.equations.symbols import Expr, softmax_symbols


def matrix_symbols(letter: str, rows: int, columns: int) -> Expr:
    """Return a matrix of real symbols letter_11 ... letter_mn, counted as in the formulas."""
    return sympy.Matrix(rows, columns, lambda i, j: sympy.Symbol(f"{letter}_{i + 1}{j + 1}", real=True))


def row_softmax_symbols(scores: Expr) -> Expr:
    """Return the matrix whose rows are the softmax of the rows of the scores, written out."""
    return sympy.Matrix.vstack(*[softmax_symbols(scores.row(i)).T for i in range(scores.rows)])


def weights_of(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return e^s over its sum along an axis; every slice needs a finite score. Complex scores pass."""
    numerators = np.exp(scores - scores.real.max(axis=axis, keepdims=True))
    return numerators / numerators.sum(axis=axis, keepdims=True)


def random_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return a random boolean mask, True = may attend, in which each row keeps at least one key."""
    mask = rng.random(shape) < 0.5
    np.put_along_axis(mask, rng.integers(shape[-1], size=(*shape[:-1], 1)), True, axis=-1)
    return mask


def minus_infinity_where_hidden(mask: np.ndarray) -> np.ndarray:
    """Return the matrix M that is added to the scores: 0 where the mask is True, minus infinity elsewhere."""
    return np.where(mask, 0.0, -np.inf)
