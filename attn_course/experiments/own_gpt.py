"""The model that a reader has built at the end of lesson transformer, for the lesson behind it; each function gets a cache as well."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, silu


def matrix(rng: np.random.Generator, rows: int, columns: int, parts: int = 1) -> nn.Parameter:
    """Return a matrix whose entries have the variance 1 / rows, divided among the parts."""
    return nn.Parameter(torch.from_numpy(rng.normal(size=(rows, columns)) / (rows * parts) ** 0.5).float())


def norm(x: Tensor, gain: Tensor) -> Tensor:
    """Return the RMS norm of each row."""
    return x / ((x**2).mean(-1, keepdim=True) + 1e-5) ** 0.5 * gain


def turned(x: Tensor, at: Tensor, theta: float) -> Tensor:
    """Return rows (..., words, d_k) with neighbouring features turned by their places (words,)."""
    angles = at[:, None] * theta ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])  # (words, d_k / 2)
    left, right = x[..., 0::2], x[..., 1::2]
    return torch.stack((left * angles.cos() - right * angles.sin(), left * angles.sin() + right * angles.cos()), -1).flatten(-2)


class Block(nn.Module):
    """A block, norm first.

    The reader gives it `weigh(x, cache)`, which returns weights (..., heads, new, kept + new) and values of the key heads.
    """

    weigh: Callable[[Tensor, dict], tuple[Tensor, Tensor]]

    def __init__(self, rng: np.random.Generator, d: int, parts: int, *, d_k: int, shared: int, hidden: int, theta: float) -> None:
        super().__init__()
        self.d_k, self.shared, self.theta = d_k, shared, theta
        self.gain_attention, self.gain_hidden = (nn.Parameter(torch.ones(d)) for _ in range(2))
        self.w_query, self.w_output = matrix(rng, d, d), matrix(rng, d, d, parts)
        self.w_key, self.w_value = matrix(rng, d, d // shared), matrix(rng, d, d // shared)
        self.w_gate, self.w_in, self.w_out = matrix(rng, d, hidden), matrix(rng, d, hidden), matrix(rng, hidden, d, parts)

    def forward(self, x: Tensor, cache: dict) -> Tensor:
        """Return the stream (..., new, d) with what attention and the hidden units found added."""
        weights, values = self.weigh(norm(x, self.gain_attention), cache)
        output = weights @ values.repeat_interleave(self.shared, -3)  # (..., heads, new, d_k)
        x = x + output.swapaxes(-2, -3).flatten(-2) @ self.w_output
        normed = norm(x, self.gain_hidden)
        return x + (silu(normed @ self.w_gate) * (normed @ self.w_in)) @ self.w_out

    def sides(self, x: Tensor) -> list[Tensor]:
        """Return queries (..., heads, new, d_k), and keys and values (..., key heads, new, d_k) of the rows (..., new, d)."""
        return [(x @ w).unflatten(-1, (-1, self.d_k)).swapaxes(-2, -3) for w in (self.w_query, self.w_key, self.w_value)]

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (..., heads, queries, keys); each key head serves `shared` query heads."""
        return queries @ keys.repeat_interleave(self.shared, -3).mT / self.d_k**0.5


class GPT(nn.Module):
    """The whole model, with a tied table."""

    def __init__(self, words: int, d: int, depth: int, *, seed: int = 8, **sizes: Any) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.table = nn.Parameter(matrix(rng, d, words).T)
        self.gain = nn.Parameter(torch.ones(d))
        self.blocks = nn.ModuleList(Block(rng, d, 2 * depth, **sizes) for _ in range(depth))

    def forward(self, ids: Tensor, cache: dict | None = None) -> Tensor:
        """Return the scores (..., new, words) of what comes behind each of the new words (..., new)."""
        cache = {} if cache is None else cache
        x = self.table[ids]
        for block in self.blocks:
            x = block(x, cache)
        return norm(x, self.gain) @ self.table.T


def train(model: GPT, rows: Tensor, steps: int, *, seed: int = 8) -> GPT:
    """Train a model on rows of words, 32 at a step, and freeze it."""
    rng, adam = np.random.default_rng(seed), torch.optim.AdamW(model.parameters(), lr=0.005)
    for _ in range(steps):
        batch = rows[rng.integers(len(rows), size=32)]
        loss = cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model.requires_grad_(False)
