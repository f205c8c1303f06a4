"""Right answers to the tasks of lesson start: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def scores_in_torch(x, w_query, w_key):
    x, w_query, w_key = map(torch.from_numpy, (x, w_query, w_key))
    return x.mT @ w_query @ (w_key.mT @ x)


def taken_in_torch(query, key, value):
    query, key, value = map(torch.from_numpy, (query, key, value))
    return torch.softmax(query @ key.mT / math.sqrt(key.shape[1]), dim=1) @ value


def taken_in_float32(query, key, value):
    query, key, value = (array.astype(np.float32) for array in (query, key, value))
    powers = np.exp(np.inner(query, key) / np.sqrt(np.float32(query.shape[1])))
    return (powers.T / powers.sum(axis=1)).T @ value


def scores_in_float32(x, w_query, w_key):
    x, w_query, w_key = (array.astype(np.float32) for array in (x, w_query, w_key))
    return np.inner(x.T @ w_query, x.T @ w_key)


def answered_in_torch(query, key, value):
    query, key, value = map(torch.from_numpy, (query, key, value))
    return torch.softmax(key @ query / query.numel() ** 0.5, dim=0) @ value


def answered_in_float32(query, key, value):
    query, key, value = (array.astype(np.float32) for array in (query, key, value))
    powers = np.exp((key * query).sum(axis=1) / np.sqrt(np.float32(key.shape[1])))
    return np.average(value, axis=0, weights=powers)


RIGHT = {
    "scores-from-words": [scores_in_torch, scores_in_float32],
    "scores-by-hand": [lambda: [8, -4, 0], lambda: np.array([8.0, -4.0, 0.0])],
    "output-as-formula": [r"\sum_k P_{ik} V_{ka}", r"\sum_{n=1}^{T_k} V_{na} \, P_{in}"],
    "output-of-one-query": [answered_in_torch, answered_in_float32],
    "taken-home-by-hand": [lambda: (1, 1 / 4, 7 / 8), lambda: [1.0, 0.25, 0.875]],
    "what-cat-hands-over": [lambda: (3.6, -1.6, 3.8), lambda: np.array([18, -8, 19]) / 5],
    "repair-taking-home": [taken_in_torch, taken_in_float32],
    "share-for-sat": [lambda: math.log(6), lambda: np.log(36) / 2],
    "key-in-the-middle": [lambda: 1 / 7, lambda: np.reciprocal(7.0)],
    "weight-between-two": [lambda: 0.09, lambda: 0.18 * (0.18 / 0.36)],
}
