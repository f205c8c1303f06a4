"""The arguments of linear attention and the delta rule: what they must look like, and states for shared heads."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from attn_course.reference.arrays import broadcast_batch, checked_floats, described, narrowed, require_axes, require_integer
from attn_course.reference.attention import _one_head_each


class Sequences(NamedTuple):
    """Checked arguments in at least float32, all with the same leading axes, and one key head for each query head."""

    query: np.ndarray  # (*batch, q_len, d_k)
    key: np.ndarray  # (*batch, len, d_k)
    value: np.ndarray  # (*batch, len, d_v)
    log_decay: np.ndarray  # (*batch, len, 1 or d_k)
    beta: np.ndarray  # (*batch, len, 1)
    batch: tuple[int, ...]
    group: int  # query heads for each key head
    dtype: np.dtype  # of the results


def checked_sequences(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    log_decay: np.ndarray | None,
    beta: np.ndarray | None = None,
    is_causal: bool = True,
    enable_gqa: bool,
    dtype: np.dtype | None = None,
) -> Sequences:
    """Return the arguments of a recurrence ready for use, or raise the error that names the wrong one."""
    optional = {name: array for name, array in (("log_decay", log_decay), ("beta", beta)) if array is not None}
    q, k, v, *rest = checked_floats(query=query, key=key, value=value, **optional)
    require_axes(2, "(..., len, features)", query=q, key=k, value=v, **optional)
    if enable_gqa:
        require_axes(3, "(..., heads, len, features)", query=q, key=k, value=v)
    length, d_k = k.shape[-2:]
    if q.shape[-1] != d_k:
        raise ValueError(f"query and key must share d_k, the last axis; got {q.shape[-1]} and {d_k}")
    for name, array in {"value": v, **optional, **({"query": q} if is_causal else {})}.items():
        if array.shape[-2] != length:
            raise ValueError(f"{name} and key must share len, the axis before the last; got {array.shape[-2]} and {length}")
    wide = {"log_decay": np.zeros((length, 1), q.dtype), "beta": np.ones((length, 1), q.dtype), **dict(zip(optional, rest, strict=True))}
    _check_rates(wide["log_decay"], wide["beta"], d_k)
    group = 1
    if enable_gqa:
        kv_heads = k.shape[-3]
        k, v = _one_head_each(q, k, v)
        group = q.shape[-3] // kv_heads
        wide = {name: _one_rate_each(name, array, kv_heads, group) for name, array in wide.items()}
    named = {"query": q, "key": k, "value": v, **wide}
    batch = broadcast_batch(**{name: array.shape[:-2] for name, array in named.items() if name in ("query", "key", "value", *optional)})
    same = {name: np.broadcast_to(array, (*batch, *array.shape[-2:])) for name, array in named.items()}
    return Sequences(**same, batch=batch, group=group, dtype=np.result_type(query, key, value) if dtype is None else dtype)


def checked_form(form: Any, forms: tuple[str, ...], chunk: Any, scale: Any) -> float:
    """Return the scale as float, or raise the error that names the wrong one of three options."""
    if form not in forms:
        raise ValueError(f"form must be one of {', '.join(map(repr, forms))}; got {form!r}")
    require_integer("chunk", chunk, 1)
    if isinstance(scale, (bool, np.bool_)) or not isinstance(scale, (int, float, np.integer, np.floating)):
        raise TypeError(f"scale must be a number; got {described(scale)}")
    if not np.isfinite(scale):
        raise ValueError(f"scale must be finite; got {scale!r}")
    return float(scale)


def starting_state(name: str, given: np.ndarray | None, features: tuple[int, ...], sequences: Sequences) -> np.ndarray:
    """Return the given state, or zeros, for each query head: (*batch, *features), a new array."""
    dtype, group = sequences.query.dtype, sequences.group
    if given is None:
        return np.zeros((*sequences.batch, *features), dtype)
    checked_floats(**{name: given})
    wanted = (*_key_batch(sequences), *features)
    whole = None
    if given.shape[-len(features) :] == features:
        with suppress(ValueError):
            whole = np.broadcast_to(given, wanted)
    if whole is None:
        raise ValueError(f"{name} must have shape {wanted}, or broadcast to it; got {given.shape}")
    return np.array(whole.repeat(group, axis=len(wanted) - len(features) - 1) if group > 1 else whole, dtype=dtype)


def returned_state(state: np.ndarray, given: np.ndarray | None, features: tuple[int, ...], sequences: Sequences) -> np.ndarray:
    """Return one state for each key head, in the dtype of the results, or of the given state where that is wider."""
    dtype = sequences.dtype if given is None else np.result_type(sequences.dtype, given.dtype)
    first_of_group: Any = (..., slice(None, None, sequences.group), *[slice(None)] * len(features)) if sequences.group > 1 else ...
    return narrowed(state[first_of_group], dtype)


def _key_batch(sequences: Sequences) -> tuple[int, ...]:
    return (*sequences.batch[:-1], sequences.batch[-1] // sequences.group) if sequences.group > 1 else sequences.batch


def _check_rates(log_decay: np.ndarray, beta: np.ndarray, d_k: int) -> None:
    if log_decay.shape[-1] not in (1, d_k):
        raise ValueError(f"log_decay must have 1 or d_k = {d_k} features, the last axis; got {log_decay.shape[-1]}")
    if not (log_decay <= 0.0).all():
        raise ValueError(f"log_decay must be at most 0 everywhere; got {log_decay.max()}")
    if beta.shape[-1] != 1:
        raise ValueError(f"beta must have one number for each position, (..., len, 1); got shape {beta.shape}")


def _one_rate_each(name: str, rate: np.ndarray, kv_heads: int, group: int) -> np.ndarray:
    """Repeat a rate of each key head for the query heads it serves."""
    if rate.ndim < 3 or rate.shape[-3] == 1:
        return rate
    if rate.shape[-3] != kv_heads:
        raise ValueError(f"{name} must have the key's {kv_heads} heads, axis -3, or 1; got {rate.shape[-3]}")
    return rate.repeat(group, axis=-3)
