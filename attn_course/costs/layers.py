"""One linear map, and a recurrent layer for comparison."""

from attn_course.costs.checks import require_counts


def projection_flops(length: int, d_in: int, d_out: int) -> int:
    r"""Return the FLOPs of one linear map applied to every position.

    .. math:: 2\, T\, d_{in}\, d_{out}

    Kaplan et al. (2020), section 2.1, arXiv:2001.08361: two FLOPs for each parameter and token.

    >>> projection_flops(5, 7, 3)
    210
    """
    length, d_in, d_out = require_counts(length=length, d_in=d_in, d_out=d_out)
    return 2 * length * d_in * d_out


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
