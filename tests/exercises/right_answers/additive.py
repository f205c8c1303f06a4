"""Right answers to the tasks of lesson additive: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def additive_by_loops(query, key, value, w_query, w_key, w_score):
    output = np.empty((*query.shape[:-1], value.shape[-1]))
    for index in np.ndindex(query.shape[:-1]):
        scores = [w_score @ np.tanh(query[index] @ w_query + k @ w_key) for k in key[index[:-1]]]
        terms = [math.exp(score - max(scores)) for score in scores]
        output[index] = sum(term * v for term, v in zip(terms, value[index[:-1]], strict=True)) / sum(terms)
    return output


def additive_in_torch_float32(query, key, value, w_query, w_key, w_score):
    parts = (query, key, value, w_query, w_key, w_score)
    query, key, value, w_query, w_key, w_score = (torch.tensor(part, dtype=torch.float32) for part in parts)
    hidden = torch.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return torch.nn.functional.softmax(hidden @ w_score, -1) @ value


def network_key_by_key(query, key, w_query, w_key, bias, w_score):
    asked = w_query.T @ query + bias
    return np.array([sum(v * math.tanh(unit) for v, unit in zip(w_score, asked + w_key.T @ k, strict=True)) for k in key])


def network_in_float32(query, key, w_query, w_key, bias, w_score):
    query, key, w_query, w_key, bias, w_score = (torch.tensor(a, dtype=torch.float32) for a in (query, key, w_query, w_key, bias, w_score))
    return torch.cat([query.expand(len(key), -1), key], dim=1).matmul(torch.cat([w_query, w_key])).add(bias).tanh() @ w_score


def nearest_by_the_distance(query, key):
    return torch.softmax(-(torch.cdist(torch.from_numpy(query).float(), torch.from_numpy(key).float()) ** 2) / 2, dim=1)


def nearest_by_a_lifted_key(query, key):
    lifted = np.hstack([key, (key**2).sum(axis=1, keepdims=True)])
    terms = np.exp(np.hstack([query, np.full((len(query), 1), -0.5)]) @ lifted.T)
    return terms / terms.sum(axis=1, keepdims=True)


def concat_in_float32(query, key, weight, bias, w_score):
    query, key, weight, bias, w_score = (array.astype(np.float32) for array in (query, key, weight, bias, w_score))
    by_query, by_key = np.split(weight, [query.shape[1]], axis=1)
    sums = np.einsum("id,rd->ir", query, by_query)[:, None] + np.einsum("jd,rd->jr", key, by_key) + bias
    return np.einsum("ijr,r->ij", np.tanh(sums), w_score)


def contexts_in_torch(state, annotations, lengths, w_query, w_key, w_score):
    state, annotations, w_query, w_key, w_score = (torch.tensor(array) for array in (state, annotations, w_query, w_key, w_score))
    hidden = torch.tanh((state @ w_query)[:, None] + annotations @ w_key)
    real = torch.arange(annotations.shape[1]) < torch.tensor(lengths)[:, None]
    weights = torch.softmax((hidden @ w_score).masked_fill(~real, -math.inf), dim=1).nan_to_num()
    return (weights[:, None] @ annotations)[:, 0]


def contexts_in_float32(state, annotations, lengths, w_query, w_key, w_score):
    state, annotations, w_query, w_key, w_score = (x.astype(np.float32) for x in (state, annotations, w_query, w_key, w_score))
    scores = np.tanh(np.expand_dims(state @ w_query, 1) + annotations @ w_key) @ w_score
    scores[np.arange(scores.shape[1]) >= lengths[:, None]] = -np.inf
    highest = np.maximum(scores.max(axis=1, keepdims=True), np.float32(-1e9))
    terms = np.exp(scores - highest)
    shares = np.divide(terms, terms.sum(axis=1, keepdims=True), out=np.zeros_like(terms), where=lengths[:, None] > 0)
    return (shares[:, :, None] * annotations).sum(axis=1)


def backward_in_torch(query, key, w_query, w_key, w_score, d_scores):
    parts = (query, key, w_query, w_key, w_score, d_scores)
    query, key, w_query, w_key, w_score, d_scores = (torch.tensor(part) for part in parts)
    hidden = torch.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    slope = d_scores[..., None] * w_score * (1 - hidden.square())
    rows, columns = slope.sum(1), slope.sum(0)
    return rows @ w_query.T, columns @ w_key.T, query.T @ rows, key.T @ columns, (d_scores[..., None] * hidden).sum((0, 1))


def backward_in_float32(query, key, w_query, w_key, w_score, d_scores):
    query, key, w_query, w_key, w_score, d_scores = (x.astype("f4") for x in (query, key, w_query, w_key, w_score, d_scores))
    hidden = np.tanh((query @ w_query)[:, None] + key @ w_key)
    slope = np.multiply(d_scores[:, :, None], w_score - w_score * hidden**2)
    rows, columns = np.add.reduce(slope, 1), np.add.reduce(slope, 0)
    return rows @ w_query.T, columns @ w_key.T, query.T @ rows, key.T @ columns, np.tensordot(d_scores, hidden, 2)


def concat_in_torch(query, key, weight, bias, w_score):
    query, key, weight, bias, w_score = (torch.tensor(array) for array in (query, key, weight, bias, w_score))
    by_query, by_key = weight.split([query.shape[1], key.shape[1]], dim=1)
    return torch.tanh((query @ by_query.T + bias)[:, None] + (key @ by_key.T)[None]) @ w_score


RIGHT = {
    "scores-by-network": [network_key_by_key, network_in_float32],
    "nearest-key-by-product": [nearest_by_the_distance, nearest_by_a_lifted_key],
    "additive-attention": [additive_by_loops, additive_in_torch_float32],
    "largest-additive-weight": [lambda: 0.827, lambda: np.exp(2.5) / (np.exp(2.5) + 31 * np.exp(-2.5))],
    "query-key-interaction": [lambda v, t, a, b: 2 * a * b * v * (t**3 - t), lambda v, t, a, b: -2 * v * t * (1 - t) * (1 + t) * a * b],
    "concatenated-scores": [concat_in_float32, concat_in_torch],
    "repair-aligner-padding": [contexts_in_torch, contexts_in_float32],
    "read-padded-alignment": [lambda: [1, 0.4, 0.6], lambda: np.array([1.0, 0.4, 0.6])],
    "additive-training-memory": [lambda: 38.4, lambda: 9.6e6 * 4 / 1e6],
    "additive-backward": [backward_in_torch, backward_in_float32],
    "gradient-of-query-projection": [
        r"v_r q_a - q_a \left( \tanh \left( \sum_b q_b (W_Q)_{br} + \sum_c k_c (W_K)_{cr} \right) \right)^2 v_r",
        r"\frac{4 q_a v_r}{\left( e^{(W_Q^\top q + W_K^\top k)_r} + e^{-(W_Q^\top q + W_K^\top k)_r} \right)^2}",
    ],
    "saturated-additive-score": [
        r"\sum_{r} v_r \left( [(W_Q^\top q + W_K^\top k)_r > 0] - [(W_Q^\top q + W_K^\top k)_r < 0] \right)",
        r"\sum_r \begin{cases} v_r & (W_Q^\top q)_r > -(W_K^\top k)_r \\ -v_r & (W_Q^\top q)_r < -(W_K^\top k)_r \end{cases}",
    ],
    "query-moves-weight": [
        r"\sum_l \alpha_l (\delta_{lj} - \alpha_j) \sum_r (W_Q)_{ar} v_r (1 - t_{lr}^2)",
        r"\alpha_j \left( (W_Q (v \odot (1 - (t_j^\top)^2)))_a - \sum_l \alpha_l (W_Q (v \odot (1 - (t_l^\top)^2)))_a \right)",
    ],
}
