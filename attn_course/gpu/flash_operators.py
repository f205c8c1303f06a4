"""The kernels as two operators of torch, forward and backward, which autograd and torch.compile know how to handle."""

from collections.abc import Callable
from typing import Any

import torch

from attn_course.gpu import decoding
from attn_course.gpu.configurations import Configuration, Kernel, configuration, padded, shared_bytes
from attn_course.gpu.layout import laid_out, packed, row_strides

LOG2_E = 1.4426950408889634
LINEAR_CAP = 1e20  # tanh(x) is x for every score that such a cap could bound


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums and log-sum-exp are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def scores_by(scale: float, softcap: float | None, kind: str) -> tuple[float, float, bool]:
    """Return how scores are made of q . k: slope, bound, and whether there is a bound.

    They are natural beside a float mask, and else in units of ln 2, Eq. exponential-in-base-two.
    """
    unit = 1.0 if kind == "float" else LOG2_E
    if softcap is None or softcap > LINEAR_CAP:
        return scale * unit, 0.0, False
    softcap = max(softcap, 1.0 / LINEAR_CAP)  # a slope that float32 can hold
    return scale / softcap, softcap * unit, True


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
    lows: torch.Tensor | None,
    highs: torch.Tensor | None,
    lengths: torch.Tensor | None,
    low: int | None,
    high: int | None,
    scale: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute output (batch, heads, q_len, d_v), lse (batch, heads, q_len), and its rest (beside a float mask; else empty).

    See the kernel for the arguments; `low` and `high` are None where neither they nor their tables bound the band.
    """
    from attn_course.gpu import flash_forward as kernels
    from attn_course.gpu import tiles

    if tiles.INTERPRETED and query.dtype == torch.bfloat16:  # the interpreter multiplies the bits of a bfloat16
        options = (mask, lows, highs, lengths, low, high, scale, softcap)
        output, lse, rest = flash_forward(query.float(), key.float(), value.float(), *options)
        return laid_out(query, value.shape[-1]).copy_(output), lse, rest
    output, lse, rest = _forward_results(query, value, mask)
    if output.numel() == 0 or key.numel() == 0:
        return output.zero_(), lse.fill_(-torch.inf), rest.zero_()
    query, key, value = (packed(tensor) for tensor in (query, key, value))
    batch, heads, q_len, d_k = query.shape
    kv_len, d_v = value.shape[2:]
    mask, mask_strides, kind = mask_arguments(mask, (batch, heads, q_len, kv_len))
    slope, bound, is_capped = scores_by(scale, softcap, kind)
    tensors = (query, key, value, mask, lows, highs, lengths)
    strides = (row_strides(query), row_strides(key), row_strides(value), mask_strides)
    numbers = (heads, q_len, kv_len, low or 0, high or 0, slope, bound)
    constants = {**sizes(query, key, value), "ACC": tiles.ACCUMULATORS[lse.dtype], "CAPPED": is_capped, "MASK": kind,
                 "LOW": (low, lows) != (None, None), "HIGH": (high, highs) != (None, None)}  # fmt: skip
    how: dict[str, Any] = {"masked": mask is not None, "shared": shared_bytes(query.device), "interpreted": tiles.INTERPRETED}
    short = decoding.tile_for(q_len * constants["GROUP"], d_k, d_v, query.dtype, **how) if kind != "float" else None
    chosen = configuration("forward", d_k, d_v, query.dtype, **how)
    with torch.cuda.device_of(query):
        if short is not None:
            keys = decoding.keys_met(low, high, q_len, kv_len)
            decoding.launch(tensors, strides, numbers, constants, short, keys, output, lse)
        else:
            kernels.flash_forward[(-(-q_len // chosen.block_q) * batch * heads,)](
                *tensors, output, lse, rest if kind == "float" else None, *strides, row_strides(output), *numbers, **constants,
                BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, **chosen.launch_options,
            )  # fmt: skip
    return output, lse, rest


def _forward_results(
    query: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The output, lse and rest of a forward pass, not yet written."""
    rows = query.shape[:3]
    has_rest = mask is not None and mask.dtype != torch.bool
    lse = query.new_empty(rows, dtype=accumulator(query.dtype))
    return laid_out(query, value.shape[-1]), lse, lse.new_empty(rows if has_rest else (0,))


@flash_forward.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, *options: Any) -> tuple[torch.Tensor, ...]:
    return _forward_results(query, value, mask)


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
    low: int | None,
    high: int | None,
    scale: float,
    softcap: float | None,
    needs_d_mask: bool,
) -> list[torch.Tensor]:
    """Compute the gradients of query, key and value, and with `needs_d_mask` that of the mask."""
    from attn_course.gpu import flash_backward as kernels
    from attn_course.gpu import flash_backward_mask as mask_kernels
    from attn_course.gpu import flash_row_terms as row_kernels
    from attn_course.gpu import tiles

    found = _gradients_of(query, key, value)
    if tiles.INTERPRETED and query.dtype == torch.bfloat16:
        wide = [tensor.float() for tensor in (query, key, value)]
        options = (mask, lows, highs, lengths, low, high, scale, softcap, needs_d_mask)
        gradients = flash_backward(d_output.float(), d_lse, output.float(), lse, rest, *wide, *options)
        return [*(narrow.copy_(gradient) for narrow, gradient in zip(found, gradients, strict=False)), *gradients[3:]]
    if output.numel() == 0 or key.numel() == 0:
        return [*(gradient.zero_() for gradient in found), *([mask.new_zeros(mask.shape)] if mask is not None and needs_d_mask else [])]

    query, key, value, output, d_output = (packed(tensor) for tensor in (query, key, value, output, d_output))
    batch, heads, q_len, d_k = query.shape
    kv_len, d_v = value.shape[2:]
    mask_or_bytes, mask_strides, kind = mask_arguments(mask, (batch, heads, q_len, kv_len))
    slope, bound, is_capped = scores_by(scale, softcap, kind)
    shift, delta = torch.empty_like(lse), torch.empty_like(lse)
    tensors = (query, key, value, mask_or_bytes, lows, highs, lengths, d_output, shift, rest if kind == "float" else None, delta)
    strides = (row_strides(query), row_strides(key), row_strides(value), mask_strides, row_strides(d_output))
    numbers = (heads, q_len, kv_len, low or 0, high or 0, slope, bound)
    constants = {**sizes(query, key, value), "ACC": tiles.ACCUMULATORS[lse.dtype], "CAPPED": is_capped, "MASK": kind,
                 "LOW": (low, lows) != (None, None), "HIGH": (high, highs) != (None, None)}  # fmt: skip

    def launch(
        name: Kernel,
        kernel: Any,
        blocks: Callable[[Configuration], int],
        outputs: list[torch.Tensor],
        output_strides: list[tuple[int, ...]],
        *more: float,
    ) -> None:
        chosen = configuration(name, d_k, d_v, query.dtype, **how)
        kernel[(blocks(chosen),)](
            *tensors, *outputs, *strides, *output_strides, *numbers, *more, **constants,
            BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, **chosen.launch_options,
        )  # fmt: skip

    how: dict[str, Any] = {"masked": mask is not None, "shared": shared_bytes(query.device), "interpreted": tiles.INTERPRETED}
    kv_pairs = batch * key.shape[1]
    d_query, *d_key_value = found
    with torch.cuda.device_of(query):
        row_kernels.flash_row_terms[(-(-q_len // 64) * batch * heads,)](
            *(output, d_output, lse, None if d_lse is None else d_lse.contiguous(), shift, delta),
            *(row_strides(output), row_strides(d_output), heads, q_len),
            D_V=d_v, D_V_PAD=padded(d_v), MASK=kind, ACC=constants["ACC"], BLOCK_Q=64,
        )  # fmt: skip
        launch("backward_key_value", kernels.flash_backward_key_value, lambda c: -(-kv_len // c.block_kv) * kv_pairs,
               d_key_value, [row_strides(gradient) for gradient in d_key_value], scale)  # fmt: skip
        launch("backward_query", kernels.flash_backward_query, lambda c: -(-q_len // c.block_q) * batch * heads,
               [d_query], [row_strides(d_query)], scale)  # fmt: skip
        if mask is None or not needs_d_mask:
            return found
        d_mask = lse.new_empty(*mask.shape[:2], q_len, kv_len)
        shared = (batch // mask.shape[0], heads // mask.shape[1])
        masks = mask.shape[0] * mask.shape[1]
        launch("backward_mask", mask_kernels.flash_backward_mask, lambda c: -(-q_len // c.block_q) * -(-kv_len // c.block_kv) * masks,
               [d_mask], [d_mask.stride()[:3]], mask.shape[1], *shared)  # fmt: skip
    return [*found, d_mask.sum_to_size(mask.shape).to(mask.dtype)]


def _gradients_of(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Room for a gradient of each tensor, with its axes in the same order of memory."""
    return [laid_out(tensor, tensor.shape[-1]) for tensor in tensors]


@flash_backward.register_fake
def _(*arguments: Any) -> list[torch.Tensor]:
    query, key, value, mask = arguments[5:9]
    needs_d_mask = arguments[-1]
    return [*_gradients_of(query, key, value), *([mask.new_empty(mask.shape)] if needs_d_mask else [])]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    ctx.save_for_backward(*output, *inputs[:7])
    ctx.options = inputs[7:]
    ctx.needs_d_mask = inputs[3] is not None and inputs[3].dtype != torch.bool and ctx.needs_input_grad[3]
    ctx.mark_non_differentiable(output[2])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, d_output: torch.Tensor | None, d_lse: torch.Tensor | None, d_rest: None) -> tuple[torch.Tensor | None, ...]:
    del d_rest  # it has no gradient of its own: lse + rest is differentiated as lse
    output, lse, rest, *inputs = ctx.saved_tensors
    if d_output is None:
        d_output = torch.zeros_like(output)
    found = flash_backward(d_output, d_lse, output, lse, rest, *inputs, *ctx.options, ctx.needs_d_mask)
    return (*found, *(None,) * (11 - len(found)))


flash_forward.register_autograd(_gradients, setup_context=_remember)
