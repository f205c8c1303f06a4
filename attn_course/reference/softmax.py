"""Softmax, its logarithm's normaliser, and its derivative: what the lesson softmax ends at."""

import math

import numpy as np
from jaxtyping import Float


def softmax(scores: Float[np.ndarray, "*shape"], axis: int = -1, temperature: float = 1.0) -> Float[np.ndarray, "*shape"]:
    r"""Turn scores into weights that are positive and sum to 1 along `axis`, Eq. stable-softmax.

    .. math:: \sigma(z)_i = \frac{e^{z_i - m}}{\sum_j e^{z_j - m}}, \qquad m = \max_j z_j

    `scores`: any real numbers; -inf marks an entry that gets no weight.
    `axis`: the axis along which the weights sum to 1.
    `temperature`: divides the scores first, Eq. softmax-with-temperature: below 1 sharpens, above 1 flattens. Positive
    and finite.

    Returns `weights`: same dtype as `scores`, computed in at least float32. A slice that is empty or all -inf has
    weights 0.

    Raises TypeError if `scores` is not a floating ndarray, `axis` no integer, or `temperature` no number; ValueError if
    `axis` is not an axis of `scores`, or `temperature` is not a positive finite number.

    Subtracting the maximum leaves the weights as they are, Eq. softmax-shift-invariance, and makes every exponent <= 0,
    so that nothing overflows. A NaN or +inf among the scores gives NaN weights in its slice.

    >>> softmax(np.array([0.0, 0.0, np.log(2.0)])).round(4)
    array([0.25, 0.25, 0.5 ])
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    wide = _checked(scores, axis)
    if not isinstance(temperature, (int, float, np.integer, np.floating)):
        raise TypeError(f"temperature must be a number; got {type(temperature).__name__}")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be a positive finite number; got {temperature!r}")
    limits = np.finfo(wide.dtype)
    with np.errstate(over="ignore", under="ignore"):  # a tiny temperature sends every other entry to -inf, whose weight is 0
        divisor = wide.dtype.type(min(max(float(temperature), float(limits.smallest_subnormal)), float(limits.max)))  # not 0, not inf
        unnormalised = np.exp(_shifted(wide, axis) / divisor)
        row_sum = unnormalised.sum(axis=axis, keepdims=True)
        return (unnormalised / np.where(row_sum == 0.0, 1.0, row_sum)).astype(scores.dtype)


def logsumexp(scores: Float[np.ndarray, "*shape"], axis: int = -1) -> Float[np.ndarray, "*reduced"]:
    r"""Return the logarithm of the softmax denominator along `axis`, Eq. shifted-lse.

    .. math:: \mathrm{lse}(z) = m + \ln \sum_j e^{z_j - m}, \qquad m = \max_j z_j

    `axis`: the axis that is summed over and removed. A NaN or +inf in a slice gives NaN.

    Returns `lse`: natural logarithm, same dtype as `scores`; -inf where a slice is empty or all -inf.

    Raises TypeError if `scores` is not a floating ndarray, or `axis` no integer; ValueError if `axis` is not an axis of
    `scores`.

    >>> float(logsumexp(np.array([1000.0, 1000.0])).round(4))
    1000.6931
    """
    wide = _checked(scores, axis)
    with np.errstate(under="ignore"):  # a term far below the largest adds 0
        row_sum = np.exp(_shifted(wide, axis)).sum(axis=axis)
        log_sum = np.log(row_sum, where=row_sum != 0.0, out=np.full_like(row_sum, -np.inf))
        return np.asarray(_finite_max(wide, axis).squeeze(axis) + log_sum).astype(scores.dtype)


def softmax_jacobian(weights: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch n n"]:
    r"""Return the derivative of each weight with respect to each score, Eq. softmax-jacobian.

    .. math:: J = \mathrm{diag}(s) - s\,s^\top, \qquad J_{ij} = \partial s_i / \partial z_j

    `weights`: softmax weights s along the last axis (the derivative needs no scores).

    Returns `jacobian`: symmetric; rows and columns sum to 0.

    Raises TypeError if `weights` is not a floating ndarray; ValueError if `weights` has no axis.

    >>> softmax_jacobian(np.array([0.5, 0.5]))
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    wide = _checked(weights, -1, "weights")
    with np.errstate(under="ignore"):  # the product of two tiny weights is 0
        diagonal = wide[..., :, None] * np.eye(wide.shape[-1], dtype=wide.dtype)
        return (diagonal - wide[..., :, None] * wide[..., None, :]).astype(weights.dtype)


def softmax_vjp(weights: Float[np.ndarray, "*batch n"], d_weights: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch n"]:
    r"""Pull a gradient on the weights back to the scores without building the Jacobian, Eq. softmax-vector-jacobian-product.

    .. math:: J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr)

    `d_weights`: gradient g of a scalar loss with respect to `weights`.

    Returns `d_scores`: gradient of the same loss with respect to the scores; sums to 0. Costs O(n) a row; the Jacobian
    costs O(n^2).

    Raises TypeError if an argument is not a floating ndarray; ValueError if the two shapes differ.

    >>> softmax_vjp(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    wide, wide_d = _checked(weights, -1, "weights"), _checked(d_weights, -1, "d_weights")
    if weights.shape != d_weights.shape:
        raise ValueError(f"d_weights must have the shape of weights, {weights.shape}; got {d_weights.shape}")
    with np.errstate(under="ignore"):
        expected = (wide * wide_d).sum(axis=-1, keepdims=True)
        return (wide * (wide_d - expected)).astype(weights.dtype)


def _checked(array: np.ndarray, axis: int, name: str = "scores") -> np.ndarray:
    """Return `array` in at least float32, or say what is wrong with it."""
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.floating):
        got = f"{array.dtype} ndarray" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{name} must be an ndarray of floats; got {got}")
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an integer; got {type(axis).__name__}")
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis must be one of the {array.ndim} axes of {name}; got {axis} for shape {array.shape}")
    return np.asarray(array, dtype=np.promote_types(array.dtype, np.float32))


def _finite_max(scores: np.ndarray, axis: int) -> np.ndarray:
    """The maximum along `axis` (kept), with 0 for -inf, so that subtracting it never gives -inf - -inf."""
    row_max = scores.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isneginf(row_max), np.zeros_like(row_max), row_max)


def _shifted(scores: np.ndarray, axis: int) -> np.ndarray:
    row_max = _finite_max(scores, axis)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN, as documented; a spread past the largest float is -inf
        return scores - row_max
