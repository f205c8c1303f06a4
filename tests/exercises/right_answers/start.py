"""Right answers to the tasks of lesson start: loops, einsum, torch, float32, other algebra."""

import math

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


# --- columns into rows -----------------------------------------------------------------------------


def rows_in_the_other_dialect(query, key, value):
    terms = np.exp(key.T @ query / np.sqrt(len(query)))
    return (value @ (terms / terms.sum(axis=0))).T


def rows_by_loops(query, key, value):
    output = np.zeros((query.shape[1], value.shape[0]))
    for i in range(query.shape[1]):
        terms = [math.exp(query[:, i] @ key[:, j] / math.sqrt(query.shape[0])) for j in range(key.shape[1])]
        output[i] = sum(term * value[:, j] for j, term in enumerate(terms)) / sum(terms)
    return output


def rows_in_torch(query, key, value):
    query, key, value = (torch.tensor(array.T.copy()) for array in (query, key, value))
    return torch.softmax(query @ key.T / query.shape[1] ** 0.5, dim=-1) @ value


def rows_in_float32(query, key, value):
    query, key, value = (array.T.astype(np.float32) for array in (query, key, value))
    terms = np.exp(query @ key.T / np.float32(math.sqrt(query.shape[1])))
    return terms @ value / terms.sum(axis=1, keepdims=True)


# --- the mask of another dialect -------------------------------------------------------------------


def weights_in_rows_and_turned(query, key):
    scores = query.T @ key / np.sqrt(query.shape[0])
    length = len(scores)
    scores = np.where(np.arange(length)[None, :] > np.arange(length)[:, None], -np.inf, scores)
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (terms / terms.sum(axis=1, keepdims=True)).T


def weights_by_loops(query, key):
    length = query.shape[1]
    weights = np.zeros((length, length))
    for i in range(length):
        scores = key[:, : i + 1].T @ query[:, i] / math.sqrt(query.shape[0])
        terms = np.exp(scores - scores.max())
        weights[: i + 1, i] = terms / terms.sum()
    return weights


def weights_with_an_added_mask(query, key):
    added = np.tril(np.full((query.shape[1],) * 2, -np.inf), k=-1)
    scores = np.einsum("aj,ai->ji", key, query) * query.shape[0] ** -0.5 + added
    terms = np.exp(scores - scores.max(axis=0))
    return terms / terms.sum(axis=0)


def weights_in_torch(query, key):
    query, key = torch.from_numpy(query), torch.from_numpy(key)
    scores = key.mT @ query / math.sqrt(query.shape[0])
    hidden = torch.ones_like(scores, dtype=torch.bool).tril(-1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=0)


def weights_in_float32(query, key):
    scores = key.T.astype(np.float32) @ query.astype(np.float32) / np.float32(math.sqrt(len(key)))
    scores[np.tril_indices(len(scores), -1)] = -np.inf
    terms = np.exp(scores - scores.max(axis=0, keepdims=True))
    return terms / terms.sum(axis=0, keepdims=True)


RIGHT = {
    "scores-from-words": [scores_by_loops, scores_with_einsum, scores_in_torch, scores_in_float32, scores_of_columns_turned],
    "scores-by-hand": [lambda: [8, -2, 2], lambda: np.array([8.0, -2.0, 2.0]), lambda: torch.tensor([8, -2, 2])],
    "output-as-formula": [r"\sum_k P_{ik} V_{ka}", r"(P V)_{ia}", r"\sum_{n=1}^{T_k} V_{na} \, P_{in}"],
    "weight-between-two": [lambda: 0.18, lambda: np.float64(0.6 * 0.3), lambda: torch.tensor([0.18], dtype=torch.float64)[0]],
    "shapes-in-columns": [lambda: [11, 5, 6, 5], lambda: np.array([11.0, 5.0, 6.0, 5.0]), lambda: torch.tensor([11, 5, 6, 5])],
    "columns-to-rows": [rows_in_the_other_dialect, rows_by_loops, rows_in_torch, rows_in_float32],
    "repair-column-mask": [weights_in_rows_and_turned, weights_by_loops, weights_with_an_added_mask, weights_in_torch, weights_in_float32],
}
