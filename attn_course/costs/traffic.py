"""Bytes that attention moves between a large slow memory and a small fast one: scores stored, tile by tile, and additive."""

from attn_course.costs.checks import require_count, require_counts, require_flag, require_sides


def materialised_attention_bytes(q_len: int, kv_len: int, d_k: int, d_v: int, *, bytes_per_number: int = 2) -> int:
    r"""Return the bytes one head moves if scores and weights are stored: three steps that read and write, Eq. plain-attention-bytes.

    .. math:: b\,\bigl[(T_q + T_k)(d_k + d_v) + 4\, T_q T_k\bigr]

    Scores are written, read by the softmax, weights are written and read by the product with the values; masked ones too.

    Algorithm 0 of FlashAttention, Dao et al. (2022), arXiv:2205.14135; its Theorem 2 gives the order, T d + T^2.

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
    is_causal: bool = False,
    q_offset: int = 0,
    window: tuple[int | None, int | None] | None = None,
    bytes_per_number: int = 2,
    bytes_per_statistic: int = 4,
) -> int:
    r"""Return the bytes one head moves if attention goes tile by tile and no score leaves the fast memory.

    .. math:: b\,\bigl[T_q (d_k + d_v) + n_q T_k (d_k + d_v)\bigr] + b_s T_q \;\text{ without a mask}

    Keys and values pass once for each of the n_q blocks of `block_q` queries; output and log-sum-exp (`bytes_per_statistic`
    each, 4 in float32) are written once. Tiles of `block_kv` keys that are hidden as a whole, by `is_causal` or a `window`
    (left, right) around position i + q_offset, move nothing.

    Dao (2023), FlashAttention-2, Algorithm 1, arXiv:2307.08691. Tiles that fill a fast memory of M numbers have about M / d
    rows, hence T^2 d^2 / M in all. Eq. tiled-attention-bytes is the case without a mask, and
    statistics as wide as other numbers.

    >>> [tiled_attention_bytes(1024, 1024, 64, 64, block_q=block, block_kv=64) // 2**10 for block in (1, 16, 128, 1024)]
    [262404, 16644, 2308, 516]
    """
    q_len, kv_len, d_k, d_v = require_counts(q_len=q_len, kv_len=kv_len, d_k=d_k, d_v=d_v)
    sizes = {"block_q": block_q, "block_kv": block_kv, "bytes_per_number": bytes_per_number, "bytes_per_statistic": bytes_per_statistic}
    block_q, block_kv, number, statistic = require_counts(1, **sizes)
    offset = require_count("q_offset", q_offset, None)
    left, right = require_sides(window)
    if require_flag("is_causal", is_causal):
        right = 0 if right is None else min(right, 0)
    before, after = None if left is None else offset - left, None if right is None else offset + right
    total = q_len
    for start in range(0, q_len, block_q):  # the keys that pass by a block of queries: tiles with a pair that may attend
        first = 0 if before is None else max(start + before, 0)
        last = kv_len - 1 if after is None else min(min(start + block_q, q_len) - 1 + after, kv_len - 1)
        if first <= last:
            total += min((last // block_kv + 1) * block_kv, kv_len) - first // block_kv * block_kv
    return number * total * (d_k + d_v) + statistic * q_len
