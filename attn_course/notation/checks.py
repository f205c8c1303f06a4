"""Clear errors for arrays and numbers of heads."""

from typing import Any

import numpy as np


def require_array(name: str, array: Any, least_axes: int, axes: str) -> np.ndarray:
    """Return the argument if it is an ndarray with enough axes; `axes` names them in the message."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an ndarray; got {type(array).__name__}")
    if array.ndim < least_axes:
        raise ValueError(f"{name} must have the axes {axes}; got shape {array.shape}")
    return array


def require_integer(name: str, value: Any, least: int) -> int:
    """Return an integer argument as int; TypeError if it is none, ValueError if it is below `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer; got {type(value).__name__} {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more; got {value}")
    return int(value)


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
