"""Whole layers: multi-head attention with its projections and shared heads, and a recurrent layer for comparison."""

from attn_course.costs.checks import require_counts, require_flag, require_groups
from attn_course.costs.scores import attention_flops


def projection_flops(length: int, d_in: int, d_out: int) -> int:
    r"""Return the FLOPs of one linear map applied to every position.

    .. math:: 2\, T\, d_{in}\, d_{out}

    Kaplan et al. (2020), section 2.1, arXiv:2001.08361: two FLOPs for each parameter and token.

    >>> projection_flops(5, 7, 3)
    210
    """
    length, d_in, d_out = require_counts(length=length, d_in=d_in, d_out=d_out)
    return 2 * length * d_in * d_out


def multi_head_attention_flops(
    q_len: int,
    kv_len: int,
    d_model: int,
    *,
    n_heads: int,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    d_key_value: int | None = None,
    projected_kv_len: int | None = None,
    pairs: int | None = None,
) -> int:
    r"""Return the FLOPs of multi-head attention: four projections, and attention in every head.

    .. math:: 2\, T_q d\, h d_k + 2\, T_{new} d_y\, h_{kv} (d_k + d_v) + 2\, h P (d_k + d_v) + 2\, T_q h d_v\, d

    `d_k` is d_model / n_heads if left out, `d_v` is `d_k`, and `d_key_value`, the features of the tokens that answer, `d_model`.
    `projected_kv_len` are the positions whose keys and values are new: 1 in a step of decoding with a cache, all `kv_len` if
    left out. `pairs` count in each head, all q_len * kv_len if left out. Shared key heads (`n_kv_heads`, a divisor of
    `n_heads`) make the projections and the cache smaller, not the scores. Raises ValueError where heads do not divide, or
    more positions are projected than there are.

    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762: with d_k = d_v = d_model / h the cost is that of one full-size
    head, Eq. multi-head-flops.

    >>> [multi_head_attention_flops(6, 6, 12, n_heads=h) for h in (1, 3, 12)]
    [8640, 8640, 8640]
    >>> multi_head_attention_flops(6, 6, 12, n_heads=3, d_k=12)
    25920
    """
    q_len, kv_len, d_model = require_counts(q_len=q_len, kv_len=kv_len, d_model=d_model)
    heads, kv_heads, width_k, width_v, d_source = _sizes(d_model, n_heads, n_kv_heads, d_k, d_v, d_key_value)
    new, count = require_counts(
        projected_kv_len=kv_len if projected_kv_len is None else projected_kv_len, pairs=q_len * kv_len if pairs is None else pairs
    )
    if new > kv_len:
        raise ValueError(f"projected_kv_len must be at most kv_len = {kv_len}; got {new}")
    return (
        projection_flops(q_len, d_model, heads * width_k)
        + projection_flops(new, d_source, kv_heads * (width_k + width_v))
        + heads * attention_flops(count, width_k, width_v)
        + projection_flops(q_len, heads * width_v, d_model)
    )


def multi_head_parameters(
    d_model: int,
    *,
    n_heads: int,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    d_key_value: int | None = None,
    bias: bool = False,
) -> int:
    r"""Return the parameters of the four projections of multi-head attention, Eq. multi-head-parameters.

    .. math:: d\, h d_k + d_y\, h_{kv} (d_k + d_v) + h d_v\, d

    What is left out is filled in as in `multi_head_attention_flops`: 4 d_model^2 for heads of the usual size, whatever their
    number. Raises ValueError where heads do not divide.

    >>> multi_head_parameters(12, n_heads=3), multi_head_parameters(12, n_heads=3, bias=True)
    (576, 624)
    >>> multi_head_parameters(12, n_heads=3, n_kv_heads=1)
    384
    """
    (d_model,) = require_counts(d_model=d_model)
    heads, kv_heads, width_k, width_v, d_source = _sizes(d_model, n_heads, n_kv_heads, d_k, d_v, d_key_value)
    matrices = d_model * heads * width_k + d_source * kv_heads * (width_k + width_v) + heads * width_v * d_model
    biases = heads * width_k + kv_heads * (width_k + width_v) + d_model
    return matrices + (biases if require_flag("bias", bias) else 0)


def recurrent_flops(length: int, d_in: int, d_hidden: int, *, n_gates: int = 1) -> int:
    r"""Return the FLOPs of the products of a recurrent layer, h_t = f(x_t W + h_{t-1} U).

    .. math:: 2\, T g\, (d_{in} + d_h)\, d_h

    `n_gates` are the pairs of matrices W, U: 1 for a plain network, 3 for a GRU, 4 for an LSTM.

    O(T d^2) against O(T^2 d) for self-attention, which is faster while T < d: Vaswani et al. (2017), section 4 and
    Table 1, arXiv:1706.03762.

    >>> recurrent_flops(5, 3, 7), recurrent_flops(5, 3, 7, n_gates=4)
    (700, 2800)
    """
    length, d_in, d_hidden = require_counts(length=length, d_in=d_in, d_hidden=d_hidden)
    (gates,) = require_counts(1, n_gates=n_gates)
    return 2 * length * gates * (d_in + d_hidden) * d_hidden


def _sizes(
    d_model: int, n_heads: int, n_kv_heads: int | None, d_k: int | None, d_v: int | None, d_key_value: int | None
) -> tuple[int, int, int, int, int]:
    """Fill in what was left out."""
    heads, kv_heads = require_groups(n_heads, n_kv_heads)
    if d_k is None:
        if d_model % heads:
            raise ValueError(f"n_heads must divide d_model when d_k is left out; got {heads} and {d_model}")
        d_k = d_model // heads
    width_k, width_v, d_source = require_counts(
        d_k=d_k, d_v=d_k if d_v is None else d_v, d_key_value=d_model if d_key_value is None else d_key_value
    )
    return heads, kv_heads, width_k, width_v, d_source
