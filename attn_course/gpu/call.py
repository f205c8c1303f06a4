"""One call of attention: its arguments, checked once, in the form that every backend reads."""

import math
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FAR = 2**60  # farther than any length; sums of a few of them still fit into 64 bits


class Call(NamedTuple):
    """The arguments of one call; made by `validate`, which fills in the scale and the leading axes.

    `query` (*#batch, q_len, d_k): one row per position that asks; float16, bfloat16, float32 or float64, and key and value have
    the same dtype.
    `key` (*#batch, kv_len, d_k): one row per position that may answer; with `enable_gqa` it has fewer heads on axis -3.
    `value` (*#batch, kv_len, d_v): what each of these passes on.
    `mask` (*#batch, #q_len, #kv_len): boolean, True where the query may attend to the key, or floats, which are added to the
    scores.
    `is_causal`: query i sees the keys j <= i + q_offset only.
    `q_offset` (*#batch) or an int: position of the first query among the keys.
    `window`: how far a query sees to the left and to the right.
    `scale`: factor of the scores; never None here.
    `softcap`: bound of the scores.
    `enable_gqa`: whether query heads share key heads.
    `return_weights`, `return_lse`: what is asked for besides the output.
    `guard_non_finite`: whether hidden keys and values may hold NaN or infinity on every backend.
    `batch`: leading axes of the output: those of all arguments, broadcast; with `enable_gqa` the last one is the query's heads.
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
    guard_non_finite: bool
    batch: tuple[int, ...]

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
        """Of query, key, value and the results."""
        return self.query.dtype

    @property
    def n_repeats(self) -> int:
        """Query heads for each key head; 1 without `enable_gqa`."""
        return self.query.shape[-3] // self.key.shape[-3] if self.enable_gqa else 1

    @property
    def uses_offset(self) -> bool:
        """Whether `q_offset` is looked at; an open window counts, for the axes of its offset."""
        return self.is_causal or self.window is not None

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
    guard_non_finite: bool = False,
) -> Call:
    """Check the arguments of `attn_course.gpu.attention`, and return them as a `Call`.

    Query, key and value get their common dtype. Under `torch.autocast` they first become what they become for torch's own
    function, and so does a mask of floats: all but float64 is cast to the dtype of autocast.

    The arguments are those of `attn_course.gpu.attention`. Raises TypeError if a tensor has a wrong dtype, or an option is of the
    wrong type; ValueError if shapes or devices do not fit, or an option is out of range.
    """
    flags = {
        "is_causal": is_causal,
        "enable_gqa": enable_gqa,
        "return_weights": return_weights,
        "return_lse": return_lse,
        "guard_non_finite": guard_non_finite,
    }
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False; got {type(flag).__name__}")
    _check_inputs(query, key, value, enable_gqa)
    if type(q_offset) is not int:
        _check_offset(q_offset, query)
    if window is not None:
        _check_window(window)
    scale = _checked_scale(scale, query.shape[-1])
    if softcap is not None:
        softcap = _checked_softcap(softcap)
    if mask is not None:
        mask = _checked_mask(mask, query, key)
    batch = _common_axes(query, key, value, mask, q_offset, enable_gqa, uses_offset=is_causal or window is not None)
    if autocasts(query):
        query, key, value = (_as_autocast(part) for part in (query, key, value))
        mask = None if mask is None else _as_autocast(mask)
    if not query.dtype == key.dtype == value.dtype:
        dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), value.dtype)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    return Call(
        query,
        key,
        value,
        mask,
        is_causal,
        q_offset,
        window,
        scale,
        softcap,
        enable_gqa,
        return_weights,
        return_lse,
        guard_non_finite,
        batch,
    )


def autocasts(tensor: Tensor) -> bool:
    """Return whether `torch.autocast` is on for the device of a tensor."""
    device = "cpu" if tensor.is_cpu else tensor.device.type  # the latter makes a new string each time
    return device != "meta" and torch.is_autocast_enabled(device)  # which does not know that device


def _as_autocast(tensor: Tensor) -> Tensor:
    kept = (torch.bool, torch.float64)
    return tensor if tensor.dtype in kept else tensor.to(torch.get_autocast_dtype(tensor.device.type))


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


def _check_offset(q_offset: Any, query: Tensor) -> None:
    if isinstance(q_offset, Tensor) and q_offset.dtype in INTEGERS:
        if q_offset.ndim and q_offset.device != query.device:  # a number without axes may stay on the CPU
            raise ValueError(f"q_offset must be on the device of query, {query.device}; got {q_offset.device}")
    elif isinstance(q_offset, bool) or not isinstance(q_offset, int):
        raise TypeError(f"q_offset must be an integer or a Tensor of integers; got {described(q_offset)}")


def _check_window(window: Any) -> None:
    if not isinstance(window, tuple) or len(window) != 2:
        raise TypeError(f"window must be a tuple (left, right); got {window!r}")
    for name, side in zip(("left", "right"), window, strict=True):
        if side is not None and (isinstance(side, bool) or not isinstance(side, int)):
            raise TypeError(f"window ({name}) must be an integer or None; got {type(side).__name__} {side!r}")
        if side is not None and side < 0:
            raise ValueError(f"window ({name}) must be 0 or more; got {side}")


def _checked_scale(scale: Any, d_k: int) -> float:
    if scale is None:
        if d_k == 0:
            raise ValueError("scale must be given when d_k is 0; got None")
        return 1.0 / math.sqrt(d_k)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"scale must be a number or None; got {described(scale)}")
    if not -math.inf < scale < math.inf:  # not math.isfinite, which takes no symbol of a compiled call
        raise ValueError(f"scale must be finite; got {scale!r}")
    return float(scale)


def _checked_softcap(softcap: Any) -> float:
    if isinstance(softcap, bool) or not isinstance(softcap, (int, float)):
        raise TypeError(f"softcap must be a number or None; got {described(softcap)}")
    if not 0 < softcap < math.inf:
        raise ValueError(f"softcap must be positive and finite; got {softcap!r}")
    return float(softcap)


def _checked_mask(mask: Any, query: Tensor, key: Tensor) -> Tensor:
    """Return the mask with axes for queries and keys."""
    if not isinstance(mask, Tensor) or mask.dtype not in (torch.bool, *FLOATS):
        raise TypeError(f"mask must be a Tensor of bool or float; got {described(mask)}")
    if mask.device != query.device:
        raise ValueError(f"mask must be on the device of query, {query.device}; got {mask.device}")
    q_len, kv_len = query.shape[-2], key.shape[-2]
    if mask.ndim == 0 or mask.shape[-1] not in (1, kv_len) or (mask.ndim > 1 and mask.shape[-2] not in (1, q_len)):
        raise ValueError(f"mask must broadcast to (..., q_len, kv_len) = (..., {q_len}, {kv_len}); got shape {tuple(mask.shape)}")
    return mask[None] if mask.ndim == 1 else mask


def _common_axes(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, q_offset: int | Tensor, enable_gqa: bool, *, uses_offset: bool
) -> tuple[int, ...]:
    """The leading axes of all arguments, broadcast; shared heads count as the query's. An offset that is not used has to fit as well."""
    batch = query.shape[:-2]
    if mask is None and isinstance(q_offset, int) and key.shape[:-2] == value.shape[:-2] == batch:
        return batch
    shapes: dict[str, tuple[int, ...]] = {"query": batch, "key": key.shape[:-2], "value": value.shape[:-2]}
    if enable_gqa:
        shapes |= {name: (*shapes[name][:-1], query.shape[-3]) for name in ("key", "value")}
    if mask is not None:
        shapes["mask"] = mask.shape[:-2]
    if isinstance(q_offset, Tensor):
        shapes["q_offset"] = q_offset.shape
    common = _broadcast(shapes)
    if "q_offset" in shapes and not uses_offset:
        del shapes["q_offset"]
        return _broadcast(shapes)
    return common


def _broadcast(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """As `torch.broadcast_shapes`, which takes as long as torch's attention over 16 positions."""
    common = []
    for lengths in zip_longest(*(reversed(shape) for shape in shapes.values()), fillvalue=1):
        longer = [length for length in lengths if length != 1]
        if any(length != longer[0] for length in longer):
            listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
            raise ValueError(f"leading axes must broadcast; got {listed}")
        common.append(longer[0] if longer else 1)
    return tuple(reversed(common))


def _in_reach(call: Call) -> Tensor | None:
    """Which keys each query sees by `is_causal` and `window`, (*#batch, q_len, kv_len); None if that is every key."""
    if not call.uses_offset:
        return None
    offset, (left, right) = call.q_offset, call.window or (None, None)
    ahead = 0 if call.is_causal else right
    first, last = (offset, offset + call.q_len - 1) if isinstance(offset, int) else (-FAR, FAR)
    if left is not None and last <= left:  # it reaches back to the first key
        left = None
    if ahead is not None and first + ahead >= call.kv_len - 1:  # as for one query behind a cache: it sees every key
        ahead = None
    if left is None and ahead is None:
        return None
    device = call.query.device
    position, key = torch.arange(call.q_len, device=device)[:, None], torch.arange(call.kv_len, device=device)
    reach = None if left is None else key >= position + _shifted(offset, -left)
    if ahead is None:
        return reach
    limit = key <= position + _shifted(offset, ahead)
    return limit if reach is None else reach & limit


def _shifted(offset: int | Tensor, side: int) -> int | Tensor:
    """offset + side, within 64 bits; a tensor gets axes for queries and keys."""
    if isinstance(offset, int):
        return max(-FAR, min(offset + side, FAR))
    return offset.to(torch.int64).clamp(-FAR, FAR)[..., None, None] + max(-FAR, min(side, FAR))
