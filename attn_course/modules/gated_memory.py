"""A layer whose state has gates: what it forgets, how far it corrects, and what of its answer passes."""

import math
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attn_course.modules.gated import gated_delta_rule, gated_linear_attention
from attn_course.modules.linear import unit_features, widened

RATES, STEPS = (1.0, 16.0), (0.001, 0.1)  # of forgetting, at first


class GatedMemory(nn.Module):
    """Causal attention without softmax in several heads, whose states decay; x (*batch, len, d_model) as `LinearAttention`.

    A gate is exp(-rate * step): a learned rate for each head, a step from x for each position. The output of each head is
    divided by its root mean square, then multiplied with a gate of its own. Gates and states are in at least float32, whatever
    the dtype of the layer.

    `n_heads`: number of heads; each has a state of its own.
    `rule`: correct the state under the key, or add to it; either way by a share beta of the value.
    `gates`: one gate for all features of a head, or one for each.
    `beta_max`: the largest step, 1 or 2; above 1 a key can turn the state round, Eq. parity-by-reflection.
    `d_k`, `d_v`: features of queries and keys, and of values, in one head; d_model / n_heads if left out.
    `chunk`: positions in a chunk.

    Raises ValueError if a word is unknown, `beta_max` is not 1 or 2, or widths do not fit.

    "delta" with "scalar" is Gated DeltaNet, Yang et al. (2024), arXiv:2412.06464; with "channel" Kimi Delta Attention,
    Kimi Team (2025), arXiv:2510.26692; "linear" with "scalar" is close to Mamba-2, Dao and Gu (2024), arXiv:2405.21060,
    which writes with the step itself. Their short convolutions are left out, and the low rank of Kimi's gates. First rates
    and steps as in Mamba-2.

    >>> layer = GatedMemory(12, 3, gates="channel", beta_max=2.0)
    >>> output, state = layer(torch.zeros(2, 5, 12), return_state=True)
    >>> output.shape, state.shape
    (torch.Size([2, 5, 12]), torch.Size([2, 3, 4, 4]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        rule: Literal["delta", "linear"] = "delta",
        gates: Literal["scalar", "channel"] = "scalar",
        beta_max: float = 1.0,
        d_k: int | None = None,
        d_v: int | None = None,
        chunk: int = 64,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for name, word, words in (("rule", rule, ("delta", "linear")), ("gates", gates, ("scalar", "channel"))):
            if word not in words:
                raise ValueError(f"{name} must be one of {words}; got {word!r}")
        if beta_max not in (1, 2):
            raise ValueError(f"beta_max must be 1 or 2; got {beta_max}")
        if (d_k is None or d_v is None) and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, or d_k and d_v be given; got {n_heads} and {d_model}")
        self.rule, self.beta_max, self.n_heads, self.chunk = rule, beta_max, n_heads, chunk
        d_k, d_v = d_k or d_model // n_heads, d_v or d_model // n_heads
        n_gates = n_heads * (d_k if gates == "channel" else 1)

        def weight(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))

        self.w_query, self.w_key = weight(d_model, n_heads * d_k), weight(d_model, n_heads * d_k)
        self.w_value, self.w_output = weight(d_model, n_heads * d_v), weight(n_heads * d_v, d_model)
        self.w_beta, self.b_beta = weight(d_model, n_heads), nn.Parameter(torch.zeros(n_heads))
        low, high = map(math.log, STEPS)
        steps = torch.exp(low + (high - low) * torch.rand(n_gates, generator=generator))
        self.w_step, self.b_step = weight(d_model, n_gates), nn.Parameter(steps + torch.log(-torch.expm1(-steps)))  # softplus undone
        rates = RATES[0] + (RATES[1] - RATES[0]) * torch.rand(n_heads, generator=generator)
        self.log_rate = nn.Parameter(rates.log())
        self.w_gate, self.norm_gain = weight(d_model, n_heads * d_v), nn.Parameter(torch.ones(d_v))

    def forward(self, x: Float[Tensor, "*batch len d_model"], *, state: Tensor | None = None, return_state: bool = False) -> Any:
        """Return the output of every position, which reads what was written up to its own.

        `state` (*batch, n_heads, d_k, d_v): what earlier positions left.
        `return_state`: also return the state after the last position: decoding needs nothing else of the past.
        """
        query, key, value, gate = (self._heads(x @ w) for w in (self.w_query, self.w_key, self.w_value, self.w_gate))
        query, key, value = widened(query, key, value)
        query, key, beta = unit_features(query), unit_features(key), self.beta(x)
        if self.rule == "delta":
            read, state = gated_delta_rule(query, key, value, beta, self.log_decay(x), chunk=self.chunk, state=state)
        else:
            read, state = gated_linear_attention(query, key, beta * value, self.log_decay(x), chunk=self.chunk, state=state)
        passed = functional.rms_norm(read, read.shape[-1:], self.norm_gain.to(read.dtype), eps=1e-5) * functional.silu(gate)
        output = passed.transpose(-2, -3).flatten(-2).to(x.dtype) @ self.w_output
        return (output, state) if return_state else output

    def beta(self, x: Float[Tensor, "*batch len d_model"]) -> Float[Tensor, "*batch n_heads len 1"]:
        """Return how far each position corrects the state of each head, from 0 to `beta_max`."""
        return self.beta_max * torch.sigmoid(widened(self._heads(x @ self.w_beta + self.b_beta))[0])

    def log_decay(self, x: Float[Tensor, "*batch len d_model"]) -> Float[Tensor, "*batch n_heads len d_decay"]:
        """Return the logarithms of the gates, in at least float32: a gate near 1 is 1 in bfloat16, and forgets nothing."""
        rates, steps = widened(self.log_rate[:, None, None], self._heads(x @ self.w_step + self.b_step))
        return -rates.exp() * functional.softplus(steps)

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)
