"""The difference of two attention maps over the same values: what both attend to cancels."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_integer
from attn_course.reference.attention import attention


def differential_attention(
    query: tuple[np.ndarray, np.ndarray],
    key: tuple[np.ndarray, np.ndarray],
    value: Float[np.ndarray, "*#batch kv_len d_v"],
    factor: Float[np.ndarray, "*#heads"],
    **options: Any,
) -> np.ndarray:
    r"""Subtract what a second pair of queries and keys attends to, Eq. differential-attention.

    .. math:: z = \bigl( \mathrm{softmax}(Q_1 K_1^\top / \sqrt{d_k}) - \lambda\, \mathrm{softmax}(Q_2 K_2^\top / \sqrt{d_k}) \bigr) V

    The weights of a row sum to 1 - lambda and may be negative: the output leaves the convex hull of the values.

    `query`, `key` (*#batch, len, d_k) each: of the first map, of the second.
    `factor`: lambda, one for each head, or for all that the leading axes list; 0 is plain attention.
    `options`: those of `attention`, but for the ones that return more.

    Returns `output` (*batch, q_len, d_v).

    Raises TypeError, ValueError as in `attention`; ValueError if there are not two of each, or `factor` does not fit.

    Ye et al. (2025), Eq. 1, arXiv:2410.05258; their norm of each head, and its factor 1 - lambda_init, come behind it.

    >>> one, value = np.zeros((1, 1)), np.array([[4.0], [8.0]])
    >>> differential_attention((one, one), (np.zeros((2, 1)), np.zeros((2, 1))), value, np.array(0.5))
    array([[3.]])
    """
    pairs = {"query": query, "key": key}
    for name, pair in pairs.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"{name} must be a tuple of two arrays, one for each map; got {type(pair).__name__}")
    flat = {f"{name}[{place}]": array for name, pair in pairs.items() for place, array in enumerate(pair)}
    q_1, q_2, k_1, k_2, v, lam = checked_floats(**flat, value=value, factor=factor)
    one, two = (attention(q, k, v, **options, return_weights=False, return_lse=False) for q, k in ((q_1, k_1), (q_2, k_2)))
    if lam.ndim > one.ndim - 2 or any(have not in (1, want) for have, want in zip(lam.shape[::-1], one.shape[-3::-1], strict=False)):
        raise ValueError(f"factor must broadcast to the leading axes {one.shape[:-2]}; got shape {lam.shape}")
    return narrowed(one - lam[..., None, None] * two, np.result_type(*flat.values(), value))


def differential_start(layer: int) -> float:
    r"""Return lambda at the start of training, by the depth of the layer, Eq. differential-start.

    .. math:: \lambda_{\mathrm{init}} = 0.8 - 0.6\, e^{-0.3\,(l - 1)}

    `layer`: l, counted from 1.

    Raises TypeError, ValueError if it is not an integer of 1 or more.

    Ye et al. (2025), Eq. 2 and what follows, arXiv:2410.05258.

    >>> round(differential_start(1), 12), round(differential_start(28), 2)
    (0.2, 0.8)
    """
    return 0.8 - 0.6 * math.exp(-0.3 * (require_integer("layer", layer, 1) - 1))
