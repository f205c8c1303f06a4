"""Right answers to the tasks of lesson linear: loops, einsum, torch, float32, other forms of the same sum."""

import numpy as np
import torch


def features_in_torch(x, omega):
    x, omega = torch.from_numpy(x), torch.from_numpy(omega)
    return torch.exp(torch.einsum("...d,md->...m", x, omega) - x.norm(dim=-1, keepdim=True) ** 2 / 2) * omega.shape[0] ** -0.5


def features_in_float32(x, omega):
    x, omega = x.astype(np.float32), omega.astype(np.float32)
    return np.exp(np.inner(x, omega) - np.sum(x * x, axis=-1)[..., None] / 2) / np.sqrt(np.float32(len(omega)))


def averages_with_cumsum(query, key, value):
    states = np.cumsum(np.einsum("htm,htv->htmv", key, value), axis=1)
    return np.einsum("htm,htmv->htv", query, states) / np.einsum("htm,htm->ht", query, key.cumsum(axis=1))[..., None]


def averages_in_torch(query, key, value):
    query, key, value = (torch.from_numpy(a).float() for a in (query, key, value))
    kernel = (query @ key.mT).tril()
    return (kernel / kernel.sum(-1, keepdim=True)) @ value


def chunk_step_by_step(query, key, value, state):
    state, output = state.copy(), []
    for q, k, v in zip(query, key, value, strict=True):
        state += np.outer(k, v)
        output.append(q @ state)
    return np.array(output), state


def chunk_in_torch(query, key, value, state):
    query, key, value, state = (torch.from_numpy(a).float() for a in (query, key, value, state))
    return query @ state + (query @ key.mT).tril() @ value, torch.addmm(state, key.mT, value)


def write_after_erasing(state, key, value, beta):
    return (np.eye(len(key)) - beta * np.outer(key, key)) @ state + beta * np.outer(key, value)


def write_in_torch(state, key, value, beta):
    state, key, value = (torch.from_numpy(a).float() for a in (state, key, value))
    return torch.addr(state, key, value - key @ state, alpha=float(beta))


def all_at_once(query, key, value, state, chunk):
    return query @ state + np.tril(query @ key.T) @ value, state + key.T @ value


def chunks_in_torch(query, key, value, state, chunk):
    query, key, value, state = (torch.from_numpy(a).float() for a in (query, key, value, state))
    rows = []
    for q, k, v in zip(query.split(chunk), key.split(chunk), value.split(chunk), strict=True):
        rows.append(torch.addmm((q @ k.T).tril() @ v, q, state))
        state = state + k.T @ v
    return torch.cat(rows), state


def gate_in_logarithms(query, key, value, gate):
    past = np.log(gate).cumsum(axis=0)
    kept = np.exp(np.minimum(past[:, None] - past[None, :], 0.0))
    return np.tril(np.einsum("tr,jr,tjr->tj", query, key, kept)) @ value


def gate_in_torch(query, key, value, gate):
    query, key, value, gate = (torch.from_numpy(a).float() for a in (query, key, value, gate))
    state, rows = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, a in zip(query, key, value, gate, strict=True):
        state = torch.diag(a) @ state + torch.outer(k, v)
        rows.append(q @ state)
    return torch.stack(rows)


def triangular_system(query, key, value, beta, state):
    written = np.linalg.solve(np.eye(len(key)) + np.tril(beta * (key @ key.T), -1), beta * (value - key @ state))
    return query @ state + np.tril(query @ key.T) @ written, state + key.T @ written


def delta_in_torch(query, key, value, beta, state):
    query, key, value, beta, state = (torch.from_numpy(a).float() for a in (query, key, value, beta, state))
    rows = []
    for t in range(len(key)):
        state = torch.addr(state, key[t], beta[t] * (value[t] - key[t] @ state))
        rows.append(query[t] @ state)
    return torch.stack(rows), state


RIGHT = {
    "positive-random-features": [features_in_torch, features_in_float32],
    "random-feature-crossover": [lambda m, k, v: m * (2 + v / (k + v)), lambda m, k, v: (4 * m * k + 6 * m * v) / (2 * k + 2 * v)],
    "normalised-linear-attention": [averages_with_cumsum, averages_in_torch],
    "chunked-linear-attention": [all_at_once, chunks_in_torch],
    "repair-decay-gate": [gate_in_logarithms, gate_in_torch],
    "read-interference": [lambda: [3.6, 2, 0.37], lambda: np.array([2 - 0.2 - 0.6 + 2.4, 2.0, 0.1**2 + 0.6**2])],
    "three-delta-writes": [lambda: 0.844, lambda: np.array(0.6 * 2.74 - 0.8)],
    "delta-rule": [triangular_system, delta_in_torch],
    "delta-rule-multiplied-out": [
        [
            r"S_{t-1} + \beta k (v - S_{t-1}^{\top} k)^{\top}",
            r"S_{t-1} - \beta k (S_{t-1}^{\top} k - v)^{\top}",
            r"S_{t-1} - \beta k (k^{\top} S_{t-1} - v^{\top})",
            r"S_{t-1} - \beta k k^{\top} S_{t-1} + \beta k v^{\top}",
            r"(I - \beta k k^{\top}) S_{t-1} + \beta k v^{\top}",
        ],
        [
            r"S_{t-1} + \beta k (v - S_{t-1}^\top k)^\top",
            r"S_{t-1} + \left( \beta k v^\top - \beta k (S_{t-1}^\top k)^\top \right)",
            r"\left( S_{t-1} - \beta k k^\top S_{t-1} \right) + \beta k v^\top",
            r"(I - \beta k k^\top) S_{t-1} + k \beta v^\top",
        ],
    ],
    "linear-attention-without-state": [
        r"\frac{\left( \sum_{j \le t} k_j v_j^\top \right)^\top q_t}{\left( \sum_{j \le t} k_j \right) \cdot q_t}",
        r"\Bigl( \sum_{j=1}^t (k_j \cdot q_t)\, v_j \Bigr) / \Bigl( q_t \cdot \sum_{j=1}^t k_j \Bigr)",
    ],
    "fading-state-unrolled": [
        r"\sum_{j \le t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top + \Bigl( \prod_{l \le t} a_l \Bigr) S_0",
        r"\left( \prod_{l=1}^{t} a_l \right) \left( S_0 + \sum_{j=1}^{t} \frac{1}{\prod_{l=1}^{j} a_l} k_j v_j^\top \right)",
    ],
    "one-chunk": [chunk_step_by_step, chunk_in_torch],
    "one-delta-write": [write_after_erasing, write_in_torch],
}
