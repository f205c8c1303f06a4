"""FlashAttention for callers: any call of the contract is brought to (batch, heads, len, features), and the kernels run.

Triton is imported when a kernel runs, not before.
"""

import math
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.nn.functional import softplus

from attn_course.gpu.call import FAR, FLOATS, INTEGERS, Call, described, validate
from attn_course.gpu.configurations import LEAST, MAX_D, MEDIUM, shared_bytes
from attn_course.gpu.flash_operators import flash_forward

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
NEAR = 2**30  # no length is larger, and sums of a place and such a number stay within 32 bits


def flash_attention(
    query: Tensor, key: Tensor, value: Tensor, *, kv_lengths: Tensor | None = None, sink_logits: Tensor | None = None, **options: Any
) -> Any:
    r"""Return attention from kernels that never store a score, Eqs. tiled-attention-update and row-lse-and-output.

    Differentiable, also the log-sum-exp.

    query (*#batch, q_len, d_k), key (*#batch, kv_len, d_k), value (*#batch, kv_len, d_v): float16, bfloat16 or float32 (float64
    too in Triton's interpreter), with 1 to 256 features. `options` are those of `attn_course.gpu.attention`, but for
    `return_weights` and `backend`. From the key with number `kv_lengths` (*#batch) on keys are padding, which nobody sees: cheaper
    than the same as a mask. `sink_logits` (*#batch), floats, are b of Eq. sink-shrinks-output: one more term in the sum of each row, whose
    value is 0; differentiable, and -inf is no sink.

    Returns the output (*batch, q_len, d_v) in the common dtype, its axes in the order of memory that the query has (rows of 8 n
    features, of which the output may be a slice); with
    `return_lse` also the natural log-sum-exp (*batch, q_len) in float32 (float64 for float64 inputs). Sums over broadcast axes and
    shared heads have a fixed order, so gradients are the same to the bit in every run. A visible value that is NaN or infinite
    spoils its rows as a whole. Where the queries that share a key head are few, as in decoding, programs split the keys among them, and
    what they find is merged, Eq. merge-of-finished-outputs. `torch.func.grad` and forward-mode derivatives do not pass through the kernels
    and raise; `torch.autograd.grad` does.

    Raises TypeError and ValueError as `attn_course.gpu.attention` does, and ValueError if the kernels cannot take the tensors.
    Dao (2023), FlashAttention-2, arXiv:2307.08691; Dao, Haziza, Massa and Sizov (2023), Flash-Decoding. OpenAI (2025), gpt-oss,
    arXiv:2508.10925, learns the logits of sinks.
    """
    call = validate(query, key, value, **options)
    if kv_lengths is not None and not (isinstance(kv_lengths, Tensor) and kv_lengths.dtype in INTEGERS):
        raise TypeError(f"kv_lengths must be a Tensor of integers; got {described(kv_lengths)}")
    return attended(call, kv_lengths, sink_logits)


def attended(
    call: Call, kv_lengths: Tensor | None, sink_logits: Tensor | None, starts: Tensor | None = None, longest: list[int] | None = None
) -> Any:
    """Return what `flash_attention` does for a checked call; `starts` and `longest` are those of packed sequences, see `prepared`."""
    reason = why_not(call)
    if reason is not None:
        raise ValueError(f"flash_attention cannot compute this call: {reason}")
    if sink_logits is not None:
        _check_sinks(call, sink_logits)
    output, lse = _attend(call, kv_lengths, starts, longest)
    if sink_logits is not None:
        output, lse = _with_sinks(output, lse, sink_logits)
    return (output, lse) if call.return_lse else output


def _check_sinks(call: Call, sink_logits: Any) -> None:
    if not (isinstance(sink_logits, Tensor) and sink_logits.dtype in FLOATS):
        raise TypeError(f"sink_logits must be a Tensor of floats; got {described(sink_logits)}")
    axes = call.batch[len(call.batch) - sink_logits.ndim :]
    if sink_logits.ndim > len(call.batch) or any(have not in (1, want) for have, want in zip(sink_logits.shape, axes, strict=True)):
        raise ValueError(f"sink_logits must broadcast to the leading axes {tuple(call.batch)}; got shape {tuple(sink_logits.shape)}")


def _with_sinks(output: Tensor, lse: Tensor, sink_logits: Tensor) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp with one more term e^b in each row, Eq. sink-shrinks-output."""
    sinks = sink_logits.to(lse.dtype)[..., None]
    ahead = torch.where(sinks.isneginf(), torch.inf, lse - sinks)  # also for a row that sees nothing
    shrunk = output * torch.sigmoid(ahead)[..., None]
    return shrunk.to(output.dtype), torch.maximum(lse, sinks) + softplus(-ahead.abs())


def unsupported(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> str | None:
    """Return why the kernels cannot take these tensors, to follow "the backend triton": "needs a CUDA device; ..."; None if they can."""
    if find_spec("triton") is None:
        return "needs Triton, which is not installed (pip install 'attn_course[triton]', on Linux)"
    from attn_course.gpu.tiles import INTERPRETED

    dtype = torch.promote_types(query.dtype, torch.promote_types(key.dtype, value.dtype))
    if dtype not in (*DTYPES, *((torch.float64,) if INTERPRETED else ())):
        return f"takes float16, bfloat16 and float32; got {dtype}"
    if query.device.type != "cuda" and not INTERPRETED:
        return f"needs a CUDA device, or TRITON_INTERPRET=1 before Triton is imported; got a tensor on {query.device.type}"
    shared = shared_bytes(query.device)
    if shared < LEAST:
        return "needs 64 kB of shared memory for a block of threads (a T4 or newer)"
    if dtype == torch.bfloat16 and shared < MEDIUM:
        return "takes float16 and float32 on such a GPU, which has no arithmetic for bfloat16"
    most = MAX_D if shared >= MEDIUM else MAX_D // 2
    if any(part is not None and unpack_dual(part).tangent is not None for part in (query, key, value, mask)):
        return "has no forward-mode derivative (torch.func.jvp, jacfwd); take torch.autograd.grad, or the backend eager"
    widths = (query.shape[-1], value.shape[-1])
    if not all(1 <= width <= most for width in widths):
        return f"takes 1 to {most} features; got d_k = {widths[0]} and d_v = {widths[1]}"
    return None


def why_not(call: Call) -> str | None:
    """Return why the kernels cannot compute a call without changing its meaning ("it " and what is missing), or None if they can."""
    if call.return_weights:
        return "it never has the weights as a whole"
    reason = unsupported(call.query, call.key, call.value, call.mask)
    return None if reason is None else f"it {reason}"


def run(call: Call) -> tuple[Tensor, ...]:
    """Return the output of a call that `why_not` has nothing against, and the log-sum-exp, in the same dtype, if it is asked for."""
    output, lse = _attend(call)
    return (output, lse.to(output.dtype)) if call.return_lse else (output,)


def _attend(call: Call, *others: Any) -> tuple[Tensor, Tensor]:
    """Output (*batch, q_len, d_v) and log-sum-exp (*batch, q_len) of a checked call; `others` are for `prepared`."""
    output, lse, _ = flash_forward(*prepared(call, *others))
    return output.reshape(*call.batch, *output.shape[2:]), lse.reshape(*call.batch, call.q_len)


def prepared(
    call: Call, kv_lengths: Tensor | None = None, starts: Tensor | None = None, longest: list[int] | None = None
) -> tuple[Any, ...]:
    """Return a checked call as the arguments of `flash_operators.flash_forward`.

    With `starts`, see `tiles.sequence_of`, its rows are those of packed sequences, its batch is (1, heads), its q_offset (sequences, 1)
    or an int; `longest` is how many queries and how many keys one of them has at most.
    """
    heads = _flat(call)[1]
    key_heads, value_heads = (part.shape[-3] if part.ndim > 2 else 1 for part in (call.key, call.value))
    kv_heads = value_heads if key_heads == 1 else key_heads
    query, scale = call.query, call.scale
    if scale <= 0.0:  # the kernels scale after taking a maximum
        query, scale = query * (-1.0 if scale < 0.0 else 0.0), abs(scale) or 1.0
    tensors = (_with_four_axes(call, query, heads), *(_with_four_axes(call, part, kv_heads) for part in (call.key, call.value)))

    left, right = call.window or (None, None)
    if call.is_causal:
        right = 0
    offset = call.q_offset.to(torch.int64).clamp(-FAR, FAR) if isinstance(call.q_offset, Tensor) else call.q_offset
    if isinstance(offset, Tensor):
        left, right = (None if side is None else min(side, FAR) for side in (left, right))
    bounds = [None if left is None else offset - left, None if right is None else offset + right]
    entries = call if starts is None else call._replace(batch=(len(starts) - 2, heads))
    tables = [_per_head(entries, "q_offset", bound) if isinstance(bound, Tensor) else None for bound in bounds]
    low, high = (None if bound is None or isinstance(bound, Tensor) else max(-NEAR, min(bound, NEAR)) for bound in bounds)
    lengths = None if kv_lengths is None else _per_head(call, "kv_lengths", kv_lengths)
    return (*tensors, _mask(call), *tables, lengths, starts, low, high, scale, call.softcap, longest)


def _with_four_axes(call: Call, tensor: Tensor, n_heads: int) -> Tensor:
    """(batch, n_heads, len, features), broadcast without a copy where strides allow it."""
    rows = tensor.shape[-2:]
    return tensor.expand(*call.batch[:-1], n_heads, *rows).reshape(_flat(call)[0], n_heads, *rows)


def _flat(call: Call) -> tuple[int, int]:
    """The leading axes of a call as two: batch entries and heads."""
    return math.prod(call.batch[:-1]), call.batch[-1] if call.batch else 1


def _per_head(call: Call, name: str, table: Tensor) -> Tensor:
    """One integer for each batch entry and head, contiguous."""
    try:
        spread = table.to(torch.int64).clamp(-NEAR, NEAR).to(call.query.device, torch.int32).expand(call.batch)
    except RuntimeError as error:
        raise ValueError(f"{name} must broadcast to the leading axes {tuple(call.batch)}; got shape {tuple(table.shape)}") from error
    return spread.reshape(_flat(call)).contiguous()


def _mask(call: Call) -> Tensor | None:
    """The mask with four axes, each of length 1 or whole; only several batch axes of which some are shared need a copy."""
    if call.mask is None:
        return None
    batch = call.batch[:-1]
    whole = call.mask.reshape(*(1,) * (len(batch) + 3 - call.mask.ndim), *call.mask.shape)
    shared = all(length == 1 for length in whole.shape[:-3])
    whole = whole if shared else whole.expand(*batch, *whole.shape[-3:])
    return whole.reshape(1 if shared else _flat(call)[0], *whole.shape[-3:])
