"""Compare arrays with the right ones: the first element that is wrong, or the form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDINGS = 8.0
TOLERANCE = {"float32": 5e-4}  # of results wider than float32: Task.tolerance, else 1e-9


@dataclass(frozen=True)
class Miss:
    """How a result of so many `items` differs from the right one: in form (`reason`), or in numbers."""

    reason: str = ""
    item: int | None = None
    index: tuple[int, ...] = ()
    got: float = 0.0
    wanted: float = 0.0
    largest_error: float = 0.0
    items: int = 1


def compare(
    got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float | None = None, largest_input: float = 0.0
) -> Miss | None:
    """Return None if the arrays agree, else the first difference.

    `got`, `wanted`: as many arrays on both sides, of the same shapes. NaN and infinities must stand in the same places.
    `tolerance`: largest error, relative to the largest finite entry wanted; the default goes by the dtype that came.
    `largest_input`: size of the numbers that went in. Where they cancel, a few of their roundings remain, and are no
    mistake.

    Returns `miss`: the first element that is wrong, and the largest error.
    """
    if len(got) != len(wanted):
        return Miss(f"it must return {_items(len(wanted))}; got {_items(len(got))}")
    for position, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        which = f"item {position} of the tuple" if len(wanted) > 1 else "the result"
        if ours.shape != theirs.shape:
            wanted_form = f"have shape {theirs.shape}" if theirs.shape else "be a single number"
            return Miss(
                f"{which} must {wanted_form}; got {ours.shape or 'a single number'}",
                position if len(wanted) > 1 else None,
                items=len(wanted),
            )
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max(initial=0.0)) or 1.0
        rounding = max(np.finfo(ours.dtype).eps, np.finfo(np.float64).eps)
        allowed = max(scale * TOLERANCE.get(ours.dtype.name, tolerance or 1e-9), ROUNDINGS * float(rounding) * largest_input)
        with np.errstate(all="ignore"):
            error = np.abs(ours.astype(np.float64) - theirs)
        if (error <= allowed).all():
            continue
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        wrong = ~same & ~(error <= allowed)  # a NaN error counts as wrong
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            largest = float(error[wrong & np.isfinite(error)].max(initial=0.0))
            item = position if len(wanted) > 1 else None
            return Miss("", item, index, float(ours[index]), float(theirs[index]), largest, len(wanted))
    return None


def largest_input(inputs: Mapping[str, Any]) -> float:
    """Return the size of the largest finite number that goes into a case."""
    values = [[*value.values()] if isinstance(value, Mapping) else value for value in inputs.values()]
    parts = [part for value in values for part in (value if isinstance(value, (list, tuple)) else [value])]
    arrays = [np.asarray(part, dtype=np.float64) for part in parts if isinstance(part, (np.ndarray, float))]
    return max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in arrays), default=0.0)


def _items(count: int) -> str:
    return "one array" if count == 1 else f"a tuple of {count} arrays"
