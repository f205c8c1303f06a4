"""The kernels as two operators of torch, forward and backward, which autograd and torch.compile know how to handle."""

from collections.abc import Callable
from typing import Any

import torch

from attn_course.gpu.configurations import Configuration, Kernel, configuration, padded


class Band:
    """Who may see whom by position, and how scores are formed: what every kernel takes besides its tensors."""

    def __init__(self, left: int | None, right: int | None, q_offset: int, scale: float, softcap: float | None) -> None:
        self.bounds = (q_offset, left or 0, right or 0)
        self.constants = {"LEFT": left is not None, "RIGHT": right is not None, "SCALE": scale, "SOFTCAP": softcap}


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums and log-sum-exp are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def mask_arguments(mask: torch.Tensor | None, shape: tuple[int, int, int, int]) -> tuple[torch.Tensor | None, tuple[int, ...], str]:
    """Return the mask as bytes or floats, its strides in a tensor of `shape` (0 where an axis is broadcast), and its kind."""
    if mask is None:
        return None, (0, 0, 0, 0), "none"
    strides = tuple(0 if have == 1 and want != 1 else stride for have, want, stride in zip(mask.shape, shape, mask.stride(), strict=True))
    return (mask.view(torch.uint8), strides, "bool") if mask.dtype == torch.bool else (mask, strides, "float")


def sizes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> dict[str, Any]:
    """Return the compile-time sizes of a call."""
    d_k, d_v = query.shape[-1], value.shape[-1]
    group = query.shape[1] // max(key.shape[1], 1)
    return {"GROUP": group, "D_K": d_k, "D_V": d_v, "D_K_PAD": padded(d_k), "D_V_PAD": padded(d_v)}


@torch.library.custom_op("attn_course::flash_forward", mutates_args=())
def flash_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    offsets: torch.Tensor | None,
    lengths: torch.Tensor | None,
    q_offset: int,
    left: int | None,
    right: int | None,
    scale: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute output (batch, heads, q_len, d_v) and log-sum-exp (batch, heads, q_len); see the kernel for the arguments."""
    from attn_course.gpu import flash_forward as kernels
    from attn_course.gpu import tiles

    if tiles.INTERPRETED and query.dtype == torch.bfloat16:  # the interpreter multiplies the bits of a bfloat16
        wide = flash_forward(query.float(), key.float(), value.float(), mask, offsets, lengths, q_offset, left, right, scale, softcap)
        return wide[0].to(torch.bfloat16), wide[1]
    query, key, value = (packed(tensor) for tensor in (query, key, value))
    batch, heads, q_len, _ = query.shape
    output = query.new_empty(batch, heads, q_len, value.shape[-1])
    lse = query.new_empty(batch, heads, q_len, dtype=accumulator(query.dtype))
    if output.numel() == 0 or key.numel() == 0:
        return output.zero_(), lse.fill_(-torch.inf)
    band = Band(left, right, q_offset, scale, softcap)
    mask, mask_strides, kind = mask_arguments(mask, (batch, heads, q_len, key.shape[2]))
    widths = query.shape[-1], value.shape[-1]
    chosen = configuration("forward", *widths, query.dtype, masked=mask is not None, interpreted=tiles.INTERPRETED)
    kernels.flash_forward[(-(-q_len // chosen.block_q) * batch * heads,)](
        *(query, key, value, mask, offsets, lengths, output, lse),
        *(query.stride()[:3], key.stride()[:3], value.stride()[:3], mask_strides, output.stride()[:3]),
        *(heads, q_len, key.shape[2], *band.bounds),
        **sizes(query, key, value), **band.constants, MASK=kind, ACC=tiles.ACCUMULATORS[lse.dtype],
        BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, num_warps=chosen.num_warps, num_stages=chosen.num_stages,
    )  # fmt: skip
    return output, lse


@flash_forward.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    shape = query.shape[:3]
    return query.new_empty(*shape, value.shape[-1]), query.new_empty(shape, dtype=accumulator(query.dtype))


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with the features of a row side by side, copied if they are not."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


@torch.library.custom_op("attn_course::flash_backward", mutates_args=())
def flash_backward(
    d_output: torch.Tensor,
    d_lse: torch.Tensor | None,
    output: torch.Tensor,
    lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    offsets: torch.Tensor | None,
    lengths: torch.Tensor | None,
    q_offset: int,
    left: int | None,
    right: int | None,
    scale: float,
    softcap: float | None,
    needs_d_mask: bool,
) -> list[torch.Tensor]:
    """Compute the gradients of query, key and value, and with `needs_d_mask` that of the mask."""
    from attn_course.gpu import flash_backward as kernels
    from attn_course.gpu import flash_backward_mask as mask_kernels
    from attn_course.gpu import tiles

    rest = (offsets, lengths, q_offset, left, right, scale, softcap)
    if tiles.INTERPRETED and query.dtype == torch.bfloat16:
        wide = [tensor.float() for tensor in (output, query, key, value)]
        found = flash_backward(d_output.float(), d_lse, wide[0], lse, *wide[1:], mask, *rest, needs_d_mask)
        return [*(gradient.to(torch.bfloat16) for gradient in found[:3]), *found[3:]]
    query, key, value, output, d_output = (packed(tensor) for tensor in (query, key, value, output, d_output))
    batch, heads, q_len, d_k = query.shape
    kv_len, d_v = value.shape[2:]
    found = [torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device) for tensor in (query, key, value)]
    mask_shape = (1, 1) if mask is None else tuple(mask.shape[:2])
    d_mask = query.new_empty(*mask_shape, q_len, kv_len, dtype=lse.dtype) if needs_d_mask else None
    if output.numel() == 0 or key.numel() == 0:
        zeros = [gradient.zero_() for gradient in found]
        return zeros if mask is None or d_mask is None else [*zeros, torch.zeros(mask.shape, dtype=mask.dtype, device=mask.device)]

    delta = torch.empty_like(lse)
    constants = {"D_V": d_v, "D_V_PAD": padded(d_v), "ACC": tiles.ACCUMULATORS[lse.dtype]}
    kernels.flash_row_terms[(-(-q_len // 64) * batch * heads,)](
        *(output, d_output, lse, None if d_lse is None else d_lse.contiguous(), delta, output.stride()[:3], d_output.stride()[:3]),
        *(heads, q_len), **constants, BLOCK_Q=64,
    )  # fmt: skip
    band = Band(left, right, q_offset, scale, softcap)
    mask_or_bytes, mask_strides, kind = mask_arguments(mask, (batch, heads, q_len, kv_len))
    tensors = (query, key, value, mask_or_bytes, offsets, lengths, d_output, lse, delta)
    strides = (query.stride()[:3], key.stride()[:3], value.stride()[:3], mask_strides, d_output.stride()[:3])
    numbers = (heads, q_len, kv_len, *band.bounds)
    constants = {**sizes(query, key, value), **band.constants, "MASK": kind, "ACC": tiles.ACCUMULATORS[lse.dtype]}

    def launch(name: Kernel, kernel: Any, blocks: Callable[[Configuration], int], outputs: list[torch.Tensor], *more: int) -> None:
        chosen = configuration(name, d_k, d_v, query.dtype, masked=mask is not None, interpreted=tiles.INTERPRETED)
        kernel[(blocks(chosen),)](
            *(*tensors, *outputs, *strides, *(output.stride()[:3] for output in outputs), *numbers, *more), **constants,
            BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, num_warps=chosen.num_warps, num_stages=chosen.num_stages,
        )  # fmt: skip

    kv_pairs = batch * key.shape[1]
    launch("backward_key_value", kernels.flash_backward_key_value, lambda c: -(-kv_len // c.block_kv) * kv_pairs, found[1:])
    launch("backward_query", kernels.flash_backward_query, lambda c: -(-q_len // c.block_q) * batch * heads, found[:1])
    if mask is None or d_mask is None:
        return found
    masks, shared = mask.shape[0] * mask.shape[1], (batch // mask.shape[0], heads // mask.shape[1])

    def n_tiles(chosen: Configuration) -> int:
        return -(-q_len // chosen.block_q) * -(-kv_len // chosen.block_kv) * masks

    launch("backward_mask", mask_kernels.flash_backward_mask, n_tiles, [d_mask], mask.shape[1], *shared)
    return [*found, d_mask.sum_to_size(mask.shape).to(mask.dtype)]


@flash_backward.register_fake
def _(*arguments: Any) -> list[torch.Tensor]:
    query, key, value, mask = arguments[4:8]
    needs_d_mask = arguments[-1]
    return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (query, key, value, *([mask] if needs_d_mask else []))]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs[:6])
    ctx.options = inputs[6:]
    ctx.needs_d_mask = inputs[3] is not None and inputs[3].dtype != torch.bool and ctx.needs_input_grad[3]
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, d_output: torch.Tensor | None, d_lse: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    output, lse, *inputs = ctx.saved_tensors
    if d_output is None:
        d_output = torch.zeros_like(output)
    found = flash_backward(d_output, d_lse, output, lse, *inputs, *ctx.options, ctx.needs_d_mask)
    return (*found, *(None,) * (11 - len(found)))


flash_forward.register_autograd(_gradients, setup_context=_remember)
