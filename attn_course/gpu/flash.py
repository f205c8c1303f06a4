"""FlashAttention for callers: any shape of the contract is brought to (batch, heads, len, features), and the kernels run.

Triton is imported when a kernel runs, not before.
"""

import math
from importlib.util import find_spec
from typing import Any

import torch

from attn_course.gpu.configurations import MAX_D
from attn_course.gpu.flash_operators import flash_forward

SHARED_BYTES = 160_000  # what the largest configuration takes
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    q_offset: int | torch.Tensor = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
    kv_lengths: torch.Tensor | None = None,
    return_lse: bool = False,
) -> Any:
    r"""Return attention from kernels that never store a score, Eqs. (12.9) and (12.10); differentiable, also the log-sum-exp.

    Parameters
    ----------
    query : (*#batch, q_len, d_k) tensor
        float16, bfloat16 or float32 (float64 too in Triton's interpreter); d_k and d_v from 1 to 256.
    key : (*#batch, kv_len, d_k) tensor
        One row per position that may answer.
    value : (*#batch, kv_len, d_v) tensor
        What each of these positions passes on.
    mask : (*#batch, #q_len, #kv_len) tensor of bool or float, optional
        Boolean: True where the query may attend to the key. Float: added to the scores; its gradient is computed if asked for.
    is_causal : bool, optional
        Let query i see the keys j <= i + q_offset only.
    q_offset : int or (*#batch) tensor of int, optional
        Position of the first query among the keys.
    window : (int or None, int or None), optional
        Let query i see i + q_offset - left <= j <= i + q_offset + right; None leaves a side open.
    scale : float, optional
        Factor on q . k; 1 / sqrt(d_k) if left out.
    softcap : float, optional
        Scores become softcap * tanh(scores / softcap), before the mask.
    enable_gqa : bool, optional
        The query has a multiple of the key's heads on axis -3.
    kv_lengths : (*#batch) tensor of int, optional
        Keys from this number on are padding, which nobody sees; cheaper than the same as a mask.
    return_lse : bool, optional
        Also return the log-sum-exp of each row of masked scores.

    Returns
    -------
    output : (*batch, q_len, d_v) tensor
        In the common dtype of query, key and value.
    lse : (*batch, q_len) tensor
        Natural logarithm, in float32 (float64 for float64 inputs); only with `return_lse`.

    Raises
    ------
    ValueError
        If shapes do not fit, or the kernels do not support the tensors; the message says what.
    TypeError
        If dtypes do not fit.

    Notes
    -----
    Dao (2023), FlashAttention-2, arXiv:2307.08691. Sums over broadcast axes and shared heads have a fixed order, so gradients
    are the same to the bit in every run. A visible value that is NaN or infinite spoils its rows as a whole.
    """
    reason = unsupported(query, key, value, mask)
    if reason is not None:
        raise ValueError(f"flash_attention {reason}")
    _check_shapes(query, key, value, enable_gqa)
    if not is_causal and window is None:
        q_offset = 0
    tables = [table for table in (q_offset, kv_lengths) if isinstance(table, torch.Tensor)]
    form = _Form(query, key, value, enable_gqa, [*([mask.shape[:-2]] if mask is not None else []), *(table.shape for table in tables)])
    left, right = window or (None, None)
    left, right = window or (None, None)
    if is_causal:
        right = 0 if right is None else min(right, 0)
    left, right = (None if side is None else min(side, 2**30) for side in (left, right))
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    if scale <= 0.0:  # the kernels scale after taking a maximum
        form.query, scale = form.query * (-1.0 if scale < 0.0 else 0.0), abs(scale) or 1.0
    offsets, q_offset = (
        (form.per_head("q_offset", q_offset), 0) if isinstance(q_offset, torch.Tensor) else (None, max(-(2**30), min(q_offset, 2**30)))
    )
    lengths = None if kv_lengths is None else form.per_head("kv_lengths", kv_lengths)
    options = (form.mask(mask), offsets, lengths, q_offset, left, right, scale, softcap)
    output, lse = flash_forward(form.query, form.key, form.value, *options)
    output = output.reshape(*form.lead, *output.shape[2:])
    return (output, lse.reshape(output.shape[:-1])) if return_lse else output


def unsupported(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None) -> str | None:
    """Return why the kernels cannot take these tensors, or None.

    Parameters
    ----------
    query, key, value : tensor
        Of any shape and dtype.
    mask : tensor, optional
        Boolean or floating.

    Returns
    -------
    reason : str or None
        To follow "flash_attention": "needs a CUDA device; ...".
    """
    if find_spec("triton") is None:
        return "needs Triton, which is not installed (pip install 'attn_course[triton]', on Linux)"
    from attn_course.gpu.tiles import INTERPRETED

    dtype = torch.promote_types(query.dtype, torch.promote_types(key.dtype, value.dtype))
    if dtype not in (*DTYPES, *((torch.float64,) if INTERPRETED else ())):
        return f"takes float16, bfloat16 and float32; got {dtype}"
    if query.device.type != "cuda" and not INTERPRETED:
        return f"needs a CUDA device, or TRITON_INTERPRET=1 before Triton is imported; got a tensor on {query.device.type}"
    properties = torch.cuda.get_device_properties(query.device) if query.device.type == "cuda" else None
    if getattr(properties, "shared_memory_per_block_optin", SHARED_BYTES) < SHARED_BYTES:
        return "needs 160 kB of shared memory for a block of threads (A100, H100 and the like)"
    widths = (query.shape[-1], value.shape[-1])
    if not all(1 <= width <= MAX_D for width in widths):
        return f"takes 1 to {MAX_D} features; got d_k = {widths[0]} and d_v = {widths[1]}"
    if mask is not None and not (mask.dtype == torch.bool or mask.dtype.is_floating_point):
        return f"takes a mask of bool or float; got {mask.dtype}"
    return None


def why_not(call: Any) -> str | None:
    """Return why the kernels cannot compute a call without changing its meaning, or None if they can.

    Parameters
    ----------
    call : Call
        The arguments of `attn_course.gpu.attention`, checked.

    Returns
    -------
    reason : str or None
        "it " and what is missing.
    """
    if call.return_weights:
        return "it never has the weights as a whole"
    reason = unsupported(call.query, call.key, call.value, call.mask)
    return None if reason is None else f"it {reason}"


def run(call: Any) -> tuple[torch.Tensor, ...]:
    """Return the output of a call that `why_not` has nothing against, and the log-sum-exp if it is asked for.

    Parameters
    ----------
    call : Call
        The arguments of `attn_course.gpu.attention`, checked.

    Returns
    -------
    results : tuple of tensor
        Output, then lse in the dtype of the output.
    """
    names = ("mask", "is_causal", "q_offset", "window", "scale", "softcap", "enable_gqa", "return_lse")
    results = flash_attention(call.query, call.key, call.value, **{name: getattr(call, name) for name in names})
    return (results[0], results[1].to(results[0].dtype)) if call.return_lse else (results,)


def _check_shapes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> None:
    if min(query.ndim, key.ndim, value.ndim) < 2 + enable_gqa:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
        raise ValueError(f"query, key and value must have the axes (..., {'heads, ' * enable_gqa}len, features); got {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_k, the last axis; got {query.shape[-1]} and {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key and value must share kv_len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
    if enable_gqa and (key.shape[-3] == 0 or query.shape[-3] % key.shape[-3] or value.shape[-3] != key.shape[-3]):
        heads = ", ".join(str(tensor.shape[-3]) for tensor in (query, key, value))
        raise ValueError(f"query must have a multiple of the heads of key and value, axis -3; got {heads}")


class _Form:
    """The tensors of a call as (batch, heads, len, features), broadcast without copies where strides allow it."""

    def __init__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool, others: list[torch.Size]) -> None:
        dtype = torch.promote_types(query.dtype, torch.promote_types(key.dtype, value.dtype))
        tensors = [tensor.to(dtype) for tensor in (query, key, value)]
        if not enable_gqa:
            tensors = [tensor.unsqueeze(-3) if tensor.ndim == 2 else tensor for tensor in tensors]
        heads = tuple(tensor.shape[-3] for tensor in tensors)
        try:
            kv_heads = torch.broadcast_shapes(heads[1:2], heads[2:])[0]
            of_heads = [heads[:1] if enable_gqa else torch.broadcast_shapes(heads[:1], (kv_heads,)), *(shape[-1:] for shape in others)]
            self.n_heads = torch.broadcast_shapes((1,), *of_heads)[0]
            self.batch = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in tensors), *(shape[:-1] for shape in others))
        except RuntimeError as error:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
            raise ValueError(f"query, key, value, mask and q_offset must broadcast over their leading axes; got {shapes}") from error
        has_heads = max(query.ndim, key.ndim, value.ndim) > 2 or any(others)
        self.lead = (*self.batch, self.n_heads) if has_heads else ()
        self.query = self._four(tensors[0], self.n_heads)
        self.key, self.value = (self._four(tensor, kv_heads) for tensor in tensors[1:])

    def _four(self, tensor: torch.Tensor, n_heads: int) -> torch.Tensor:
        rows = tensor.shape[-2:]
        return tensor.expand(*self.batch, n_heads, *rows).reshape(math.prod(self.batch), n_heads, *rows)

    def per_head(self, name: str, table: torch.Tensor) -> torch.Tensor:
        """One integer for each batch entry and head, contiguous."""
        near = table.clamp(-(2**30), 2**30)  # no length is larger, and sums stay within 32 bits
        try:
            spread = near.to(self.query.device, torch.int32).expand(self.lead)
        except RuntimeError as error:
            raise ValueError(f"{name} must broadcast to the leading axes {self.lead}; got shape {tuple(table.shape)}") from error
        return spread.reshape(math.prod(self.batch), self.n_heads).contiguous()

    def mask(self, mask: torch.Tensor | None) -> torch.Tensor | None:
        """The mask with four axes, each of length 1 or whole; only several batch axes of which some are shared need a copy."""
        if mask is None:
            return None
        wanted = (*self.lead, self.query.shape[-2], self.key.shape[-2])
        fits = 2 <= mask.ndim <= len(wanted)
        if not fits or any(have not in (1, want) for have, want in zip(reversed(mask.shape), reversed(wanted), strict=False)):
            raise ValueError(f"mask must broadcast to (..., q_len, kv_len) = {wanted}; got shape {tuple(mask.shape)}")
        whole = mask.reshape(*(1,) * (len(self.batch) + 3 - mask.ndim), *mask.shape)
        shared = all(length == 1 for length in whole.shape[:-3])
        whole = whole if shared else whole.expand(*self.batch, *whole.shape[-3:])
        return whole.reshape(1 if shared else math.prod(self.batch), *whole.shape[-3:])
