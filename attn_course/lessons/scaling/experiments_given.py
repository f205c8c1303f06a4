"""What the lesson scaling gives its reader: the task of its trial, the gradients of single queries, and the training."""

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from attn_course.reference import softmax


def start(seed: int) -> tuple[np.random.Generator, ndarray, ndarray, ndarray]:
    """Return random numbers, an orthogonal matrix (16, 16), and W_Q and W_K (16, 64) that make queries and keys of variance 1."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    w_query, w_key = rng.normal(size=(2, 16, 64)) / 4
    return rng, turn, w_query, w_key


def examples(rng: np.random.Generator, turn: ndarray, size: int) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Return turned features (size, 16), items (size, 16, 16), how far each value is from the one wanted, and the right item."""
    items, values = rng.normal(size=(size, 16, 16)), rng.normal(size=(size, 16, 4))
    right, row = rng.integers(16, size=size), np.arange(size)
    off = values - values[row, right][:, None]
    return items[row, right] @ turn, items, off, right


def dots_of(features: ndarray, items: ndarray, w_query: ndarray, w_key: ndarray) -> ndarray:
    """Return q . k for each item, not divided: (size, 16)."""
    return (items @ (features @ w_query @ w_key.T)[:, :, None])[..., 0]


def gradients(scores: ndarray, off: ndarray) -> ndarray:
    """Return g, a row for each query: the gradient of its error along its scores."""
    w = softmax(scores)
    e = (w[:, :, None] * off).sum(axis=1)
    a = (off @ e[:, :, None])[..., 0] / 2
    # A shift of all a changes no g. With 0 at the largest weight, no difference of nearly equal numbers drowns a tiny g in rounding.
    a -= a[np.arange(len(a)), w.argmax(axis=1)][:, None]
    return w * (a - (w * a).sum(axis=1, keepdims=True))


def steps_until_learnt(shrink: float, divisor: float, seed: int, size: float, way: Callable[[ndarray], ndarray]) -> float:
    """Return the steps of a layer whose first W_Q is divided by `shrink` and whose scores by `divisor`; more than 60 are infinite.

    `size`: of a step. `way`: what is done to the g of a batch.
    """
    rng, turn, w_query, w_key = start(seed)
    w_query = w_query / shrink
    asked, among, _, wanted = examples(rng, turn, 512)
    for step in range(1, 61):
        features, items, off, _ = examples(rng, turn, 32)
        g = way(gradients(dots_of(features, items, w_query, w_key) / divisor, off))
        # A score is linear in W_Q W_K^T. With S for the mean slope along this product, W_Q has the slope S W_K, and W_K has S^T W_Q.
        move = size * features.T @ (g[:, None] @ items)[:, 0] / 32 / divisor
        w_query, w_key = w_query - move @ w_key, w_key - move.T @ w_query
        if (dots_of(asked, among, w_query, w_key).argmax(axis=1) == wanted).mean() > 0.9:
            return step
    return np.inf
