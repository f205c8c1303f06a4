"""Additive attention in torch: a small network with one hidden layer scores each pair of a query and a key."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    r"""Attention with the score v^T tanh(q W_Q + k W_K + b), Eq. additive-score; rows are positions, so a projection is `x @ w`.

    `bias`: add a learned b inside tanh. Without it the score is odd, Eq. additive-score-is-odd, and a vector looks as
    unlike itself as like itself.
    `generator`: source of the first weights. Entries of the projections start with variance 1 / d_q and 1 / d_k, those
    of the score vector with variance 1 / d_hidden, and those of the bias with variance 1. A size below 1 raises ValueError.

    Bahdanau et al. (2014), appendix A.1.2, arXiv:1409.0473: `w_query` is W_a, `w_key` is U_a (both transposed, for
    columns) and `w_score` is v_a. Hidden layers of all pairs are kept for the backward pass: q_len x kv_len x d_hidden
    numbers, Eq. additive-memory-overhead.
    """

    def __init__(self, d_q: int, d_k: int, d_hidden: int, *, bias: bool = False, generator: torch.Generator | None = None) -> None:
        super().__init__()
        for name, size in (("d_q", d_q), ("d_k", d_k), ("d_hidden", d_hidden)):
            if size < 1:
                raise ValueError(f"{name} must be at least 1; got {size}")
        self.w_query = nn.Parameter(torch.randn(d_q, d_hidden, generator=generator) / math.sqrt(d_q))
        self.w_key = nn.Parameter(torch.randn(d_k, d_hidden, generator=generator) / math.sqrt(d_k))
        self.w_score = nn.Parameter(torch.randn(d_hidden, generator=generator) / math.sqrt(d_hidden))
        self.bias = nn.Parameter(torch.randn(d_hidden, generator=generator)) if bias else None

    def forward(
        self,
        query: Float[Tensor, "*#batch q_len d_q"],
        key: Float[Tensor, "*#batch kv_len d_k"],
        value: Float[Tensor, "*#batch kv_len d_v"] | None = None,
        *,
        mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None,
        kv_lengths: Int[Tensor, "*#batch"] | None = None,
    ) -> tuple[Float[Tensor, "*batch q_len d_v"], Float[Tensor, "*batch q_len kv_len"]]:
        """Return the output and the weights.

        `value`: what each of these passes on; the keys themselves if left out, as with Bahdanau et al.
        `mask`: True where the query may attend to the key.
        `kv_lengths`: how many keys of each example are real; the rest is padding, whatever it holds, and gets no
        weight.

        Returns `output`: weighted means of the values; zero for a query that may attend to nothing; `weights`: rows sum
        to 1; zero for a query that may attend to nothing.

        Raises ValueError if the last axis of `query` or `key` is not d_q or d_k, or key and value differ in kv_len.
        """
        if query.shape[-1] != len(self.w_query):
            raise ValueError(f"query must have d_q = {len(self.w_query)} features, its last axis; got {query.shape[-1]}")
        if kv_lengths is not None:
            real = torch.arange(key.shape[-2], device=key.device) < kv_lengths[..., None, None]
            mask = real if mask is None else mask & real
        return self.attend(query, self.project_keys(key), key if value is None else value, mask)

    def project_keys(self, key: Float[Tensor, "*batch kv_len d_k"]) -> Float[Tensor, "*batch kv_len d_hidden"]:
        """Return key @ w_key (+ b), which a decoder needs only once for all the queries that it asks one after another.

        Returns `projected`: the keys' part of the hidden layer.

        Raises ValueError if the last axis of `key` is not d_k.
        """
        if key.shape[-1] != len(self.w_key):
            raise ValueError(f"key must have d_k = {len(self.w_key)} features, its last axis; got {key.shape[-1]}")
        projected = key @ self.w_key
        return projected if self.bias is None else projected + self.bias

    def attend(
        self,
        query: Float[Tensor, "*#batch q_len d_q"],
        projected: Float[Tensor, "*#batch kv_len d_hidden"],
        value: Float[Tensor, "*#batch kv_len d_v"],
        mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None,
    ) -> tuple[Float[Tensor, "*batch q_len d_v"], Float[Tensor, "*batch q_len kv_len"]]:
        """Return output and weights for keys that `project_keys` has already projected.

        `mask`: True where the query may attend to the key.

        Returns `output`: weighted means of the values; `weights`: rows sum to 1, or are zero.

        Raises ValueError if keys and values differ in kv_len.
        """
        if projected.shape[-2] != value.shape[-2]:
            raise ValueError(f"key and value must share kv_len, the second to last axis; got {projected.shape[-2]} and {value.shape[-2]}")
        # (..., q_len, 1, d_hidden) + (..., 1, kv_len, d_hidden): the sum of projections first, then tanh
        hidden = torch.tanh((query @ self.w_query).unsqueeze(-2) + projected.unsqueeze(-3))
        weights = masked_softmax(hidden @ self.w_score, mask)
        return weights @ value, weights


def masked_softmax(
    scores: Float[Tensor, "*batch q_len kv_len"], mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None
) -> Float[Tensor, "*batch q_len kv_len"]:
    """Return the softmax over the keys that the mask allows; zeros, with finite gradients, for a row it closes altogether.

    `mask`: True where the query may attend to the key. None allows every pair.

    Returns `weights`: rows sum to 1, or are zero.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    # A row without any key would be 0 / 0, with NaN in its gradient: give it equal scores, and no weight afterwards.
    seeing = mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~mask, -math.inf).masked_fill(~seeing, 0.0).softmax(dim=-1) * seeing
