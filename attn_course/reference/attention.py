"""Scaled dot-product attention with every option of the contract."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import (
    broadcast_batch,
    checked_floats,
    described,
    narrowed,
    require_axes,
    require_flags,
    require_integer,
    require_mask_shape,
    require_positive,
    weighted_sum,
    within_range,
)
from attn_course.reference.masks import causal_mask, window_mask
from attn_course.reference.similarity import checked_scale
from attn_course.reference.softmax import logsumexp, softmax


def attention(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    *,
    mask: np.ndarray | None = None,
    is_causal: bool = False,
    q_offset: int | np.ndarray = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
    return_weights: bool = False,
    return_lse: bool = False,
) -> Any:
    r"""Average the values with weights from a softmax over the keys, Eq. attention.

    .. math:: \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V

    With a mask it is Eq. masked-attention, with groups of heads Eq. grouped-query-attention.

    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,): boolean, True where the query may attend to the key, or float, added to the scores;
    -inf removes the key.
    `is_causal`: let query i see the keys j <= i + q_offset only.
    `q_offset` (an int, or (*#batch)): position of the first query among the keys; used by `is_causal` and `window`.
    `window`: let query i see i + q_offset - left <= j <= i + q_offset + right; None leaves a side open.
    `scale`: factor on q . k; 1 / sqrt(d_k) if left out.
    `softcap`: scores become softcap * tanh(scores / softcap), before the mask.
    `enable_gqa`: the query has a multiple of the key's heads on axis -3; key head r serves the query heads r g .. r g +
    g - 1.
    `return_weights`, `return_lse`: also return the weights, and the log-sum-exp of each row of masked scores.

    Returns `output` (*batch, q_len, d_v): in the common dtype of query, key and value, computed in at least float32;
    `weights` (*batch, q_len, kv_len): only with `return_weights`; `lse` (*batch, q_len): natural logarithm; only with
    `return_lse`.

    Raises TypeError if an array is not floating (mask: not boolean or floating), or an option is of the wrong type;
    ValueError if shapes do not fit, or an option is out of range.

    Vaswani et al. (2017), Eq. 1, arXiv:1706.03762; softcap as in Gemma 2 (2024), arXiv:2408.00118; grouped queries:
    Ainslie et al. (2023), arXiv:2305.13245. A query that may attend to nothing gets output 0, weights 0 and lse -inf,
    Eq. empty-row-is-zero. A weight of 0 removes its value even if that holds NaN or infinity. A visible score that is
    NaN or +inf makes its row NaN.

    >>> query, key, value = np.array([[0.0]]), np.array([[1.0], [2.0]]), np.array([[10.0], [20.0]])
    >>> attention(query, key, value)
    array([[15.]])
    >>> attention(query, key, value, is_causal=True)
    array([[10.]])
    """
    require_flags(return_weights=return_weights, return_lse=return_lse)
    scored = score_pairs(
        query,
        key,
        value,
        mask=mask,
        is_causal=is_causal,
        q_offset=q_offset,
        window=window,
        scale=scale,
        softcap=softcap,
        enable_gqa=enable_gqa,
    )
    weights = softmax(scored.scores)
    output = weighted_sum(weights, scored.value)
    results = [output, *([weights] if return_weights else []), *([logsumexp(scored.scores)] if return_lse else [])]
    narrow = tuple(narrowed(result, np.result_type(query, key, value)) for result in results)
    return narrow if len(narrow) > 1 else narrow[0]


@dataclass(frozen=True)
class ScoredPairs:
    """What forward and backward share: widened inputs, and the scores before and after cap and mask.

    `query`, `key`, `value`: in at least float32; key and value with one head for each query head.
    `raw` (*batch, q_len, kv_len): scale * q . k.
    `scores` (*batch, q_len, kv_len): after softcap and mask; -inf where a query may not attend to a key.
    `scale`: the factor that was used.
    `softcap`: the cap that was used.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    raw: np.ndarray
    scores: np.ndarray
    scale: float
    softcap: float | None


@np.errstate(over="ignore", invalid="ignore")  # a key that is masked may hold anything
def score_pairs(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    mask: np.ndarray | None,
    is_causal: bool,
    q_offset: int | np.ndarray,
    window: tuple[int | None, int | None] | None,
    scale: float | None,
    softcap: float | None,
    enable_gqa: bool,
) -> ScoredPairs:
    """Check the arguments of `attention` and compute its masked scores.

    Raises TypeError, ValueError as in `attention`.
    """
    require_flags(is_causal=is_causal, enable_gqa=enable_gqa)
    q, k, v = checked_floats(query=query, key=key, value=value)
    require_axes(3 if enable_gqa else 2, "(..., heads, len, features)" if enable_gqa else "(..., len, features)", query=q, key=k, value=v)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"query and key must share d_k, the last axis; got {q.shape[-1]} and {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"key and value must share kv_len, the axis before the last; got {k.shape[-2]} and {v.shape[-2]}")
    if enable_gqa:
        k, v = _one_head_each(q, k, v)
    batch = broadcast_batch(query=q.shape[:-2], key=k.shape[:-2], value=v.shape[:-2])
    factor = checked_scale(scale, q.shape[-1])
    cap = None if softcap is None else within_range(require_positive("softcap", softcap), q.dtype)
    raw = (q @ k.swapaxes(-1, -2)) * factor
    capped = raw if cap is None else cap * np.tanh(raw / cap)
    allowed, bias = _allowed(q.shape[-2], k.shape[-2], batch, mask, is_causal, q_offset, window)
    scores = np.where(allowed, capped if bias is None else capped + bias, -np.inf)
    whole = np.broadcast_shapes(scores.shape, (*batch, 1, 1))
    return ScoredPairs(q, k, v, np.broadcast_to(raw, whole), np.broadcast_to(scores, whole).astype(q.dtype), factor, cap)


def _one_head_each(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if value.shape[-3] != kv_heads:
        raise ValueError(f"key and value must share their heads, axis -3; got {kv_heads} and {value.shape[-3]}")
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"query must have a multiple of the key's heads, axis -3; got {heads} and {kv_heads}")
    return key.repeat(heads // kv_heads, axis=-3), value.repeat(heads // kv_heads, axis=-3)


def _allowed(
    q_len: int,
    kv_len: int,
    batch: tuple[int, ...],
    mask: np.ndarray | None,
    is_causal: bool,
    q_offset: int | np.ndarray,
    window: tuple[int | None, int | None] | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Which pairs may attend, from all three kinds of mask, and the finite part of a float mask."""
    offset_batch = causal_mask(0, 0, q_offset).shape[:-2]  # a wrong q_offset is an error even where it plays no part
    allowed, bias = causal_mask(q_len, kv_len, q_offset) if is_causal else np.ones((q_len, kv_len), dtype=bool), None
    if window is not None:
        allowed = allowed & window_mask(q_len, kv_len, *_sides(window), q_offset=q_offset)
    broadcast_batch(**{"q_offset": offset_batch, "query, key and value": batch})
    if mask is not None:
        if not isinstance(mask, np.ndarray) or not (mask.dtype == bool or np.issubdtype(mask.dtype, np.floating)):
            raise TypeError(f"mask must be an ndarray of bool or float; got {described(mask)}")
        require_mask_shape(mask, q_len, kv_len)
        broadcast_batch(**{"mask": mask.shape[:-2], "q_offset": offset_batch, "query, key and value": batch})
        bias = None if mask.dtype == bool else mask
        allowed = allowed & (mask if bias is None else ~np.isneginf(mask))
    return allowed, bias


def _sides(window: Any) -> tuple[int | None, int | None]:
    if not isinstance(window, tuple) or len(window) != 2:
        raise TypeError(f"window must be a tuple (left, right); got {window!r}")
    left, right = (
        None if side is None else require_integer(f"window ({name})", side, 0) for name, side in zip(("left", "right"), window, strict=True)
    )
    return left, right
