"""Positions as a penalty on scores: attention with linear biases."""

import math

import numpy as np
from jaxtyping import Float, Integer

from attn_course.reference.arrays import described, require_integer


def alibi_slopes(n_heads: int) -> Float[np.ndarray, "n_heads"]:
    r"""Return how fast the penalty of each head grows with the distance, Eq. alibi-slopes.

    .. math:: m_h = 2^{-8h/H}, \qquad h = 1, \ldots, H

    Where H is no power of two, the formula gives the slopes of the largest power of two P below it; the other heads get every
    second slope of 2 P heads, from the first on. The paper's text knows only the formula; its authors' code and all models in
    use do this.

    Raises TypeError if `n_heads` is not an integer; ValueError if it is below 1.

    Press et al. (2021), section 3, arXiv:2108.12409.

    >>> alibi_slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> alibi_slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    power = 2 ** math.floor(math.log2(require_integer("n_heads", n_heads, 1)))
    first, more = (2.0 ** (-8 * np.arange(1, count + 1) / count) for count in (power, 2 * power))
    return np.concatenate([first, more[::2][: n_heads - power]])


def alibi_bias(
    n_heads: int, q_len: int, kv_len: int, q_offset: int | Integer[np.ndarray, "*batch"] = 0
) -> Float[np.ndarray, "*batch n_heads q_len kv_len"]:
    r"""Return what is added to the scaled scores of each head: minus its slope times the distance, Eq. alibi-decays-weights.

    .. math:: B^{(h)}_{ij} = -m_h\, |i + \text{offset} - j|

    Pass it as the `mask` of `attention`, with `is_causal`: it does not hide the future. It is added behind the scale.

    `q_offset`: position of the first query among the keys: with a KV cache the past length.

    Raises TypeError if an argument is not an integer; ValueError if a length is negative, or there is no head.

    Press et al. (2021), section 3, arXiv:2108.12409, for keys up to the query.

    >>> alibi_bias(8, 2, 3, q_offset=1)[0]
    array([[-0.5, -0. , -0.5],
           [-1. , -0.5, -0. ]])
    """
    slopes = alibi_slopes(n_heads)
    many = isinstance(q_offset, np.ndarray) and np.issubdtype(q_offset.dtype, np.integer)
    if not many and (isinstance(q_offset, bool) or not isinstance(q_offset, (int, np.integer))):
        raise TypeError(f"q_offset must be an integer or an ndarray of integers; got {described(q_offset)}")
    queries = np.arange(require_integer("q_len", q_len, 0))[:, None] + np.asarray(q_offset)[..., None, None]
    distances = np.abs(queries - np.arange(require_integer("kv_len", kv_len, 0)))
    return -slopes[:, None, None] * distances[..., None, :, :]
