"""Right answers to the tasks of lesson notation: loops, the other dialect, torch, float32."""

import math

import numpy as np
import torch


def rows_in_torch(query, key, value):
    query, key, value = (torch.tensor(array.T.copy()) for array in (query, key, value))
    return torch.softmax(query @ key.T / query.shape[1] ** 0.5, dim=-1) @ value


def rows_in_float32(query, key, value):
    query, key, value = (array.T.astype(np.float32) for array in (query, key, value))
    terms = np.exp(query @ key.T / np.float32(math.sqrt(query.shape[1])))
    return terms @ value / terms.sum(axis=1, keepdims=True)


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


def row_by_slices():
    rows = np.arange(3 * 24)[24:48].reshape(4, 6)
    return rows[2, 3]


RIGHT = {
    "stored-by-linear": [lambda: (5, 7, 3, 6), lambda: np.array([5.0, 7.0, 3.0, 6.0])],
    "row-of-packed-weight": [lambda: 39, row_by_slices],
    "output-in-columns": [r"\sum_k A_{ki} V_{ak}", r"\sum_{n=1}^{T_k} A^\top_{in} V_{an}"],
    "hidden-in-columns": [lambda: [4, 3, 1], lambda: np.array([4.0, 3.0, 1.0])],
    "shapes-in-columns": [lambda: [11, 5, 6, 5], lambda: np.array([11.0, 5.0, 6.0, 5.0])],
    "columns-to-rows": [rows_in_torch, rows_in_float32],
    "repair-column-mask": [weights_in_torch, weights_in_float32],
}
