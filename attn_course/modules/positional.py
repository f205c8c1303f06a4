"""Attention to be changed after training: pairs turn at any frequency, distance is penalised, another function may attend."""

import math
from collections.abc import Callable, Collection
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attn_course.gpu.ops import attention
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.multi_head import MultiHeadAttention, _without_padding
from attn_course.modules.positions import Layout

Numbers = Collection[Any]  # of floats: a list, an array, a tensor


def rotate_pairs(
    x: Float[Tensor, "*#batch len d_k"], positions: Shaped[Tensor, "*#batch len"], frequencies: Numbers, layout: Layout = "halves"
) -> Float[Tensor, "*batch len d_k"]:
    """Rotate the first 2 n_pairs features, each pair by its own frequency, and pass the others on, Eq. partial-rope-score.

    `x`: queries or keys, after their projection.
    `positions`: position t of each row; any numbers. With a head axis in `x`, pass ``positions[..., None, :]``.
    `frequencies` (n_pairs,): radians for each position, for instance those of `attn_course.reference.yarn_frequencies`.
    `layout`: which of the rotated features form pair i: i and i + n_pairs, or 2 i and 2 i + 1.

    Returns `rotated`: same dtype as `x`; angles are computed in float64.

    Raises ValueError if there are more pairs than `x` has, not one position for each row, or `layout` is unknown.

    Su et al. (2021), section 3.2.2, arXiv:2104.09864. Only some features: GPT-NeoX, Black et al. (2022), arXiv:2204.06745.

    >>> rotate_pairs(torch.tensor([[1.0, 0.0, 5.0]]), torch.tensor([1]), [1.0])
    tensor([[0.5403, 0.8415, 5.0000]])
    """
    turns = torch.as_tensor(frequencies, dtype=torch.float64, device=x.device)
    if turns.ndim != 1 or 2 * len(turns) > x.shape[-1]:
        wanted = f"one axis of at most d_k / 2 = {x.shape[-1] / 2:g} pairs"
        raise ValueError(f"frequencies must have {wanted}; got shape {tuple(turns.shape)}")
    if positions.ndim < 1 or positions.shape[-1] != x.shape[-2]:
        wanted = f"the axes (..., len) with len = {x.shape[-2]}, one for each row of x"
        raise ValueError(f"positions must have {wanted}; got {tuple(positions.shape)}")
    if layout not in ("halves", "interleaved"):
        raise ValueError(f'layout must be "halves" or "interleaved"; got {layout!r}')
    angles = positions[..., None] * turns
    wide = torch.promote_types(x.dtype, torch.float32)
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)

    pair_axis, sizes = (-2, (2, len(turns))) if layout == "halves" else (-1, (len(turns), 2))
    turned, passed = x.tensor_split([2 * len(turns)], dim=-1)
    first, second = turned.to(wide).unflatten(-1, sizes).unbind(pair_axis)
    rotated = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=pair_axis).flatten(-2).to(x.dtype)
    return torch.cat([rotated, passed.expand(*rotated.shape[:-1], -1)], dim=-1)


class PositionalAttention(MultiHeadAttention):
    """Multi-head attention with any rotary frequencies, penalties on distance, or neither; all may be changed after training.

    `frequencies`: radians for each position of every pair that is rotated; none is NoPE, fewer than d_k / 2 partial RoPE.
    Set the attribute to those of `attn_course.reference.yarn_frequencies` or its like to read texts longer than trained.
    `rope_theta`: the frequencies of RoPE, theta^(-2i/d_k), in a word.
    `slopes`: one for each head: its penalty for each position of distance, ALiBi, Eq. alibi-decays-weights; none without it.
    `temperature`: divides the scores, all of them, also where only some features are rotated, Eq. yarn-sharpens-weights.
    `**options`: the others of `MultiHeadAttention`.

    The attribute `attend` is the function of queries, keys and values that is called: `attn_course.gpu.attention`, or another one with
    its keywords.

    Frequencies, slopes and temperature are numbers of the layer, not tensors: a layer moved to float16 still turns by float64 angles.

    Raises ValueError as `MultiHeadAttention`, or if `rope_theta` and `frequencies` are both given.

    ALiBi: Press et al. (2021), arXiv:2108.12409. Frequencies: see `attn_course.reference.rotary`.

    >>> layer = PositionalAttention(12, 2, frequencies=[1.0, 0.1, 0.01], is_causal=True)
    >>> layer.frequencies = [0.5, 0.05, 0.005]  # positions stretched twice
    >>> layer(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self, d_model: int, n_heads: int, *, frequencies: Numbers = (), slopes: Numbers = (), temperature: float = 1.0, **options: Any
    ) -> None:
        super().__init__(d_model, n_heads, **options)
        if self.rope_theta is not None:
            if len(frequencies):
                raise ValueError("rope_theta must be left out where frequencies say how pairs turn")
            frequencies = [self.rope_theta ** (-2.0 * pair / self.d_k) for pair in range(self.d_k // 2)]
        self.frequencies, self.slopes, self.temperature = frequencies, slopes, temperature
        self.attend: Callable[..., Any] = attention

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
        """Return the output, and the weights if asked for.

        `x_key_value`: to be left out: positions are those of `x`. `mask`, `lengths`, `is_causal`, `cache`, `return_weights`: as in
        `MultiHeadAttention`.
        `positions`: where the rows of `x` stand, for the rotation; behind the past, in order, if left out. Penalties go by the
        order of the rows.

        Raises TypeError, ValueError as in `MultiHeadAttention`; also if there is not one slope for
        each head, or the temperature is not positive.
        """
        if x_key_value is not None:
            raise ValueError("x_key_value must be left out: positions are those of x")
        if positions is not None and not len(self.frequencies):
            raise ValueError("positions must be left out: this layer has no frequencies")
        past = 0 if cache is None else len(cache)
        where = torch.arange(past, past + x.shape[-2], device=x.device) if positions is None else positions
        heads = {"query": self.n_heads, "key": self.n_kv_heads, "value": self.n_kv_heads}
        query, key, value = (self._heads(role, "x", x, count) for role, count in heads.items())
        query, key = (rotate_pairs(rows, where[..., None, :], self.frequencies, self.rope_layout) for rows in (query, key))
        if cache is not None:
            key, value = cache.append(key, value)
        if lengths is not None:
            mask = _without_padding(mask, lengths, key.shape[-2])
        if not self.temperature > 0.0:
            raise ValueError(f"temperature must be positive; got {self.temperature!r}")
        scale = 1.0 / math.sqrt(self.d_k) if self.options["scale"] is None else self.options["scale"]
        result = self.attend(
            query,
            key,
            value,
            mask=self._with_penalties(mask, query, key.shape[-2], past),
            is_causal=self.is_causal if is_causal is None else is_causal,
            q_offset=past,
            enable_gqa=True,
            return_weights=return_weights,
            guard_non_finite=mask is not None,  # padding may hold anything, Eq. masked-attention
            **self.options | {"scale": scale / self.temperature},
        )
        output, *weights = result if return_weights else (result,)
        projected = self._project("output", output.transpose(-2, -3).flatten(-2))  # (*batch, q_len, n_heads, d_v), then side by side
        return (projected, *weights) if return_weights else projected

    def _with_penalties(self, mask: Tensor | None, query: Tensor, kv_len: int, past: int) -> Tensor | None:
        """Add minus slope times distance; in at least float32, since bfloat16 cannot tell far distances apart."""
        if not len(self.slopes):
            return mask
        slopes = torch.as_tensor(self.slopes, dtype=torch.promote_types(query.dtype, torch.float32), device=query.device)
        if slopes.shape != (self.n_heads,):
            raise ValueError(f"slopes must be one for each of {self.n_heads} heads; got shape {tuple(slopes.shape)}")
        rows = torch.arange(past, past + query.shape[-2], device=query.device)
        distances = (rows[:, None] - torch.arange(kv_len, device=query.device)).abs()
        penalties = -slopes[:, None, None] * distances
        if mask is None:
            return penalties
        return torch.where(mask, penalties, -math.inf) if mask.dtype == torch.bool else mask + penalties
