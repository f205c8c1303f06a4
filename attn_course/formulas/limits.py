"""Limits along a sequence: the points halve their distance (or double), and what is left of the error must shrink."""

from collections.abc import Callable, Iterator

import numpy as np

from attn_course.formulas.errors import Malformed

FIRST, LAST = 2, 46  # exponents of two
CLOSE, SETTLED = 1e-7, 1e-12


def points(goal: float, side: str) -> Iterator[float]:
    """Yield points that go to a number from one side, or to infinity along powers of two."""
    for exponent in range(FIRST, LAST):
        yield np.sign(goal) * 2.0**exponent if np.isinf(goal) else goal + (-1 if side == "-" else 1) * 2.0**-exponent


def extrapolated(at: Callable[[float], np.ndarray], sequence: Iterator[float]) -> tuple[np.ndarray, float]:
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
        raise Malformed("the limit is not found: the values do not settle")
    return best, apart
