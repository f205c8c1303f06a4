"""How many pairs of a query and a key a mask leaves: the factor of every quadratic cost."""

from attn_course.costs.checks import require_count, require_counts, require_flag, require_sides


def attended_pairs(
    q_len: int,
    kv_len: int,
    *,
    is_causal: bool = False,
    q_offset: int = 0,
    window: tuple[int | None, int | None] | None = None,
) -> int:
    r"""Count the pairs in which the query may attend to the key: exact, in constant time, for lengths of any size.

    .. math:: \#\{(i, j) : 0 \le i < T_q,\; 0 \le j < T_k,\; j \le i + o \text{ if causal},\; i + o - l \le j \le i + o + r\}

    `q_offset`, o, is the position of the first query among the keys: with a KV cache, the past length. `window` is how far a
    query sees to the left and to the right; None leaves a side open.

    Full attention has T_q T_k pairs; causal attention of one sequence T (T + 1) / 2, by convention often taken as
    T^2 / 2. Closed forms: Eq. causal-pair-count if causal, Eq. window-pair-count with a window to the left.

    >>> attended_pairs(4, 4), attended_pairs(4, 4, is_causal=True)
    (16, 10)
    >>> attended_pairs(1, 1000, is_causal=True, q_offset=999)
    1000
    >>> attended_pairs(4, 4, window=(1, 0))
    7
    """
    q_len, kv_len = require_counts(q_len=q_len, kv_len=kv_len)
    offset = require_count("q_offset", q_offset, None)
    left, right = require_sides(window)
    if require_flag("is_causal", is_causal):
        right = 0 if right is None else min(right, 0)
    below = 0 if left is None else _pairs_up_to(offset - left - 1, q_len, kv_len)
    return (q_len * kv_len if right is None else _pairs_up_to(offset + right, q_len, kv_len)) - below


def _pairs_up_to(most: int, q_len: int, kv_len: int) -> int:
    """How many pairs have j - i <= most: row i has min(max(i + most + 1, 0), kv_len) of them, a difference of two ramps."""
    return _triangle(q_len + most) - _triangle(most) - _triangle(q_len + most - kv_len) + _triangle(most - kv_len)


def _triangle(n: int) -> int:
    """1 + 2 + ... + n, and 0 for negative n."""
    return n * (n + 1) // 2 if n > 0 else 0
