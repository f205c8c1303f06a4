"""Attention to a few keys that something cheaper has chosen, and what the rest would have added."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attn_course.reference.arrays import checked_floats, narrowed, require_axes, require_integer, require_mask_shape
from attn_course.reference.attention import attention
from attn_course.reference.masks import causal_mask


def top_k_mask(scores: Float[np.ndarray, "*batch q_len kv_len"], k: int) -> Bool[np.ndarray, "*batch q_len kv_len"]:
    """Let each query see the k keys with its largest scores; no other k keys leave less weight out, Eq. left-out-weight-bound.

    `scores`: of any kind; a key of -inf is never chosen, also where fewer than k are left.
    `k`: how many; kv_len or more chooses all. Of equal scores the first keys are chosen.

    Returns `mask`: True where the query may attend to the key.

    Raises TypeError, ValueError if an argument is not of its kind.

    DeepSeek-V3.2 (2025), arXiv:2512.02556, Eq. 2: k = 2048, by the scores of `index_scores`.

    >>> top_k_mask(np.array([[1.0, 3.0, 2.0, 3.0], [0.0, -np.inf, -np.inf, -np.inf]]), k=2).astype(int)
    array([[0, 1, 0, 1],
           [1, 0, 0, 0]])
    """
    (wide,) = checked_floats(scores=scores)
    require_axes(2, "(..., q_len, kv_len)", scores=scores)
    chosen = np.argsort(-wide, axis=-1, kind="stable")[..., : require_integer("k", k, 0)]
    mask = np.zeros(wide.shape, dtype=bool)
    np.put_along_axis(mask, chosen, True, axis=-1)
    return mask & (wide > -np.inf)


def index_scores(
    query: Float[np.ndarray, "*#batch heads q_len d_index"],
    key: Float[np.ndarray, "*#batch kv_len d_index"],
    head_weights: Float[np.ndarray, "*#batch q_len heads"],
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    r"""Score keys by a small index that all heads of attention share, Eq. index-score.

    .. math:: I_{ts} = \sum_h w_{th}\, \max(0,\, q_{th} \cdot k_s)

    `query`: few heads of few features, as `key`, of which there is one for all heads.
    `head_weights`: how much a query trusts each head; of any sign.

    Returns `scores`: for `top_k_mask`; they are compared, never exponentiated.

    Raises TypeError, ValueError if an argument is not floating, or the arguments do not fit.

    DeepSeek-V3.2 (2025), arXiv:2512.02556, Eq. 1, the "lightning indexer".

    >>> index_scores(np.array([[[1.0]], [[-1.0]]]), np.array([[2.0], [-3.0]]), np.array([[1.0, 0.5]]))
    array([[2. , 1.5]])
    """
    q, k, w = checked_floats(query=query, key=key, head_weights=head_weights)
    require_axes(3, "(..., heads, q_len, d_index)", query=q)
    require_axes(2, "(..., len, features)", key=k, head_weights=w)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"query and key must share d_index, the last axis; got {q.shape[-1]} and {k.shape[-1]}")
    if w.shape[-2:] != (q.shape[-2], q.shape[-3]):
        raise ValueError(f"head_weights must have the axes (..., q_len, heads) = (..., {q.shape[-2]}, {q.shape[-3]}); got {w.shape}")
    alike = np.maximum(q @ k[..., None, :, :].swapaxes(-1, -2), 0.0)  # (*batch, heads, q_len, kv_len)
    scores = (w.swapaxes(-1, -2)[..., None] * alike).sum(axis=-3)
    return narrowed(scores, np.result_type(query, key, head_weights))


def pool_blocks(x: Float[np.ndarray, "*batch len features"], block: int) -> Float[np.ndarray, "*batch n_blocks features"]:
    """Return the mean of each block of rows, the last one as long as it is; as keys they score too low, Eq. pooled-score-bound.

    `block`: number of rows in a block.

    Raises TypeError, ValueError if an argument is not of its kind.

    The simplest compression of Yuan et al. (2025), NSA, Eq. 7, arXiv:2502.11089, who learn it.

    >>> pool_blocks(np.array([[1.0], [3.0], [9.0]]), block=2)
    array([[2.],
           [9.]])
    """
    (wide,) = checked_floats(x=x)
    require_axes(2, "(..., len, features)", x=x)
    starts = np.arange(0, x.shape[-2], require_integer("block", block, 1))
    means = [wide[..., start : start + block, :].mean(axis=-2) for start in starts]
    return narrowed(np.stack(means, axis=-2) if means else wide, x.dtype)


def selection_error_bound(
    weights: Float[np.ndarray, "*#batch q_len kv_len"],
    mask: np.ndarray,
    value: Float[np.ndarray, "*#batch kv_len d_v"],
) -> Float[np.ndarray, "*batch q_len"]:
    r"""Bound what attention to the chosen keys alone changes in any entry of the output, Eq. selection-error-bound.

    .. math:: |z_c - z^A_c| \le \varepsilon\, (\max_j v_{jc} - \min_j v_{jc}), \qquad \varepsilon = \sum_{j \notin A} p_j

    `weights`: p, of attention to all keys.
    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,): True for the chosen keys, A.
    `value`: those of all keys.

    Returns `bound`: for each query, largest over the features.

    Raises TypeError, ValueError if an argument is not of its kind, or the arguments do not fit.

    >>> selection_error_bound(np.array([[0.7, 0.2, 0.1]]), np.array([[True, True, False]]), np.array([[1.0], [2.0], [6.0]]))
    array([0.5])
    """
    p, v = checked_floats(weights=weights, value=value)
    require_axes(2, "(..., len, features)", weights=p, value=v)
    if not isinstance(mask, np.ndarray) or mask.dtype != bool:
        raise TypeError(f"mask must be an ndarray of bool; got {getattr(mask, 'dtype', type(mask).__name__)}")
    require_mask_shape(mask, *p.shape[-2:])
    if v.shape[-2] != p.shape[-1]:
        raise ValueError(f"value must have kv_len rows, {p.shape[-1]}; got {v.shape[-2]}")
    left_out = np.where(mask, 0.0, p).sum(axis=-1)
    spread = (v.max(axis=-2) - v.min(axis=-2)).max(axis=-1)
    return narrowed(left_out * spread[..., None], np.result_type(weights, value))


def native_sparse_attention(
    query: Float[np.ndarray, "*#batch len d_k"],
    key: Float[np.ndarray, "*#batch_key len d_k"],
    value: Float[np.ndarray, "*#batch_key len d_v"],
    gates: Float[np.ndarray, "*#batch len 3"],
    *,
    block: int,
    n_selected: int,
    left: int,
    **options: Any,
) -> np.ndarray:
    r"""Add up three looks at the past: means of blocks, the blocks with the largest weights there, and a window, Eq. gated-branches.

    .. math:: z_t = g_{t1}\, z^{\mathrm{means}}_t + g_{t2}\, z^{\mathrm{blocks}}_t + g_{t3}\, z^{\mathrm{window}}_t

    Each branch is causal: a query sees the mean of a block that ended before or at its own position, and of the blocks that it
    selects no later key. Its own block is always selected.

    `gates`: one for each branch, in the order of the formula; of any size.
    `block`: number of positions in a block.
    `n_selected`: number of blocks that are read in full, at least 1.
    `left`: number of keys before its own in the window of a query.
    `options`: scale, softcap and enable_gqa of `attention`.

    Returns `output` (*batch, len, d_v).

    Raises TypeError, ValueError as in `attention`; ValueError if `gates` do not fit, or a number is too small.

    Yuan et al. (2025), NSA, Eqs. 5 to 12, arXiv:2502.11089, with blocks that do not overlap, means in the place of a learned
    compression, one set of keys for all branches, and a selection for each head of its own.

    >>> x, only_blocks = np.eye(4), np.array([[0.0, 1.0, 0.0]] * 4)
    >>> everything = native_sparse_attention(x, x, x, only_blocks, block=2, n_selected=2, left=0)
    >>> np.array_equal(everything, attention(x, x, x, is_causal=True))
    True
    """
    q, k, v, g = checked_floats(query=query, key=key, value=value, gates=gates)
    require_axes(2, "(..., len, features)", query=q, key=k, value=v, gates=g)
    length = q.shape[-2]
    if k.shape[-2] != length or g.shape[-2:] != (length, 3):
        raise ValueError(f"key must have len rows and gates (len, 3), len = {length}; got {k.shape[-2]} and {g.shape[-2:]}")
    require_integer("n_selected", n_selected, 1)
    own = np.arange(length)[:, None] // require_integer("block", block, 1)
    ended = (np.arange(-(-length // block)) + 1) * block - 1 <= np.arange(length)[:, None]  # (len, n_blocks)
    means, weights = attention(q, pool_blocks(k, block), pool_blocks(v, block), mask=ended, **options, return_weights=True)
    ranks = np.where(ended, weights, -np.inf)
    np.put_along_axis(ranks, np.broadcast_to(own, (*ranks.shape[:-1], 1)), np.inf, axis=-1)
    seen = top_k_mask(ranks, n_selected).repeat(block, axis=-1)[..., :length] & causal_mask(length, length)
    blocks = attention(q, k, v, mask=seen, **options)
    near = attention(q, k, v, is_causal=True, window=(require_integer("left", left, 0), 0), **options)
    output = sum(g[..., branch, None] * part for branch, part in enumerate((means, blocks, near)))
    return narrowed(np.asarray(output), np.result_type(query, key, value))
