"""The gradients of attention, block by block: weights are computed again from the scores and the stored log-sum-exp."""

from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_flags, require_shape, sum_to_shape, weighted_sum
from attn_course.reference.attention import ScoredPairs
from attn_course.reference.attention_backward import _cap_slope, _sum_groups
from attn_course.reference.tiles import Tiles
from attn_course.reference.tiling import flash_attention


def flash_attention_backward(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    d_output: Float[np.ndarray, "*batch q_len d_v"],
    *,
    block_q: int,
    block_kv: int,
    output: Float[np.ndarray, "*batch q_len d_v"] | None = None,
    lse: Float[np.ndarray, "*batch q_len"] | None = None,
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
    r"""Return what `attention_backward` returns, with no more than one block of scores at a time.

    .. math:: P = e^{S - \ell}, \qquad \delta = \mathrm{rowsum}(dO \odot O) - d\ell, \qquad dS = P \odot (dO\,V^\top - \delta)

    These are Eqs. weights-from-lse, score-gradient-against-mixture and score-gradient-with-lse; each block adds its part as in Eq.
    key-gradient-in-blocks.

    `block_q`, `block_kv`: queries and keys in a block; need not be those of the forward pass.
    `output`: what the forward pass returned, together with `lse`; computed again if left out.
    `lse`: the log-sum-exp that the forward pass returned.
    `d_lse`: gradient with respect to the log-sum-exp, if the loss depends on it.
    `return_d_mask`: also return the gradient of a float mask.
    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,), `is_causal`, `q_offset` (an int, or (*#batch)), `window`, `scale`, `softcap` and
    `enable_gqa`: those of `attention`.

    Returns `d_query`, `d_key`, `d_value`: each of the shape and dtype of its input; gradients of broadcast axes and of
    shared heads are summed; `d_mask`: of the shape and dtype of the mask, 0 where it is -inf; only with
    `return_d_mask`.

    Raises TypeError, ValueError as in `flash_attention` and `attention_backward`, and if only one of `output` and `lse`
    is given.

    FlashAttention-2, Algorithm 2 (Dao, 2023), arXiv:2307.08691. The row sum of P and dP, which the softmax needs, is
    that of dO and O: it is known before the first block.

    >>> query, key, value = np.array([[0.0]]), np.array([[1.0], [-1.0]]), np.array([[1.0], [0.0]])
    >>> d_query, d_key, d_value = flash_attention_backward(query, key, value, np.array([[1.0]]), block_q=1, block_kv=1)
    >>> d_query, d_value.ravel()
    (array([[0.5]]), array([0.5, 0.5]))
    """
    require_flags(return_d_mask=return_d_mask)
    options: dict[str, Any] = {"is_causal": is_causal, "window": window, "scale": scale, "softcap": softcap, "enable_gqa": enable_gqa}
    tiles = Tiles(query, key, value, block_q, block_kv, mask, q_offset, options)
    if return_d_mask and (mask is None or mask.dtype == bool):
        raise ValueError(f"return_d_mask needs a float mask; got {'no mask' if mask is None else mask.dtype}")
    if (output is None) != (lse is None):
        raise ValueError(f"output and lse must be given together; got {'lse' if output is None else 'output'} alone")
    if output is None or lse is None:
        wide = (tiles.query, tiles.key, tiles.value)
        options_forward = {"mask": mask, "q_offset": q_offset, **options}
        output, lse = flash_attention(*wide, block_q=block_q, block_kv=block_kv, return_lse=True, **options_forward)
    delta, logs, d_out = _row_terms(tiles.output_shape, output, lse, d_output, d_lse)

    inputs = (query, key, value, *([mask] if return_d_mask and mask is not None else []))
    gradients = [np.zeros(array.shape, np.result_type(d_out, array)) for array in inputs]
    for columns in tiles.columns:
        for rows in tiles.rows:
            tile = tiles.scored(rows, columns)
            places = ((..., rows, slice(None)), (..., columns, slice(None)), (..., columns, slice(None)), tiles.mask_index(rows, columns))
            at = (..., rows)
            parts = _tile_gradients(tile, d_out[..., rows, :], delta[at], logs[at], key.shape[-3] if enable_gqa else None)
            for total, place, part in zip(gradients, places, parts, strict=False):  # the last part is needed with return_d_mask only
                total[place] += sum_to_shape(part, total[place].shape)
    return tuple(narrowed(total, array.dtype) for total, array in zip(gradients, inputs, strict=True))


def _row_terms(
    shape: tuple[int, ...], output: np.ndarray, lse: np.ndarray, d_output: np.ndarray, d_lse: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return delta and lse of each row, and d_output, widened; lse 0 where a row attends to nothing."""
    wide_output, wide_lse, d_out = checked_floats(output=output, lse=lse, d_output=d_output)
    require_shape("output", output, shape, "that of the output of attention")
    require_shape("lse", lse, shape[:-1], "that of the log-sum-exp")
    require_shape("d_output", d_output, shape, "that of the output")
    delta = (d_out * wide_output).sum(axis=-1)
    if d_lse is not None:
        (d_lse_wide,) = checked_floats(d_lse=d_lse)
        require_shape("d_lse", d_lse, shape[:-1], "that of the log-sum-exp")
        delta = delta - d_lse_wide
    return delta, np.where(np.isneginf(wide_lse), np.zeros_like(wide_lse), wide_lse), d_out


@np.errstate(over="ignore", invalid="ignore")  # a key or value without weight may hold anything
def _tile_gradients(
    tile: ScoredPairs, d_output: np.ndarray, delta: np.ndarray, lse: np.ndarray, kv_heads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What one block adds to the gradients of query, key, value and mask."""
    weights = np.exp(tile.scores - lse[..., None])
    d_weights = d_output @ tile.value.swapaxes(-1, -2)
    d_scores = np.where(weights == 0.0, np.zeros_like(weights), weights * (d_weights - delta[..., None]))
    d_raw = d_scores if tile.softcap is None else d_scores * _cap_slope(tile.raw, tile.softcap)
    d_query = weighted_sum(d_raw, tile.key) * tile.scale
    d_key = weighted_sum(d_raw.swapaxes(-1, -2), tile.query) * tile.scale
    d_value = weighted_sum(weights.swapaxes(-1, -2), d_output)
    if kv_heads is not None:
        d_key, d_value = _sum_groups(d_key, kv_heads), _sum_groups(d_value, kv_heads)
    return d_query, d_key, d_value, d_scores
