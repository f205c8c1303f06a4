"""Masks of torch: the other polarity."""

import numpy as np

from attn_course.notation.checks import require_array


def invert_mask(mask: np.ndarray) -> np.ndarray:
    """Return a copy of a mask (...) of bool in the other polarity: True = hide becomes True = may attend, and back.

    True = hide in torch's nn.MultiheadAttention (attn_mask, key_padding_mask); True = may attend in the course and in torch's
    scaled_dot_product_attention. Raises TypeError for what is no ndarray of bool.

    >>> invert_mask(np.array([False, True]))
    array([ True, False])
    """
    require_array("mask", mask, 0, "()")
    if mask.dtype != bool:
        raise TypeError(f"mask must be an ndarray of bool; got {mask.dtype} ndarray")
    return ~mask
