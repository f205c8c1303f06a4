"""Bytes that attention moves between a large slow memory and a small fast one: with the scores stored, and tile by tile."""

from typing import Literal

from attn_course.costs.checks import require_choice, require_count, require_counts, require_flag, require_sides


def materialised_attention_bytes(q_len: int, kv_len: int, d_k: int, d_v: int, *, bytes_per_number: int = 2) -> int:
    r"""Return the bytes one head moves if scores and weights are stored: three steps that read and write, Eq. plain-attention-bytes.

    .. math:: b\,\bigl[(T_q + T_k)(d_k + d_v) + 4\, T_q T_k\bigr]

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_k, d_v : int
        Features of queries and keys, and of values.
    bytes_per_number : int, optional
        2 for float16 and bfloat16.

    Returns
    -------
    n_bytes : int
        Scores are written, read by the softmax, weights are written and read by the product with the values.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If a number is negative, or `bytes_per_number` below 1.

    Notes
    -----
    Algorithm 0 of FlashAttention, Dao et al. (2022), arXiv:2205.14135; its Theorem 2 gives the order, T d + T^2. A mask
    changes nothing, since masked scores are stored too.

    Examples
    --------
    >>> materialised_attention_bytes(1024, 1024, 64, 64) // 2**20
    8
    """
    q_len, kv_len, d_k, d_v = require_counts(q_len=q_len, kv_len=kv_len, d_k=d_k, d_v=d_v)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    return size * ((q_len + kv_len) * (d_k + d_v) + 4 * q_len * kv_len)


def tiled_attention_bytes(
    q_len: int,
    kv_len: int,
    d_k: int,
    d_v: int,
    *,
    block_q: int,
    block_kv: int,
    outer: Literal["query", "key"] = "query",
    is_causal: bool = False,
    q_offset: int = 0,
    window: tuple[int | None, int | None] | None = None,
    bytes_per_number: int = 2,
    bytes_per_statistic: int = 4,
) -> int:
    r"""Return the bytes one head moves if attention goes tile by tile and no score leaves the fast memory.

    .. math::
        \text{query}:\;& b\,\bigl[T_q (d_k + d_v) + n_q T_k (d_k + d_v)\bigr] + b_s T_q \\
        \text{key}:\;& b\,\bigl[T_k (d_k + d_v) + T_q d_v + n_k T_q (d_k + 2 d_v)\bigr] + b_s (2 + 4 n_k) T_q

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_k, d_v : int
        Features of queries and keys, and of values.
    block_q, block_kv : int
        Queries and keys in a tile; n_q and n_k tiles cover the lengths.
    outer : {"query", "key"}, optional
        Which blocks stay while the others pass. "query" (FlashAttention-2): keys and values pass once for each block of
        queries; output and log-sum-exp are written once. "key" (the first FlashAttention): queries, unfinished
        outputs, row maxima and row sums pass once for each block of keys, after outputs and both have been initialised.
    is_causal : bool, optional
        Whether query i sees the keys j <= i + q_offset only; tiles that are hidden as a whole move nothing.
    q_offset : int, optional
        Position of the first query among the keys.
    window : (int or None, int or None), optional
        How far a query sees to the left and to the right; None leaves a side open.
    bytes_per_number : int, optional
        2 for float16 and bfloat16.
    bytes_per_statistic : int, optional
        4 for row maxima, row sums and log-sum-exps in float32.

    Returns
    -------
    n_bytes : int
        The formulas above are those without a mask.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is negative, a block or a size in bytes is below 1, or `outer` is unknown.

    Notes
    -----
    Dao et al. (2022), Algorithm 1 and Theorem 2, arXiv:2205.14135; Dao (2023), Algorithm 1, arXiv:2307.08691. Tiles that fill
    a fast memory of M numbers have about M / d rows, hence T^2 d^2 / M in all, Eq. bytes-by-fast-memory. Eq. tiled-attention-bytes is the
    case of queries
    outside, no mask, and statistics as wide as other numbers.

    Examples
    --------
    >>> [tiled_attention_bytes(1024, 1024, 64, 64, block_q=block, block_kv=64) // 2**10 for block in (1, 16, 128, 1024)]
    [262404, 16644, 2308, 516]
    """
    q_len, kv_len, d_k, d_v = require_counts(q_len=q_len, kv_len=kv_len, d_k=d_k, d_v=d_v)
    sizes = {"block_q": block_q, "block_kv": block_kv, "bytes_per_number": bytes_per_number, "bytes_per_statistic": bytes_per_statistic}
    block_q, block_kv, number, statistic = require_counts(1, **sizes)
    require_choice("outer", outer, ("query", "key"))
    offset = require_count("q_offset", q_offset, None)
    left, right = require_sides(window)
    if require_flag("is_causal", is_causal):
        right = 0 if right is None else min(right, 0)
    if outer == "query":
        before, after = None if left is None else offset - left, None if right is None else offset + right
        passed = _passed(q_len, kv_len, block_q, block_kv, before, after)  # keys, once for each block of queries that sees their tile
        return number * (q_len + passed) * (d_k + d_v) + statistic * q_len
    before, after = None if right is None else -offset - right, None if left is None else left - offset
    passed = _passed(kv_len, q_len, block_kv, block_q, before, after)
    return number * (kv_len * (d_k + d_v) + q_len * d_v + passed * (d_k + 2 * d_v)) + statistic * (2 * q_len + 4 * passed)


def _passed(length: int, other_len: int, block: int, other_block: int, before: int | None, after: int | None) -> int:
    """How many rows of the other side pass by the blocks of this one, if row i meets those from i + before to i + after."""
    total = 0
    for start in range(0, length, block):
        stop = min(start + block, length)
        first = 0 if before is None else max(start + before, 0)
        last = other_len - 1 if after is None else min(stop - 1 + after, other_len - 1)
        if first <= last:
            total += min((last // other_block + 1) * other_block, other_len) - first // other_block * other_block
    return total
