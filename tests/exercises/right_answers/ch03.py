"""Right answers to the tasks of chapter 03: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def scores_with_einsum(query, key):
    return np.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5


def scores_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    return query / math.sqrt(query.shape[-1]) @ key.mT


def scores_by_broadcasting(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(-1) / math.sqrt(key.shape[-1])


def cosine_of_unit_vectors(query, key):
    units = []
    for rows in (query, key):
        length = np.sqrt((rows**2).sum(-1, keepdims=True))
        units.append(rows / np.where(length > 0, length, 1.0))
    return units[0] @ units[1].swapaxes(-1, -2)


def cosine_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    return torch.nn.functional.normalize(query, dim=-1) @ torch.nn.functional.normalize(key, dim=-1).mT


def heads_one_by_one(query, key):
    heads = []
    for q, k in zip(query, key, strict=True):
        scores = q @ k.T / math.sqrt(q.shape[1])
        terms = np.exp(scores - scores.max(1)[:, None])
        heads.append(terms / terms.sum(1)[:, None])
    return np.stack(heads)


def heads_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    terms = (scores - scores.amax(-1, True)).exp()
    return terms / terms.sum(-1, True)


RIGHT = {
    "3.1": [scores_with_einsum, scores_in_torch, scores_by_broadcasting],
    "3.2": [lambda: 36, lambda: np.array(50 * 4 * 9 / 50), lambda: torch.tensor(36.0)],
    "3.3": [
        lambda d_k, m_q, m_k, v_q, v_k: d_k * ((v_q + m_q**2) * (v_k + m_k**2) - m_q**2 * m_k**2),
        lambda d_k, m_q, m_k, v_q, v_k: d_k * v_k * (v_q + m_q**2) + d_k * m_k**2 * v_q,
    ],
    "3.4": [cosine_of_unit_vectors, cosine_in_torch],
    "3.5": [heads_one_by_one, heads_in_torch],
    "3.6": [lambda: [4, 64, 1], lambda: np.array([4.0, 64.0, 1.0])],
    "3.7": [lambda eta, d_k: eta * d_k**-2, lambda eta, d_k: (1 / d_k) * (eta / d_k)],
}
