"""How a wrong array is like the right one: times a number, in another order, without its signs; each a sentence that holds in every case.

Each function takes what an answer gave, and what is right, in the cases that fail, and returns a sentence or "".
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

MOST_PERMUTED = 4  # axes of which every order is tried
FEW_DIGITS = 5e-4  # of the largest entry: what a step in float32 may lose
LEAST = 3  # different numbers from which a likeness is no chance


@dataclass(frozen=True)
class Pair:
    """What came and what is right in a case: one array on each side, of the same shape; `inputs` are what went in."""

    inputs: Mapping[str, Any]
    got: np.ndarray
    wanted: np.ndarray

    @property
    def rtol(self) -> float:
        """Up to which share of its size a number counts as equal."""
        return 1e-4 if self.got.dtype == np.float32 else 1e-6

    def equal(self, ours: Any, theirs: Any) -> bool:
        """Whether two arrays agree up to roundings."""
        size = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)) if isinstance(theirs, np.ndarray) else abs(theirs)
        return bool(np.shape(ours) == np.shape(theirs) and np.allclose(ours, theirs, rtol=self.rtol, atol=1e-3 * self.rtol * size))


def number(value: float, digits: int = 6) -> str:
    """Return a number in so many digits; nobody is to wonder about a minus before a zero."""
    return f"{float(value) + 0.0:.{digits}g}"


def likeness(pairs: Sequence[Pair], it: str, *, all_fail: bool) -> str:
    """Return how a wrong result is as a whole like the right one, or like an input, as a sentence, or "".

    `pairs`: one for each case in which `it`, the result or one of several, is wrong; `all_fail`: whether these are all cases.
    """
    return (all_fail and everywhere(pairs, it)) or _said(AS_A_WHOLE, pairs, it, all_fail)


def likeness_of_rows(pairs: Sequence[Pair], it: str, *, all_fail: bool) -> str:
    """Return how the rows of a wrong result are like the right ones, as a sentence, or ""; `likeness` says what is passed."""
    return _said(BY_ROWS, pairs, it, all_fail)


def _said(finders: Sequence[Callable[[Sequence[Pair]], str]], pairs: Sequence[Pair], it: str, all_fail: bool) -> str:
    found = next((words for find in finders if (words := find(pairs))), "")
    return found and begun(f"{'' if all_fail else 'where it is wrong, '}{it} {found}.")


def everywhere(pairs: Sequence[Pair], it: str) -> str:
    """Return the one number that right results were multiplied by, or that was added, in a sentence; "" if there is none."""
    for find in (_factor, _offset):
        if (words := find(pairs)) and "from case to case" not in words:
            return begun(f"everywhere {it} {words}.")
    return ""


def begun(sentence: str) -> str:
    """Return a sentence with a capital letter in front."""
    return sentence[:1].upper() + sentence[1:]


def _all_zero(pairs: Sequence[Pair]) -> str:
    return "is all zeros" if all(pair.got.size > 1 and not pair.got.any() for pair in pairs) else ""


def _an_input(pairs: Sequence[Pair]) -> str:
    for name, value in pairs[0].inputs.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 1:
            others = (pair.inputs.get(name) for pair in pairs)
            if all(isinstance(other, np.ndarray) and pair.equal(pair.got, other) for pair, other in zip(pairs, others, strict=True)):
                return f"holds the numbers of the input `{name}`, unchanged"
    return ""


def _one_number(pairs: Sequence[Pair]) -> str:
    same = all(pair.got.size >= LEAST and np.isfinite(pair.got).all() and np.ptp(pair.got) == 0.0 < np.ptp(pair.wanted) for pair in pairs)
    return "holds one and the same number everywhere" if same else ""


def _factor(pairs: Sequence[Pair]) -> str:
    factors = [factor(pair) for pair in pairs]
    if None in factors or not any(various(pair.wanted) for pair in pairs):
        return ""
    found = [float(one) for one in factors if one is not None]
    if np.allclose(found, found[0], rtol=1e-4):
        return f"is {_as_number(found[0])} times the right result"
    if (size := by_size(pairs, found)) is not None:
        return f"is the right result {size}"
    return f"is the right result times one number, but that number {_differs(found)}"


def _offset(pairs: Sequence[Pair]) -> str:
    offsets = [_only(pair, pair.got - pair.wanted) for pair in pairs]
    if None in offsets or not any(various(pair.wanted) for pair in pairs):
        return ""
    found = [float(one) for one in offsets if one is not None]
    if np.allclose(found, found[0], rtol=1e-4):
        return f"is the right result plus {number(found[0])}"
    return f"is the right result plus one number, but that number {_differs(found)}"


def _other_signs(pairs: Sequence[Pair]) -> str:
    alike = all(_held(pair) and pair.equal(np.abs(pair.got), np.abs(pair.wanted)) and various(np.abs(pair.wanted)) for pair in pairs)
    return "is right but for the signs of some entries" if alike else ""


def _other_order(pairs: Sequence[Pair]) -> str:
    if not all(_held(pair) and various(pair.wanted) and pair.equal(np.sort(pair.got, axis=None), np.sort(pair.wanted, axis=None))
               for pair in pairs):  # fmt: skip
        return ""
    axes = pairs[0].wanted.ndim
    if any(pair.wanted.ndim != axes for pair in pairs):
        return "holds the right numbers in another order"
    orders: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    if axes == 1:
        orders["is the right result in reverse order"] = lambda array: array[::-1]
    elif axes > 1:
        orders["has its rows in reverse order"] = lambda array: array[..., ::-1, :]
        orders["has its columns in reverse order"] = lambda array: array[..., ::-1]
    if 1 < axes <= MOST_PERMUTED:
        for order in [*itertools.permutations(range(axes))][1:]:
            words = "is the right result with its axes in another order, " if axes > 2 else "is the right result transposed, "
            orders[f"{words}reshaped to the shape that is wanted"] = partial(_reordered, order)
    for words, change in orders.items():
        if all(pair.equal(pair.got, change(pair.wanted)) for pair in pairs):
            return words
    if axes > 1:
        for words, axis in (("each of its rows holds the right numbers", -1), ("each of its columns holds the right numbers", -2)):
            if all(pair.equal(np.sort(pair.got, axis=axis), np.sort(pair.wanted, axis=axis)) for pair in pairs):
                return f"holds the right numbers in another order: {words}"
    return "holds the right numbers in another order"


def _reordered(order: tuple[int, ...], array: np.ndarray) -> np.ndarray:
    return array.transpose(order).reshape(array.shape)


def _rows(pairs: Sequence[Pair]) -> str:
    """Every row, or every column, is the right one times, or plus, a number of its own."""
    if not all(_held(pair) and pair.wanted.ndim > 1 and min(pair.wanted.shape[-2:]) > 1 for pair in pairs):
        return ""
    for name, axis in (("row", -1), ("column", -2)):
        if any(pair.wanted.shape[axis] < LEAST for pair in pairs):
            continue
        if all(_each_times(pair, axis) for pair in pairs):
            return f"has in each {name} the right numbers times a factor of that {name}"
        if all(_each_plus(pair, axis) for pair in pairs):
            return f"has in each {name} the right numbers plus a number of that {name}"
    return ""


def _sharpness(pairs: Sequence[Pair]) -> str:
    """Weights of scores that are all a factor too large."""
    found = []
    for pair in pairs:
        if pair.wanted.ndim < 1 or pair.wanted.shape[-1] < LEAST or not (sums_to_one(pair.wanted, -1) and sums_to_one(pair.got, -1)):
            return ""
        if not ((pair.got > 0).all() and (pair.wanted > 0).all()):
            return ""
        ours, theirs = (np.log(array) - np.log(array).mean(axis=-1, keepdims=True) for array in (pair.got, pair.wanted))
        times = factor(Pair(pair.inputs, ours.astype(pair.got.dtype), theirs))
        if times is None:
            return ""
        found.append(times)
    if np.allclose(found, found[0], rtol=1e-3):
        return f"holds the weights of scores that are {_as_number(found[0])} times the right ones"
    size = by_size(pairs, found)
    return f"holds the weights of scores that are the right ones {size}" if size else ""


def sums_to_one(array: np.ndarray, axis: int) -> bool:
    """Return whether an array looks like weights along an axis: nowhere negative, and each sum is 1, or 0 for those that see nothing."""
    if array.ndim < -axis or array.shape[axis] < 2 or not np.isfinite(array).all() or (array < 0).any() or not array.any():
        return False
    sums = array.sum(axis=axis)
    close = 1e-5 if array.dtype == np.float32 else 1e-9
    return bool(((np.abs(sums - 1.0) < close) | (sums == 0.0)).all() and (array != np.rint(array)).any())


def factor(pair: Pair) -> float | None:
    """Return the number that the right result was multiplied by; None if it was not, or by 1."""
    theirs = pair.wanted.astype(np.float64).ravel()
    if not _held(pair) or not theirs.any():
        return None
    found = float(pair.got.astype(np.float64).ravel() @ theirs / (theirs @ theirs))
    near = 1e-3 * pair.rtol * float(np.abs(pair.got).max())
    if not found or abs(found - 1.0) < 1e-3 or not np.allclose(pair.got, found * pair.wanted, rtol=pair.rtol, atol=near):
        return None
    return found


def by_size(pairs: Sequence[Pair], factors: Sequence[float]) -> str | None:
    """Return what of the inputs the factors are, in words: the length of an axis, or a plain number, its root, or one over it."""
    for said, sizes in _sizes(pairs):
        for words, change in SCALES.items():
            if np.allclose([change(size) for size in sizes], factors, rtol=1e-4):
                return words.format(said)
    return None


SCALES: dict[str, Callable[[float], float]] = {
    "times {}": lambda size: size,
    "divided by {}": lambda size: 1.0 / size,
    "times the root of {}": lambda size: size**0.5,
    "divided by the root of {}": lambda size: size**-0.5,
    "times the square of {}": lambda size: size**2,
    "divided by the square of {}": lambda size: size**-2,
}


def _sizes(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[float]]]:
    """Yield what differs from case to case and could be a factor: plain inputs, then lengths of axes."""
    for name, value in pairs[0].inputs.items():
        others = [pair.inputs.get(name) for pair in pairs]
        if all(isinstance(other, (int, float)) and not isinstance(other, bool) and other > 0 for other in others):
            yield f"`{name}`", [float(other) for other in others if isinstance(other, (int, float))]
        arrays = [other for other in others if isinstance(other, np.ndarray) and other.ndim]
        if isinstance(value, np.ndarray) and len(arrays) == len(pairs):
            for axis in range(1, min(array.ndim for array in arrays) + 1):
                if all(array.shape[-axis] for array in arrays):
                    place = {1: "last", 2: "last but one"}.get(axis, f"{axis}th last")
                    said = f"the length of the {place} axis of `{name}`" if max(a.ndim for a in arrays) > 1 else f"the length of `{name}`"
                    yield said, [float(array.shape[-axis]) for array in arrays]


def _differs(found: Sequence[float]) -> str:
    return f"differs from case to case: {number(min(found), 4)} to {number(max(found), 4)}"


def _as_number(value: float) -> str:
    """A factor, and what it is if it is the root of a whole number or a logarithm of 2."""
    for known, words in ((np.log(2.0), "the natural logarithm of 2"), (1.0 / np.log(2.0), "1 over the natural logarithm of 2")):
        if abs(value - known) < 1e-4:
            return f"{number(value)} ({words})"
    for square, words in ((value**2, "the root of {:g}"), (value**-2, "1 over the root of {:g}")):
        whole = round(square)
        if value > 0 and 2 <= whole <= 128 and whole**0.5 % 1 and abs(square - whole) < 1e-4 * whole:
            return f"{number(value)} ({words.format(whole)})"
    return number(value)


def various(array: np.ndarray) -> bool:
    """Return whether an array holds so many different numbers that a likeness is no chance."""
    return len(np.unique(array)) >= LEAST


def _held(pair: Pair) -> bool:
    """Whether both sides are finite, and clearly differ."""
    if not (pair.got.size and np.isfinite(pair.got).all() and np.isfinite(pair.wanted).all()):
        return False
    close = FEW_DIGITS if pair.got.dtype == np.float32 else pair.rtol
    return not np.allclose(pair.got, pair.wanted, rtol=close, atol=1e-3 * close * float(np.abs(pair.wanted).max()))


def _only(pair: Pair, values: np.ndarray) -> float | None:
    """The one number that an array holds."""
    if not _held(pair):
        return None
    mean = float(values.mean())
    size = float(np.abs(pair.wanted).max())
    return mean if np.allclose(values, mean, rtol=pair.rtol, atol=1e-3 * pair.rtol * size) else None


def _each_times(pair: Pair, axis: int) -> bool:
    own = (pair.wanted * pair.wanted).sum(axis=axis, keepdims=True)
    times = (pair.got * pair.wanted).sum(axis=axis, keepdims=True) / np.where(own == 0.0, 1.0, own)
    return bool(np.abs(times[own > 0.0] - 1.0).max(initial=0.0) > 1e-3) and pair.equal(pair.got, times * pair.wanted)


def _each_plus(pair: Pair, axis: int) -> bool:
    plus = (pair.got - pair.wanted).mean(axis=axis, keepdims=True)
    return pair.equal(pair.got, plus + pair.wanted) and bool(np.abs(plus).max() > 1e-3 * np.abs(pair.wanted).max())


AS_A_WHOLE = (_all_zero, _an_input, _factor, _offset, _one_number, _other_signs, _other_order)
BY_ROWS = (_rows, _sharpness)
