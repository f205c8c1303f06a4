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


# --- a head of four lines --------------------------------------------------------------------------


def taken_by_loops(query, key, value):
    output = np.zeros((len(query), value.shape[1]))
    for i, asks in enumerate(query):
        powers = [math.exp(asks @ found / math.sqrt(len(asks))) for found in key]
        for power, handed in zip(powers, value, strict=True):
            output[i] += power / sum(powers) * handed
    return output


def taken_and_then_divided(query, key, value):
    powers = np.exp(np.einsum("ia,ja->ij", query, key) * query.shape[-1] ** -0.5)
    return np.einsum("ij,ja->ia", powers, value) / np.einsum("ij->i", powers)[:, None]


def taken_in_torch(query, key, value):
    query, key, value = map(torch.from_numpy, (query, key, value))
    return torch.softmax(query @ key.mT / math.sqrt(key.shape[1]), dim=1) @ value


def taken_in_float32(query, key, value):
    query, key, value = (array.astype(np.float32) for array in (query, key, value))
    powers = np.exp(np.inner(query, key) / np.sqrt(np.float32(query.shape[1])))
    return (powers.T / powers.sum(axis=1)).T @ value


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
    "taken-home-by-hand": [lambda: (1, 1 / 4, 7 / 8), lambda: [1.0, 0.25, 0.875], lambda: torch.tensor([8, 2, 7]) / 8],
    "what-cat-hands-over": [
        lambda: (3.6, -1.6, 3.8),
        lambda: np.array([18, -8, 19]) / 5,
        lambda: torch.tensor([3.6, -1.6, 3.8], dtype=torch.float64),
    ],
    "repair-taking-home": [taken_by_loops, taken_and_then_divided, taken_in_torch, taken_in_float32],
    "share-for-sat": [lambda: math.log(6), lambda: np.log(36) / 2, lambda: torch.tensor(6.0, dtype=torch.float64).log()],
    "weight-between-two": [lambda: 0.09, lambda: 0.18 * (0.18 / 0.36), lambda: torch.tensor([0.09], dtype=torch.float64)[0]],
    "shapes-in-columns": [lambda: [11, 5, 6, 5], lambda: np.array([11.0, 5.0, 6.0, 5.0]), lambda: torch.tensor([11, 5, 6, 5])],
    "columns-to-rows": [rows_in_the_other_dialect, rows_by_loops, rows_in_torch, rows_in_float32],
    "repair-column-mask": [weights_in_rows_and_turned, weights_by_loops, weights_with_an_added_mask, weights_in_torch, weights_in_float32],
}
