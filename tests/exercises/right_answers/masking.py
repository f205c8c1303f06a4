"""Right answers to the tasks of lesson masking: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch
from sympy import log

from attn_course.lessons.masking.tasks_leaks import layer


def weights_in_float32(scores, mask):
    kept = np.where(mask, scores, -np.inf)
    top = np.maximum(kept.max(axis=-1, keepdims=True), np.finfo(np.float64).min)
    terms = np.exp(kept - top).astype(np.float32)
    return terms / np.maximum(terms.sum(axis=-1, keepdims=True), np.float32(1e-30))


def weights_by_the_logsumexp(scores, mask):
    kept = torch.where(torch.from_numpy(mask), torch.from_numpy(scores), -torch.inf)
    return torch.exp(kept - torch.logsumexp(kept, dim=-1, keepdim=True).clamp_min(-1e300))


def scores_in_float32(scores, past, window, length):
    band = np.tri(*scores.shape, past) - np.tri(*scores.shape, past - window - 1)
    with np.errstate(divide="ignore"):
        return (scores + np.log(band * (np.arange(scores.shape[1]) < length))).astype(np.float32)


def scores_row_by_row_in_lists(scores, past, window, length):
    rows = []
    for at, row in enumerate(scores.tolist(), start=past):
        first, last = max(0, at - window), min(at, length - 1)
        rows.append([score if first <= j <= last else -math.inf for j, score in enumerate(row)])
    return torch.tensor(rows, dtype=torch.float64)


def influence_by_loops(still, moved):
    found = [[max(abs(a - b) for a, b in zip(row, other[i], strict=True)) for other in moved] for i, row in enumerate(still)]
    return np.array(found, dtype=np.float32)


def influence_in_torch(still, moved):
    return (torch.from_numpy(moved).transpose(0, 1) - torch.from_numpy(still)[:, None]).abs().amax(dim=2)


def cached_row_by_row(query, key, value):
    output = []
    for i, q in enumerate(query):
        seen = len(key) - len(query) + i + 1
        scores = key[:seen] @ q / math.sqrt(len(q))
        terms = np.exp(scores - max(scores))
        output.append(terms @ value[:seen] / terms.sum())
    return np.array(output)


def cached_in_float32_torch(query, key, value):
    query, key, value = (torch.tensor(array, dtype=torch.float32) for array in (query, key, value))
    scores = query @ key.T * query.shape[-1] ** -0.5
    return torch.softmax(scores + torch.full_like(scores, -torch.inf).triu(len(key) - len(query) + 1), dim=-1) @ value


def padded_in_torch(query, key, value, lengths):
    query, key, value, lengths = (torch.tensor(array) for array in (query, key, value, lengths))
    real = torch.arange(key.shape[1]) < lengths[:, None, None]
    weights = (query @ key.mT / query.shape[2] ** 0.5).masked_fill(~real, -torch.inf).softmax(-1)
    return torch.where(lengths[:, None, None] > 0, weights @ value, 0.0)


def padded_in_float32(query, key, value, lengths):
    real = (np.arange(key.shape[1]) < lengths[:, None]).astype(np.float32)
    scores = np.einsum("bid,bjd->bij", query, key).astype(np.float32) / np.float32(query.shape[2] ** 0.5)
    scores = np.where(real[:, None, :] > 0, scores, np.float32(-np.inf))
    terms = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(np.float32).min))
    return np.einsum("bij,bja->bia", terms, value.astype(np.float32)) / np.maximum(terms.sum(-1, keepdims=True), np.float32(1e-20))


def leaks_in_torch(x, kind):
    before, columns = layer(x, kind), []
    for j in range(len(x)):
        step = np.zeros_like(x)
        step[j] = [0.9, 1.1, -1.0, 0.8]
        columns.append(torch.tensor(layer(x + step, kind) - before).abs().amax(dim=1))
    return (torch.stack(columns, dim=1) > 1e-6).triu(1).double()


def leaks_in_float32(x, kind):
    steps = np.random.default_rng(1).normal(size=x.shape)
    changes = [layer(x + np.where(np.arange(len(x))[:, None] == j, steps, 0.0), kind) - layer(x, kind) for j in range(len(x))]
    found = np.linalg.norm(np.stack(changes, axis=1), axis=2) > 1e-6
    return np.triu(found, k=1).astype(np.float32)


RIGHT = {
    "masked-weights": [weights_in_float32, weights_by_the_logsumexp],
    "read-mask": [lambda: [6, 4, 3], lambda: np.array([2 + 1 + 1 + 1 + 1, 4, 3])],
    "combined-masks": [scores_in_float32, scores_row_by_row_in_lists],
    "window-counts": [lambda: (772, math.ceil(99 / 7)), lambda: [sum(min(i, 7) + 1 for i in range(100)), 15]],
    "large-enough-fill": [lambda r, epsilon: log(r) + log(1 - epsilon) - log(epsilon), lambda r, epsilon: log(r / epsilon - r)],
    "repair-cached-causal-mask": [cached_row_by_row, cached_in_float32_torch],
    "repair-padded-batch": [padded_in_torch, padded_in_float32],
    "masked-score-gradient": [
        lambda w_j, w_all, v_j, z: w_j * (v_j - z) / w_all,
        lambda w_j, w_all, v_j, z: -w_j / w_all * z + w_j * v_j / w_all,
    ],
    "leak-test": [leaks_in_torch, leaks_in_float32],
    "masked-softmax": [
        [
            r"\frac{e^{M_j + s_j}}{\sum_{i=1}^{n} e^{M_i + s_i}}",
            r"\begin{cases} e^{s_j + 0} / \sum_{i \in A} e^{s_i} & j \in A \\ 0 & j \notin A \end{cases}",
            r"[j \in A] \frac{e^{s_j}}{\sum_{i \in A} e^{s_i}}",
        ],
        [
            r"\frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}",
            r"\tfrac{1}{\sum_{l=1}^{n} e^{s_l} e^{M_l}} e^{s_j} e^{M_j}",
            r"\left( \sum_{l=1}^{n} e^{s_l} (1 - [l \notin A]) \right)^{-1} e^{s_j} (1 - [j \notin A])",
            r"\frac{e^{s_j} - [j \notin A] e^{s_j}}{\sum_{l=1}^{n} e^{s_l} - \sum_{l \notin A} e^{s_l}}",
            r"\frac{e^{s_j} [j \in A]}{\sum_{l \in A} e^{s_l}}",
        ],
    ],
    "weight-behind-finite-fill": [
        r"\frac{1}{1 + e^{c} \left( \sum_{i \in A} w_i \right) / \left( \sum_{k \notin A} w_k \right)}",
        r"\frac{\exp(-c) \sum_{l=1}^{n} (1 - [l \in A]) w_l}{\sum_{l=1}^{n} w_l \exp(-c [l \notin A])}",
    ],
    "slope-behind-late-mask": [
        r"-w_l \tilde{z} + \sum_{j \in A} [j = l] w_j v_j",
        r"\begin{cases} w_l (v_l - \tilde{z}) & l \in A \\ -w_l \tilde{z} & l \notin A \end{cases}",
    ],
    "who-moves-whom": [influence_by_loops, influence_in_torch],
}
