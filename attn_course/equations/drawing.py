"""What the equations of several lessons draw, or compute from what they drew."""

import math

import numpy as np

from attn_course.formulas.givens import Given, vector


def normal(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return tables of normal numbers."""
    return [rng.normal(size=shape) for shape in shapes]


def normalisers(queries: np.ndarray, keys: np.ndarray) -> Given:
    """Return by what the exponentials of each row are divided."""
    return vector([sum(math.exp(q @ k / math.sqrt(queries.shape[1])) for k in keys) for q in queries])


def narrow_factors(rng: np.random.Generator, d: int, d_k: int, common: int, own: tuple[int, int]) -> list[np.ndarray]:
    """Return W_Q and W_K: their rows lie in some common directions of d_k, and each in some of its own."""
    basis = np.linalg.qr(rng.normal(size=(d_k, d_k)))[0]
    ends = common, common + own[0], common + sum(own)
    directions = basis[: ends[1]], basis[[*range(common), *range(ends[1], ends[2])]]
    return [rng.normal(size=(d, len(some))) @ some for some in directions]
