"""The two layouts of rotary positions: pairs (i, i + d / 2), or neighbours (2 i, 2 i + 1)."""

import numpy as np

from attn_course.notation.checks import require_floats, require_integer


def interleaved_from_halves(x: np.ndarray, *, n_heads: int = 1) -> np.ndarray:
    r"""Reorder features so that RoPE in the interleaved layout does what RoPE in halves did before.

    .. math:: x'_{2i} = x_i, \qquad x'_{2i+1} = x_{i + d/2}

    Parameters
    ----------
    x : (..., n_heads * d_head) ndarray of float
        A projection (d_model, n_heads * d_head), a bias, or queries and keys themselves.
    n_heads : int, optional
        Number of heads, each of which is reordered on its own.

    Returns
    -------
    reordered : (..., n_heads * d_head) ndarray
        Do it to queries and to keys: their products are then the same. A copy.

    Raises
    ------
    TypeError
        If `x` is not a floating ndarray, or `n_heads` not an integer.
    ValueError
        If `x` has no axis, or the heads do not each have an even number of features.

    Notes
    -----
    Su et al. (2021), arXiv:2104.09864, rotate neighbours; GPT-NeoX and what follows it rotate halves.

    Examples
    --------
    >>> interleaved_from_halves(np.array([0.0, 1.0, 2.0, 3.0]))
    array([0., 2., 1., 3.])
    """
    heads = _per_head(x, n_heads)  # (..., n_heads, 2, d_head / 2)
    return heads.swapaxes(-1, -2).reshape(x.shape).copy()


def halves_from_interleaved(x: np.ndarray, *, n_heads: int = 1) -> np.ndarray:
    r"""Reorder features so that RoPE in halves does what RoPE in the interleaved layout did before; undoes `interleaved_from_halves`.

    Parameters
    ----------
    x : (..., n_heads * d_head) ndarray of float
        A projection (d_model, n_heads * d_head), a bias, or queries and keys themselves.
    n_heads : int, optional
        Number of heads, each of which is reordered on its own.

    Returns
    -------
    reordered : (..., n_heads * d_head) ndarray
        A copy.

    Raises
    ------
    TypeError
        If `x` is not a floating ndarray, or `n_heads` not an integer.
    ValueError
        If `x` has no axis, or the heads do not each have an even number of features.

    Examples
    --------
    >>> halves_from_interleaved(np.array([0.0, 2.0, 1.0, 3.0]))
    array([0., 1., 2., 3.])
    """
    heads = _per_head(x, n_heads)
    pairs = heads.reshape(*heads.shape[:-2], heads.shape[-1], 2)  # (..., n_heads, d_head / 2, 2)
    return pairs.swapaxes(-1, -2).reshape(x.shape).copy()


def _per_head(x: np.ndarray, n_heads: int) -> np.ndarray:
    """Split the last axis into heads of two halves."""
    require_floats("x", x, 1, "(..., n_heads * d_head)")
    heads = require_integer("n_heads", n_heads, 1)
    if x.shape[-1] % (2 * heads):
        raise ValueError(f"x must hold {heads} heads of an even number of features in its last axis; got {x.shape[-1]}")
    return x.reshape(*x.shape[:-1], heads, 2, x.shape[-1] // (2 * heads))
