"""Several heads in torch: project, split, attend, merge, project; with shared key heads, rotary positions and a cache."""

import math
from typing import Any, Self

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attn_course.gpu.ops import attention
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.loading import packed_weights, torch_weights
from attn_course.modules.positions import Layout, rope


class MultiHeadAttention(nn.Module):
    """Attention in several heads with learned projections, Eq. multi-head-attention; rows are positions, so a projection is `x @ w`.

    `n_kv_heads`: number of key and value heads, a divisor of `n_heads`; as many if left out. 1 is multi-query
    attention.
    `d_k`, `d_v`: features of queries and keys, and of values, in one head; d_model / n_heads if left out.
    `d_key_value`: features of the positions that answer; d_model if left out.
    `bias`, `output_bias`: whether the projections of queries, keys and values, and that of the output, add a bias;
    `output_bias` follows `bias`.
    `is_causal`: position i sees the positions up to its own only; a call may say otherwise.
    `window`: how many positions to the left and to the right a query sees.
    `scale`: factor of the scores; 1 / sqrt(d_k) if left out.
    `softcap`: bound of the scores.
    `rope_theta`: base of the rotary frequencies, often 10 000; without it queries and keys are not rotated.
    `rope_layout`: which features a rotation pairs.
    `backend`: who computes: see `attn_course.gpu.attention`.

    Raises ValueError where heads do not divide, or rotation meets an odd d_k.

    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762. Shared key heads: Ainslie et al. (2023), arXiv:2305.13245.

    >>> layer = MultiHeadAttention(d_model=12, n_heads=4, n_kv_heads=2)
    >>> output, weights = layer(torch.zeros(2, 5, 12), is_causal=True, return_weights=True)
    >>> output.shape, weights[0, 0, 1]
    (torch.Size([2, 5, 12]), tensor([0.5000, 0.5000, 0.0000, 0.0000, 0.0000], grad_fn=<SelectBackward0>))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        d_key_value: int | None = None,
        bias: bool = False,
        output_bias: bool | None = None,
        is_causal: bool = False,
        window: tuple[int | None, int | None] | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        rope_theta: float | None = None,
        rope_layout: Layout = "halves",
        backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if self.n_kv_heads < 1 or n_heads % self.n_kv_heads:
            raise ValueError(f"n_kv_heads must divide n_heads; got {self.n_kv_heads} and {n_heads}")
        if (d_k is None or d_v is None) and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, or d_k and d_v be given; got {n_heads} and {d_model}")
        self.d_k = d_model // n_heads if d_k is None else d_k
        self.d_v = d_model // n_heads if d_v is None else d_v
        self.d_key_value = d_model if d_key_value is None else d_key_value
        if rope_theta is not None and self.d_k % 2:
            raise ValueError(f"d_k must be even for a rotation of pairs; got {self.d_k}")
        self.is_causal, self.rope_theta, self.rope_layout = is_causal, rope_theta, rope_layout
        self.options: dict[str, Any] = {"window": window, "scale": scale, "softcap": softcap, "backend": backend}

        def weight(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))  # keeps a variance of 1

        self.w_query = weight(d_model, n_heads * self.d_k)
        self.w_key = weight(self.d_key_value, self.n_kv_heads * self.d_k)
        self.w_value = weight(self.d_key_value, self.n_kv_heads * self.d_v)
        self.w_output = weight(n_heads * self.d_v, d_model)
        has_bias = {"query": bias, "key": bias, "value": bias, "output": bias if output_bias is None else output_bias}
        for role, has_one in has_bias.items():
            columns = getattr(self, f"w_{role}").shape[1]
            self.register_parameter(f"b_{role}", nn.Parameter(torch.zeros(columns)) if has_one else None)

    def forward(
        self,
        x: Float[Tensor, "*batch q_len d_model"],
        x_key_value: Float[Tensor, "*batch kv_len d_key_value"] | None = None,
        *,
        mask: Bool[Tensor, "*#batch #heads #q_len #kv_len"] | Float[Tensor, "*#batch #heads #q_len #kv_len"] | None = None,
        lengths: Int[Tensor, "*batch"] | None = None,
        is_causal: bool | None = None,
        cache: KeyValueCache | None = None,
        positions: Shaped[Tensor, "*#batch q_len"] | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Return the output; without `x_key_value` every position attends to the positions of `x`.

        `x_key_value`: positions that answer; `x` if left out.
        `mask`: True where the query may attend to the key, or added to the scores. One mask for each sequence of a
        batch has a head axis of length 1: ``mask[:, None]``.
        `lengths`: number of real keys of each sequence; the padding behind them is hidden, whatever it holds.
        `is_causal`: as the layer was made, if left out.
        `cache`: keys and values of the past, which `x` continues; the new ones are appended.
        `positions`: where the rows of `x` stand, for the rotation; behind the past, in order, if left out.
        `return_weights`: also return the weights of every head.

        Returns `weights` (*batch, n_heads, q_len, kv_len): only with `return_weights`.

        Raises TypeError, ValueError as in `attn_course.gpu.attention`; also if a width does not fit, or a cache or
        rotation is asked for in cross-attention.
        """
        if x_key_value is not None and (cache is not None or self.rope_theta is not None):
            raise ValueError("x_key_value must be left out with a cache or a rotation: both are about the positions of x")
        if positions is not None and self.rope_theta is None:
            raise ValueError("positions must be left out: this layer has no rope_theta")
        other = x if x_key_value is None else x_key_value
        query = self._heads("query", "x", x, self.n_heads)
        key = self._heads("key", "x_key_value", other, self.n_kv_heads)
        value = self._heads("value", "x_key_value", other, self.n_kv_heads)
        past = 0 if cache is None else len(cache)
        if self.rope_theta is not None:
            where = torch.arange(past, past + x.shape[-2], device=x.device) if positions is None else positions
            query, key = (rope(heads, where[..., None, :], self.rope_theta, self.rope_layout) for heads in (query, key))
        if cache is not None:
            key, value = cache.append(key, value)
        if lengths is not None:
            mask = _without_padding(mask, lengths, key.shape[-2])
        result = attention(
            query,
            key,
            value,
            mask=mask,
            is_causal=self.is_causal if is_causal is None else is_causal,
            q_offset=past,
            enable_gqa=True,
            return_weights=return_weights,
            guard_non_finite=mask is not None,  # padding may hold anything, Eq. masked-attention
            **self.options,
        )
        output, *weights = result if return_weights else (result,)
        merged = output.transpose(-2, -3).flatten(-2)  # (*batch, q_len, n_heads, d_v), then side by side
        projected = self._project("output", merged)
        return (projected, *weights) if return_weights else projected

    def _heads(self, role: str, name: str, x: Tensor, n_heads: int) -> Tensor:
        """Project and split: (*batch, len, features) -> (*batch, n_heads, len, d_head)."""
        rows = getattr(self, f"w_{role}").shape[0]
        if x.ndim < 2 or x.shape[-1] != rows:
            raise ValueError(f"{name} must have the axes (..., len, {rows}); got shape {tuple(x.shape)}")
        return self._project(role, x).unflatten(-1, (n_heads, -1)).transpose(-2, -3)  # (*batch, len, n_heads, d_head), then swap

    def _project(self, role: str, x: Tensor) -> Tensor:
        weight, bias = getattr(self, f"w_{role}"), getattr(self, f"b_{role}")
        return x @ weight if bias is None else x @ weight + bias

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention, **options: Any) -> Self:
        """Return a layer with the weights of torch's module; see `attn_course.modules.loading.torch_weights`.

        Mind the masks: True in torch's means hide, True in this layer's means may attend.

        `module`: copied, not changed. Whatever its `batch_first`, this layer takes (*batch, len, features).
        `**options`: keywords of the layer that the module does not have, such as `is_causal`.

        Returns `layer`: on the same device, in the same dtype.
        """
        state = torch_weights(module)
        layer = cls(module.embed_dim, module.num_heads, d_key_value=module.kdim, bias="b_query" in state, **options)
        layer.to(state["w_query"]).load_state_dict(state)
        return layer

    @classmethod
    def from_gpt2(cls, w_attn: Tensor, b_attn: Tensor, w_proj: Tensor, b_proj: Tensor, *, n_heads: int) -> Self:
        """Return a causal layer with the weights of one block of GPT-2.

        `w_attn`, `b_attn` (d_model, 3 d_model), (3 d_model,): `c_attn`: query, key and value side by side, to be used as x @ w (a
        Conv1D, not an nn.Linear).
        `w_proj`, `b_proj` (d_model, d_model), (d_model,): `c_proj`, the same way round.

        Returns `layer`: on the same device, in the same dtype.
        """
        layer = cls(w_proj.shape[0], n_heads, bias=True, is_causal=True).to(w_proj)
        layer.load_packed(w_attn, b_attn)
        layer.load_state_dict({"w_output": w_proj, "b_output": b_proj}, strict=False)
        return layer

    def load_packed(self, packed: Tensor, bias: Tensor | None = None) -> None:
        """Take the projections of queries, keys and values from one matrix; the output's stays as it is.

        `packed` (d_model, columns of w_query, w_key and w_value together): to be used as x @ packed; give the weight of
        an nn.Linear transposed.
        `bias` (the same columns,): packed in the same order; needed if and only if the layer has biases.

        Raises ValueError if shapes do not fit, or a bias is missing or has no place.
        """
        state = packed_weights(packed, bias, (self.w_query.shape[1], self.w_key.shape[1], self.w_value.shape[1]))
        if ("b_query" in state) != (self.b_query is not None):
            raise ValueError(f"bias must be {'given' if bias is None else 'left out'}: the layer has {'some' if bias is None else 'none'}")
        if packed.ndim != 2 or {packed.shape[0]} != {self.d_model, self.d_key_value}:
            raise ValueError(f"packed must have d_model = d_key_value = {self.d_model} rows; got shape {tuple(packed.shape)}")
        self.load_state_dict(state, strict=False)


def _without_padding(mask: Tensor | None, lengths: Tensor, kv_len: int) -> Tensor:
    """Hide the keys behind the end of each sequence too."""
    real = torch.arange(kv_len, device=lengths.device) < lengths[..., None, None, None]  # (*batch, 1, 1, kv_len)
    if mask is None:
        return real
    return mask & real if mask.dtype == torch.bool else torch.where(real, mask, -math.inf)
