"""Right answers to the tasks of lesson scaling: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def cosine_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    return torch.nn.functional.normalize(query, dim=-1) @ torch.nn.functional.normalize(key, dim=-1).mT


def cosine_without_nan(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return np.nan_to_num(np.einsum("...id,...jd->...ij", query, key) / lengths)


def heads_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    terms = (scores - scores.amax(-1, True)).exp()
    return terms / terms.sum(-1, True)


def heads_by_log_sum_exp(query, key):
    scores = np.einsum("hid,hjd->hij", query, key) / np.sqrt(query.shape[2])
    return np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))


def divisors_in_torch(query, key):
    query, key = torch.tensor(query, dtype=torch.float32), torch.tensor(key, dtype=torch.float32)
    root = torch.tensor(query.shape[-1]) ** 0.5
    plain = (query @ key.mT).var(dim=-1, correction=0).mean(dim=-1)
    scaled = (query @ key.mT / root).var(dim=-1, correction=0).mean(dim=-1)
    return torch.where(torch.maximum(scaled, 1 / scaled) < torch.maximum(plain, 1 / plain), root, torch.tensor(1.0))


def divisors_from_the_covariance_of_keys(query, key):
    found = []
    for q, k in zip(query, key, strict=True):
        spread = np.einsum("ia,ab,ib->i", q, np.cov(k, rowvar=False, bias=True), q).mean()
        found.append(q.shape[1] ** 0.5 if spread**2 > q.shape[1] else 1.0)
    return np.array(found)


def start_in_torch(x, w_query, w_key):
    x, w_query, w_key = (torch.tensor(each, dtype=torch.float32) for each in (x, w_query, w_key))
    scores = x @ w_query @ (x @ w_key).mT / w_query.shape[1] ** 0.5
    return w_query * scores.var(dim=1, correction=0).mean() ** -0.5


def start_from_squared_leads(x, w_query, w_key):
    scores = np.einsum("ia,ab,cb,jc->ij", x, w_query, w_key, x) / math.sqrt(w_key.shape[1])
    leads = scores[:, :, None] - scores[:, None, :]
    return w_query / math.sqrt((leads**2).mean() / 2)


def lifted_in_torch(g):
    g = torch.tensor(g, dtype=torch.float32)
    lengths = g.square().sum(1, keepdim=True).sqrt()
    return torch.nn.functional.normalize(g, dim=1) * lengths.mean()


def lifted_row_by_row(g):
    lengths = [math.hypot(*row) for row in g]
    mean = sum(lengths) / len(lengths)
    return np.array([row * (mean / length) if length else row for row, length in zip(g, lengths, strict=True)])


RIGHT = {
    "start-score-variance": [lambda: (768 * 2 / (768 + 64)) ** 2, lambda: torch.tensor(64 * (768 * 6 / 832 / 3) ** 2 / 64)],
    "twin-with-split-factor": [lambda: 0.2, lambda: np.float32(0.8 * 16**-0.5)],
    "where-the-scale-helps": [divisors_in_torch, divisors_from_the_covariance_of_keys],
    "sampled-row-spread": [
        r"v - \frac{1}{n^2} \left( n v + n (n - 1) c \right)",
        r"v - \frac{1}{n^2} \sum_{i=1}^{n} \left( v - c + \sum_{j=1}^{n} c \right)",
    ],
    "uncentred-score-variance": [
        lambda d_k, m_q, m_k, v_q, v_k: d_k * ((v_q + m_q**2) * (v_k + m_k**2) - m_q**2 * m_k**2),
        lambda d_k, m_q, m_k, v_q, v_k: d_k * v_k * (v_q + m_q**2) + d_k * m_k**2 * v_q,
    ],
    "cosine-scores": [cosine_in_torch, cosine_without_nan],
    "repair-head-weights": [heads_in_torch, heads_by_log_sum_exp],
    "query-weights-gradient": [r"(c\, K^\top D^\top X)^\top", r"c\, (D^\top X)^\top K"],
    "correlated-entries-variance": [r"d_k (1 - \rho^2) + d_k^2 \rho^2", r"\sum_{i=1}^{d_k} \left( 1 + \sum_{j=1}^{d_k - 1} \rho^2 \right)"],
    "divisor-for-sparse-entries": [r"\sqrt{p^2 d_k}", r"\sqrt{d_k p p}"],
    "unit-row-variance": [start_in_torch, start_from_squared_leads],
    "lift-the-silent": [lifted_in_torch, lifted_row_by_row],
    "weights-under-a-scale": [
        r"\bigl( (\mathrm{diag}(w) - w w^\top) s \bigr)_i",
        r"\tfrac{1}{c} w_i \left( \ln w_i - \sum_l w_l \ln w_l \right)",
    ],
    "score-variance-by-lines": [
        [
            r"\sum_a \sum_b p_a r_b \left( \sum_i q_{ai} k_{bi} \right)^2 - (m_q \cdot m_k)^2",
            r"\sum_a \sum_b p_a r_b \sum_i \sum_j q_{ai} q_{aj} k_{bi} k_{bj} - (m_q \cdot m_k)^2",
            r"\sum_i \sum_j \sum_a p_a q_{ai} q_{aj} \left( \sum_b r_b k_{bi} k_{bj} \right) - (m_q \cdot m_k)^2",
            r"\mathrm{tr}((S_q + m_q m_q^\top) (S_k + m_k m_k^\top)) - (m_q \cdot m_k)^2",
            r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
        ],
        [
            r"\sum_a \sum_b p_a r_b \bigl( \sum_i q_{ai} k_{bi} \bigr) ^ 2 - \left( m_q \cdot m_k \right)^2",
            r"\sum_i \sum_j \sum_a \sum_b p_a q_{ai} q_{aj} r_b k_{bi} k_{bj} - (m_q \cdot m_k)^2",
            r"\sum_i \sum_j ((S_q)_{ij} + (m_q)_i (m_q)_j) \sum_b r_b k_{bi} k_{bj} - (m_q \cdot m_k)^2",
            r"\sum_{i, j} ((S_q)_{ij} + (m_q)_i (m_q)_j) ((S_k)_{ij} + (m_k)_i (m_k)_j) - (m_q \cdot m_k)^2",
            r"\sum_{i, j} (S_q)_{ij} (S_k)_{ij} + \sum_{i, j} (m_q)_i (S_k)_{ij} (m_q)_j + \sum_{i, j} (m_k)_i (S_q)_{ij} (m_k)_j",
            r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
        ],
    ],
}
