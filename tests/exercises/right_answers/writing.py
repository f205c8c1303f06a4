"""Right answers to the tasks of lesson writing: loops, torch, float32, other algebra."""

import numpy as np
import torch


def allowed_by_places(new, kept):
    return (np.arange(kept + new) <= kept + np.arange(new)[:, None]).astype(float)


def allowed_in_torch(new, kept):
    return torch.ones(new, kept + new).tril(kept)


def chances_one_by_one(logits, temperature, share):
    p = np.exp(logits / temperature - np.logaddexp.reduce(logits / temperature))
    kept, total = np.zeros(len(p)), 0.0
    while total < share and not kept.all():
        best = max((word for word in range(len(p)) if not kept[word]), key=lambda word: p[word])
        kept[best] = p[best]
        total += p[best]
    return kept / total


def chances_in_torch(logits, temperature, share):
    scaled = torch.tensor(logits).float() / temperature
    p = (scaled - scaled.max()).exp()
    p = p / p.sum()
    falling, order = p.sort(descending=True)
    before = falling.cumsum(0) - falling
    kept = torch.zeros_like(p).scatter(0, order, torch.where(before < share, falling, 0.0))
    return kept / kept.sum()


def row_by_row(query, key, value):
    kept = len(key) - len(query)
    found = []
    for place, row in enumerate(query, kept + 1):
        terms = np.exp(key[:place] @ row / len(row) ** 0.5)
        found.append(terms @ value[:place] / terms.sum())
    return np.array(found)


def whole_and_cut(query, key, value):
    kept = len(key) - len(query)
    query, key, value = (torch.tensor(side).float() for side in (query, key, value))
    scores = torch.cat([torch.zeros(kept, query.shape[1]), query]) @ key.T / query.shape[1] ** 0.5
    later = torch.ones(len(key), len(key)).triu(1) == 1
    terms = scores.masked_fill(later, -torch.inf).exp()
    return (terms @ value / terms.sum(1, keepdim=True))[kept:]


def terms_in_torch(scores, temperature):
    scaled = torch.tensor(scores).float() / temperature
    terms = (scaled - scaled.amax(-1, keepdim=True)).exp()
    return terms / terms.sum(-1, keepdim=True)


def chances_by_lse(scores, temperature):
    scaled = scores / temperature
    return np.exp(scaled - np.logaddexp.reduce(scaled, axis=-1, keepdims=True))


RIGHT = {
    "causal-mask-behind-kept": [allowed_by_places, allowed_in_torch],
    "chances-at-temperature": [terms_in_torch, chances_by_lse],
    "nucleus-of-next-words": [chances_one_by_one, chances_in_torch],
    "attention-behind-kept": [row_by_row, whole_and_cut],
    "rows-to-write": [lambda: (550, 34), lambda: [25 * 10 + 25 * 12, 10 + 24]],
}
