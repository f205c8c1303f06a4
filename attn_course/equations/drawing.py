"""What the equations of several lessons draw, or compute from what they drew."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from attn_course.formulas.givens import Given, vector

Normal: TypeAlias = Callable[..., np.ndarray]  # draws a table of normal numbers: normal(rows, columns)


def tables(normal: Normal, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return tables of normal numbers."""
    return [normal(*shape) for shape in shapes]


def normalisers(queries: np.ndarray, keys: np.ndarray) -> Given:
    """Return by what the exponentials of each row are divided."""
    return vector([sum(math.exp(q @ k / math.sqrt(queries.shape[1])) for k in keys) for q in queries])


def narrow_factors(normal: Normal, d: int, d_k: int, common: int, own: tuple[int, int]) -> list[np.ndarray]:
    """Return W_Q and W_K: their rows lie in some common directions of d_k, and each in some of its own."""
    basis = np.linalg.qr(normal(d_k, d_k))[0]
    ends = common, common + own[0], common + sum(own)
    directions = basis[: ends[1]], basis[[*range(common), *range(ends[1], ends[2])]]
    return [normal(d, len(some)) @ some for some in directions]
