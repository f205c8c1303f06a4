"""Feature maps for linear attention: a positive one, and random ones whose products are the softmax kernel on average."""

import math

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_axes


def elu_features(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    r"""Map each feature to a positive one, elu(x) + 1: a phi for Eq. normalised-linear-attention, which keeps its divisor above 0.

    .. math:: \phi(x)_i = x_i + 1 \;\text{ if } x_i > 0, \qquad e^{x_i} \;\text{ else}

    Returns `features`: positive, in the dtype of `x`.

    Raises TypeError if `x` is not floating.

    Katharopoulos et al. (2020), arXiv:2006.16236.

    >>> elu_features(np.array([2.0, 0.0, -1.0])).round(4)
    array([3.    , 1.    , 0.3679])
    """
    (wide,) = checked_floats(x=x)
    return narrowed(np.where(wide > 0.0, wide + 1.0, np.exp(np.minimum(wide, 0.0))), x.dtype)


def positive_random_features(
    x: Float[np.ndarray, "*batch len d_k"], projections: Float[np.ndarray, "n_features d_k"]
) -> Float[np.ndarray, "*batch len n_features"]:
    r"""Map queries or keys to positive features whose product estimates exp(q . k) without bias, Eq. positive-features-are-unbiased.

    .. math:: \phi(x)_r = \frac{1}{\sqrt{m}} \exp\left(w_r \cdot x - \tfrac{1}{2} |x|^2\right), \qquad
              \mathbb{E}[\phi(q) \cdot \phi(k)] = e^{q \cdot k} \;\text{ for } w_r \sim \mathcal{N}(0, I)

    `x`: queries or keys. For the kernel exp(q . k / sqrt(d_k)), multiply both by d_k ** -0.25 first.
    `projections`: the vectors w_r, each standard normal; the same for queries and keys.

    Returns `features`: in the common dtype of the arguments.

    Raises TypeError if an argument is not floating; ValueError if shapes do not fit.

    Choromanski et al. (2020), Lemma 1, arXiv:2009.14794. With m independent projections the estimate has variance
    exp(|q + k|^2) exp(2 q . k) (1 - exp(-|q + k|^2)) / m (Lemma 2; Eq. variance-of-positive-features for m = 1): small
    where the kernel is small, and growing exponentially with the length of q + k. Sines and cosines do the opposite.

    >>> positive_random_features(np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]])).round(4)
    array([[0.7071, 0.7071],
           [0.2601, 0.2601]])
    """
    wide, directions = checked_floats(x=x, projections=projections)
    require_axes(2, "(..., len, d_k)", x=x)
    if projections.ndim != 2 or projections.shape[1] != x.shape[-1]:
        raise ValueError(f"projections must have shape (n_features, d_k) with d_k = {x.shape[-1]}; got {projections.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        exponents = wide @ directions.T - 0.5 * (wide * wide).sum(axis=-1, keepdims=True)
        features = np.exp(exponents) / math.sqrt(max(len(projections), 1))
    return narrowed(features, np.result_type(x, projections))
