"""Right answers to the tasks of lesson lookup: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def weights_in_torch(similarity):
    return torch.nan_to_num(torch.tensor(similarity) / torch.tensor(similarity).sum(dim=1, keepdim=True))


def weights_in_float32(similarity):
    similarity = similarity.astype(np.float32)
    total = np.einsum("ij->i", similarity)
    total[total == 0] = 1
    return np.einsum("ij,i->ij", similarity, 1 / total)


def regression_in_torch(query, x, y, h):
    query, x, y = (torch.from_numpy(array) for array in (query, x, y))
    return torch.softmax(-((query[:, None] - x) ** 2) / (2 * h**2), dim=1) @ y


def regression_in_float32(query, x, y, h):
    scores = (-((query[:, None] - x) ** 2) / (2 * h**2)).astype("float32")
    hills = np.exp(scores)
    return (hills @ y.astype("float32")) / hills.sum(axis=1)


def roles_in_float32(x, w_query, w_key, w_value, beta):
    x, w_query, w_key, w_value = (array.astype(np.float32) for array in (x, w_query, w_key, w_value))
    terms = np.exp(np.float32(beta) * (x @ w_query @ w_key.T @ x.T))
    return np.einsum("ij,ja,i->ia", terms, x @ w_value, 1 / terms.sum(axis=1))


def roles_in_torch(x, w_query, w_key, w_value, beta):
    x, w_query, w_key, w_value = (torch.tensor(array) for array in (x, w_query, w_key, w_value))
    return torch.softmax(beta * x @ (w_query @ w_key.T) @ x.T, dim=1) @ x @ w_value


def hard_as_a_cold_softmax(query, key, value):
    distance = torch.tensor(((query[:, None] - key) ** 2).sum(-1))
    return torch.softmax(-1e12 * (distance - distance.min(dim=1, keepdim=True).values), dim=1) @ torch.tensor(value)


def features_through_keys_and_values(x, w_query, w_key, w_value):
    key, value = x @ w_key, x @ w_value
    return w_query @ (key.T @ value)


def features_in_torch_float32(x, w_query, w_key, w_value):
    x, w_query, w_key, w_value = (torch.tensor(array, dtype=torch.float32) for array in (x, w_query, w_key, w_value))
    return w_query @ w_key.mT @ (x.mT @ x) @ w_value


def hard_in_float32(query, key, value):
    distance = ((query[:, None] - key) ** 2).sum(axis=2)
    nearest = distance <= distance.min(axis=1)[:, None]
    weights = (nearest / nearest.sum(axis=1, keepdims=True)).astype(np.float32)
    return weights @ value.astype(np.float32)


def miss_point_by_point(x, y, h):
    squares = []
    for i in range(len(x)):
        others = [(math.exp(-0.5 * ((x[i] - x[j]) / h) ** 2), y[j]) for j in range(len(x)) if j != i]
        squares.append((sum(s * v for s, v in others) / sum(s for s, _ in others) - y[i]) ** 2)
    return math.sqrt(sum(squares) / len(squares))


def miss_in_float32_torch(x, y, h):
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    scores = -((x[:, None] - x) ** 2) / (2 * h**2)
    p = torch.softmax(scores.fill_diagonal_(-torch.inf), dim=1)
    return ((p @ y - y) ** 2).mean().sqrt()


RIGHT = {
    "similarities-to-weights": [weights_in_torch, weights_in_float32],
    "kernel-regression": [regression_in_torch, regression_in_float32],
    "duplicated-pair": [lambda: 7.5, lambda: np.dot([1, 4, 3], [0, 9, 8]) / 8],
    "read-lookup-weights": [lambda: [3, 4, 0.8], lambda: np.array([3.0, 4.0, 0.2 + 0.6])],
    "repair-lookup-roles": [roles_in_float32, roles_in_torch],
    "hard-lookup": [hard_as_a_cold_softmax, hard_in_float32],
    "derivative-by-similarity": [
        lambda s_1, s_2, v_1, v_2: v_1 / (s_1 + s_2) - (s_1 * v_1 + s_2 * v_2) * (s_1 + s_2) ** -2,
        lambda s_1, s_2, v_1, v_2: (v_1 - (s_1 * v_1 + s_2 * v_2) / (s_1 + s_2)) / (s_1 + s_2),
    ],
    "feature-mixing-matrix": [features_through_keys_and_values, features_in_torch_float32],
    "leave-one-out-error": [
        r"\frac{\sum_{j \ne i} p_{ij} y_j}{\sum_{j \ne i} p_{ij}} - y_i",
        r"(1 - p_{ii})^{-1} \left( \sum_{k=1}^{m} p_{ik} y_k - y_i \right)",
    ],
    "answer-slope-by-query": [
        r"\tfrac{1}{h^2} \sum_i \alpha_i v_{ia} (k_{ib} - q_b) - \tfrac{1}{h^2} z_a \sum_i \alpha_i (k_{ib} - q_b)",
        r"\left( \frac{1}{h^2} \sum_i \alpha_i (v_i - z)^\top (k_i - q) \right)_{ab}",
    ],
    "miss-of-a-width": [miss_point_by_point, miss_in_float32_torch],
    "share-of-a-match": [r"\ln p - \ln (1 - p) + \ln (m - 1)", r"\ln \left( \frac{m - 1}{1/p - 1} \right)"],
}
