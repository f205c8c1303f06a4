"""Heads over devices: two exchanges turn a part of the positions with all heads into all positions with a part of the heads, and back."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attn_course.distributed.checks import check_call
from attn_course.distributed.wire import Wire
from attn_course.gpu.ops import attention


def head_parallel_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    places: Sequence[Tensor],
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    wire: Wire | None = None,
) -> Tensor:
    r"""Return what `ring_attention` returns; each process computes some heads for the whole sequence; differentiable.

    .. math:: M = \frac{n - 1}{n}\, b\, T\, (H + H_{kv})(d_k + d_v)

    So many bytes are sent by all processes together, Eq. head-exchange-bytes: fewer than in a ring from three devices on, but there can
    be no more devices than heads of keys.

    `query` (*batch, heads, own_len, d_k), `key` (*batch, kv_heads, own_len, d_k), `value` (*batch, kv_heads, own_len, d_v): what this
    process holds, of one dtype.
    `places` (a tensor (held,) for each process): the positions that it holds (`device_places`), in any order; the same on all.
    `is_causal`, `scale`, `enable_gqa`, `wire`: those of `ring_attention`.

    Returns `output` (*batch, heads, own_len, d_v).

    Raises TypeError or ValueError, before anything is sent, if a part does not fit or the processes do not divide the heads;
    NeighbourLost as `ring_attention` does.

    DeepSpeed-Ulysses, Jacobs et al. (2023), arXiv:2309.14509.

    >>> x = torch.tensor([[[0.0], [1.0]]])
    >>> head_parallel_attention(x, x, x, [torch.arange(2)], is_causal=True).flatten()  # one process alone
    tensor([0.0000, 0.7311])
    """
    wire = Wire() if wire is None else wire
    factor = check_call(places, wire.rank, wire.size, query, key, value, scale=scale, is_causal=is_causal, enable_gqa=enable_gqa)
    for name, part in {"query": query, "key": key, "value": value}.items():
        if part.ndim < 3 or part.shape[-3] % wire.size:
            raise ValueError(f"{name} must have a multiple of {wire.size} heads on axis -3, one share a process; got {tuple(part.shape)}")
    lengths, held = [len(some) for some in places], torch.cat(list(places))
    parts = (_Exchange.apply(part, lengths, wire, True)[..., held.argsort(), :] for part in (query, key, value))
    output = attention(*parts, is_causal=is_causal, scale=factor, enable_gqa=enable_gqa)
    return _Exchange.apply(output[..., held, :], lengths, wire, False)


class _Exchange(torch.autograd.Function):
    """Give heads and get positions, or the other way round: a permutation of numbers, so each is the other's gradient."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, lengths: list[int], wire: Wire, gives_heads: bool) -> Tensor:
        ctx.rest = lengths, wire, gives_heads
        return _exchanged(part, lengths, wire, gives_heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_part: Tensor) -> tuple[Tensor, None, None, None]:
        lengths, wire, gives_heads = ctx.rest
        return _exchanged(d_part, lengths, wire, not gives_heads), None, None, None


def _exchanged(part: Tensor, lengths: list[int], wire: Wire, gives_heads: bool) -> Tensor:
    *batch, heads, _, features = part.shape
    if gives_heads:
        given, share = part.chunk(wire.size, dim=-3), heads // wire.size
        return torch.cat(wire.exchange(given, [(*batch, share, length, features) for length in lengths]), dim=-2)
    shape = (*batch, heads, lengths[wire.rank], features)
    return torch.cat(wire.exchange(part.split(lengths, dim=-2), [shape] * wire.size), dim=-3)
