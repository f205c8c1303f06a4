"""One call of attention: its arguments, checked once, in the form that every backend reads."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FAR = 2**60  # farther than any length; sums of a few of them still fit into 64 bits


@dataclass(frozen=True)
class Call:
    """The arguments of one call; made by `validate`, which also fills in the scale.

    Attributes
    ----------
    query : (*#batch, q_len, d_k) Tensor
        One row per position that asks; float16, bfloat16, float32 or float64, like key and value.
    key : (*#batch, kv_len, d_k) Tensor
        One row per position that may answer; with `enable_gqa` it has fewer heads on axis -3.
    value : (*#batch, kv_len, d_v) Tensor
        What each of these passes on.
    mask : (*#batch, #q_len, #kv_len) Tensor of bool or float, or None
        Boolean: True where the query may attend to the key. Float: added to the scores.
    is_causal : bool
        Query i sees the keys j <= i + q_offset only.
    q_offset : int or (*#batch) Tensor of int
        Position of the first query among the keys.
    window : (int or None, int or None) or None
        How far a query sees to the left and to the right.
    scale : float
        Factor of the scores; never None here.
    softcap : float or None
        Bound of the scores.
    enable_gqa : bool
        Whether query heads share key heads.
    return_weights, return_lse : bool
        What is asked for besides the output.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    is_causal: bool
    q_offset: int | Tensor
    window: tuple[int | None, int | None] | None
    scale: float
    softcap: float | None
    enable_gqa: bool
    return_weights: bool
    return_lse: bool

    @property
    def q_len(self) -> int:
        """Number of queries."""
        return self.query.shape[-2]

    @property
    def kv_len(self) -> int:
        """Number of keys."""
        return self.key.shape[-2]

    @property
    def dtype(self) -> torch.dtype:
        """Of the results: the common one of query, key and value."""
        return torch.promote_types(torch.promote_types(self.query.dtype, self.key.dtype), self.value.dtype)

    @property
    def n_repeats(self) -> int:
        """Query heads for each key head; 1 without `enable_gqa`."""
        return self.query.shape[-3] // self.key.shape[-3] if self.enable_gqa else 1

    @property
    def uses_offset(self) -> bool:
        """Whether `q_offset` is looked at; an open window counts, for the axes of its offset."""
        return self.is_causal or self.window is not None

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes of the output: those of all arguments, broadcast; with `enable_gqa` the last one is the query's heads."""
        shapes = [self.query.shape[:-2], _with_query_heads(self.key, self), _with_query_heads(self.value, self)]
        if self.mask is not None:
            shapes.append(self.mask.shape[:-2])
        if self.uses_offset and isinstance(self.q_offset, Tensor):
            shapes.append(self.q_offset.shape)
        return tuple(torch.broadcast_shapes(*shapes))

    def allowed_pairs(self) -> Tensor | None:
        """Return which query may attend to which key by all rules together, (*#batch, #q_len, #kv_len); None if all may."""
        allowed = _in_reach(self)
        if self.mask is not None:
            seen = self.mask if self.mask.dtype == torch.bool else ~self.mask.isneginf()
            allowed = seen if allowed is None else allowed & seen
        return allowed


def validate(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    q_offset: int | Tensor = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
    return_weights: bool = False,
    return_lse: bool = False,
) -> Call:
    """Check the arguments of `attn_course.gpu.attention`, and return them as a `Call`.

    Parameters
    ----------
    query, key, value, mask, is_causal, q_offset, window, scale, softcap, enable_gqa, return_weights, return_lse
        As in `attn_course.gpu.attention`.

    Returns
    -------
    call : Call
        The same, with the scale filled in.

    Raises
    ------
    TypeError
        If a tensor has a wrong dtype, or an option is of the wrong type.
    ValueError
        If shapes or devices do not fit, or an option is out of range.
    """
    flags = {"is_causal": is_causal, "enable_gqa": enable_gqa, "return_weights": return_weights, "return_lse": return_lse}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False; got {type(flag).__name__}")
    _check_inputs(query, key, value, enable_gqa)
    call = Call(
        query,
        key,
        value,
        mask,
        is_causal,
        _checked_offset(q_offset, query),
        _checked_window(window),
        _checked_scale(scale, query.shape[-1]),
        None if softcap is None else _checked_softcap(softcap),
        enable_gqa,
        return_weights,
        return_lse,
    )
    _check_mask(call)
    _check_batch(call)
    return call


def described(thing: Any) -> str:
    """Return what came, for a message of error: the dtype of a tensor, or the type."""
    return f"a Tensor of {str(thing.dtype).removeprefix('torch.')}" if isinstance(thing, Tensor) else type(thing).__name__


def _check_inputs(query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
    axes = "(..., heads, len, features)" if enable_gqa else "(..., len, features)"
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if not isinstance(tensor, Tensor) or tensor.dtype not in FLOATS:
            raise TypeError(f"{name} must be a Tensor of float16, bfloat16, float32 or float64; got {described(tensor)}")
        if tensor.ndim < 2 + enable_gqa:
            raise ValueError(f"{name} must have the axes {axes}; got shape {tuple(tensor.shape)}")
        if tensor.device != query.device:
            raise ValueError(f"{name} must be on the device of query, {query.device}; got {tensor.device}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_k, the last axis; got {query.shape[-1]} and {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key and value must share kv_len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
    if not enable_gqa:
        return
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if value.shape[-3] != kv_heads:
        raise ValueError(f"key and value must share their heads, axis -3; got {kv_heads} and {value.shape[-3]}")
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"query must have a multiple of the key's heads, axis -3; got {heads} and {kv_heads}")


def _checked_offset(q_offset: Any, query: Tensor) -> int | Tensor:
    if isinstance(q_offset, Tensor) and q_offset.dtype in INTEGERS:
        if q_offset.ndim and q_offset.device != query.device:  # a number without axes may stay on the CPU
            raise ValueError(f"q_offset must be on the device of query, {query.device}; got {q_offset.device}")
        return q_offset
    if isinstance(q_offset, bool) or not isinstance(q_offset, int):
        raise TypeError(f"q_offset must be an integer or a Tensor of integers; got {described(q_offset)}")
    return q_offset


def _checked_window(window: Any) -> tuple[int | None, int | None] | None:
    if window is None:
        return None
    if not isinstance(window, tuple) or len(window) != 2:
        raise TypeError(f"window must be a tuple (left, right); got {window!r}")
    for name, side in zip(("left", "right"), window, strict=True):
        if side is not None and (isinstance(side, bool) or not isinstance(side, int)):
            raise TypeError(f"window ({name}) must be an integer or None; got {type(side).__name__} {side!r}")
        if side is not None and side < 0:
            raise ValueError(f"window ({name}) must be 0 or more; got {side}")
    return window


def _checked_scale(scale: Any, d_k: int) -> float:
    if scale is None:
        if d_k == 0:
            raise ValueError("scale must be given when d_k is 0; got None")
        return 1.0 / math.sqrt(d_k)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"scale must be a number or None; got {described(scale)}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite; got {scale!r}")
    return float(scale)


def _checked_softcap(softcap: Any) -> float:
    if isinstance(softcap, bool) or not isinstance(softcap, (int, float)):
        raise TypeError(f"softcap must be a number or None; got {described(softcap)}")
    if not (math.isfinite(softcap) and softcap > 0):
        raise ValueError(f"softcap must be positive and finite; got {softcap!r}")
    return float(softcap)


def _check_mask(call: Call) -> None:
    mask: Any = call.mask
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype not in (torch.bool, *FLOATS):
        raise TypeError(f"mask must be a Tensor of bool or float; got {described(mask)}")
    if mask.device != call.query.device:
        raise ValueError(f"mask must be on the device of query, {call.query.device}; got {mask.device}")
    if mask.ndim < 2 or mask.shape[-2] not in (1, call.q_len) or mask.shape[-1] not in (1, call.kv_len):
        wanted = f"(..., q_len, kv_len) = (..., {call.q_len}, {call.kv_len})"
        raise ValueError(f"mask must broadcast to {wanted}; got shape {tuple(mask.shape)}")


def _check_batch(call: Call) -> None:
    shapes = {"query": call.query.shape[:-2], "key": _with_query_heads(call.key, call), "value": _with_query_heads(call.value, call)}
    if call.mask is not None:
        shapes["mask"] = call.mask.shape[:-2]
    if isinstance(call.q_offset, Tensor):
        shapes["q_offset"] = call.q_offset.shape
    longest = max(len(shape) for shape in shapes.values())
    for axis in range(1, longest + 1):
        lengths = {shape[-axis] for shape in shapes.values() if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
            raise ValueError(f"leading axes must broadcast; got {listed}")


def _with_query_heads(tensor: Tensor, call: Call) -> tuple[int, ...]:
    """Leading axes of the key or the value, as if every query head had its own."""
    return (*tensor.shape[:-3], call.query.shape[-3]) if call.enable_gqa else tuple(tensor.shape[:-2])


def _in_reach(call: Call) -> Tensor | None:
    """Which keys each query sees by `is_causal` and `window`, (*#batch, q_len, kv_len); None if that is every key."""
    if not call.uses_offset:
        return None
    device, offset, (left, right) = call.query.device, call.q_offset, call.window or (None, None)
    if isinstance(offset, Tensor):
        offset = offset.to(torch.int64).clamp(-FAR, FAR)[..., None, None]
        first, last = -FAR, FAR
    else:
        offset = max(-FAR, min(offset, FAR))
        first, last = offset, offset + call.q_len - 1
    position = torch.arange(call.q_len, device=device)[:, None] + offset
    key = torch.arange(call.kv_len, device=device)
    reach = None
    if left is not None and last - left > 0:
        reach = key >= position - min(left, FAR)
    ahead = 0 if call.is_causal else right
    if ahead is not None and first + ahead < call.kv_len - 1:  # not so when one query follows a cache: it sees every key
        limit = key <= position + min(ahead, FAR)
        reach = limit if reach is None else reach & limit
    return reach
