"""Which query may attend to which key: boolean masks, True = may attend, rows = queries, columns = keys."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Integer

from attn_course.reference.arrays import described, require_integer

FAR = 2**60  # farther than any length; sums of a few of them still fit into 64 bits


def causal_mask(q_len: int, kv_len: int, q_offset: int | Integer[np.ndarray, "*batch"] = 0) -> Bool[np.ndarray, "*batch q_len kv_len"]:
    """Let each query see the keys up to its own position: j <= i + q_offset, Eq. causal-mask.

    `q_offset`: position of the first query among the keys: 0 aligns the top left corners, kv_len - q_len the bottom
    right ones, Eq. bottom-right-offset; with a KV cache it is the past length.

    Returns `mask`: True where the query may attend to the key.

    Raises TypeError if an argument is not an integer; ValueError if a length is negative.

    In the rows-are-queries form the forbidden part is the upper triangle; with columns as queries it is the lower one.

    >>> causal_mask(2, 3, q_offset=1).astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    queries, keys = _positions(q_len, kv_len, q_offset)
    return keys <= queries


def window_mask(
    q_len: int, kv_len: int, left: int | None, right: int | None, q_offset: int | Integer[np.ndarray, "*batch"] = 0
) -> Bool[np.ndarray, "*batch q_len kv_len"]:
    """Let each query see the keys near its own position: i + q_offset - left <= j <= i + q_offset + right.

    Eq. reach-of-stacked-windows has the window of w keys to the left as B_w: left = w, right = 0.

    `left`, `right`: how many positions back and ahead; None leaves that side open.
    `q_offset`: position of the first query among the keys.

    Returns `mask`: True where the query may attend to the key.

    Raises TypeError if an argument is not an integer (or None, for a side); ValueError if a length or a side is
    negative.

    Sliding-window attention: Child et al. (2019), arXiv:1904.10509; Beltagy et al. (2020), arXiv:2004.05150.

    >>> window_mask(3, 3, left=1, right=0).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    queries, keys = _positions(q_len, kv_len, q_offset)
    mask = np.ones(np.broadcast_shapes(queries.shape, keys.shape), dtype=bool)
    if left is not None:
        mask &= keys >= queries - min(require_integer("left", left, 0), FAR)
    if right is not None:
        mask &= keys <= queries + min(require_integer("right", right, 0), FAR)
    return mask


def padding_mask(lengths: Integer[np.ndarray, "*batch"], kv_len: int) -> Bool[np.ndarray, "*batch 1 kv_len"]:
    """Hide the padding behind the end of each sequence, so that it changes nothing, Eq. masked-attention.

    `lengths`: number of real keys of each sequence, from 0 to kv_len. With a head axis after the batch, pass
    ``lengths[:, None]``.

    Returns `mask`: True for real keys; the axis of length 1 broadcasts over the queries.

    Raises TypeError if `lengths` is not an ndarray of integers, or `kv_len` not an integer; ValueError if `kv_len` is
    negative, or a length lies outside 0 .. kv_len.

    >>> padding_mask(np.array([1, 3]), 3).astype(int)
    array([[[1, 0, 0]],
    <BLANKLINE>
           [[1, 1, 1]]])
    """
    kv_len = require_integer("kv_len", kv_len, 0)
    if not isinstance(lengths, np.ndarray) or not np.issubdtype(lengths.dtype, np.integer):
        raise TypeError(f"lengths must be an ndarray of integers; got {described(lengths)}")
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= kv_len):
        raise ValueError(f"lengths must lie in 0 .. kv_len = {kv_len}; got {lengths.min()} to {lengths.max()}")
    return np.arange(kv_len) < lengths[..., None, None]


def _positions(q_len: Any, kv_len: Any, q_offset: Any) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the queries, (*batch, q_len, 1), and of the keys, (kv_len,)."""
    scalar = isinstance(q_offset, (int, np.integer)) and not isinstance(q_offset, bool)
    if not scalar and not (isinstance(q_offset, np.ndarray) and np.issubdtype(q_offset.dtype, np.integer)):
        raise TypeError(f"q_offset must be an integer or an ndarray of integers; got {described(q_offset)}")
    offset = np.array(max(-FAR, min(int(q_offset), FAR))) if scalar else q_offset.astype(np.int64).clip(-FAR, FAR)
    queries = np.arange(require_integer("q_len", q_len, 0))[:, None] + offset[..., None, None]
    return queries, np.arange(require_integer("kv_len", kv_len, 0))
