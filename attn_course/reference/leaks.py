"""The leak test: which output rows of a layer move when one input row moves."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, require_integer, require_positive


def leak_matrix(
    function: Callable[[np.ndarray], Any], x: Float[np.ndarray, "kv_len d_model"], *, size: float = 1.0, seed: int = 0
) -> Float[np.ndarray, "q_len kv_len"]:
    """Return how far each output row moves when one input row is moved, the influence that Eq. causal-mask-hides-future wants to be 0.

    `size`: standard deviation of the steps that are added to an input row, one for each feature.
    `seed`: of the steps. They differ from feature to feature, since a layer may ignore a shift of all features alike.

    Returns `influence`: row = output, column = input: the largest absolute change of output row i when input row j
    moves; infinite where the change is not a number. With a causal mask everything above the diagonal is exactly 0.

    Raises TypeError if an argument is of the wrong type; ValueError if `x` has another number of axes, `size` is not
    positive, or the function does not return rows.

    A test by perturbation sees what a gradient cannot: steps of functions that are flat almost everywhere. Both can
    miss a leak that only opens at other inputs, as with a large finite number in place of -inf, Eq. finite-fill-leaks.

    >>> shifted = lambda x: np.vstack([x[1:], x[:1]])  # row i is a copy of row i + 1
    >>> (leak_matrix(shifted, np.zeros((3, 2))) > 0).astype(int)
    array([[0, 1, 0],
           [0, 0, 1],
           [1, 0, 0]])
    """
    if not callable(function):
        raise TypeError(f"function must be callable; got {type(function).__name__}")
    checked_floats(x=x)
    if x.ndim != 2:
        raise ValueError(f"x must have the axes (kv_len, d_model); got shape {x.shape}")
    steps = require_positive("size", size) * np.random.default_rng(require_integer("seed", seed, 0)).normal(size=x.shape)
    before = _rows(function(x.copy()))
    influence = np.zeros((len(before), len(x)))
    for j, step in enumerate(steps):
        moved = x.copy()
        moved[j] += step.astype(x.dtype)
        influence[:, j] = _change(before, _rows(function(moved)))
    return influence


def _rows(output: Any) -> np.ndarray:
    array = np.asarray(output, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"function must return rows, (q_len, d_output); got shape {array.shape}")
    return array


@np.errstate(invalid="ignore")
def _change(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if before.shape != after.shape:
        raise ValueError(f"function must return the same shape each time; got {before.shape} and {after.shape}")
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    change = np.where(same, 0.0, np.abs(after - before))
    return np.where(np.isnan(change), np.inf, change).max(axis=1, initial=0.0)
