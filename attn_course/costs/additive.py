"""Additive attention: a hidden layer for every pair, in FLOPs, bytes and parameters."""

from attn_course.costs.checks import require_counts


def additive_attention_flops(
    q_len: int, kv_len: int, d_query: int, d_key: int, d_hidden: int, d_v: int, *, pairs: int | None = None
) -> int:
    r"""Return the FLOPs of additive attention, w^T tanh(q W_q + k W_k), with its weighted sum of values.

    .. math:: 2\,(T_q d_q + T_k d_k)\,d_h + 3 P d_h + 2 P d_v

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_query, d_key : int
        Features of queries and of keys.
    d_hidden : int
        Width of the hidden layer.
    d_v : int
        Features of values.
    pairs : int, optional
        Pairs that count; all q_len * kv_len if left out.

    Returns
    -------
    n_flops : int
        For each pair d_hidden additions, d_hidden multiply-adds with w, and the value; `additive_tanhs` come on top.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is negative.

    Notes
    -----
    Bahdanau et al. (2014), appendix A.1.2, arXiv:1409.0473. Three FLOPs and a tanh for each hidden feature of each pair,
    against two for each feature in a dot product: the same order, but no matrix product. Eq. additive-score-flops counts a tanh as a FLOP,
    and no values.

    Examples
    --------
    >>> additive_attention_flops(5, 7, 2, 3, 11, 13)
    2747
    """
    sizes = {"q_len": q_len, "kv_len": kv_len, "d_query": d_query, "d_key": d_key, "d_hidden": d_hidden, "d_v": d_v}
    q_len, kv_len, d_query, d_key, d_hidden, d_v = require_counts(**sizes)
    (pairs,) = require_counts(pairs=q_len * kv_len if pairs is None else pairs)
    return 2 * (q_len * d_query + kv_len * d_key) * d_hidden + pairs * (3 * d_hidden + 2 * d_v)


def additive_tanhs(pairs: int, d_hidden: int) -> int:
    r"""Return how many hyperbolic tangents additive scores take: d_hidden for every pair.

    Parameters
    ----------
    pairs : int
        Pairs of a query and a key that count.
    d_hidden : int
        Width of the hidden layer.

    Returns
    -------
    tanhs : int
        Where the softmax takes one exponential a pair.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is negative.

    Examples
    --------
    >>> additive_tanhs(35, 11)
    385
    """
    pairs, d_hidden = require_counts(pairs=pairs, d_hidden=d_hidden)
    return pairs * d_hidden


def additive_intermediate_bytes(q_len: int, kv_len: int, d_hidden: int, *, bytes_per_number: int = 4) -> int:
    r"""Return the size of the hidden layer of additive scores, which a dot product does not have, Eq. additive-memory-overhead.

    .. math:: b\, T_q T_k d_h

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_hidden : int
        Width of the hidden layer.
    bytes_per_number : int, optional
        4 for float32.

    Returns
    -------
    n_bytes : int
        Of one array (q_len, kv_len, d_hidden); d_hidden times that of the scores.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If a number is negative, or `bytes_per_number` below 1.

    Examples
    --------
    >>> additive_intermediate_bytes(1024, 1024, 64) // 2**20
    256
    """
    q_len, kv_len, d_hidden = require_counts(q_len=q_len, kv_len=kv_len, d_hidden=d_hidden)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    return size * q_len * kv_len * d_hidden


def additive_parameters(d_query: int, d_key: int, d_hidden: int) -> int:
    r"""Return the parameters of the additive score: W_q, W_k and w.

    .. math:: (d_q + d_k + 1)\, d_h

    Parameters
    ----------
    d_query, d_key : int
        Features of queries and of keys.
    d_hidden : int
        Width of the hidden layer.

    Returns
    -------
    parameters : int
        The dot product has none.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is negative.

    Examples
    --------
    >>> additive_parameters(2, 3, 11)
    66
    """
    d_query, d_key, d_hidden = require_counts(d_query=d_query, d_key=d_key, d_hidden=d_hidden)
    return (d_query + d_key + 1) * d_hidden
