"""Right answers of lesson induction, written in other ways."""

import numpy as np
import torch


def match_in_torch(x):
    x = torch.from_numpy(x).float()
    before = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
    return (x @ before.mT).tril()


def score_in_torch(maps):
    maps = torch.from_numpy(maps).float()
    n = maps.shape[-1] // 2
    return sum(maps[..., n + i, i + 1] for i in range(n)) / n


def paths_in_torch(x, weights, w_query, w_key, w_value, w_output):
    x, weights, w_query, w_key, w_value, w_output = (torch.from_numpy(a).float() for a in (x, weights, w_query, w_key, w_value, w_output))
    parts = torch.stack([x, weights @ (x @ w_value) @ w_output])
    q, k = parts @ w_query, parts @ w_key
    return (torch.einsum("aic,bjc->abij", q, k) / w_query.shape[1] ** 0.5).flatten(0, 1)


def ranks_in_torch(streams, gain, table, right):
    streams, gain, table = (torch.from_numpy(a) for a in (streams, gain, table))
    scores = torch.nn.functional.rms_norm(streams, streams.shape[-1:], gain, 1e-5) @ table.mT
    places = scores.argsort(-1, descending=True).argsort(-1) + 1
    return places.gather(-1, torch.from_numpy(right).expand(len(streams), -1)[..., None])[..., 0].float()


RIGHT = {
    "scores-of-matching-head": [match_in_torch],
    "induction-score-of-maps": [score_in_torch],
    "scores-by-path": [paths_in_torch],
    "rank-of-right-word": [ranks_in_torch],
    "loss-of-perfect-copier": [lambda: 13 * np.log(50) / 36, lambda: 1.413],
    "matrix-between-two-heads": [r"W_Q (W_V W_O W_K)^\top", r"\bigl( W_V W_O W_K W_Q^\top \bigr)^\top"],
}
