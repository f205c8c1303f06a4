"""Limits along a sequence: the points halve their distance (or double), and what is left of the error must shrink.

Along powers of two alone a periodic function stands still; so the limit must be approached at points between them too.
"""

from collections.abc import Callable, Sequence

import numpy as np

from attn_course.formulas.errors import Malformed

FIRST, LAST = 2, 46  # exponents of two
CLOSE, SETTLED = 1e-7, 1e-12
BETWEEN = (2**0.5, 3**0.5 / 2)  # where else, in parts of a distance: no whole number, and their ratio is none
AS_FAR = 20.0  # an error there may be so many times as large as those around it


def points(goal: float, side: str) -> list[float]:
    """Return points that go to a number from one side, or to infinity along powers of two."""
    return [_point(goal, side, 2.0**exponent) for exponent in range(FIRST, LAST)]


def _point(goal: float, side: str, nearness: float) -> float:
    return float(np.sign(goal) * nearness if np.isinf(goal) else goal + (-1 if side == "-" else 1) / nearness)


def limit_of(at: Callable[[float], np.ndarray], goal: float, side: str) -> tuple[np.ndarray, float]:
    """Return the limit of a function, and how far its last two estimates are apart in units of its scale.

    Raises Malformed if the estimates do not come together, or if it is not approached at points between those.
    """
    values: list[np.ndarray] = []

    def noted(point: float) -> np.ndarray:
        values.append(at(point))
        return values[-1]

    found, apart = extrapolated(noted, points(goal, side))
    scale = max(CLOSE * float(np.abs(found).max(initial=0.0)), SETTLED * float(np.abs(values[0]).max(initial=0.0)), 1e-300)
    for last in sorted({len(values) - 1, len(values) // 2}):
        around = max(float(np.abs(value - found).max(initial=0.0)) for value in values[max(last - 1, 0) : last + 1])
        for factor in BETWEEN:
            value = _at_first(at, [_point(goal, side, factor * 2.0 ** (FIRST + last)), _point(goal, side, 2.0 ** (FIRST + last) - 1)])
            if not np.all(np.abs(value - found) <= AS_FAR * around + scale):
                raise Malformed("the limit is not found: along powers of two the values settle, between them they do not")
    return found, apart


def _at_first(at: Callable[[float], np.ndarray], candidates: Sequence[float]) -> np.ndarray:
    """Return the value at the first point that has one: what counts something has none between whole numbers."""
    for point in candidates[:-1]:
        try:
            return at(point)
        except (MemoryError, Malformed):
            continue
    return at(candidates[-1])


def extrapolated(at: Callable[[float], np.ndarray], sequence: Sequence[float]) -> tuple[np.ndarray, float]:
    """Return the limit of a function along a sequence, and how far its last two estimates are apart in units of its scale.

    Richardson's extrapolation takes away an error of order 1, 2, ... in the distance; of its estimates the two neighbours decide that
    are closest, so it stops before round-off grows. Raises Malformed if the estimates do not come together.
    """
    best, apart, worse, exactly = np.zeros(0), np.inf, 0, 0
    previous: list[np.ndarray] = []
    for count, point in enumerate(sequence):
        try:
            row = [at(point)]
        except (MemoryError, Malformed):
            if apart > CLOSE:
                raise
            break
        for order, before in enumerate(previous[:8], start=1):
            row.append(row[-1] + (row[-1] - before) / (2**order - 1))
        still = bool(previous) and np.allclose(row[0], previous[0], rtol=1e-15, atol=0)
        exactly = exactly + 1 if still else 0
        if exactly == 2:  # what converges faster than any power stands still
            return row[0], 0.0
        if count > 2:
            distance = float(np.abs(row[-1] - previous[-1]).max()) / max(float(np.abs(row[-1]).max()), 1e-300)
            best, apart, worse = (row[-1], distance, 0) if distance < apart else (best, apart, worse + 1)
            if apart < SETTLED or (worse > 3 and apart < CLOSE):
                break
        previous = row
    if not apart < CLOSE:
        large = bool(previous) and not np.isfinite(previous[0]).all()
        raise Malformed(f"the limit is not found: {'what is computed gets too large on the way' if large else 'the values do not settle'}")
    return best, apart
