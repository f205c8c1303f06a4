"""What the lesson takes as given: sentences and how PyTorch learns them, two lines for a reader who left them open, many random starts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Sentence = tuple[list[int], int]  # two nouns and an ending

NOUNS, ENDINGS = ("cat", "dog", "clock", "stone"), ("tired", "curious", "heavy", "broken")
RIGHT = (0, 0, 1, 1)  # an ending means the first noun of a pair, an animal, or the second
READ: list[Sentence] = [([animal, thing], ending) for animal in (0, 1) for thing in (2, 3) for ending in (0, 2)]
READ += [([1, 3], 1), ([1, 3], 3)]
NEVER = [(1, 0), (1, 2), (3, 0), (3, 2)]  # an ending and a noun that it has not met


def score_gradient(weights: np.ndarray, output: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> np.ndarray:
    """The gradient at all scores, Eq. score-gradient-against-mixture."""
    return weights * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))


def key_gradient(d_scores: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The gradient at all keys, Eq. query-and-key-gradients."""
    return d_scores.T @ query / math.sqrt(query.shape[1])


def or_ours(d_scores: Any, d_key: Any) -> tuple[Any, Any]:
    """Return the functions of the two turns: the reader's, or ours where the dots still stand."""
    return score_gradient if d_scores is ... else d_scores, key_gradient if d_key is ... else d_key


def scores_by_torch(key_step: float) -> np.ndarray:
    """Read the sentences over and over, in 500 steps of size 1 against PyTorch's gradient of -ln p, and return all scores (ending, noun).

    `key_step`: the size of the steps of the keys. Queries start at zero, and each key with a 1 in a place of its own.
    """
    import torch

    queries, keys = (start.double().requires_grad_() for start in (torch.zeros(4, 4), torch.eye(4)))
    for pair, ending in 500 // len(READ) * READ:
        loss = -torch.log_softmax(keys[pair] @ queries[ending] / 2, dim=0)[RIGHT[ending]]
        d_queries, d_keys = torch.autograd.grad(loss, (queries, keys))
        with torch.no_grad():
            queries -= d_queries
            keys -= key_step * d_keys
    return (queries @ keys.T / 2).detach().numpy()


def share_found(sentences: Sequence[Sentence], asked: Sequence[Sentence], right: Sequence[int], *, starts: int) -> float:
    """Train from many random starts, and return how often the right noun of the sentences `asked` has more than half of the weight.

    `sentences`: read one a step, over and over, in 500 steps of size 1 against the gradient of -ln p. `right`: for each ending, which noun
    of a pair it means. There are 4 queries and 4 keys, of 4 normal numbers each.
    """
    queries, keys = np.random.default_rng(0).normal(size=(2, starts, 4, 4))

    def lead(pair: Sequence[int], ending: int) -> tuple[np.ndarray, np.ndarray]:
        """The key of the right noun less that of the other, and the lead of its score."""
        apart = keys[:, pair[right[ending]]] - keys[:, pair[1 - right[ending]]]
        return apart, (queries[:, ending] * apart).sum(axis=1, keepdims=True) / 2

    for pair, ending in 500 // len(sentences) * list(sentences):
        apart, ahead = lead(pair, ending)
        step = 1 / (1 + np.exp(ahead)) / 2  # (1 - p) / sqrt(d_k): dS is -(1 - p) and (1 - p)
        along = step * queries[:, ending]
        queries[:, ending] += step * apart
        keys[:, pair[right[ending]]] += along
        keys[:, pair[1 - right[ending]]] -= along
    return float(np.mean([lead(*sentence)[1] > 0 for sentence in asked]))
