"""Recurrent layers, for comparison: their FLOPs are linear in the length, and so is what has to wait."""

from typing import Literal

from attn_course.costs.checks import require_choice, require_counts, require_flag


def recurrent_flops(length: int, d_in: int, d_hidden: int, *, n_gates: int = 1) -> int:
    r"""Return the FLOPs of a recurrent layer, h_t = f(x_t W + h_{t-1} U).

    .. math:: 2\, T g\, (d_{in} + d_h)\, d_h

    Parameters
    ----------
    length : int
        Positions.
    d_in, d_hidden : int
        Features of the input and of the hidden state.
    n_gates : int, optional
        Pairs of matrices W, U: 1 for a plain network, 3 for a GRU, 4 for an LSTM.

    Returns
    -------
    n_flops : int
        Of the matrix products; the rest is linear in d_hidden.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If a number is negative, or `n_gates` below 1.

    Notes
    -----
    O(T d^2) against O(T^2 d) for self-attention, which is faster while T < d: Vaswani et al. (2017), section 4 and
    Table 1, arXiv:1706.03762.

    Examples
    --------
    >>> recurrent_flops(5, 3, 7), recurrent_flops(5, 3, 7, n_gates=4)
    (700, 2800)
    """
    length, d_in, d_hidden = require_counts(length=length, d_in=d_in, d_hidden=d_hidden)
    (gates,) = require_counts(1, n_gates=n_gates)
    return 2 * length * gates * (d_in + d_hidden) * d_hidden


def recurrent_parameters(d_in: int, d_hidden: int, *, n_gates: int = 1, bias: bool = True) -> int:
    r"""Return the parameters of a recurrent layer.

    .. math:: g\, (d_{in} + d_h + 1)\, d_h

    Parameters
    ----------
    d_in, d_hidden : int
        Features of the input and of the hidden state.
    n_gates : int, optional
        Pairs of matrices W, U: 1 for a plain network, 3 for a GRU, 4 for an LSTM.
    bias : bool, optional
        Whether each gate has one bias (torch's layers have two).

    Returns
    -------
    parameters : int
        Independent of the length.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is negative, or `n_gates` below 1.

    Examples
    --------
    >>> recurrent_parameters(3, 7), recurrent_parameters(3, 7, n_gates=4, bias=False)
    (77, 280)
    """
    d_in, d_hidden = require_counts(d_in=d_in, d_hidden=d_hidden)
    (gates,) = require_counts(1, n_gates=n_gates)
    return gates * (d_in + d_hidden + int(require_flag("bias", bias))) * d_hidden


def sequential_products(layer: Literal["attention", "recurrent"], length: int) -> int:
    r"""Return how many matrix products of a layer must wait for one another, however many machines help.

    Parameters
    ----------
    layer : {"attention", "recurrent"}
        Self-attention with its projections, or a recurrent layer.
    length : int
        Positions.

    Returns
    -------
    products : int
        4 for attention (project, compare, average, project), at any length; for the recurrent layer one for the
        first input and one more for each later step. 0 if there is no position.

    Raises
    ------
    TypeError
        If `length` is not an integer.
    ValueError
        If it is negative, or the layer is unknown.

    Notes
    -----
    "Sequential operations" of Vaswani et al. (2017), Table 1, arXiv:1706.03762: O(1) against O(T). The recurrent layer can
    multiply all its inputs at once before it starts, and the zero state before the first step needs no product.

    Examples
    --------
    >>> sequential_products("attention", 1000), sequential_products("recurrent", 1000)
    (4, 1000)
    """
    require_choice("layer", layer, ("attention", "recurrent"))
    (length,) = require_counts(length=length)
    return (4 if length else 0) if layer == "attention" else length
