"""Feature maps for linear attention: a positive one, and random ones whose products are the softmax kernel on average."""

import math

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, described, narrowed, require_axes, require_flags, require_integer


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
    `projections`: the vectors w_r, from `draw_projections`; the same for queries and keys.

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


def draw_projections(
    d_k: int, n_features: int, rng: np.random.Generator, *, orthogonal: bool = False
) -> Float[np.ndarray, "n_features d_k"]:
    """Draw the standard normal vectors that `positive_random_features` needs, omega of Eq. positive-features-are-unbiased.

    `orthogonal`: make the vectors of each block of d_k orthogonal. Each on its own stays standard normal, so the
    estimate stays unbiased, and its variance falls.

    Raises TypeError if `rng` is no generator, or an option is of the wrong type; ValueError if a number is too small.

    Choromanski et al. (2020), section 2.4 and Theorem 2, arXiv:2009.14794.

    >>> w = draw_projections(3, 2, np.random.default_rng(0), orthogonal=True)
    >>> w.shape, bool(abs(w[0] @ w[1]) < 1e-12)
    ((2, 3), True)
    """
    d_k, n_features = require_integer("d_k", d_k, 1), require_integer("n_features", n_features, 1)
    require_flags(orthogonal=orthogonal)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator; got {described(rng)}")
    drawn = rng.normal(size=(-(-n_features // d_k), d_k, d_k))  # whole blocks of d_k vectors
    if orthogonal:
        lengths = np.linalg.norm(rng.normal(size=drawn.shape), axis=-1, keepdims=True)
        basis, triangle = np.linalg.qr(drawn)
        signs = np.sign(np.diagonal(triangle, axis1=-2, axis2=-1))[:, None, :]  # without them the bases are not uniform
        drawn = (basis * signs).swapaxes(-1, -2) * lengths
    return drawn.reshape(-1, d_k)[:n_features]
