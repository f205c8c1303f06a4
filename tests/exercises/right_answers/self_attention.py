"""Right answers to the tasks of lesson self_attention: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch
from sympy import log


def layer_by_loops(x, w_query, w_key, w_value):
    output = np.empty((*x.shape[:-1], w_value.shape[1]))
    for index in np.ndindex(x.shape[:-1]):
        sentence = x[index[:-1]]
        scores = [(x[index] @ w_query) @ (token @ w_key) / math.sqrt(w_query.shape[1]) for token in sentence]
        terms = [math.exp(score - max(scores)) for score in scores]
        output[index] = sum(term * (token @ w_value) for term, token in zip(terms, sentence, strict=True)) / sum(terms)
    return output


def layer_in_torch(x, w_query, w_key, w_value):
    x, w_query, w_key, w_value = (torch.from_numpy(array) for array in (x, w_query, w_key, w_value))
    return torch.softmax((x @ w_query) @ (x @ w_key).mT / w_query.shape[1] ** 0.5, dim=-1) @ (x @ w_value)


def layer_in_float32(x, w_query, w_key, w_value):
    query, key, value = ((x @ w).astype(np.float32) for w in (w_query, w_key, w_value))
    scores = query @ np.swapaxes(key, -1, -2) / np.float32(math.sqrt(w_query.shape[1]))
    terms = np.exp(scores - scores.max(-1, keepdims=True))
    return terms @ value / terms.sum(-1, keepdims=True)


def stack_with_recursion(x, w_query, w_key):
    if len(w_query) == 0:
        return x
    return stack_with_recursion(x + layer_by_loops(x, w_query[0], w_key[0], np.eye(x.shape[1])), w_query[1:], w_key[1:])


def stack_in_torch(x, w_query, w_key):
    state = torch.tensor(x)
    for a, b in zip(torch.tensor(w_query), torch.tensor(w_key), strict=True):
        weights = torch.softmax(state @ a @ (state @ b).T / math.sqrt(a.shape[1]), dim=1)
        state = (torch.eye(len(weights), dtype=torch.float64) + weights) @ state
    return state


def stack_in_float32(x, w_query, w_key):
    state = x.astype(np.float32)
    for a, b in zip(w_query.astype(np.float32), w_key.astype(np.float32), strict=True):
        state = state + layer_in_float32(state, a, b, np.eye(state.shape[1], dtype=np.float32))
    return state


def rope_in_torch(x, positions):
    x, positions = torch.tensor(x), torch.tensor(positions, dtype=torch.float64)
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, x.shape[1], 2, dtype=torch.float64) / x.shape[1])
    turned = torch.view_as_complex(x.reshape(len(x), -1, 2).contiguous()) * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).reshape(x.shape)


def rope_with_rotated_neighbours(x, positions):
    # x cos + rotated(x) sin, cosines and sines repeated for each of a pair; in float32
    angles = np.repeat(positions[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1]), 2, axis=1)
    rotated = np.empty(x.shape)
    rotated[:, 0::2], rotated[:, 1::2] = -x[:, 1::2], x[:, 0::2]
    return (x * np.cos(angles) + rotated * np.sin(angles)).astype(np.float32)


def gradients_with_einsum(x, w_query, w_key, w_value, d_query, d_key, d_value):
    d_w = [np.einsum("ta,tb->ab", x, d) for d in (d_query, d_key, d_value)]
    d_x = sum(np.einsum("tb,ab->ta", d, w) for d, w in zip((d_query, d_key, d_value), (w_query, w_key, w_value), strict=True))
    return *d_w, d_x


def gradients_in_torch(*inputs):
    x, w_query, w_key, w_value, d_query, d_key, d_value = (torch.tensor(array, dtype=torch.float32) for array in inputs)
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T


def weights_in_torch(table):
    table = torch.tensor(table)
    tokens = ((table - table.mean(0)) / table.std(0, correction=0)).T
    return torch.softmax(tokens @ tokens.T / table.shape[0] ** 0.5, dim=1)


def weights_in_float32(table):
    tokens = (table - table.mean(axis=0)).T.astype(np.float32)
    tokens /= np.sqrt((tokens**2).mean(axis=1, keepdims=True))
    scores = tokens @ tokens.T / np.float32(np.sqrt(len(table)))
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def turned_as_complex_numbers(a, b, cos, sin):
    z = (a + 1j * b) * (cos + 1j * sin)
    return z.real, z.imag


def turned_in_float32(a, b, cos, sin):
    a, b, cos, sin = (torch.tensor(x, dtype=torch.float32) for x in (a, b, cos, sin))
    return cos * a - sin * b, sin * a + cos * b


RIGHT = {
    "self-attention": [layer_in_torch, layer_in_float32],
    "features-for-self-weight": [lambda p, n: (log(n - 1) + log(p) - log(1 - p)) ** 2, lambda p, n: log((1 / p - 1) / (n - 1)) ** 2],
    "read-balance-of-weights": [lambda: [2, 2.5, 0.16], lambda: np.array([2.0, 2.5, 0.16])],
    "repair-residual-stack": [stack_in_torch, stack_in_float32],
    "rotary-positions": [rope_in_torch, rope_with_rotated_neighbours],
    "projection-gradients": [gradients_with_einsum, gradients_in_torch],
    "attention-and-rnn-counts": [lambda: [3604480, 1310720, 3, 80], lambda: np.array([3604480.0, 1310720.0, 3.0, 80.0])],
    "attention-between-features": [weights_in_torch, weights_in_float32],
    "asymmetry-of-two-scores": [
        r"\frac{1}{\sqrt{d_k}} (X (W_Q W_K^\top - W_K W_Q^\top) X^\top)_{ij}",
        r"\tfrac{1}{\sqrt{d_k}} ((x_i W_Q) \cdot (x_j W_K) - (x_i W_K) \cdot (x_j W_Q))",
    ],
    "rotary-score-by-offset": [
        r"\sum_{l} \left( q_l \cdot k_l \cos(-\omega_l r) + (q_{l2} k_{l1} - q_{l1} k_{l2}) \sin(-\omega_l r) \right)",
        r"\sum_{m} q_m \begin{pmatrix} \cos(\omega_m r) & \sin(\omega_m r) \\ -\sin(\omega_m r) & \cos(\omega_m r) \end{pmatrix} k_m^\top",
    ],
    "gradient-of-self-score": [
        r"d_k^{-1/2} x \left( W_K W_Q^\top + (W_K W_Q^\top)^\top \right)",
        r"\sum_{c=1}^{d_k} \frac{(x W_K)_c (W_Q^\top)_c + (x W_Q)_c (W_K^\top)_c}{\sqrt{d_k}}",
    ],
    "scores-of-shuffled-words": [r"(\Pi S^\top \Pi^\top)^\top", r"\Pi (\Pi S^\top)^\top"],
    "turn-of-a-pair": [turned_as_complex_numbers, turned_in_float32],
}
