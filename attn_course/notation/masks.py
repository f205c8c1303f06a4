"""Masks of other conventions: True = hide, numbers to be added, and torch's two masks in one."""

import numpy as np

from attn_course.notation.checks import require_array, require_floats, require_integer


def invert_mask(mask: np.ndarray) -> np.ndarray:
    """Return a mask of the other polarity: True = hide becomes True = may attend, and back.

    Parameters
    ----------
    mask : (...) ndarray of bool
        True = hide in torch's nn.MultiheadAttention (attn_mask, key_padding_mask); True = may attend in the course
        and in torch's scaled_dot_product_attention.

    Returns
    -------
    inverted : (...) ndarray of bool
        A copy.

    Raises
    ------
    TypeError
        If `mask` is not an ndarray of bool.

    Examples
    --------
    >>> invert_mask(np.array([False, True]))
    array([ True, False])
    """
    return ~_require_bool("mask", mask)


def additive_mask(mask: np.ndarray, dtype: type | np.dtype = np.float64) -> np.ndarray:
    """Return a mask that is added to the scores: 0 where a query may attend, -inf where not, Eq. masked-exponential-is-zero.

    Parameters
    ----------
    mask : (...) ndarray of bool
        True = may attend.
    dtype : dtype, optional
        A floating type.

    Returns
    -------
    added : (...) ndarray of float
        Holds 0 and -inf only.

    Raises
    ------
    TypeError
        If `mask` is not an ndarray of bool, or `dtype` is not floating.

    Examples
    --------
    >>> additive_mask(np.array([True, False]))
    array([  0., -inf])
    """
    if not np.issubdtype(dtype, np.floating):
        raise TypeError(f"dtype must be floating; got {np.dtype(dtype)}")
    return np.where(_require_bool("mask", mask), 0.0, -np.inf).astype(dtype)


def boolean_mask(added: np.ndarray) -> np.ndarray:
    """Return True = may attend for a mask of 0 and -inf; undoes `additive_mask`.

    Parameters
    ----------
    added : (...) ndarray of float
        What is added to the scores.

    Returns
    -------
    mask : (...) ndarray of bool
        True where `added` is 0.

    Raises
    ------
    TypeError
        If `added` is not a floating ndarray.
    ValueError
        If an entry is neither 0 nor -inf: a bias is no mask, and a large negative number hides nothing for certain.

    Examples
    --------
    >>> boolean_mask(np.array([0.0, -np.inf]))
    array([ True, False])
    """
    require_floats("added", added, 0, "()")
    strange = added[(added != 0.0) & ~np.isneginf(added)]
    if strange.size:
        raise ValueError(f"added must hold 0 and -inf only, to be a mask; got {strange.flat[0]}")
    return added == 0.0


def from_torch_masks(
    attn_mask: np.ndarray | None = None, key_padding_mask: np.ndarray | None = None, *, n_heads: int = 1
) -> np.ndarray | None:
    """Return one mask of the course for the two masks of torch's nn.MultiheadAttention.

    Parameters
    ----------
    attn_mask : (L, S) or (N * n_heads, L, S) ndarray of bool or float, optional
        Boolean: True = hide. Float: added to the scores.
    key_padding_mask : (N, S) ndarray of bool or float, optional
        Boolean: True = hide this key from all queries. Float: added to the scores.
    n_heads : int, optional
        Number of heads, by which torch flattens batch and heads into one axis.

    Returns
    -------
    mask : ndarray of bool or float, or None
        Broadcasts to (N, n_heads, L, S). Boolean, True = may attend, if both are; else to be added to the scores. None if both are.

    Raises
    ------
    TypeError
        If a mask is neither boolean nor floating.
    ValueError
        If a mask has the wrong number of axes, `n_heads` does not divide the first of three, or batches or keys of the two differ.

    Notes
    -----
    torch takes True = hide here and True = may attend in scaled_dot_product_attention.

    Examples
    --------
    >>> causal = np.array([[False, True], [False, False]])
    >>> from_torch_masks(causal).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    heads = require_integer("n_heads", n_heads, 1)
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


def _require_bool(name: str, mask: np.ndarray) -> np.ndarray:
    require_array(name, mask, 0, "()")
    if mask.dtype != bool:
        raise TypeError(f"{name} must be an ndarray of bool; got {mask.dtype} ndarray")
    return mask
