"""What the equations of several lessons draw, or compute from what they drew."""

import math
from collections.abc import Callable, Mapping
from inspect import signature
from operator import methodcaller
from typing import Any, TypeAlias

import numpy as np

from attn_course.formulas.givens import Given, vector
from attn_course.reference import multi_head_attention

Normal: TypeAlias = Callable[..., np.ndarray]  # draws a table of normal numbers: normal(rows, columns)


class Watched(np.random.Generator):
    """A generator that hears of each of its draws, and may hand on something else."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or not hasattr(np.random.Generator, name):
            return found
        return lambda *arguments, **named: self._drew(name, found(*arguments, **named), methodcaller(name, *arguments, **named))

    def _drew(self, name: str, value: Any, again: Callable[[np.random.Generator], Any]) -> Any:
        """Return what to hand on in the place of a value drawn by the method `name`; `again` draws the same of another generator."""
        raise NotImplementedError


def drawn(make: Callable[..., Any], rng: np.random.Generator, draw: int, sizes: Mapping[str, int]) -> Any:
    """Return what a function makes of some sizes, with what else it asks for: see `Registry.add`."""
    offered = {"normal": lambda *shape: rng.normal(size=shape or None), "rng": rng, "draw": draw}
    taken = signature(make).parameters
    return make(**{name: thing for name, thing in offered.items() if name in taken}, **sizes)


def tables(normal: Normal, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return tables of normal numbers."""
    return [normal(*shape) for shape in shapes]


def named(normal: Normal, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return tables of normal numbers by their names."""
    return {name: normal(*shape) for name, shape in shapes.items()}


def inputs(normal: Normal, T_q: int, T_k: int, d_k: int, d_v: int) -> list[np.ndarray]:
    """Return Q, K and V."""
    return tables(normal, (T_q, d_k), (T_k, d_k), (T_k, d_v))


def projections(normal: Normal, d_x: int, d_y: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Return W_Q, W_K and W_V of a head in which rows of d_x numbers ask rows of d_y."""
    return named(normal, W_Q=(d_x, d_k), W_K=(d_y, d_k), W_V=(d_y, d_v))


def one_head(X: np.ndarray, Y: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Return what the package computes where X asks Y, with one head and no output projection."""
    return np.asarray(multi_head_attention(X, Y, W_Q, W_K, W_V, np.eye(W_V.shape[1]), n_heads=1, mask=mask))


def unit(rows: np.ndarray) -> np.ndarray:
    """Return rows with length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def uncorrelated(normal: Normal, rng: np.random.Generator, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of a table of entries with mean 0 and variance 1 that are uncorrelated, which is all a variance sees."""
    chances = rng.dirichlet(np.full(math.prod(shape), 9.0))
    points = np.linalg.qr(normal(len(chances), len(chances)))[0] / np.sqrt(chances)[:, None]  # the rarer, the longer
    return np.vstack([points, -points]).reshape(-1, *shape), np.tile(chances / 2, 2)


def normalisers(queries: np.ndarray, keys: np.ndarray) -> Given:
    """Return by what the exponentials of each row are divided."""
    return vector([sum(math.exp(q @ k / math.sqrt(queries.shape[1])) for k in keys) for q in queries])
