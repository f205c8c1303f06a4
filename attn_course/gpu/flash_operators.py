"""The kernels as two operators of torch, forward and backward, which autograd and torch.compile know how to handle."""

import math
from typing import Any, NamedTuple

import torch

from attn_course.gpu import decoding
from attn_course.gpu.configurations import Configuration, configuration, padded, shared_bytes
from attn_course.gpu.layout import FARTHEST, laid_out, packed, row_strides

LOG2_E = 1.4426950408889634
LINEAR_CAP = 1e20  # tanh(x) is x for every score that such a cap could bound


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums and log-sum-exp are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def scores_by(dtype: torch.dtype, scale: float, softcap: float | None, kind: str = "none") -> tuple[float, float, dict[str, bool]]:
    """Return how scores are made of q . k: slope, bound, and as constants whether there is a bound and whether they are natural.

    They are natural beside a float mask (`kind`) and in float32, where a score may be so large that a factor makes it infinite, or if
    float32 does not hold the slope, and else in units of ln 2, Eq. exponential-in-base-two.
    """
    limits = torch.finfo(torch.float32)
    natural = kind == "float" or dtype in (torch.float32, torch.float64) or not limits.tiny < scale * LOG2_E < limits.max
    unit = 1.0 if natural else LOG2_E
    if softcap is None or softcap > LINEAR_CAP:
        return scale * unit, 0.0, {"CAPPED": False, "NATURAL": natural}
    softcap = max(softcap, 1.0 / LINEAR_CAP)  # a slope that float32 can hold
    return scale / softcap, softcap * unit, {"CAPPED": True, "NATURAL": natural}


def mask_arguments(mask: torch.Tensor | None) -> tuple[torch.Tensor | None, tuple[int, ...], str]:
    """Return the mask as bytes or floats, its strides (0 where an axis is broadcast), and its kind; copied if it lies too far apart."""
    if mask is None:
        return None, (0, 0, 0, 0), "none"
    if sum(stride for stride, length in zip(mask.stride()[2:], mask.shape[2:], strict=True) if length > 1) >= FARTHEST:
        mask = mask.contiguous()
    strides = tuple(0 if length == 1 else stride for stride, length in zip(mask.stride(), mask.shape, strict=True))
    return (mask.view(torch.uint8), strides, "bool") if mask.dtype == torch.bool else (mask, strides, "float")


class _Common(NamedTuple):
    """What every kernel is launched with besides query, key, value and what it computes."""

    tensors: tuple[torch.Tensor | None, ...]  # mask, lows, highs, lengths
    mask_strides: tuple[int, ...]
    numbers: tuple[float, ...]  # n_heads, q_len, kv_len, low, high, slope, bound
    constants: dict[str, Any]
    how: dict[str, Any]  # what `configuration` is to know besides the kernel, the widths and the dtype


def _common(
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
) -> _Common:
    from attn_course.gpu import tiles

    mask, mask_strides, kind = mask_arguments(mask)
    slope, bound, scores = scores_by(query.dtype, scale, softcap, kind)
    d_k, d_v = query.shape[-1], value.shape[-1]
    constants = {"GROUP": query.shape[1] // key.shape[1], "D_K": d_k, "D_V": d_v, "D_K_PAD": padded(d_k), "D_V_PAD": padded(d_v),
                 "ACC": tiles.ACCUMULATORS[accumulator(query.dtype)], **scores, "MASK": kind,
                 "LOW": (low, lows) != (None, None), "HIGH": (high, highs) != (None, None)}  # fmt: skip
    numbers = (query.shape[1], query.shape[2], key.shape[2], low or 0, high or 0, slope, bound)
    how = {"masked": mask is not None, "shared": shared_bytes(query.device), "interpreted": tiles.INTERPRETED}
    return _Common((mask, lows, highs, lengths), mask_strides, numbers, constants, how)


def _launch_twice(
    kernel: Any, programs: int, chosen: Configuration, tensors: list[Any], others: list[Any], constants: dict[str, Any]
) -> None:
    """Launch a kernel, and once more for the programs that met NaN or infinity; the others end at once."""
    spoilt = tensors[0].new_empty(programs, dtype=torch.uint8)
    for careful in (False, True):
        kernel[(programs,)](
            *tensors, spoilt, *others, **constants, BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, CAREFUL=careful,
            **chosen.launch_options,
        )  # fmt: skip


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
    """Compute output (batch, heads, q_len, d_v), lse (batch, heads, q_len), and its rest (beside a float mask and in float32).

    See the kernel for the arguments; `low` and `high` are None where neither they nor their tables bound the band.
    """
    from attn_course.gpu import flash_forward as kernels
    from attn_course.gpu import tiles

    if tiles.INTERPRETED and query.dtype == torch.bfloat16:  # the interpreter multiplies the bits of a bfloat16
        options = (mask, lows, highs, lengths, low, high, scale, softcap)
        output, lse, rest = flash_forward(query.float(), key.float(), value.float(), *options)
        return laid_out(query, value.shape[-1]).copy_(output), lse, rest
    output, lse, rest = _forward_results(query, value)
    if output.numel() == 0 or key.numel() == 0:
        return output.zero_(), lse.fill_(-torch.inf), rest.zero_()
    batch, heads, q_len, d_k = query.shape
    kv_len, d_v = value.shape[2:]
    common = _common(query, key, value, mask, lows, highs, lengths, low, high, scale, softcap)
    keys = decoding.keys_met(low, high, q_len, kv_len)
    chosen = configuration("forward", d_k, d_v, query.dtype, **common.how)
    with torch.cuda.device_of(query):
        if common.constants["MASK"] != "float" and decoding.is_for(q_len, heads, heads // key.shape[1], keys, chosen, query.device):
            tile = decoding.tile_for(q_len * heads // key.shape[1], d_k, d_v, query.dtype, **common.how)
            decoding.launch((query, key, value), *common[:4], tile, keys, output, lse)
            return output, lse, rest.zero_() if common.constants["NATURAL"] else rest
        query, key, value = (packed(tensor) for tensor in (query, key, value))
        tensors = [query, key, value, *common.tensors, output, lse, rest]
        others = [row_strides(query), row_strides(key), row_strides(value), common.mask_strides, row_strides(output), *common.numbers]
        _launch_twice(kernels.flash_forward, -(-q_len // chosen.block_q) * batch * heads, chosen, tensors, others, common.constants)
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
    low: int | None,
    high: int | None,
    scale: float,
    softcap: float | None,
    needed: list[bool],
) -> list[torch.Tensor]:
    """Compute those gradients that are `needed`: of query; of key and value; of the mask."""
    from attn_course.gpu import flash_backward as kernels
    from attn_course.gpu import flash_backward_mask as mask_kernels
    from attn_course.gpu import flash_row_terms as row_kernels
    from attn_course.gpu import tiles

    found = _gradients_of(query, key, value, mask, needed)
    if tiles.INTERPRETED and query.dtype == torch.bfloat16:
        wide = [tensor.float() for tensor in (query, key, value)]
        options = (mask, lows, highs, lengths, low, high, scale, softcap, needed)
        gradients = flash_backward(d_output.float(), d_lse, output.float(), lse, rest, *wide, *options)
        return [narrow.copy_(gradient) for narrow, gradient in zip(found, gradients, strict=True)]
    if output.numel() == 0 or key.numel() == 0:
        return [gradient.zero_() for gradient in found]

    query, key, value, output, d_output = (packed(tensor) for tensor in (query, key, value, output, d_output))
    batch, heads, q_len, d_k = query.shape
    kv_len, d_v = value.shape[2:]
    common = _common(query, key, value, mask, lows, highs, lengths, low, high, scale, softcap)
    constants, how = common.constants, common.how
    shift, delta = torch.empty_like(lse), torch.empty_like(lse)
    tensors = [query, key, value, *common.tensors, d_output, shift, rest, delta]
    strides = [row_strides(query), row_strides(key), row_strides(value), common.mask_strides, row_strides(d_output)]
    with torch.cuda.device_of(query):
        row_kernels.flash_row_terms[(-(-q_len // 64) * batch * heads,)](
            *(output, d_output, lse, None if d_lse is None else d_lse.contiguous(), shift, delta),
            *(row_strides(output), row_strides(d_output), heads, q_len),
            D_V=d_v, D_V_PAD=padded(d_v), NATURAL=constants["NATURAL"], ACC=constants["ACC"], BLOCK_Q=64,
        )  # fmt: skip
        left = iter(found)
        if needed[0]:
            chosen, d_query = configuration("backward_query", d_k, d_v, query.dtype, **how), next(left)
            programs = -(-q_len // chosen.block_q) * batch * heads
            others = [*strides, row_strides(d_query), *common.numbers, scale]
            _launch_twice(kernels.flash_backward_query, programs, chosen, [*tensors, d_query], others, constants)
        if needed[1]:
            chosen, d_key_value = configuration("backward_key_value", d_k, d_v, query.dtype, **how), [next(left), next(left)]
            programs = -(-kv_len // chosen.block_kv) * batch * key.shape[1]
            others = [*strides, *map(row_strides, d_key_value), *common.numbers, scale]
            _launch_twice(kernels.flash_backward_key_value, programs, chosen, [*tensors, *d_key_value], others, constants)
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
                *tensors, d_mask, *strides, d_mask.stride()[:3], *common.numbers, entries[1], members, shared[1],
                **constants, BLOCK_Q=chosen.block_q, BLOCK_KV=chosen.block_kv, SUMMED=summed, **chosen.launch_options,
            )  # fmt: skip
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
    ctx.save_for_backward(*output, *inputs[:7])
    ctx.options = inputs[7:]
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
    return (*gradients, *(None,) * 7)


flash_forward.register_autograd(_gradients, setup_context=_remember)
