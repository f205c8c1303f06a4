"""The gradients of attention, by hand."""

from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_flags, require_shape, sum_to_shape, weighted_sum
from attn_course.reference.attention import score_pairs
from attn_course.reference.softmax import softmax


@np.errstate(over="ignore", invalid="ignore")  # NaN and infinity where they are visible, and no warning
def attention_backward(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    d_output: Float[np.ndarray, "*batch q_len d_v"],
    *,
    d_lse: Float[np.ndarray, "*batch q_len"] | None = None,
    return_d_mask: bool = False,
    mask: np.ndarray | None = None,
    is_causal: bool = False,
    q_offset: int | np.ndarray = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    r"""Return the gradients of a loss with respect to query, key and value.

    .. math:: dV = P^\top dO, \quad dP = dO\,V^\top, \quad
              dS = P \odot (dP - (P \odot dP)\mathbf{1} + d\,\mathrm{lse}), \quad
              dQ = \tfrac{1}{\sqrt{d_k}} dS\,K, \quad dK = \tfrac{1}{\sqrt{d_k}} dS^\top Q

    The gradient of the log-sum-exp joins that of the scores as in Eq. score-gradient-with-lse.

    `d_lse`: gradient with respect to the log-sum-exp, if the loss depends on it.
    `return_d_mask`: also return the gradient of a float mask.
    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,), `is_causal`, `q_offset` (an int, or (*#batch)), `window`, `scale`, `softcap` and
    `enable_gqa`: those of `attention`.

    Returns `d_query`, `d_key`, `d_value`: each of the shape and dtype of its input; gradients of broadcast axes and of
    shared heads are summed; `d_mask`: of the shape and dtype of the mask, 0 where it is -inf; only with
    `return_d_mask`.

    Raises TypeError as in `attention`; also if `d_output` or `d_lse` is not floating; ValueError as in `attention`;
    also if `d_output` or `d_lse` has not the shape of what `attention` returns, or `return_d_mask` is asked for without
    a float mask.

    FlashAttention-2, section 2.2 (Dao, 2023), arXiv:2307.08691; the row sums of P and dP are D in its Algorithm 2. Rows
    that attend to nothing have gradient 0.

    >>> query, key, value = np.array([[0.0]]), np.array([[1.0], [-1.0]]), np.array([[1.0], [0.0]])
    >>> d_query, d_key, d_value = attention_backward(query, key, value, np.array([[1.0]]))
    >>> d_query, d_value.ravel()
    (array([[0.5]]), array([0.5, 0.5]))
    """
    require_flags(return_d_mask=return_d_mask)
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
    if return_d_mask and (mask is None or mask.dtype == bool):
        raise ValueError(f"return_d_mask needs a float mask; got {'no mask' if mask is None else 'a boolean one'}")
    weights = softmax(scored.scores)
    rows = weights.shape[:-1]
    (d_out,) = checked_floats(d_output=d_output)
    require_shape("d_output", d_output, (*rows, value.shape[-1]), "that of the output")

    d_weights = np.where(weights == 0.0, 0.0, d_out @ scored.value.swapaxes(-1, -2))  # a value without weight may hold anything
    d_row = (weights * d_weights).sum(axis=-1, keepdims=True)  # "delta"
    if d_lse is not None:
        (d_lse_wide,) = checked_floats(d_lse=d_lse)
        require_shape("d_lse", d_lse, rows, "that of the log-sum-exp")
        d_row = d_row - d_lse_wide[..., None]
    d_scores = np.where(weights == 0.0, 0.0, weights * (d_weights - d_row))

    d_raw = d_scores if scored.softcap is None else d_scores * _cap_slope(scored.raw, scored.softcap)
    d_query = weighted_sum(d_raw, np.broadcast_to(scored.key, (*rows[:-1], *scored.key.shape[-2:]))) * scored.scale
    d_key = weighted_sum(d_raw.swapaxes(-1, -2), np.broadcast_to(scored.query, (*rows[:-1], *scored.query.shape[-2:]))) * scored.scale
    d_value = weighted_sum(weights.swapaxes(-1, -2), d_out)
    if enable_gqa:
        d_key, d_value = (_sum_groups(gradient, key.shape[-3]) for gradient in (d_key, d_value))
    pairs = [(d_query, query), (d_key, key), (d_value, value)]
    if return_d_mask and mask is not None:
        pairs.append((d_scores, mask))
    return tuple(narrowed(sum_to_shape(gradient, like.shape), like.dtype) for gradient, like in pairs)


def _cap_slope(raw: np.ndarray, softcap: float) -> np.ndarray:
    """Derivative of softcap * tanh(raw / softcap); 0 for a masked pair whose score is not a number.

    4 e^-2|x| / (1 + e^-2|x|)^2, which is 1 - tanh^2 without its difference of numbers near 1.
    """
    small = np.exp(-2.0 * np.abs(raw / softcap))
    slope = 4.0 * small / (1.0 + small) ** 2
    return np.where(np.isfinite(slope), slope, 0.0)


def _sum_groups(gradient: np.ndarray, kv_heads: int) -> np.ndarray:
    """(..., kv_heads * g, len, features) -> (..., kv_heads, len, features): what a shared head receives from its group."""
    group = gradient.shape[-3] // kv_heads
    return gradient.reshape(*gradient.shape[:-3], kv_heads, group, *gradient.shape[-2:]).sum(axis=-3)
