"""Right answers to the tasks of lesson cross_attention: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def cross_in_torch(x, y, w_query, w_key, w_value):
    x, y, w_query, w_key, w_value = (torch.from_numpy(array) for array in (x, y, w_query, w_key, w_value))
    return torch.softmax(x @ w_query @ (y @ w_key).T / w_key.shape[1] ** 0.5, dim=-1) @ (y @ w_value)


def cross_in_float32(x, y, w_query, w_key, w_value):
    x, y, w_query, w_key, w_value = (array.astype(np.float32) for array in (x, y, w_query, w_key, w_value))
    scores = x @ w_query @ (y @ w_key).T / np.float32(math.sqrt(w_key.shape[1]))
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True) @ (y @ w_value)


def padded_with_a_float_mask(query, key, value, source_lengths, target_lengths):
    added = np.where(np.arange(key.shape[1]) < source_lengths[:, None], 0.0, -np.inf)
    scores = np.einsum("bid,bjd->bij", query, key) / query.shape[2] ** 0.5 + added[:, None]
    terms = np.exp(scores - scores.max(axis=2, keepdims=True))
    output = np.einsum("bij,bja,bi->bia", terms, value, 1 / terms.sum(axis=2))
    for row, length in zip(output, target_lengths, strict=True):
        row[length:] = 0
    return output


def padded_in_torch_float32_row_by_row(query, key, value, source_lengths, target_lengths):
    query, key, value = (torch.tensor(array, dtype=torch.float32) for array in (query, key, value))
    output = torch.zeros(*query.shape[:2], value.shape[2])
    for n, (source, target) in enumerate(zip(source_lengths.tolist(), target_lengths.tolist(), strict=True)):
        for i in range(target):
            scores = key[n, :source] @ query[n, i] / query.shape[2] ** 0.5
            output[n, i] = torch.softmax(scores, dim=0) @ value[n, :source]
    return output


def loss_of_the_real_rows(logits, target, padding):
    # pick the real rows first
    real = target != padding
    rows, words = logits[real], target[real]
    lse = np.logaddexp.reduce(rows, axis=1)
    p = np.exp(rows - lse[:, None])
    p[np.arange(len(words)), words] -= 1
    d_logits = np.zeros(logits.shape)
    d_logits[real] = p / len(words)
    return np.mean(lse - rows[np.arange(len(words)), words]), d_logits


def loss_in_plain_float32(logits, target, padding):
    # nothing shifted before the numbers are made narrow
    logits, target = torch.tensor(logits, dtype=torch.float32), torch.tensor(target)
    real, log_p = target != padding, logits.log_softmax(dim=-1)
    picked = log_p.gather(-1, target[..., None])[..., 0]
    d_logits = log_p.exp().scatter_add(-1, target[..., None], -torch.ones(*target.shape, 1))
    return -(picked * real).sum() / real.sum(), d_logits * real[..., None] / real.sum()


def source_gradient_in_torch_float32(x, y, w_query, w_key, w_value, d_output):
    x, y, w_query, w_key, w_value, d_output = (torch.tensor(a, dtype=torch.float32) for a in (x, y, w_query, w_key, w_value, d_output))
    query, root = x @ w_query, w_key.shape[1] ** 0.5
    p = torch.softmax(query @ (y @ w_key).T / root, dim=1)
    d_p = d_output @ (y @ w_value).T
    d_s = p * (d_p - (p * d_p).sum(dim=1, keepdim=True))
    return d_s.T @ query @ w_key.T / root + p.T @ d_output @ w_value.T


def source_gradient_by_jacobians(x, y, w_query, w_key, w_value, d_output):
    query, key, value, gradient = x @ w_query, y @ w_key, y @ w_value, np.zeros(y.shape)
    for q, d in zip(query, d_output, strict=True):
        terms = np.exp(key @ q / math.sqrt(len(q)))
        p = terms / terms.sum()
        d_scores = (np.diag(p) - np.outer(p, p)) @ (value @ d)
        gradient += np.outer(d_scores, w_key @ q) / math.sqrt(len(q)) + np.outer(p, w_value @ d)
    return gradient


def writer_with_a_while_loop(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    rows, token = [], start
    while len(rows) < len(positions):
        x = (embeddings[token] + positions[len(rows)])[None, :]
        scores = (x @ w_query) @ (y @ w_key).T / math.sqrt(w_key.shape[1])
        weights = np.exp(scores) / np.exp(scores).sum()
        rows.append(((x + weights @ y @ w_value) @ w_output)[0])
        token = np.argmax(rows[-1])
        if token == end:
            return np.array(rows)
    return np.array(rows)


def writer_in_torch(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    y, w_query, w_key, w_value, embeddings, positions, w_output = (
        torch.tensor(a) for a in (y, w_query, w_key, w_value, embeddings, positions, w_output)
    )
    key, value = y @ w_key, y @ w_value
    tokens, rows = [start], []
    for t in range(len(positions)):
        x = embeddings[tokens[-1]] + positions[t]
        z = torch.softmax(key @ (x @ w_query) / key.shape[1] ** 0.5, dim=0) @ value
        rows.append((x + z) @ w_output)
        tokens.append(int(torch.argmax(rows[-1])))
        if tokens[-1] == end:
            break
    return torch.stack(rows)


def writer_in_float32(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    arrays = (y, w_query, w_key, w_value, embeddings, positions, w_output)
    return writer_with_a_while_loop(*(array.astype(np.float32) for array in arrays), start, end)


def asked_one_by_one(x, y, w_query, w_key, w_value, visible):
    weights, outputs = np.zeros((len(x), x.shape[1], y.shape[1])), np.zeros((len(x), x.shape[1], w_value.shape[1]))
    for b, i in np.ndindex(*x.shape[:2]):
        real = visible[b, 0] > 0
        terms = np.exp(y[b, real] @ w_key @ (x[b, i] @ w_query) / math.sqrt(w_key.shape[1]))
        weights[b, i, real] = terms / terms.sum()
        outputs[b, i] = weights[b, i] @ y[b] @ w_value
    return outputs, weights


def asked_in_torch_float32(x, y, w_query, w_key, w_value, visible):
    x, y, w_query, w_key, w_value, visible = (torch.tensor(a, dtype=torch.float32) for a in (x, y, w_query, w_key, w_value, visible))
    scores = (x @ w_query @ (y @ w_key).mT / w_query.shape[1] ** 0.5).masked_fill(visible == 0, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ (y @ w_value), weights


RIGHT = {
    "ask-the-source": [asked_one_by_one, asked_in_torch_float32],
    "output-without-a-key": [r"\left(z - p_j v_j\right) / (1 - p_j)", r"z + \frac{p_j}{1 - p_j} (z - v_j)"],
    "cross-attention": [cross_in_torch, cross_in_float32],
    "repair-padding-both-sides": [padded_with_a_float_mask, padded_in_torch_float32_row_by_row],
    "loss-over-real-tokens": [loss_of_the_real_rows, loss_in_plain_float32],
    "source-gradient": [source_gradient_in_torch_float32, source_gradient_by_jacobians],
    "context-slope": [
        lambda alpha, h_1, h_2, k, s: alpha + k * s * alpha * (1 - alpha) * (h_1 - h_2),
        lambda alpha, h_1, h_2, k, s: alpha * (1 + (h_1 - (alpha * h_1 + (1 - alpha) * h_2)) * k * s),
    ],
    "source-cache-flops": [lambda: [153_600.0, 4_224.0, 280_320.0], lambda: np.array([1536.0, 42.24, 2803.2]) * 100],
    "read-date-alignment": [lambda: [2, 3, 0.18, 0.389], lambda: np.array([2.0, 3.0, 1 - 0.82, 7 / 18])],
    "greedy-decoding": [writer_in_torch, writer_in_float32],
    "gradient-of-source-row": [
        r"\left( \frac{dS^\top Q W_K^\top}{\sqrt{d_k}} + P^\top dZ W_V^\top \right)_j",
        r"\frac{\sum_i dS_{ij} Q_i}{\sqrt{d_k}} W_K^\top + \Bigl( \sum_l P_{lj} dZ_l \Bigr) W_V^\top",
    ],
    "map-read-backwards": [
        [
            r"\frac{\sigma(S)_{ij}}{\sigma(S^{\top})_{ji}}",
            r"\sigma(S)_{ij} \left( \frac{(e^{S^\top})_{ji}}{\sum_l (e^{S^\top})_{jl}} \right)^{-1}",
            r"\sigma(S)_{ij} \sum_l e^{S_{lj}} / e^{S_{ij}}",
            r"\frac{e^{S_{ij}}}{\sum_l e^{S_{il}}} \sum_l e^{S_{lj}} e^{-S_{ij}}",
            r"\sum_l e^{S_{lj}} / \left( \sum_k e^{S_{ik}} \right)",
        ],
        [
            r"\frac{\sigma(S)_{ij}}{\sigma(S^\top)_{ji}}",
            r"\frac{\sigma_l(S_{il})_j}{\sigma_l(S_{lj})_i}",
            r"\frac{e^{S_{ij}}}{\sum_{l} e^{S_{il}}} \Big/ \frac{e^{S_{ij}}}{\sum_{l} e^{S_{lj}}}",
            r"\frac{e^{S_{ij}} \sum_l e^{S_{lj}}}{e^{S_{ij}} \sum_l e^{S_{il}}}",
            r"\frac{\sum_l e^{S_{lj}}}{\sum_l e^{S_{il}}}",
        ],
    ],
}
