"""Where a token stands: sinusoids to add to it, or a rotation of its queries and keys."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from attn_course.reference.arrays import broadcast_batch, checked_floats, described, require_axes, require_integer, require_positive


def sinusoidal_positions(length: int, d_model: int) -> Float[np.ndarray, "length d_model"]:
    r"""Return one row of sines and cosines for each position, Eq. sinusoidal-positions, to be added to the token embeddings.

    .. math:: P_{t,2i} = \sin(t\,\omega_i), \qquad P_{t,2i+1} = \cos(t\,\omega_i), \qquad \omega_i = 10000^{-2i/d}

    `d_model`: number of features; where it is odd, the last sine has no cosine.

    Returns `positions`: sine and cosine interleaved, from the fastest pair to the slowest.

    Raises TypeError if an argument is not an integer; ValueError if `length` is negative, or `d_model` below 1.

    Vaswani et al. (2017), section 3.5, arXiv:1706.03762. Moving on by k positions rotates every pair by k times its
    frequency, whatever the position was: a linear map, the same for all rows.

    >>> sinusoidal_positions(2, 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.84, 0.54, 0.01, 1.  ]])
    """
    times = np.arange(require_integer("length", length, 0))[:, None]
    features = np.arange(require_integer("d_model", d_model, 1))
    angles = times * 10_000.0 ** (-2 * (features // 2) / d_model)
    return np.where(features % 2 == 0, np.sin(angles), np.cos(angles))


def rope(
    x: Float[np.ndarray, "*#batch len d_k"],
    positions: Shaped[np.ndarray, "*#batch_positions len"],
    theta: float = 10_000.0,
    layout: Literal["halves", "interleaved"] = "halves",
) -> Float[np.ndarray, "*batch len d_k"]:
    r"""Rotate each pair of features by an angle that grows with the position, R_t of Eq. rotations-compose.

    .. math:: \begin{pmatrix} a' \\ b' \end{pmatrix} =
              \begin{pmatrix} \cos t\,\omega_i & -\sin t\,\omega_i \\ \sin t\,\omega_i & \cos t\,\omega_i \end{pmatrix}
              \begin{pmatrix} a \\ b \end{pmatrix}, \qquad \omega_i = \theta^{-2i/d_k}

    `x`: queries or keys, after their projection; d_k is even.
    `positions`: position t of each row; any numbers, in any order. With a head axis in `x`, pass ``positions[..., None,
    :]``.
    `theta`: base of the frequencies.
    `layout`: which features form pair i: i and i + d_k / 2, or 2 i and 2 i + 1.

    Returns `rotated`: same dtype as `x`; angles are computed in float64.

    Raises TypeError if `x` is not floating, `positions` neither integer nor floating, or `theta` no number; ValueError
    if d_k is odd, shapes do not fit, `theta` is not positive and finite, or `layout` is unknown.

    Su et al. (2021), section 3.2.2, Eqs. 14 to 16, arXiv:2104.09864 (interleaved). A rotation keeps norms, and the
    product of a query at position s with a key at position t depends on s and t only through s - t, Eq.
    rope-as-complex-rotation. The two layouts differ by a fixed permutation of the features.

    >>> rope(np.array([[1.0, 0.0]]), np.array([1])).round(4)
    array([[0.5403, 0.8415]])
    """
    (wide,) = checked_floats(x=x)
    require_axes(2, "(..., len, d_k)", x=x)
    _check_positions(positions, x)
    if x.shape[-1] % 2:
        raise ValueError(f"x must have an even number of features, the last axis; got {x.shape[-1]}")
    if layout not in ("halves", "interleaved"):
        raise ValueError(f'layout must be "halves" or "interleaved"; got {layout!r}')
    n_pairs = x.shape[-1] // 2
    frequencies = require_positive("theta", theta) ** (-2 * np.arange(n_pairs) / x.shape[-1])
    angles = positions[..., None] * frequencies
    cos, sin = np.cos(angles).astype(wide.dtype), np.sin(angles).astype(wide.dtype)

    pairs = wide.reshape(*x.shape[:-1], 2, n_pairs) if layout == "halves" else wide.reshape(*x.shape[:-1], n_pairs, 2).swapaxes(-1, -2)
    first, second = pairs[..., 0, :], pairs[..., 1, :]
    with np.errstate(invalid="ignore", over="ignore"):  # padding may hold anything
        rotated = np.stack([first * cos - second * sin, first * sin + second * cos], axis=-2 if layout == "halves" else -1)
        return rotated.reshape(*rotated.shape[:-2], x.shape[-1]).astype(x.dtype)  # (..., 2, n_pairs) or (..., n_pairs, 2), then flatten


def _check_positions(positions: np.ndarray, x: np.ndarray) -> None:
    numeric = isinstance(positions, np.ndarray) and (
        np.issubdtype(positions.dtype, np.integer) or np.issubdtype(positions.dtype, np.floating)
    )
    if not numeric:
        raise TypeError(f"positions must be an ndarray of integers or floats; got {described(positions)}")
    if positions.ndim < 1 or positions.shape[-1] != x.shape[-2]:
        raise ValueError(f"positions must have the axes (..., len) with len = {x.shape[-2]}, one for each row of x; got {positions.shape}")
    broadcast_batch(x=x.shape[:-2], positions=positions.shape[:-1])
