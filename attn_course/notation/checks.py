"""Clear errors for arrays."""

from typing import Any

import numpy as np


def require_array(name: str, array: Any, least_axes: int, axes: str) -> np.ndarray:
    """Return the argument if it is an ndarray with enough axes; `axes` names them in the message."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an ndarray; got {type(array).__name__}")
    if array.ndim < least_axes:
        raise ValueError(f"{name} must have the axes {axes}; got shape {array.shape}")
    return array
