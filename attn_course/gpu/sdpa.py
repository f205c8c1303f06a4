"""Attention by torch.nn.functional.scaled_dot_product_attention, where that means the same."""

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attn_course.gpu.call import Call


def why_not(call: Call) -> str | None:
    """Return what torch's function cannot express of the call, or None if it can.

    It is to be read after "sdpa: ".
    """
    if call.return_weights or call.return_lse:
        return f"it returns no {'weights' if call.return_weights else 'log-sum-exp'}"
    if call.softcap is not None:
        return "it has no softcap"
    if call.scale <= 0.0:
        return f"its kernels need a positive scale; got {call.scale}"
    if 0 in (*call.batch, *call.query.shape[-2:], *call.value.shape[-2:]):
        return "it has no rule for axes of length 0"
    mask = call.mask
    if mask is not None and mask.dtype != torch.bool and torch.promote_types(mask.dtype, call.dtype) != call.dtype:
        return f"it would round the mask from {_name(mask.dtype)} to {_name(call.dtype)}"
    return None


def run(call: Call) -> tuple[Tensor, ...]:
    """Return the output, in a tuple like every backend.

    Torch's kernels multiply hidden values with weights of 0, which does not remove NaN or infinity. With `guard_non_finite`
    rows of keys and values that are not finite are replaced by 0, and a query that does see one gets NaN.

    `call`: checked arguments that `why_not` has no objection to.
    """
    query, key, value = call.query, call.key, call.value
    top_left = call.is_causal and call.window is None and call.mask is None and isinstance(call.q_offset, int) and call.q_offset == 0
    if top_left and call.kv_len >= call.q_len:  # torch's kernels agree on the meaning of is_causal for as many queries as keys
        if call.kv_len > call.q_len:  # nobody sees the rest
            key, value = key[..., : call.q_len, :], value[..., : call.q_len, :]
        if not call.guard_non_finite:
            return (_fused(call, query, key, value, None, is_causal=True),)
        spoilt, key, value = _finite_rows(key, value)
        output = _fused(call, query, key, value, None, is_causal=True)
        return (output + _one_head_each(spoilt, call).cumsum(dim=-1)[..., None],)  # NaN from the first spoilt key on
    allowed = call.allowed_pairs()
    if allowed is None:
        return (_fused(call, query, key, value, None),)

    if call.mask is None and not call.guard_non_finite and _everyone_sees(call):
        return (_fused(call, query, key, value, allowed),)
    if call.guard_non_finite:
        spoilt, key, value = _finite_rows(key, value)
    if call.mask is None or call.mask.dtype == torch.bool:
        sees = allowed.any(dim=-1, keepdim=True)
        bias = allowed | ~sees  # a row without any key would be 0 / 0: it attends to all, and its output is dropped
    else:
        bias = torch.where(allowed, call.mask.to(call.dtype), -math.inf)
        sees = bias.amax(dim=-1, keepdim=True) != -math.inf  # quicker than to ask which of its keys are allowed
        bias = torch.where(sees, bias, 0.0)
    output = torch.where(sees, _fused(call, torch.where(sees, query, 0.0), key, value, bias), 0.0)
    if not call.guard_non_finite:
        return (output,)
    sees_spoilt = (allowed & _one_head_each(spoilt, call).isnan()[..., None, :]).any(dim=-1, keepdim=True)
    return (output + torch.where(sees_spoilt, math.nan, 0.0).to(call.dtype),)


def _fused(call: Call, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, is_causal: bool = False) -> Tensor:
    """Call torch's function with the four axes (batch, heads, len, features) that its fast kernels want."""
    batch = call.batch if call.batch else (1,)
    heads, kv_heads = batch[-1], key.shape[-3] if call.enable_gqa else batch[-1]

    def four_axes(tensor: Tensor, n_heads: int) -> Tensor:
        return tensor.expand(*batch[:-1], n_heads, *tensor.shape[-2:]).reshape(-1, n_heads, *tensor.shape[-2:])

    if not (len(batch) == 2 and query.shape[:-2] == batch and key.shape[:-2] == value.shape[:-2] == (batch[0], kv_heads)):
        query, key, value = four_axes(query, heads), four_axes(key, kv_heads), four_axes(value, kv_heads)
    output = scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if mask is None else mask[None] if mask.ndim == 3 else mask if len(call.batch) <= 2 else four_axes(mask, heads),
        is_causal=is_causal,
        scale=call.scale,
        enable_gqa=True if kv_heads != heads else False,  # noqa: SIM210 - torch wants a bool, not a symbol of a compiled call
    )
    return output if len(call.batch) == 2 else output.reshape(*call.batch, *output.shape[-2:])


def _everyone_sees(call: Call) -> bool:
    """Whether the band leaves every query a key: the first query one that is not before the first, the last one not behind the last."""
    left, right = call.window or (None, None)
    ahead = 0 if call.is_causal else right
    if not isinstance(call.q_offset, int) or (ahead is not None and call.q_offset + ahead < 0):
        return False
    return left is None or call.q_offset + call.q_len - 1 - left < call.kv_len


def _finite_rows(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return NaN for each position whose key or value is not finite and 0 for the others, and both without these positions."""
    finite = key.isfinite().all(dim=-1) & value.isfinite().all(dim=-1)  # (..., kv_len)
    rows = finite[..., None]
    return torch.where(finite, 0.0, math.nan).to(key.dtype), torch.where(rows, key, 0.0), torch.where(rows, value, 0.0)


def _one_head_each(spoilt: Tensor, call: Call) -> Tensor:
    return spoilt.repeat_interleave(call.n_repeats, dim=-2) if call.enable_gqa else spoilt


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
