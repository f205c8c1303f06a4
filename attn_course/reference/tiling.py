"""Softmax and attention over blocks of keys, none of which needs to be seen twice, or with the others."""

from collections.abc import Iterable
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
    require_shape,
    weighted_sum,
)
from attn_course.reference.softmax import logsumexp, softmax
from attn_course.reference.tiles import Tiles


def online_softmax(blocks: Iterable[np.ndarray]) -> Float[np.ndarray, "*rows total"]:
    r"""Return the softmax over blocks of scores, with maximum and sum collected in one pass, Eq. online-softmax-update.

    .. math:: m' = \max(m, \max_j x_j), \qquad \ell' = \ell\,e^{m - m'} + \sum_j e^{x_j - m'}

    `blocks` (*#rows, n): scores, cut along the last axis; blocks may differ in n.

    Returns `weights`: what `softmax` gives for the concatenated blocks, in their common dtype.

    Raises TypeError if `blocks` is not iterable, or a block is not floating; ValueError if there is no block, a block
    has no axis, or the rows do not broadcast.

    Milakov and Gimelshein (2018), Algorithm 3, arXiv:1805.02867, a block instead of an element at a time.

    >>> online_softmax([np.array([0.0]), np.array([0.0, np.log(2.0)])])
    array([0.25, 0.25, 0.5 ])
    """
    if not isinstance(blocks, Iterable):
        raise TypeError(f"blocks must be an iterable of ndarrays; got {described(blocks)}")
    named = {f"blocks[{index}]": block for index, block in enumerate(blocks)}
    if not named:
        raise ValueError("blocks must hold at least one block; got none")
    wide = checked_floats(**named)
    for name, block in named.items():
        if block.ndim == 0:
            raise ValueError(f"{name} must have at least one axis; got shape ()")
    rows = (*broadcast_batch(**{name: block.shape[:-1] for name, block in named.items()}), 1)
    row_max, row_sum = np.full(rows, -np.inf, wide[0].dtype), np.zeros(rows, wide[0].dtype)
    for block in wide:
        row_max, row_sum, _, _ = online_update(row_max, row_sum, block)
    weights = [online_update(row_max, row_sum, block)[3] for block in wide]  # the maximum is final now
    total = np.where(row_sum == 0.0, 1.0, row_sum)
    return narrowed(np.concatenate([block / total for block in weights], axis=-1), np.result_type(*named.values()))


@np.errstate(over="ignore", invalid="ignore")  # a spread past the largest float is -inf; NaN and inf make NaN
def online_update(row_max: np.ndarray, row_sum: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Take a block of scores into the running maximum and sum of each row, both (..., 1), Eq. online-softmax-update.

    Returns the new maximum, the new sum, the factor that older sums need, and exp(scores - maximum). Rows that have seen
    nothing but -inf keep the maximum -inf and the sum 0.
    """
    new_max = np.maximum(row_max, scores.max(axis=-1, keepdims=True, initial=-np.inf))
    shift = np.where(np.isneginf(new_max), np.zeros_like(new_max), new_max)  # never -inf - -inf
    rescale, unnormalised = np.exp(row_max - shift), np.exp(scores - shift)
    return new_max, row_sum * rescale + unnormalised.sum(axis=-1, keepdims=True), rescale, unnormalised


def flash_attention(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    *,
    block_q: int,
    block_kv: int,
    mask: np.ndarray | None = None,
    is_causal: bool = False,
    q_offset: int | np.ndarray = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
) -> Any:
    r"""Return what `attention` returns, with no more than one block of scores at a time.

    Each block keeps the invariant of Eq. tiled-attention-update; after the last one Eq. row-lse-and-output gives the output and the
    log-sum-exp.

    `block_q`, `block_kv`: queries and keys in a block; the last blocks may be smaller.
    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,), `is_causal`, `q_offset` (an int, or (*#batch)), `window`, `scale`, `softcap` and
    `enable_gqa`: those of `attention`. The weights are not among the results: they never exist as a whole.
    `return_lse`: also return the log-sum-exp of each row of masked scores, which the backward pass needs.

    Returns `output` (*batch, q_len, d_v): in the common dtype of query, key and value, computed in at least float32;
    `lse` (*batch, q_len): natural logarithm; only with `return_lse`.

    Raises TypeError, ValueError as in `attention`, and if a block size is not an integer from 1.

    FlashAttention-2, Algorithm 1 (Dao, 2023), arXiv:2307.08691: the sum of exp(score - maximum) times value is kept
    unnormalised, shrinks whenever the maximum grows, and is divided by the sum of weights once, at the end. Blocks that
    a causal mask hides as a whole could be skipped; here they add 0.

    >>> query, key, value = np.array([[0.0]]), np.array([[1.0], [2.0], [3.0]]), np.array([[10.0], [20.0], [60.0]])
    >>> flash_attention(query, key, value, block_q=1, block_kv=2)
    array([[30.]])
    """
    require_flags(return_lse=return_lse)
    options: dict[str, Any] = {"is_causal": is_causal, "window": window, "scale": scale, "softcap": softcap, "enable_gqa": enable_gqa}
    tiles = Tiles(query, key, value, block_q, block_kv, mask, q_offset, options)
    outputs, lses = [], []
    for rows in tiles.rows:
        row_max, row_sum, acc = tiles.nothing_seen()
        for columns in tiles.columns:
            tile = tiles.scored(rows, columns)
            row_max, row_sum, rescale, unnormalised = online_update(row_max, row_sum, tile.scores)
            acc = _shrunk(acc, rescale) + weighted_sum(unnormalised, tile.value)
        outputs.append(acc / np.where(row_sum == 0.0, 1.0, row_sum))
        lses.append((row_max + np.log(row_sum, where=row_sum != 0.0, out=np.zeros_like(row_sum)))[..., 0])
    dtype = np.result_type(query, key, value)
    output = narrowed(np.concatenate(outputs, axis=-2), dtype)
    return (output, narrowed(np.concatenate(lses, axis=-1), dtype)) if return_lse else output


@np.errstate(over="ignore", invalid="ignore")
def _shrunk(acc: np.ndarray, rescale: np.ndarray) -> np.ndarray:
    """acc * rescale, where a factor of 0 removes whatever acc holds."""
    return np.where(rescale == 0.0, np.zeros_like(acc), acc * rescale)


def merge_partial_attention(
    outputs: Iterable[np.ndarray], lses: Iterable[np.ndarray]
) -> tuple[Float[np.ndarray, "*batch q_len d_v"], Float[np.ndarray, "*batch q_len"]]:
    r"""Put together what the same queries got from disjoint sets of keys, Eq. merge-of-finished-outputs.

    .. math:: o = \sum_a e^{\ell_a - \ell}\,o_a, \qquad \ell = \ln \sum_a e^{\ell_a}

    `outputs` (*batch, q_len, d_v): outputs of `attention` over each set of keys.
    `lses` (*batch, q_len): their log-sum-exps, in the same order.

    Returns `output`: what attention over all keys gives; `lse`: its log-sum-exp, so that the result can be merged
    again.

    Raises TypeError if an array is not floating; ValueError if there is nothing to merge, or numbers or shapes differ.

    Two blocks of keys: FlashAttention-2, section 2.3.1 (Dao, 2023), arXiv:2307.08691; many devices: ring attention, Liu
    et al. (2023), arXiv:2310.01889. A set without any visible key (output 0, lse -inf) changes nothing. Compare Eq.
    merge-of-softmax-sums.

    >>> merge_partial_attention([np.array([[3.0]]), np.array([[9.0]])], [np.array([np.log(2.0)]), np.array([0.0])])
    (array([[5.]]), array([1.09861229]))
    """
    parts, logs = list(outputs), list(lses)
    if not parts or len(parts) != len(logs):
        raise ValueError(f"outputs and lses must hold the same number of arrays, at least one; got {len(parts)} and {len(logs)}")
    wide = checked_floats(**{f"outputs[{index}]": part for index, part in enumerate(parts)})
    wide_logs = checked_floats(**{f"lses[{index}]": log for index, log in enumerate(logs)})
    for index, (part, log) in enumerate(zip(parts, logs, strict=True)):
        require_axes(2, "(..., q_len, d_v)", **{f"outputs[{index}]": part})
        require_shape(f"outputs[{index}]", part, parts[0].shape, "that of outputs[0]")
        require_shape(f"lses[{index}]", log, part.shape[:-1], "that of its output but for d_v")
    lse = np.stack(wide_logs)
    weights = softmax(lse, axis=0)[..., None]
    output = np.where(weights == 0.0, 0.0, weights * np.stack(wide)).sum(axis=0)
    return narrowed(output, np.result_type(*parts)), narrowed(logsumexp(lse, axis=0), np.result_type(*logs))
