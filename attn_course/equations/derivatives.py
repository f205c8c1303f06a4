"""Derivatives of NumPy functions to full precision, without any formula for them: a step along the imaginary axis."""

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 1e-30  # nothing is subtracted, so no step is too small


def jacobian(function: Callable[[np.ndarray], Any], at: np.ndarray) -> np.ndarray:
    """Differentiate every output with respect to every entry of one array.

    `function`: made of sums, products and exponentials, so that it takes complex numbers too.

    Returns `derivatives`: axes of the output first, then those of the point.
    """
    columns = []
    for index in np.ndindex(at.shape):
        point = at.astype(complex)
        point[index] += 1j * STEP
        columns.append(np.imag(function(point)) / STEP)
    stacked = np.stack(columns, axis=-1)
    return stacked.reshape(*stacked.shape[:-1], *at.shape)


def plain_softmax(scores: np.ndarray) -> np.ndarray:
    """Return e^s over the sum of its row, for real or complex scores of moderate size."""
    exponentials = np.exp(scores)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))
