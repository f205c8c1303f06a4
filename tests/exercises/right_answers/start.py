"""Right answers to the tasks of lesson start: loops, einsum, torch, float32, other algebra."""

import numpy as np
import torch

# --- all scores of some words ----------------------------------------------------------------------


def scores_by_loops(x, w_query, w_key):
    queries, keys = ([row @ w for row in x] for w in (w_query, w_key))
    return np.array([[sum(a * b for a, b in zip(q, k, strict=True)) for k in keys] for q in queries])


def scores_with_einsum(x, w_query, w_key):
    return np.einsum("id,da,ea,je->ij", x, w_query, w_key, x)


def scores_in_torch(x, w_query, w_key):
    x, w_query, w_key = map(torch.from_numpy, (x, w_query, w_key))
    return x @ w_query @ (x @ w_key).mT


def scores_in_float32(x, w_query, w_key):
    x, w_query, w_key = (array.astype(np.float32) for array in (x, w_query, w_key))
    return np.inner(x @ w_query, x @ w_key)


def scores_of_columns_turned(x, w_query, w_key):
    return ((w_key.T @ x.T).T @ (w_query.T @ x.T)).T


RIGHT = {
    "scores-from-words": [scores_by_loops, scores_with_einsum, scores_in_torch, scores_in_float32, scores_of_columns_turned],
    "scores-by-hand": [lambda: [8, -2, 2], lambda: np.array([8.0, -2.0, 2.0]), lambda: torch.tensor([8, -2, 2])],
    "output-as-formula": [r"\sum_k P_{ik} V_{ka}", r"(P V)_{ia}", r"\sum_{n=1}^{T_k} V_{na} \, P_{in}"],
    "weight-between-two": [lambda: 0.18, lambda: np.float64(0.6 * 0.3), lambda: torch.tensor([0.18], dtype=torch.float64)[0]],
}
