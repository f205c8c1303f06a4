"""Compare arrays with the right ones: the first element that is wrong, or the form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TOLERANCE = 1e-9  # of results wider than float32, where a task says nothing else
ROUNDINGS = 32.0  # of the largest entry: what the order of a few operations may cost
LOSSES = 16.0  # an honest result may be so many times as far off as the right answer is after a rounding of its inputs
CAP = 0.01  # where a rounding moves the right answer by more, the answer leaps there, and nothing is allowed for it
NUDGES = ("narrow", "random")

Nearby = Callable[[], Sequence[Sequence[np.ndarray]]]


@dataclass(frozen=True)
class Miss:
    """How a result differs from the right one: in form (`reason`), or in numbers."""

    reason: str = ""
    item: int | None = None
    index: tuple[int, ...] = ()
    got: float = 0.0
    wanted: float = 0.0
    largest_error: float = 0.0


def compare(
    got: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    tolerance: float | None = None,
    nearby: Nearby | None = None,
    *,
    exact_zeros: bool = False,
    digits: int | None = None,
) -> Miss | None:
    """Return None if the arrays agree, else the first difference.

    `got`, `wanted`: as many arrays on both sides, of the same shapes; several single numbers may come as one array. NaN and infinities
    must stand in the same places.
    `tolerance`: largest error, relative to the largest finite entry wanted; the default is 1e-9, and always a few roundings of the
    dtype that came. `nearby`: makes what is wanted of inputs that are a rounding of float32 away, a sequence of arrays for each of
    `NUDGES`. How far it lies from what is wanted says what honest arithmetic loses in this case. An entry that is 0 has no other
    allowance. `exact_zeros`: an entry that is 0 must be so exactly. `digits`: so many correct digits of each number are enough:
    half a unit of the last of them is allowed, and no tolerance beside that.

    Returns `miss`: the first element that is wrong, and the largest error.
    """
    if len(got) == 1 < len(wanted) and got[0].shape == (len(wanted),) and not any(each.ndim for each in wanted):
        got = [np.asarray(number) for number in got[0]]  # several numbers, in one array
    if len(got) != len(wanted):
        return Miss(f"it must return {_items(len(wanted))}; got {_items(len(got))}")
    for position, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        which = f"item {position} of the tuple" if len(wanted) > 1 else "the result"
        if ours.shape != theirs.shape:
            wanted_form = f"have shape {theirs.shape}" if theirs.shape else "be a single number"
            return Miss(f"{which} must {wanted_form}; got {ours.shape or 'a single number'}", position if len(wanted) > 1 else None)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        if same.all():
            continue
        eps = max(float(np.finfo(ours.dtype).eps), float(np.finfo(np.float64).eps))
        scale = _largest(theirs) or 1.0
        zero, small = theirs == 0.0, ROUNDINGS * eps
        allowed = scale * np.where(zero & (nearby is not None), tolerance or small, max(tolerance or TOLERANCE, small))
        allowed = np.where(zero & exact_zeros, 0.0, allowed) if digits is None else _half_units(theirs, digits)
        with np.errstate(all="ignore"):
            error = np.abs(ours.astype(np.float64) - theirs)
        wrong = ~same & ~(error <= allowed)  # a NaN error counts as wrong
        cap = CAP * max(scale, 1.0)
        if nearby and wrong.any() and (error[wrong] <= cap).all():
            others = [each[position] for each in nearby() if len(each) == len(wanted)]
            lost = LOSSES * eps / float(np.finfo(np.float32).eps) * _moved(theirs, others, cap)
            wrong &= ~((error <= allowed + lost) & ~(zero & exact_zeros))
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            largest = float(error[wrong & np.isfinite(error)].max(initial=0.0))
            item = position if len(wanted) > 1 else None
            return Miss("", item, index, float(ours[index]), float(theirs[index]), largest)
    return None


def _half_units(wanted: np.ndarray, digits: int) -> np.ndarray:
    """Half a unit of the last of so many digits of each number, and what it takes to write that down."""
    size = np.abs(wanted)
    first = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    return 0.5 * 10.0 ** (first + 1 - digits) * (1.0 + 1e-9)


def _moved(theirs: np.ndarray, others: Sequence[np.ndarray], cap: float) -> float:
    """How far the right answer moves when its inputs are rounded, without entries at which it leaps, or is no number."""
    with np.errstate(all="ignore"):
        moves = [np.abs(other - theirs) for other in others if other.shape == theirs.shape]
    return max((float(move[move <= cap].max(initial=0.0)) for move in moves), default=0.0)


def nudged(value: Any, how: str, rng: np.random.Generator) -> Any:
    """Return an input that is a rounding of float32 away.

    `how`: "narrow" makes float32 arrays of float64 ones, so that what is computed with them is rounded too; "random" moves each
    number by half a rounding at most.
    """
    if isinstance(value, Mapping):
        return {name: nudged(each, how, rng) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(nudged(each, how, rng) for each in value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return value.astype(np.float32) if how == "narrow" else value * (1.0 + _half_rounding(rng, value.shape))
    if isinstance(value, float):
        return float(np.float32(value)) if how == "narrow" else value * (1.0 + float(_half_rounding(rng, ())))
    return value


def _half_rounding(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(rng.uniform(-0.5, 0.5, size=shape)) * np.finfo(np.float32).eps


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _items(count: int) -> str:
    return "one array" if count == 1 else f"a tuple of {count} arrays"
