"""One matrix in the place of two, W_Q W_K^T for W_Q and W_K: when this saves parameters or FLOPs, and when it does not."""

from fractions import Fraction

from attn_course.costs.checks import require_counts, require_flag


def query_key_parameters(d_query: int, d_key: int, d_k: int, *, n_heads: int = 1, absorbed: bool = False) -> int:
    r"""Return the parameters through which n_heads heads compare two tokens.

    .. math:: h\,(d_q + d_y)\, d_k, \qquad h\, d_q\, d_y \;\text{ absorbed}

    Parameters
    ----------
    d_query, d_key : int
        Features of the tokens that ask and that answer (d_model, or the width of a latent vector).
    d_k : int
        Features of queries and keys in one head.
    n_heads : int, optional
        Number of heads; each has an absorbed matrix of its own.
    absorbed : bool, optional
        Whether the product W_Q W_K^T is kept instead of its factors.

    Returns
    -------
    parameters : int
        The absorbed matrix has rank d_k all the same: it is larger without being richer, unless d_k passes
        `absorption_break_even_d_k`.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is negative.

    Notes
    -----
    The same counts hold for values and outputs, W_V W_O, with d_v for d_k.

    Examples
    --------
    >>> [query_key_parameters(512, 512, 64, n_heads=8, absorbed=absorbed) for absorbed in (False, True)]
    [524288, 2097152]
    """
    d_query, d_key, d_k, heads = require_counts(d_query=d_query, d_key=d_key, d_k=d_k, n_heads=n_heads)
    return heads * (d_query * d_key if require_flag("absorbed", absorbed) else (d_query + d_key) * d_k)


def query_key_flops(
    q_len: int,
    kv_len: int,
    d_query: int,
    d_key: int,
    d_k: int,
    *,
    n_heads: int = 1,
    absorbed: bool = False,
    projected_kv_len: int | None = None,
    pairs: int | None = None,
) -> int:
    r"""Return the FLOPs of all scores, from tokens to scores, with two projections or one absorbed matrix.

    .. math:: 2 h \bigl[(T_q d_q + T_{new} d_y)\, d_k + P d_k\bigr], \qquad 2 h \bigl[T_q d_q d_y + P d_y\bigr] \;\text{ absorbed}

    Parameters
    ----------
    q_len, kv_len : int
        Numbers of queries and keys.
    d_query, d_key : int
        Features of the tokens that ask and that answer.
    d_k : int
        Features of queries and keys in one head.
    n_heads : int, optional
        Number of heads.
    absorbed : bool, optional
        Whether the query is brought to the space of the tokens, x W_Q W_K^T, and compared with them directly.
    projected_kv_len : int, optional
        Positions whose keys must be made: fewer than `kv_len` if those of the past are cached; all if left out. An
        absorbed matrix makes no keys.
    pairs : int, optional
        Pairs that count in each head; all q_len * kv_len if left out.

    Returns
    -------
    n_flops : int
        Absorbed wins where few queries meet many tokens whose keys are not stored, as in decoding from a cache of latent vectors.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is negative, or more positions are projected than there are.

    Notes
    -----
    DeepSeek-V2, section 2.1.2 and appendix C, arXiv:2405.04434, for the absorption. Eq. factored-and-absorbed-flops is the case of one head
    and
    one sequence.

    Examples
    --------
    >>> [query_key_flops(1, 4096, 512, 512, 64, absorbed=absorbed) for absorbed in (False, True)]
    [269025280, 4718592]
    >>> [query_key_flops(4096, 4096, 512, 512, 64, absorbed=absorbed) for absorbed in (False, True)]
    [2684354560, 19327352832]
    """
    q_len, kv_len, d_query, d_key, d_k = require_counts(q_len=q_len, kv_len=kv_len, d_query=d_query, d_key=d_key, d_k=d_k)
    new, count, heads = require_counts(
        projected_kv_len=kv_len if projected_kv_len is None else projected_kv_len,
        pairs=q_len * kv_len if pairs is None else pairs,
        n_heads=n_heads,
    )
    if new > kv_len:
        raise ValueError(f"projected_kv_len must be at most kv_len = {kv_len}; got {new}")
    if require_flag("absorbed", absorbed):
        return 2 * heads * (q_len * d_query * d_key + count * d_key)
    return 2 * heads * ((q_len * d_query + new * d_key) * d_k + count * d_k)


def absorption_break_even_d_k(d_query: int, d_key: int) -> Fraction:
    r"""Return the d_k at which the absorbed matrix has as many entries as its two factors: Eq. absorbed-matrices-are-larger at 1.

    .. math:: \frac{d_q\, d_y}{d_q + d_y}

    Parameters
    ----------
    d_query, d_key : int
        Features of the tokens that ask and that answer.

    Returns
    -------
    d_k : fractions.Fraction
        Below it, absorbing costs parameters; for equal widths it is half of them, so that several heads of
        d_model / n_heads features should never be absorbed to save parameters.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is below 1.

    Examples
    --------
    >>> print(absorption_break_even_d_k(512, 512), absorption_break_even_d_k(1536, 512))
    256 384
    """
    d_query, d_key = require_counts(1, d_query=d_query, d_key=d_key)
    return Fraction(d_query * d_key, d_query + d_key)
