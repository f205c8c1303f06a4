"""The kernels as two operators of torch, forward and backward, which autograd and torch.compile know how to handle."""

import math
from functools import cache
from typing import Any

import torch

from attn_course.gpu import decoding
from attn_course.gpu.arguments import accumulator, arguments, rows_of, sizes
from attn_course.gpu.configurations import Configuration, configuration, shared_bytes
from attn_course.gpu.layout import aligned, laid_out

CACHED = 2**24  # bytes that all programs share in a cache: a third of that of an H100


@cache
def heads_together(heads: int, cached: int) -> int:
    """Return how many heads go side by side, their longest programs first, if what `cached` of them read fits the cache: a divisor.

    >>> heads_together(32, 500), heads_together(32, 20), heads_together(32, 0)
    (32, 16, 1)
    """
    return next(n for n in range(min(heads, max(1, cached)), 0, -1) if heads % n == 0)


def _launch_twice(
    kernel: Any, heads: int, blocks: int, read: list[Any], chosen: Configuration, call: Any, others: list[Any], counts: Any, kind: Any
) -> None:
    """Launch a kernel for all `blocks` of all heads, and once more for the programs that met NaN or infinity; the others end at once.

    Under a causal mask programs differ in length; the short ones that come last fill the multiprocessors. `read`: what heads go through.
    """
    spoilt = call.query.ptr.new_empty(heads * blocks, dtype=torch.uint8)
    together = heads_together(heads, CACHED * heads // sum(rows.ptr.nbytes for rows in read)) if kind.HIGH and not kind.LOW else 1
    for careful in (False, True):
        kernel[(heads * blocks,)](call, *others, spoilt, *counts, together, KIND=kind, **chosen.launch_options, CAREFUL=careful)


@torch.library.custom_op("attn_course::flash_forward", mutates_args=())
def flash_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    lows: torch.Tensor | None,
    highs: torch.Tensor | None,
    lengths: torch.Tensor | None,
    starts: torch.Tensor | None,
    low: int | None,
    high: int | None,
    scale: float,
    softcap: float | None,
    longest: list[int] | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute output (batch, heads, q_len, d_v), lse (batch, heads, q_len), and its rest (beside a float mask and in float32).

    See the kernel for the arguments; `low` and `high` are None where neither they nor their tables bound the band.
    """
    from attn_course.gpu import flash_forward as kernels
    from attn_course.gpu import tiles

    options = (mask, lows, highs, lengths, starts, low, high, scale, softcap, longest)
    if tiles.INTERPRETED and query.dtype == torch.bfloat16:  # the interpreter multiplies the bits of a bfloat16
        output, lse, rest = flash_forward(query.float(), key.float(), value.float(), *options)
        return laid_out(query, value.shape[-1]).copy_(output), lse, rest
    output, lse, rest = _forward_results(query, value)
    if output.numel() == 0 or key.numel() == 0:
        return output.zero_(), lse.fill_(-torch.inf), rest.zero_()
    heads, d_k, d_v = query.shape[1], query.shape[3], value.shape[3]
    batch, q_len, kv_len = sizes(query, key, options)
    how: dict[str, Any] = {"masked": mask is not None, "shared": shared_bytes(query.device), "interpreted": tiles.INTERPRETED}
    keys = decoding.keys_met(low, high, q_len, kv_len)
    chosen = configuration("forward", d_k, d_v, query.dtype, **how)
    group = heads // key.shape[1]
    is_added = mask is not None and mask.dtype != torch.bool
    with torch.cuda.device_of(query):
        if not is_added and decoding.is_for(q_len, heads, group, keys, chosen, query.device):
            tile = decoding.tile_for(q_len * group, d_k, d_v, query.dtype, **how)
            natural = decoding.launch((query, key, value), options, tile, keys, output, lse)
            return output, lse, rest.zero_() if natural else rest
        call, counts, kind = arguments(map(aligned, (query, key, value)), options)
        results = [rows_of(output, starts=starts), lse, rest]
        read, blocks = [call.key, call.value], -(-q_len // chosen.block_q)
        _launch_twice(kernels.flash_forward, batch * heads, blocks, read, chosen, call, results, counts, kind)
    return output, lse, rest


def _forward_results(query: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The output, lse and rest of a forward pass, not yet written; rest is read only where the kernel writes it."""
    lse = query.new_empty(query.shape[:3], dtype=accumulator(query.dtype))
    return laid_out(query, value.shape[-1]), lse, torch.empty_like(lse)


@flash_forward.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    return _forward_results(query, value)


@torch.library.custom_op("attn_course::flash_backward", mutates_args=())
def flash_backward(
    d_output: torch.Tensor,
    d_lse: torch.Tensor | None,
    output: torch.Tensor,
    lse: torch.Tensor,
    rest: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    lows: torch.Tensor | None,
    highs: torch.Tensor | None,
    lengths: torch.Tensor | None,
    starts: torch.Tensor | None,
    low: int | None,
    high: int | None,
    scale: float,
    softcap: float | None,
    longest: list[int] | None,
    needed: list[bool],
) -> list[torch.Tensor]:
    """Compute those gradients that are `needed`: of query; of key and value; of the mask."""
    from attn_course.gpu import flash_backward as kernels
    from attn_course.gpu import flash_backward_mask as mask_kernels
    from attn_course.gpu import flash_row_terms as row_kernels
    from attn_course.gpu import tiles

    found = _gradients_of(query, key, value, mask, needed)
    options = (mask, lows, highs, lengths, starts, low, high, scale, softcap, longest)
    if tiles.INTERPRETED and query.dtype == torch.bfloat16:
        wide = [tensor.float() for tensor in (query, key, value)]
        gradients = flash_backward(d_output.float(), d_lse, output.float(), lse, rest, *wide, *options, needed)
        return [narrow.copy_(gradient) for narrow, gradient in zip(found, gradients, strict=True)]
    if output.numel() == 0 or key.numel() == 0:
        return [gradient.zero_() for gradient in found]

    output, d_output = aligned(output), aligned(d_output)
    heads, d_k, d_v = query.shape[1], query.shape[3], value.shape[3]
    batch, q_len, kv_len = sizes(query, key, options)
    how: dict[str, Any] = {"masked": mask is not None, "shared": shared_bytes(query.device), "interpreted": tiles.INTERPRETED}
    call, counts, kind = arguments(map(aligned, (query, key, value)), options)
    terms = row_kernels.Terms(rows_of(d_output, starts=starts), torch.empty_like(lse), rest, torch.empty_like(lse))
    with torch.cuda.device_of(query):
        d_lse = None if d_lse is None else d_lse.contiguous()
        row_kernels.flash_row_terms[(-(-q_len // 64) * batch * heads,)](
            starts, rows_of(output, starts=starts), terms, lse, d_lse, heads, q_len, KIND=kind, BLOCK_Q=64
        )
        left = iter(found)
        if needed[0]:
            chosen, results = configuration("backward_query", d_k, d_v, query.dtype, **how), [terms, rows_of(next(left), starts=starts)]
            read, blocks = [call.key, call.value], -(-q_len // chosen.block_q)
            _launch_twice(kernels.flash_backward_query, batch * heads, blocks, read, chosen, call, results, counts, kind)
        if needed[1]:
            chosen = configuration("backward_key_value", d_k, d_v, query.dtype, **how)
            results = [terms, rows_of(next(left), starts=starts), rows_of(next(left), starts=starts)]
            read, blocks = [call.query, terms.d_output], -(-kv_len // chosen.block_kv)
            _launch_twice(kernels.flash_backward_key_value, batch * key.shape[1], blocks, read, chosen, call, results, counts, kind)
        if mask is not None and needed[2]:
            chosen = configuration("backward_mask", d_k, d_v, query.dtype, **how)
            q_blocks, kv_blocks = -(-q_len // chosen.block_q), -(-kv_len // chosen.block_kv)
            summed = "queries" if mask.shape[2] == 1 else "keys" if mask.shape[3] == 1 else "none"
            entries = mask.shape[:2] if summed == "none" else (batch, heads)
            shared = (batch // entries[0], heads // entries[1])
            members = {"queries": q_blocks, "keys": kv_blocks, "none": math.prod(shared)}[summed]
            programs = math.prod(entries) * (1 if summed == "queries" else q_blocks) * (1 if summed == "keys" else kv_blocks)
            d_mask = lse.new_empty(*entries, 1 if summed == "queries" else q_len, 1 if summed == "keys" else kv_len)
            mask_kernels.flash_backward_mask[(programs,)](
                call, terms, d_mask, *counts, entries[1], members, shared[1], KIND=kind, **chosen.launch_options, SUMMED=summed
            )
            next(left).copy_(d_mask.sum_to_size(mask.shape))
    return found


def _gradients_of(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, needed: list[bool]
) -> list[torch.Tensor]:
    """Room for the gradients, with their axes in the same order of memory."""
    tensors = [*([query] if needed[0] else []), *([key, value] if needed[1] else [])]
    room = [laid_out(tensor, tensor.shape[-1]) for tensor in tensors]
    return [*room, mask.new_empty(mask.shape)] if mask is not None and needed[2] else room


@flash_backward.register_fake
def _(*arguments: Any) -> list[torch.Tensor]:
    query, key, value, mask = arguments[5:9]
    return _gradients_of(query, key, value, mask, arguments[-1])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    ctx.save_for_backward(*output, *inputs[:8])
    ctx.options = inputs[8:]
    query, key, value, mask = ctx.needs_input_grad[:4]
    ctx.needed = [query, key or value, mask]
    ctx.mark_non_differentiable(output[2])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, d_output: torch.Tensor | None, d_lse: torch.Tensor | None, d_rest: None) -> tuple[torch.Tensor | None, ...]:
    del d_rest  # it has no gradient of its own: lse + rest is differentiated as lse
    output, lse, rest, *inputs = ctx.saved_tensors
    if d_output is None:
        d_output = torch.zeros_like(output)
    found = iter(flash_backward(d_output, d_lse, output, lse, rest, *inputs, *ctx.options, ctx.needed))
    query, key_value, mask = ctx.needed
    gradients = [next(found) if needed else None for needed in (query, key_value, key_value, mask)]
    return (*gradients, *(None,) * 9)


flash_forward.register_autograd(_gradients, setup_context=_remember)
