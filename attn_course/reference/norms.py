"""Two norms for each token by itself: to mean 0 and mean square 1, or to mean square 1 alone."""

from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_axes, require_positive, require_shape


def layer_norm(
    x: Float[np.ndarray, "*len d_model"],
    gain: Float[np.ndarray, "d_model"] | None = None,
    bias: Float[np.ndarray, "d_model"] | None = None,
    *,
    eps: float = 1e-5,
) -> Float[np.ndarray, "*len d_model"]:
    r"""Take away the mean of each token's features and divide by their deviation, Eq. layer-norm-centres-first.

    .. math:: \frac{x - \bar{x}}{\sqrt{v + \varepsilon}} \odot g + b, \qquad v = \frac{1}{d} \sum_i (x_i - \bar{x})^2

    `gain`, `bias`: factor and summand of each feature, learned; 1 and 0 if left out.
    `eps`: added to the variance, inside the root.

    Raises TypeError if an array is not floating; ValueError if `x` has no axis, gain or bias are not one number for each
    feature, or `eps` is not positive.

    Ba et al. (2016), Eqs. 3 and 4, arXiv:1607.06450, for the features of one position. The variance divides by d, not d - 1.

    >>> layer_norm(np.array([1.0, 3.0]), eps=1e-12)
    array([-1.,  1.])
    """
    arrays = _checked(x, gain=gain, bias=bias)
    centred = arrays["x"] - arrays["x"].mean(axis=-1, keepdims=True)
    return narrowed(_scaled(centred, eps) * arrays.get("gain", 1.0) + arrays.get("bias", 0.0), x.dtype)


def rms_norm(
    x: Float[np.ndarray, "*len d_model"], gain: Float[np.ndarray, "d_model"] | None = None, *, eps: float = 1e-6
) -> Float[np.ndarray, "*len d_model"]:
    r"""Divide each token by the root of its mean square, Eq. rms-norm-jacobian.

    .. math:: \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \varepsilon}} \odot g

    `gain`: factor of each feature, learned; 1 if left out. Some models store it less 1.
    `eps`: added to the mean square, inside the root.

    Raises TypeError if an array is not floating; ValueError if `x` has no axis, the gain is not one number for each feature,
    or `eps` is not positive.

    Zhang and Sennrich (2019), Eq. 4, arXiv:1910.07467. Nothing is taken away: the mean stays in.

    >>> rms_norm(np.array([1.0, 7.0]), eps=1e-12)
    array([0.2, 1.4])
    """
    arrays = _checked(x, gain=gain)
    return narrowed(_scaled(arrays["x"], eps) * arrays.get("gain", 1.0), x.dtype)


def _checked(x: np.ndarray, **parameters: Any) -> dict[str, np.ndarray]:
    given = {"x": x} | {name: parameter for name, parameter in parameters.items() if parameter is not None}
    arrays = dict(zip(given, checked_floats(**given), strict=True))
    require_axes(1, "(..., d_model)", x=x)
    for name in given.keys() - {"x"}:
        require_shape(name, arrays[name], x.shape[-1:], "one number for each feature")
    return arrays


def _scaled(x: np.ndarray, eps: float) -> np.ndarray:
    return np.asarray(x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + require_positive("eps", eps)))
