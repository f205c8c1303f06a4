"""What every formula here needs at its edges: clear errors, wide enough arithmetic, broadcasting and its gradient."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def described(thing: Any) -> str:
    """Return what came, for a message of error: the dtype of an ndarray, or the type."""
    return f"{thing.dtype} ndarray" if isinstance(thing, np.ndarray) else type(thing).__name__


def checked_floats(**arrays: Any) -> list[np.ndarray]:
    """Return the arguments in at least float32 (views where nothing changes), or raise TypeError naming the one that is wrong."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.floating):
            raise TypeError(f"{name} must be an ndarray of floats; got {described(array)}")
    dtype = np.result_type(np.float32, *(array.dtype for array in arrays.values()))
    return [np.asarray(array, dtype=dtype) for array in arrays.values()]


def require_axes(least: int, axes: str, **arrays: np.ndarray) -> None:
    """Raise ValueError for the first array that has fewer than `least` axes; `axes` names them."""
    for name, array in arrays.items():
        if array.ndim < least:
            raise ValueError(f"{name} must have the axes {axes}; got shape {array.shape}")


def require_shape(name: str, array: np.ndarray, wanted: tuple[int, ...], meaning: str) -> None:
    """Raise ValueError unless the array has exactly the shape wanted."""
    if array.shape != wanted:
        raise ValueError(f"{name} must have shape {wanted}, {meaning}; got {array.shape}")


def require_integer(name: str, value: Any, least: int) -> int:
    """Return an integer argument as int; TypeError if it is none, ValueError if it is below `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer; got {type(value).__name__} {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more; got {value}")
    return int(value)


def require_positive(name: str, value: Any) -> float:
    """Return a number argument as float; TypeError if it is none, ValueError unless it is positive and finite."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}")
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    return float(value)


def require_flags(**flags: Any) -> None:
    """Raise TypeError for the first option that is neither True nor False."""
    for name, flag in flags.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False; got {type(flag).__name__}")


def within_range(value: float, dtype: np.dtype) -> float:
    """Return a positive number moved to the range of a dtype, so that there it is neither 0 nor infinite."""
    return min(max(value, float(np.finfo(dtype).tiny)), float(np.finfo(dtype).max))


@np.errstate(over="ignore")
def narrowed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a copy in the dtype of a result; what a float16 cannot hold becomes infinite, without a warning."""
    return array.astype(dtype)


def broadcast_batch(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the leading axes broadcast, or raise ValueError listing them."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading axes must broadcast; got {listed}") from None


def require_mask_shape(mask: np.ndarray, q_len: int, kv_len: int) -> None:
    """Refuse a mask that does not broadcast to (..., q_len, kv_len); one of a single axis is the same for all queries."""
    fits = all(have in (1, want) for have, want in zip(reversed(mask.shape[-2:]), (kv_len, q_len), strict=False))
    if mask.ndim == 0 or not fits:
        raise ValueError(f"mask must broadcast to (..., q_len, kv_len) = (..., {q_len}, {kv_len}); got shape {mask.shape}")


def sum_to_shape(gradient: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Sum a gradient over the axes along which an input of that shape was broadcast."""
    extra = gradient.ndim - len(shape)
    summed = gradient.sum(axis=tuple(range(extra)))
    stretched = tuple(axis for axis, length in enumerate(shape) if length == 1 and summed.shape[axis] != 1)
    return np.asarray(summed.sum(axis=stretched, keepdims=True))  # sum() makes a scalar of an array without axes


@np.errstate(over="ignore", invalid="ignore")
def weighted_sum(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return weights @ rows, where a weight of exactly 0 removes its row even if that holds NaN or infinity.

    (..., m, n) and (..., n, f) give (..., m, f). So what a mask hides cannot leak, not even as a NaN.
    """
    if np.isfinite(rows).all():
        return weights @ rows
    total = weights @ np.where(np.isfinite(rows), rows, 0.0)

    def meet(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left.astype(np.float64) @ right.astype(np.float64) > 0.0  # is there any j with left[i, j] and right[j, f]?

    plus = meet(weights > 0.0, np.isposinf(rows)) | meet(weights < 0.0, np.isneginf(rows))
    minus = meet(weights > 0.0, np.isneginf(rows)) | meet(weights < 0.0, np.isposinf(rows))
    undefined = meet(weights != 0.0, np.isnan(rows)) | (plus & minus) | np.isnan(total)
    return np.select(
        [undefined, plus, minus], [np.full_like(total, np.nan), np.full_like(total, np.inf), np.full_like(total, -np.inf)], total
    )
