"""FlashAttention for callers: any shape of the contract is brought to (batch, heads, len, features), and the kernels run.

Triton is imported when a kernel runs, not before.
"""

import math
from importlib.util import find_spec
from typing import Any

import torch

from attn_course.gpu.configurations import MAX_D
from attn_course.gpu.flash_operators import flash_forward

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
    form = _Form(query, key, value, enable_gqa)
    left, right = window or (None, None)
    if is_causal:
        right = 0 if right is None else min(right, 0)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    if scale <= 0.0:  # the kernels scale after taking a maximum
        form.query, scale = form.query * (-1.0 if scale < 0.0 else 0.0), abs(scale) or 1.0
    offsets, q_offset = (form.per_head("q_offset", q_offset), 0) if isinstance(q_offset, torch.Tensor) else (None, q_offset)
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
    if query.device.type == "cuda" and torch.version.cuda and torch.cuda.get_device_capability(query.device) < (8, 0):
        return "needs a GPU of compute capability 8.0 (Ampere) or newer"
    widths = (query.shape[-1], value.shape[-1])
    if not all(1 <= width <= MAX_D for width in widths):
        return f"takes 1 to {MAX_D} features; got d_k = {widths[0]} and d_v = {widths[1]}"
    if mask is not None and not (mask.dtype == torch.bool or mask.dtype.is_floating_point):
        return f"takes a mask of bool or float; got {mask.dtype}"
    return None


class _Form:
    """The tensors of a call as (batch, heads, len, features), broadcast without copies where strides allow it."""

    def __init__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> None:
        dtype = torch.promote_types(query.dtype, torch.promote_types(key.dtype, value.dtype))
        tensors = [tensor.to(dtype) for tensor in (query, key, value)]
        if not enable_gqa:
            tensors = [tensor.unsqueeze(-3) if tensor.ndim == 2 else tensor for tensor in tensors]
        heads = [tensor.shape[-3] for tensor in tensors]
        try:
            self.batch = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in tensors))
            kv_heads = torch.broadcast_shapes((heads[1],), (heads[2],))[0]
            self.n_heads = heads[0] if enable_gqa else torch.broadcast_shapes((heads[0],), (kv_heads,))[0]
        except RuntimeError as error:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
            raise ValueError(f"query, key and value must broadcast over their leading axes; got {shapes}") from error
        self.lead = (*self.batch, self.n_heads) if enable_gqa or max(query.ndim, key.ndim, value.ndim) > 2 else ()
        self.query = self._four(tensors[0], self.n_heads)
        self.key, self.value = (self._four(tensor, kv_heads) for tensor in tensors[1:])

    def _four(self, tensor: torch.Tensor, n_heads: int) -> torch.Tensor:
        rows = tensor.shape[-2:]
        return tensor.expand(*self.batch, n_heads, *rows).reshape(math.prod(self.batch), n_heads, *rows)

    def per_head(self, name: str, table: torch.Tensor) -> torch.Tensor:
        """One integer for each batch entry and head, contiguous."""
        try:
            spread = table.to(self.query.device, torch.int32).expand(self.lead)
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
