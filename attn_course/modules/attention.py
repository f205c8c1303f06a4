"""Attention in torch, as plain as its formula, and a layer that learns the projections."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def attention(
    query: Float[Tensor, "*#batch q_len d_k"],
    key: Float[Tensor, "*#batch kv_len d_k"],
    value: Float[Tensor, "*#batch kv_len d_v"],
    *,
    mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch q_len d_v"], Float[Tensor, "*batch q_len kv_len"]]:
    """Return the output and the weights of softmax(scale * query key^T) value.

    `mask`: True where the query may attend to the key.
    `is_causal`: query i sees the keys 0 to i only.
    `scale`: factor of the scores; 1 / sqrt(d_k) if left out.

    Returns `output`: weighted means of the values; zero for a query that may attend to nothing; `weights`: rows sum to
    1; zero for a query that may attend to nothing.

    Raises ValueError if query and key differ in d_k, or key and value in kv_len.

    Vaswani et al. (2017), Eq. 1, arXiv:1706.03762.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_k, the last axis; got {query.shape[-1]} and {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key and value must share kv_len, the second to last axis; got {key.shape[-2]} and {value.shape[-2]}")
    scores = query @ key.transpose(-1, -2) * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    if is_causal:
        allowed = allowed.tril()
    if mask is not None:
        allowed = allowed & mask
    # A row without any key would be 0 / 0, with NaN in its gradient: give it equal scores, and no weight afterwards.
    seeing = allowed.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~allowed & seeing, -math.inf).softmax(dim=-1) * seeing
    return weights @ value, weights


class Attention(nn.Module):
    """One head of attention with learned projections; rows are positions, so a projection is `x @ w`.

    `d_v`: features of the values. None passes the values on as they are, without a projection.
    `d_key_value`: features of the positions that answer; d_model if left out.
    `scale`: factor of the scores; 1 / sqrt(d_k) if left out.
    `query_std`: standard deviation of the entries of w_query at the start; 1 / sqrt(d_model) if left out, which turns
    entries of variance 1 into queries of variance 1. The other projections always start like that.
    """

    def __init__(
        self,
        d_model: int,
        d_k: int,
        d_v: int | None = None,
        *,
        d_key_value: int | None = None,
        scale: float | None = None,
        query_std: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d_other = d_model if d_key_value is None else d_key_value

        def normal(rows: int, columns: int, std: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) * std)

        self.scale = scale
        self.w_query = normal(d_model, d_k, 1.0 / math.sqrt(d_model) if query_std is None else query_std)
        self.w_key = normal(d_other, d_k, 1.0 / math.sqrt(d_other))
        self.w_value = None if d_v is None else normal(d_other, d_v, 1.0 / math.sqrt(d_other))

    def forward(
        self,
        x: Float[Tensor, "*batch q_len d_model"],
        x_key_value: Float[Tensor, "*batch kv_len d_key_value"] | None = None,
        value: Float[Tensor, "*batch kv_len d_v"] | None = None,
        *,
        mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "*batch q_len d_v"], Float[Tensor, "*batch q_len kv_len"]]:
        """Return output and weights; without `x_key_value` every position attends to the positions of `x`.

        `x_key_value`: positions that answer; `x` if left out.
        `value`: what they pass on; `x_key_value` if left out. It is projected if the layer has a w_value.
        `mask`: True where the query may attend to the key.
        `is_causal`: query i sees the keys 0 to i only.

        Returns `output`: weighted means of the values; `weights`: rows sum to 1.
        """
        other = x if x_key_value is None else x_key_value
        passed_on = other if value is None else value
        if self.w_value is not None:
            passed_on = passed_on @ self.w_value
        return attention(x @ self.w_query, other @ self.w_key, passed_on, mask=mask, is_causal=is_causal, scale=self.scale)
