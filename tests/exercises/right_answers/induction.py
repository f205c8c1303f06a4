"""Right answers of lesson induction, written in other ways."""

import numpy as np
import torch


def match_by_loops(x):
    words = x.argmax(1)
    T = len(words)
    return np.array([[float(0 < j <= i and words[j - 1] == words[i]) for j in range(T)] for i in range(T)])


def match_in_torch(x):
    x = torch.from_numpy(x).float()
    before = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
    return (x @ before.mT).tril()


def score_by_diagonal(maps):
    n = maps.shape[-1] // 2
    return np.diagonal(maps, 1 - n, -2, -1)[..., 1:].mean(-1)


def score_in_torch(maps):
    maps = torch.from_numpy(maps).float()
    n = maps.shape[-1] // 2
    return sum(maps[..., n + i, i + 1] for i in range(n)) / n


def matrix_by_rows(w_output, silent, n_heads):
    return np.array([row * (number * n_heads // len(w_output) != silent) for number, row in enumerate(w_output)])


def matrix_in_torch(w_output, silent, n_heads):
    without = torch.from_numpy(w_output).float()
    without.unflatten(0, (n_heads, -1))[silent] = 0.0
    return without


def paths_by_absorption(x, weights, w_query, w_key, w_value, w_output):
    middle, carried = w_query @ w_key.T / w_query.shape[1] ** 0.5, x @ (w_value @ w_output)
    direct = x @ middle
    noted = weights @ carried
    return np.array([direct @ x.T, direct @ noted.T, noted @ middle @ x.T, noted @ middle @ noted.T])


def paths_in_torch(x, weights, w_query, w_key, w_value, w_output):
    x, weights, w_query, w_key, w_value, w_output = (torch.from_numpy(a).float() for a in (x, weights, w_query, w_key, w_value, w_output))
    parts = torch.stack([x, weights @ (x @ w_value) @ w_output])
    q, k = parts @ w_query, parts @ w_key
    return (torch.einsum("aic,bjc->abij", q, k) / w_query.shape[1] ** 0.5).flatten(0, 1)


def ranks_by_sorting(streams, gain, table, right):
    found = np.empty(streams.shape[:2])
    for place in np.ndindex(*found.shape):
        x = streams[place]
        order = np.argsort(-table @ (gain * x / np.sqrt(x @ x / len(x) + 1e-5)))
        found[place] = 1 + list(order).index(right[place[1]])
    return found


def ranks_in_torch(streams, gain, table, right):
    streams, gain, table = (torch.from_numpy(a) for a in (streams, gain, table))
    scores = torch.nn.functional.rms_norm(streams, streams.shape[-1:], gain, 1e-5) @ table.mT
    places = scores.argsort(-1, descending=True).argsort(-1) + 1
    return places.gather(-1, torch.from_numpy(right).expand(len(streams), -1)[..., None])[..., 0].float()


RIGHT = {
    "scores-of-matching-head": [match_by_loops, match_in_torch],
    "induction-score-of-maps": [score_by_diagonal, score_in_torch],
    "output-without-a-head": [matrix_by_rows, matrix_in_torch],
    "scores-by-path": [paths_by_absorption, paths_in_torch],
    "rank-of-right-word": [ranks_by_sorting, ranks_in_torch],
    "loss-of-perfect-copier": [lambda: 13 * np.log(50) / 36, lambda: 1.413],
    "matrix-between-two-heads": [r"W_Q (W_V W_O W_K)^\top", r"\bigl( W_V W_O W_K W_Q^\top \bigr)^\top"],
}
