"""One head of attention: dot products, their gradients, cosines."""

from attn_course.costs.checks import require_counts, require_flag


def attention_flops(pairs: int, d_k: int, d_v: int) -> int:
    r"""Return the FLOPs of attention in one head: a score and a weighted value for every pair, Eq. attention-forward-flops.

    .. math:: 2 P (d_k + d_v)

    Parameters
    ----------
    pairs : int
        Pairs of a query and a key that count, P: those of `attended_pairs`, or q_len * kv_len where masked scores are computed too.
    d_k : int
        Features of queries and keys.
    d_v : int
        Features of values.

    Returns
    -------
    n_flops : int
        Two for each multiply-add; the softmax adds `attention_exps` exponentials.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is negative.

    Notes
    -----
    With d_k = d_v = d and all pairs this is the 4 T^2 d of FlashAttention-2, section 4.1 (Dao, 2023), arXiv:2307.08691.

    Examples
    --------
    >>> attention_flops(16, 8, 8)
    512
    """
    pairs, d_k, d_v = require_counts(pairs=pairs, d_k=d_k, d_v=d_v)
    return 2 * pairs * (d_k + d_v)


def attention_backward_flops(pairs: int, d_k: int, d_v: int, *, recompute_scores: bool = True) -> int:
    r"""Return the FLOPs of the gradients of attention in one head, Eq. attention-backward-flops.

    .. math:: 2 P (3 d_k + 2 d_v)

    Parameters
    ----------
    pairs : int
        Pairs of a query and a key that count, P.
    d_k : int
        Features of queries and keys.
    d_v : int
        Features of values.
    recompute_scores : bool, optional
        Whether the scores are computed again, as tiled attention does, or were stored.

    Returns
    -------
    n_flops : int
        Products: QK^T again, dO V^T, P^T dO, dS K and dS^T Q. Without the first, 2 P (2 d_k + 2 d_v).

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is negative.

    Notes
    -----
    With d_k = d_v five products against two, 2.5 times the forward pass: FlashAttention-2, section 4.1 (Dao, 2023), arXiv:2307.08691.

    Examples
    --------
    >>> attention_backward_flops(16, 8, 8) / attention_flops(16, 8, 8)
    2.5
    """
    pairs, d_k, d_v = require_counts(pairs=pairs, d_k=d_k, d_v=d_v)
    return 2 * pairs * ((3 if require_flag("recompute_scores", recompute_scores) else 2) * d_k + 2 * d_v)


def attention_exps(pairs: int) -> int:
    r"""Return how many exponentials the softmax of one head takes: one for every pair.

    Parameters
    ----------
    pairs : int
        Pairs of a query and a key that count.

    Returns
    -------
    exps : int
        Against d_k + d_v multiply-adds for each pair: few, though not always cheap.

    Raises
    ------
    TypeError
        If `pairs` is not an integer.
    ValueError
        If it is negative.

    Examples
    --------
    >>> attention_flops(16, 64, 64) // attention_exps(16)
    256
    """
    (pairs,) = require_counts(pairs=pairs)
    return pairs


def cosine_norm_flops(q_len: int, kv_len: int, d_k: int) -> int:
    r"""Return the FLOPs that cosine scores need beyond dot products: all rows brought to length 1.

    .. math:: 3 (T_q + T_k)\, d_k

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_k : int
        Their features.

    Returns
    -------
    n_flops : int
        For each row d_k squares, their sum, and d_k divisions; one square root a row comes on top.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is negative.

    Notes
    -----
    Linear in the lengths, where the dot products are quadratic: saving the norms saves little in a long sequence.

    Examples
    --------
    >>> [round(cosine_norm_flops(n, n, 64) / attention_flops(n * n, 64, 64), 4) for n in (4, 64, 1024)]
    [0.375, 0.0234, 0.0015]
    """
    q_len, kv_len, d_k = require_counts(q_len=q_len, kv_len=kv_len, d_k=d_k)
    return 3 * (q_len + kv_len) * d_k
