"""State-space duality: a recurrence with one decay for all features is attention under a mask that decays."""

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_axes
from attn_course.reference.fast_weights import decay_between


def decay_matrix(log_decay: Float[np.ndarray, "*batch len"]) -> Float[np.ndarray, "*batch len len"]:
    r"""Return what is left at position i of what position j wrote: a causal mask whose ones decay, 0 where j > i.

    .. math:: L_{ij} = [\,j \le i\,] \prod_{l=j+1}^{i} e^{g_l}

    Eq. state-space-duality: (L * (query @ key.T)) @ value is `linear_attention` with this decay, position by position.
    With all decays 0 it is the causal mask as numbers; its inverse has two diagonals, Eq. decay-matrix-inverse.

    `log_decay`: the exponents g, at most 0, one for each position; -inf forgets. That of the first position has
    nothing to act on.

    Raises TypeError if `log_decay` is no array of floats; ValueError if it has no axis, or is positive anywhere.

    Mamba-2: Dao and Gu (2024), arXiv:2405.21060, where query is C, key B, value Delta x and log_decay Delta A.

    >>> decay_matrix(np.log(np.array([0.1, 0.5, 0.2]))).round(2)
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [0.1, 0.2, 1. ]])
    """
    (wide,) = checked_floats(log_decay=log_decay)
    require_axes(1, "(..., len)", log_decay=wide)
    if not (wide <= 0.0).all():
        raise ValueError(f"log_decay must be at most 0 everywhere; got {wide.max()}")
    return narrowed(decay_between(wide[..., None])[..., 0], log_decay.dtype)
