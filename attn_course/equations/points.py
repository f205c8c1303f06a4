"""Points at which numeric equations are tried: plain ones, and those at which formulas tend to break."""

from collections.abc import Iterator

import numpy as np

COUNTS = range(1, 8)


def score_vectors(rng: np.random.Generator, counts: range = COUNTS) -> Iterator[np.ndarray]:
    """Yield score vectors of every length: plain, equal, tied at the top, far apart, far from zero."""
    for count in counts:
        plain = rng.normal(size=count)
        yield plain
        yield np.full(count, plain[0])
        tied = rng.normal(size=count)
        tied[: (count + 1) // 2] = tied.max() + 0.5
        yield rng.permutation(tied)
        yield 30.0 * rng.normal(size=count)
        yield rng.permutation(1000.0 * np.arange(count) - 300.0)
        yield rng.normal(size=count) + 800.0
        yield rng.normal(size=count) - 800.0
