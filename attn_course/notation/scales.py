"""Where the scale stands: on the scores, in the weights, as a temperature, or in powers of two."""

import math
from typing import Any

import numpy as np

from attn_course.notation.checks import require_floats, require_number

LOG2_E = math.log2(math.e)


def rescale_query(w_query: np.ndarray, *, scale: float, new_scale: float) -> np.ndarray:
    r"""Return query weights with which attention at a new scale is what it was.

    .. math:: s\,(x W_Q)(y W_K)^\top = s'\,(x W'_Q)(y W_K)^\top, \qquad W'_Q = \frac{s}{s'} W_Q

    Parameters
    ----------
    w_query : (...) ndarray of float
        The projection of the queries, its bias, or queries themselves.
    scale : float
        Factor on the scores so far: 1 / sqrt(d_k) by default in the course, 1 where a text has none, 1 / T for a temperature T.
    new_scale : float
        Factor from now on.

    Returns
    -------
    rescaled : (...) ndarray
        Of the dtype of `w_query`. Rescale a bias too.

    Raises
    ------
    TypeError
        If `w_query` is not a floating ndarray, or a scale is not a number.
    ValueError
        If a scale is 0 or not finite.

    Notes
    -----
    The scale is a reparametrisation: it changes the start and the steps of training, not what can be computed.

    Examples
    --------
    >>> rescale_query(np.array([[1.0, 2.0]]), scale=0.5, new_scale=1.0)
    array([[0.5, 1. ]])
    """
    require_floats("w_query", w_query, 0, "()")
    factor = require_number("scale", scale) / require_number("new_scale", new_scale)
    return (w_query * factor).astype(w_query.dtype)


def base2_from_natural(exponent: Any) -> Any:
    r"""Return a scale, scores or a log-sum-exp for a softmax of powers of two, Eq. exponential-in-base-two.

    .. math:: e^{s} = 2^{s \log_2 e}

    Parameters
    ----------
    exponent : float or (...) ndarray of float
        In natural units, as everywhere in the course.

    Returns
    -------
    exponent_base2 : float or (...) ndarray
        Multiplied by log2(e).

    Raises
    ------
    TypeError
        If `exponent` is neither a number nor a floating ndarray.

    Notes
    -----
    Fused kernels compute powers of two and fold the factor into the scale; their log-sum-exp is then in base 2 unless it is converted.

    Examples
    --------
    >>> round(base2_from_natural(1.0), 4)
    1.4427
    """
    return _times("exponent", exponent, LOG2_E)


def natural_from_base2(exponent: Any) -> Any:
    r"""Return a scale, scores or a log-sum-exp in natural units; undoes `base2_from_natural`.

    Parameters
    ----------
    exponent : float or (...) ndarray of float
        For a softmax of powers of two.

    Returns
    -------
    exponent_natural : float or (...) ndarray
        Multiplied by ln(2).

    Raises
    ------
    TypeError
        If `exponent` is neither a number nor a floating ndarray.

    Examples
    --------
    >>> round(natural_from_base2(3.0), 4)  # 2 ** 3 = 8 = e ** 2.0794
    2.0794
    """
    return _times("exponent", exponent, math.log(2.0))


def _times(name: str, value: Any, factor: float) -> Any:
    if isinstance(value, np.ndarray):
        require_floats(name, value, 0, "()")
        return (value * factor).astype(value.dtype)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number or an ndarray of floats; got {type(value).__name__}")
    return float(value) * factor
