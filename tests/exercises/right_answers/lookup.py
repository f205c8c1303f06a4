"""Right answers to the tasks of lesson lookup: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def weights_row_by_row(similarity):
    rows = []
    for row in similarity:
        total = sum(row)
        rows.append([s / total if total > 0 else 0.0 for s in row])
    return np.array(rows)


def weights_in_torch(similarity):
    return torch.nan_to_num(torch.tensor(similarity) / torch.tensor(similarity).sum(dim=1, keepdim=True))


def weights_in_float32(similarity):
    similarity = similarity.astype(np.float32)
    total = np.einsum("ij->i", similarity)
    total[total == 0] = 1
    return np.einsum("ij,i->ij", similarity, 1 / total)


def regression_point_by_point(query, x, y, h):
    estimates = []
    for q in query:
        hills = [math.exp(-0.5 * ((q - x_i) / h) ** 2) for x_i in x]
        estimates.append(sum(hill * y_i for hill, y_i in zip(hills, y, strict=True)) / sum(hills))
    return np.array(estimates)


def regression_in_torch(query, x, y, h):
    query, x, y = (torch.from_numpy(array) for array in (query, x, y))
    return torch.softmax(-((query[:, None] - x) ** 2) / (2 * h**2), dim=1) @ y


def regression_in_float32(query, x, y, h):
    scores = (-((query[:, None] - x) ** 2) / (2 * h**2)).astype("float32")
    hills = np.exp(scores)
    return (hills @ y.astype("float32")) / hills.sum(axis=1)


def roles_token_by_token(x, w_query, w_key, w_value, beta):
    output = []
    for token in x:
        terms = [math.exp(beta * ((token @ w_query) @ (other @ w_key))) for other in x]
        output.append(sum(term * (other @ w_value) for term, other in zip(terms, x, strict=True)) / sum(terms))
    return np.array(output)


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


def hard_by_squares(query, key, value):
    # |k|^2 - 2 q . k orders the keys of one query as the distance does
    distance = (key**2).sum(axis=1) - 2 * query @ key.T
    nearest = distance == distance.min(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", nearest / nearest.sum(axis=1, keepdims=True), value)


def hard_with_dist(query, key, value):
    distances = [[math.dist(q, k) for k in key] for q in query]
    return np.array([np.mean([v for d, v in zip(row, value, strict=True) if d == min(row)], axis=0) for row in distances])


def features_through_keys_and_values(x, w_query, w_key, w_value):
    key, value = x @ w_key, x @ w_value
    return w_query @ (key.T @ value)


def features_with_einsum(x, w_query, w_key, w_value):
    return np.einsum("ak,bk,ib,ic,cd->ad", w_query, w_key, x, x, w_value, optimize=True)


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
    "similarities-to-weights": [weights_row_by_row, weights_in_torch, weights_in_float32],
    "kernel-regression": [regression_point_by_point, regression_in_torch, regression_in_float32],
    "duplicated-pair": [lambda: 7.5, lambda: np.dot([1, 4, 3], [0, 9, 8]) / 8, lambda: torch.tensor(15 / 2)],
    "read-lookup-weights": [lambda: [3, 4, 0.8], lambda: np.array([3.0, 4.0, 0.2 + 0.6]), lambda: torch.tensor([3, 4, 0.8])],
    "repair-lookup-roles": [roles_token_by_token, roles_in_float32, roles_in_torch],
    "hard-lookup": [hard_as_a_cold_softmax, hard_by_squares, hard_with_dist, hard_in_float32],
    "derivative-by-similarity": [
        lambda s_1, s_2, v_1, v_2: v_1 / (s_1 + s_2) - (s_1 * v_1 + s_2 * v_2) * (s_1 + s_2) ** -2,
        lambda s_1, s_2, v_1, v_2: (v_1 - (s_1 * v_1 + s_2 * v_2) / (s_1 + s_2)) / (s_1 + s_2),
        lambda s_1, s_2, v_1, v_2: (s_2 * v_1 - s_2 * v_2) / (s_1**2 + 2 * s_1 * s_2 + s_2**2),
    ],
    "feature-mixing-matrix": [features_through_keys_and_values, features_with_einsum, features_in_torch_float32],
    "leave-one-out-error": [
        r"\frac{y_i - z_i}{p_{ii} - 1}",
        r"\frac{\sum_{j \ne i} p_{ij} y_j}{\sum_{j \ne i} p_{ij}} - y_i",
        r"(1 - p_{ii})^{-1} \left( \sum_{k=1}^{m} p_{ik} y_k - y_i \right)",
        r"z_i - y_i + \tfrac{p_{ii}}{1 - p_{ii}} (z_i - y_i)",
    ],
    "answer-slope-by-query": [
        r"\sum_{j=1}^{m} \alpha_j v_{ja} \left( k_{jb} - \sum_l \alpha_l k_{lb} \right) / h^2",
        r"\frac{\sum_i \alpha_i (v_{ia} - z_a) k_{ib}}{h^2}",
        r"\tfrac{1}{h^2} \sum_i \alpha_i v_{ia} (k_{ib} - q_b) - \tfrac{1}{h^2} z_a \sum_i \alpha_i (k_{ib} - q_b)",
        r"\left( \frac{1}{h^2} \sum_i \alpha_i (v_i - z)^\top (k_i - q) \right)_{ab}",
    ],
    "miss-of-a-width": [miss_point_by_point, miss_in_float32_torch],
    "share-of-a-match": [
        r"\ln p - \ln (1 - p) + \ln (m - 1)",
        r"\ln \left( \frac{m - 1}{1/p - 1} \right)",
        r"-\ln \frac{1 - p}{p (m - 1)}",
    ],
}
