"""Masks of torch: the other polarity, and the two masks of nn.MultiheadAttention in one."""

import numpy as np

from attn_course.costs.checks import require_count
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


def from_torch_masks(
    attn_mask: np.ndarray | None = None, key_padding_mask: np.ndarray | None = None, *, n_heads: int = 1
) -> np.ndarray | None:
    """Return one mask of the course for the two masks of torch's nn.MultiheadAttention; None if both are None.

    `attn_mask` (L, S) or (N * n_heads, L, S) and `key_padding_mask` (N, S) are boolean, True = hide, or floats that are added to
    the scores. The result broadcasts to (N, n_heads, L, S): boolean, True = may attend, if both are; else to be added to the
    scores. `n_heads` is by what torch flattens batch and heads into one axis.

    Raises TypeError for a mask that is neither boolean nor floating; ValueError for a wrong number of axes, an `n_heads` that
    does not divide the first of three, or batches or keys of the two that differ.

    >>> causal = np.array([[False, True], [False, False]])
    >>> from_torch_masks(causal).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    heads = require_count("n_heads", n_heads, 1)
    parts = []
    if attn_mask is not None:
        parts.append(_split_batch(_require_mask("attn_mask", attn_mask, (2, 3)), heads))
    if key_padding_mask is not None:
        parts.append(_require_mask("key_padding_mask", key_padding_mask, (2,))[:, None, None, :])
    if len(parts) == 2:
        left, right = parts
        if left.shape[-1] != right.shape[-1] or (left.ndim == 4 and left.shape[0] != right.shape[0]):
            raise ValueError(
                f"attn_mask and key_padding_mask must have one batch and one number of keys; got {left.shape} and {right.shape}"
            )
    if not parts:
        return None
    if all(part.dtype == bool for part in parts):
        hidden = parts[0] if len(parts) == 1 else parts[0] | parts[1]
        return ~hidden
    added = [part if part.dtype != bool else np.where(part, -np.inf, 0.0) for part in parts]
    return np.array(added[0] if len(added) == 1 else added[0] + added[1])


def _split_batch(mask: np.ndarray, n_heads: int) -> np.ndarray:
    """(N * n_heads, L, S) becomes (N, n_heads, L, S)."""
    if mask.ndim == 2:
        return mask
    if mask.shape[0] % n_heads:
        raise ValueError(f"n_heads must divide the first axis of attn_mask; got {n_heads} and {mask.shape[0]}")
    return mask.reshape(mask.shape[0] // n_heads, n_heads, *mask.shape[1:])


def _require_mask(name: str, mask: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    require_array(name, mask, 0, "()")
    if mask.dtype != bool and not np.issubdtype(mask.dtype, np.floating):
        raise TypeError(f"{name} must be an ndarray of bool or float; got {mask.dtype} ndarray")
    if mask.ndim not in axes:
        raise ValueError(f"{name} must have {' or '.join(map(str, axes))} axes; got shape {mask.shape}")
    return mask
