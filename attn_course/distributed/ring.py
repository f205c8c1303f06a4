"""Ring attention: each process keeps its queries, and the blocks of keys and values pass by."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attn_course.distributed.checks import check_call
from attn_course.distributed.wire import Wire
from attn_course.gpu.ops import attention


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    places: Sequence[Tensor],
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    block_q: int = 128,
    wire: Wire | None = None,
) -> Tensor:
    r"""Return attention of the queries of this process over the keys and values of all processes; differentiable.

    .. math:: z' = z + \frac{z_c - z}{1 + e^{L - L_c}}, \qquad L' = \ln(e^L + e^{L_c})

    After n - 1 steps each block c of keys and values has passed by each process, Eq. ring-update. Going back they pass by once more, and
    with them go the sums of their gradients, from the first foreign process to the last, and home, Eq. ring-training-bytes. A block
    that a causal mask hides as a whole costs nothing.

    `query` (*batch, own_len, d_k), `key` (*batch, own_len, d_k), `value` (*batch, own_len, d_v): what this process holds, of one dtype;
    finite. Nothing is broadcast. The sums are taken, and gradients travel, in at least float32.
    `places` (a tensor (held,) for each process): the positions that it holds (`device_places`); the same on all.
    `is_causal`: a query sees the keys at its own position and before.
    `scale`: factor on q . k; 1 / sqrt(d_k) if left out.
    `enable_gqa`: the query has a multiple of the key's heads on axis -3, and only the heads of keys and values travel.
    `block_q`: queries whose scores are computed together, for all keys that the last of them sees: so many rows are in memory.
    `wire`: the way to the other processes; the default group if left out.

    Returns `output` (*batch, own_len, d_v).

    Raises TypeError or ValueError, before anything is sent, if a part does not fit; NeighbourLost if a process dies or is silent, so
    also where not every process calls this function, and goes backward through it, equally often.

    Liu et al. (2023), arXiv:2310.01889.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> ring_attention(x, x, x, [torch.arange(2)], is_causal=True)  # one process alone
    tensor([[0.0000],
            [0.7311]])
    """
    wire = Wire() if wire is None else wire
    factor = check_call(places, wire.rank, wire.size, query, key, value, scale=scale, is_causal=is_causal, enable_gqa=enable_gqa)
    if isinstance(block_q, bool) or not isinstance(block_q, int) or block_q < 1:
        raise ValueError(f"block_q must be an integer of 1 or more; got {block_q!r}")
    ring = _Ring(places, is_causal, factor, enable_gqa, block_q, wire)
    with torch.autocast(query.device.type, enabled=False):  # a log-sum-exp in a narrow dtype spoils every weight made of it
        return _RingAttention.apply(query, key, value, ring)


@dataclass(frozen=True)
class _Ring:
    places: Sequence[Tensor]
    is_causal: bool
    scale: float
    enable_gqa: bool
    block_q: int
    wire: Wire

    def visits(self, block: Tensor) -> Iterator[tuple[int, int, Tensor]]:
        """Yield step, owner and block of each step; the next block is on its way while this one is used."""
        for step in range(self.wire.size):
            owner, following = ((self.wire.rank - step - more) % self.wire.size for more in (0, 1))
            last = step == self.wire.size - 1
            arrival = None if last else self.wire.pass_on(block, (*block.shape[:-2], len(self.places[following]), block.shape[-1]))
            yield step, owner, block
            if arrival is not None:
                block = arrival()

    def tiles(self, owner: int, device: torch.device) -> Iterator[tuple[slice, int, Tensor | None]]:
        """Yield queries, the number of keys of a block that they see, all from its first, and the mask that they need among these."""
        mine, others = (self.places[rank].contiguous() for rank in (self.wire.rank, owner))
        seen = torch.searchsorted(others, mine, right=True) if self.is_causal else torch.full_like(mine, len(others))
        for start in range(int((seen == 0).sum()), len(mine), self.block_q):
            rows = slice(start, min(start + self.block_q, len(mine)))
            fewest, most = int(seen[start]), int(seen[rows][-1])
            mask = None if fewest == most else torch.arange(most) < seen[rows, None]
            yield rows, most, None if mask is None else mask.to(device)


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, ring: _Ring) -> Tensor:
        wide = torch.promote_types(query.dtype, torch.float32)
        queries = query.to(wide)
        output = queries.new_zeros((*query.shape[:-1], value.shape[-1]))
        lse = queries.new_full(query.shape[:-1], -math.inf)
        for _, owner, block in ring.visits(torch.cat([key, value], dim=-1)):
            k, v = block.to(wide).split([key.shape[-1], value.shape[-1]], dim=-1)
            pairs = 0
            for rows, seen, mask in ring.tiles(owner, query.device):
                some = queries[..., rows, :], k[..., :seen, :], v[..., :seen, :]
                part, part_lse = attention(*some, mask=mask, scale=ring.scale, enable_gqa=ring.enable_gqa, return_lse=True)
                before, so_far = output[..., rows, :], lse[..., rows]
                output[..., rows, :] = before + torch.sigmoid(part_lse - so_far)[..., None] * (part - before)
                lse[..., rows] = torch.logaddexp(so_far, part_lse)
                pairs += (rows.stop - rows.start) * seen
            ring.wire.step_pairs.append(pairs)
        ctx.save_for_backward(query, key, value, output, lse)
        ctx.ring = ring
        return output.to(query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, output, lse = ctx.saved_tensors
        ring, width = ctx.ring, key.shape[-1]
        queries, d_out = query.to(output.dtype), d_output.to(output.dtype)
        delta = (d_out * output).sum(dim=-1, keepdim=True)  # Eq. score-gradient-against-mixture
        own = torch.cat([key, value], dim=-1)
        d_query, home, arrival = torch.zeros_like(queries), torch.zeros_like(own, dtype=output.dtype), None
        for step, owner, block in ring.visits(own):
            wide = block.to(output.dtype)
            d_block = torch.zeros_like(wide) if step else home
            for rows, seen, mask in ring.tiles(owner, query.device):
                some = (queries[..., rows, :], wide[..., :seen, :width], wide[..., :seen, width:])
                d_some, d_seen = _gradients(*some, d_out[..., rows, :], delta[..., rows, :], lse[..., rows, None], mask, ring.scale)
                d_query[..., rows, :] += d_some
                d_block[..., :seen, :] += d_seen
            if step:
                following = (owner - 1) % ring.wire.size  # whose sum comes next; in the end it is that of the own block
                shape = (*d_block.shape[:-2], len(ring.places[following]), d_block.shape[-1])
                arrival = ring.wire.pass_on(d_block if arrival is None else d_block + arrival(), shape)
        d_key, d_value = (home if arrival is None else home + arrival()).split([width, value.shape[-1]], dim=-1)
        return d_query.to(query.dtype), d_key.to(key.dtype), d_value.to(value.dtype), None


def _gradients(
    query: Tensor, key: Tensor, value: Tensor, d_output: Tensor, delta: Tensor, lse: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the gradient of queries and those of keys and values side by side, from the log-sum-exp over all blocks.

    Eqs. block-weights-from-lse and gradient-of-scores.
    """
    repeats = query.shape[-3] // key.shape[-3] if query.ndim > 2 else 1
    keys, values = (part.repeat_interleave(repeats, dim=-3) if repeats > 1 else part for part in (key, value))
    scores = query @ keys.mT * scale
    weights = torch.exp((scores if mask is None else scores.masked_fill(~mask, -math.inf)) - lse)
    d_scores = weights * (d_output @ values.mT - delta) * scale
    d_block = torch.cat([d_scores.mT @ query, weights.mT @ d_output], dim=-1)
    if repeats > 1:
        d_block = d_block.unflatten(-3, (key.shape[-3], repeats)).sum(dim=-3)
    return d_scores @ keys, d_block
