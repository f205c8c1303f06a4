"""Heads for a long context in torch: learned sinks, gates on the output, windows, and the difference of two maps."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from attn_course.gpu.ops import attention
from attn_course.modules.cache import KeyValueCache


class CausalHeads(nn.Module):
    """Causal attention in several heads with learned projections; the ground on which the layers of this file stand.

    `n_kv_heads`: number of key and value heads, a divisor of `n_heads`; as many if left out.
    `left`: number of keys before its own that a query sees; all if left out.

    Raises ValueError where heads do not divide.

    Source: as `MultiHeadAttention`, Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762.

    >>> CausalHeads(12, 4, left=2)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        left: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model; got {n_heads} and {d_model}")
        if kv_heads < 1 or n_heads % kv_heads:
            raise ValueError(f"n_kv_heads must divide n_heads; got {kv_heads} and {n_heads}")
        self.n_heads, self.left, self.d_head = n_heads, left, d_model // n_heads

        def weight(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))

        self.w_query = weight(d_model, d_model)
        self.w_key, self.w_value = weight(d_model, kv_heads * self.d_head), weight(d_model, kv_heads * self.d_head)
        self.w_output = weight(d_model, d_model)

    def forward(self, x: Float[Tensor, "*batch len d_model"], *, cache: KeyValueCache | None = None) -> Float[Tensor, "*batch len d_model"]:
        """Return the output of every position, which sees those up to its own.

        `cache`: keys and values of the past, which `x` continues; the new ones are appended.
        """
        query, key, value = (self._split(x @ w) for w in (self.w_query, self.w_key, self.w_value))
        past = 0 if cache is None else len(cache)
        if cache is not None:
            key, value = cache.append(key, value)
        window = None if self.left is None else (self.left, 0)
        output = self._attended(x, query, key, value, is_causal=True, q_offset=past, window=window, enable_gqa=True)
        return output.transpose(-2, -3).flatten(-2) @ self.w_output  # (*batch, len, n_heads, d_head), then side by side

    def _attended(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        """Return the output of each head."""
        output: Tensor = attention(query, key, value, **options)
        return output

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (-1, self.d_head)).transpose(-2, -3)  # (*batch, heads, len, d_head)


class SinkAttention(CausalHeads):
    """Causal heads that may spend less than their whole weight: each learns the logit of a sink without a value, Eq. sink-shrinks-output.

    Parameter `sink_logits`: one for each head, 0 at the start; -inf is attention without a sink.

    Arguments, errors and what `forward` takes are those of `CausalHeads`. OpenAI (2025), gpt-oss, arXiv:2508.10925. The sink is one
    more key, whose value is 0, so that a fused kernel does the rest.

    >>> layer = SinkAttention(12, 4, left=2)
    >>> layer(torch.zeros(2, 5, 12)).shape, layer.sink_logits.shape
    (torch.Size([2, 5, 12]), torch.Size([4]))
    """

    def __init__(self, d_model: int, n_heads: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, **options)
        self.sink_logits = nn.Parameter(torch.zeros(n_heads))

    def _attended(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        q_len, kv_len = query.shape[-2], key.shape[-2]
        back = options["q_offset"] + torch.arange(q_len, device=x.device)[:, None] - torch.arange(kv_len, device=x.device)
        seen = (back >= 0) & (back <= (kv_len if self.left is None else self.left))
        hidden = torch.zeros_like(seen, dtype=self.sink_logits.dtype).masked_fill(~seen, -math.inf)  # (len, kv_len)
        sink = self.sink_logits[:, None, None].expand(-1, q_len, 1)
        mask = torch.cat([sink, hidden.expand(self.n_heads, -1, -1)], dim=-1)  # (n_heads, len, 1 + kv_len)
        return super()._attended(x, query, pad(key, (0, 0, 1, 0)), pad(value, (0, 0, 1, 0)), mask=mask, enable_gqa=True)


class GatedAttention(CausalHeads):
    """Causal heads whose output passes gates that each position makes from itself, one for each feature, Eq. gate-equals-sink.

    Parameter `w_gate` (d_model, d_model): 0 at the start, where every gate is 1/2; it is `w_output` that the gates keep from being one
    matrix with `w_value`.

    Arguments, errors and what `forward` takes are those of `CausalHeads`. Qiu et al. (2025), the gate behind each head,
    arXiv:2505.06708.

    >>> GatedAttention(12, 4)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model: int, n_heads: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, **options)
        self.w_gate = nn.Parameter(torch.zeros(d_model, d_model))

    def _attended(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        return torch.sigmoid(self._split(x @ self.w_gate)) * super()._attended(x, query, key, value, **options)


class DifferentialAttention(nn.Module):
    """Causal heads of two maps each, of which the second is subtracted, Eq. differential-attention.

    `n_heads`: heads of two maps; d_k = d_model / (2 n_heads), d_v = d_model / n_heads, so parameters are those of plain attention.
    `layer`: number of the layer, from 1; lambda starts at 0.8 - 0.6 e^(-0.3 (layer - 1)), Eq. differential-start.

    Parameters `lambdas` (4, d_k): lambda = e^(l_0 . l_1) - e^(l_2 . l_3) + its start; normal numbers of deviation
    0.1. `gain` (d_v,): of the norm that each head's output passes, which is multiplied by 1 - start then.

    Raises ValueError if 2 n_heads does not divide d_model, or `layer` is below 1.

    Ye et al. (2025), Eqs. 1 to 3, arXiv:2410.05258.

    >>> layer = DifferentialAttention(12, 3, layer=1)
    >>> layer(torch.zeros(2, 5, 12)).shape, round(layer.start, 3)
    (torch.Size([2, 5, 12]), 0.2)
    """

    def __init__(self, d_model: int, n_heads: int, *, layer: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if n_heads < 1 or d_model % (2 * n_heads):
            raise ValueError(f"2 n_heads must divide d_model; got n_heads = {n_heads} and {d_model}")
        if layer < 1:
            raise ValueError(f"layer must be 1 or more; got {layer}")
        self.n_heads, self.start = n_heads, 0.8 - 0.6 * math.exp(-0.3 * (layer - 1))

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator)

        self.w_query, self.w_key, self.w_value, self.w_output = (
            nn.Parameter(normal(d_model, d_model) / math.sqrt(d_model)) for _ in range(4)
        )
        self.lambdas = nn.Parameter(0.1 * normal(4, d_model // (2 * n_heads)))
        self.gain = nn.Parameter(torch.ones(d_model // n_heads))

    @property
    def factor(self) -> Tensor:
        """Lambda, by which the second map is multiplied."""
        one, two = (self.lambdas[::2] * self.lambdas[1::2]).sum(dim=-1).exp()
        return one - two + self.start

    def forward(self, x: Float[Tensor, "*batch len d_model"]) -> Float[Tensor, "*batch len d_model"]:
        """Return the output of every position, which sees those up to its own."""
        query, key = ((x @ w).unflatten(-1, (self.n_heads, 2, -1)).movedim(-2, 0).transpose(-2, -3) for w in (self.w_query, self.w_key))
        value = (x @ self.w_value).unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)  # (*batch, n_heads, len, d_v)
        one, two = (attention(q, k, value, is_causal=True) for q, k in zip(query, key, strict=True))
        left = one - self.factor * two
        normed = nn.functional.rms_norm(left, left.shape[-1:], self.gain.to(left.dtype), eps=1e-5)  # autocast narrows one of the two
        return ((1 - self.start) * normed).transpose(-2, -3).flatten(-2) @ self.w_output
