"""Attention without softmax: the exponential kernel, its features, random features.

From Eq. exponential-and-gaussian-kernel on, queries are taken as already divided by sqrt(d_k), so that a score is q . k.
"""

from math import exp, factorial, sqrt
from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import function, independent, normal_nodes, outcomes, powers, row, rows, vector
from attn_course.reference import attention, positive_random_features

equation = about("K1")


# ---- the kernel inside softmax attention
@equation(
    "softmax-as-kernel-smoother",
    r"z_i = \frac{\sum_j \kappa(q_i, k_j)\, v_j}{\sum_j \kappa(q_i, k_j)}, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}",
    topics=["K1", "A4"],
    uses=["soft-lookup", "softmax"],
    wrong={
        "not normalised": r"z_i = \sum_j \kappa(q_i, k_j)\, v_j, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}",
        "divided by d_k": r"\sqrt{d_k} -> d_k",
    },
)
def softmax_attention_is_a_smoother(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Two steps, similarity and normalised average: the kernel is the numerator, softmax its row-normalised smoother."""
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    kappa = function(lambda q, k: exp(sum(q * k) / sqrt(d_k)))
    return {r"\kappa": kappa, "q": rows(Q), "k": rows(K), "v": rows(V), "z": rows(attention(Q, K, V)), "d_k": d_k}


@equation(
    "exponential-and-gaussian-kernel",
    r"e^{q \cdot k} = e^{|q|^2 / 2}\; e^{-|q - k|^2 / 2}\; e^{|k|^2 / 2}",
    uses=["softmax-as-kernel-smoother"],
    wrong={
        "the Gaussian alone": r"e^{q \cdot k} = e^{-|q - k|^2 / 2}",
        "the norms divided out": r"e^{q \cdot k} = e^{-|q|^2 / 2}\; e^{-|q - k|^2 / 2}\; e^{-|k|^2 / 2}",
    },
)
def exponential_and_gaussian_kernel(rng: np.random.Generator, d: int) -> Givens:
    """Complete the square: a Gaussian of the distance, times a factor that cancels in each row and one that favours long keys."""
    return {"q": row(rng.normal(size=d)), "k": row(rng.normal(size=d))}


@equation(
    "power-kernel-features",
    r"\frac{(q \cdot k)^n}{n!} = \sum_{|\alpha| = n} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}",
    assumes=["alpha: exponents, one for each feature; q^alpha = product of q_a^{alpha_a}; alpha! = product of alpha_a!"],
    wrong={
        "no mixed monomials": r"\frac{(q \cdot k)^n}{n!} = \sum_{|\alpha| = n} [\alpha! = n!]\, \frac{q^\alpha k^\alpha}{\alpha!}",
        "every monomial with weight 1": r"\frac{(q \cdot k)^n}{n!} = \sum_{|\alpha| = n} q^\alpha\, k^\alpha",
    },
)
def features_of_a_power(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """The multinomial theorem: a power of a dot product is a dot product of monomials."""
    d = 2 + draw
    return {"q": row(rng.normal(size=d)), "k": row(rng.normal(size=d)), "n": n, r"\alpha": powers(d, n + 1)}


@equation(
    "exponential-kernel-features",
    r"e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}",
    uses=["power-kernel-features"],
    wrong={
        "the monomials up to degree 2 are enough": r"e^{q \cdot k} = \sum_{|\alpha| \le 2} \frac{q^\alpha k^\alpha}{\alpha!}",
        "the factorials forgotten": r"e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} q^\alpha\, k^\alpha",
    },
)
def infinite_feature_map(rng: np.random.Generator) -> Givens:
    """Sum Eq. power-kernel-features over n: the features are all monomials, and no finite number of them will do."""
    q, k = rng.uniform(0.2, 0.8, size=(2, 2)) * rng.choice([-1, 1], size=(2, 2))
    return {"q": row(q), "k": row(k), "N": 5, r"\alpha": powers(2, "N")}


def _monomials(x: np.ndarray) -> np.ndarray:
    """Return the features of the exponential kernel up to x_a^16: to 1e-14 where no |x_a| is above 1."""
    features = np.ones(1)
    for entry in x:
        features = np.outer(features, [entry**degree / sqrt(factorial(degree)) for degree in range(17)]).ravel()
    return features


@equation(
    "exponential-kernel-positive-definite",
    r"\sum_{i,j} c_i\, c_j\, e^{x_i \cdot x_j} = \Bigl\| \sum_i c_i\, \phi(x_i) \Bigr\|^2 \ge 0",
    uses=["exponential-kernel-features"],
    assumes=["phi: the features of {eq}`exponential-kernel-features`", "both arguments from the same space"],
    wrong={
        "so is the row-normalised smoother": r"\sum_{i,j} c_i\, c_j\, \sigma_l(x_i \cdot x_l)_j = \| \sum_i c_i\, \phi(x_i) \|^2 \ge 0",
        "so is any function of a dot product": r"\sum_{i,j} c_i\, c_j\, |x_i \cdot x_j| = \| \sum_i c_i\, \phi(x_i) \|^2 \ge 0",
    },
)
def the_kernel_is_positive_definite(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """A square is never negative: e^{x . y} is a Mercer kernel of queries and keys."""
    x, c = rng.uniform(-1, 1, size=(n, 2 + draw % 2)), rng.normal(size=n) * (30 if draw == 0 else 1)
    if draw == 1:  # nothing is left
        c = np.zeros(n)
    return {"x": rows(x), "c": vector(c), r"\phi": function(_monomials)}


@equation(
    "token-kernel-is-asymmetric",
    r"\ln \kappa(x, y) - \ln \kappa(y, x) = x\, (W - W^\top)\, y^\top, \qquad \kappa(x, y) = e^{x W y^\top}",
    uses=["symmetric-and-antisymmetric-scores"],
    assumes=["W = W_Q W_K^T"],
    wrong={"symmetric": r"x\, (W - W^\top)\, y^\top -> 0", "the symmetric part": r"- W^\top -> + W^\top"},
)
def asymmetric_on_tokens(rng: np.random.Generator, d: int) -> Givens:
    """Queries and keys live in two spaces: unless W happens to be symmetric, the kernel of two tokens is not, so it is no Mercer kernel."""
    W = rng.normal(size=(d, d))
    kappa = function(lambda x, y: exp(sum(x[a] * W[a, b] * y[b] for a in range(d) for b in range(d))))
    return {r"\kappa": kappa, "x": row(rng.normal(size=d)), "y": row(rng.normal(size=d)), "W": W}


# ---- random features
def _random(rng: np.random.Generator, draw: int, *names: str) -> dict[str, Any]:
    """Return rows by their names, and omega ~ N(0, I), exactly: Gauss nodes for each of its two or three coordinates."""
    d = 2 + draw % 2
    nodes, weights = normal_nodes(24)
    points, chances = independent(nodes.tolist(), weights.tolist(), d)
    return {r"\omega": outcomes(chances, row(points)), **{name: row(rng.uniform(-0.6, 0.6, size=d)) for name in names}}


@equation(
    "gaussian-moment-generating-function",
    r"\mathbb{E}_\omega\bigl[ e^{\omega \cdot x} \bigr] = e^{\|x\|^2 / 2}",
    assumes=["omega ~ N(0, I)"],
    wrong={
        "without the half": r"\|x\|^2 / 2 -> \|x\|^2",
        "the exponential of the mean": r"\|x\|^2 / 2 -> \mathbb{E}_\omega[\omega \cdot x]",
    },
)
def gaussian_moment_generating_function(rng: np.random.Generator, draw: int) -> Givens:
    """Complete the square in the exponent; what is left is the integral of a normal density."""
    return _random(rng, draw, "x")


@equation(
    "positive-features-are-unbiased",
    r"\mathbb{E}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{q \cdot k}, \qquad"
    r" \phi_\omega(x) = e^{\omega \cdot x - |x|^2 / 2}",
    uses=["gaussian-moment-generating-function"],
    assumes=["omega ~ N(0, I)"],
    wrong={
        "no norms": r"\mathbb{E}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{q \cdot k}, \qquad \phi_\omega(x) = e^{\omega \cdot x}",
        "of the Gaussian kernel": r"q \cdot k -> -|q - k|^2 / 2",
    },
    equivalent={r"\omega \cdot x - \lvert x \rvert^{2} / 2 -> -\omega \cdot x - \lvert x \rvert^{2} / 2": "omega is as likely as -omega"},
)
def positive_random_features_are_unbiased(rng: np.random.Generator, draw: int) -> Givens:
    """Eq. gaussian-moment-generating-function at q + k, the squares of q and k divided out; and all features are positive."""
    return _random(rng, draw, "q", "k")


@equation(
    "variance-of-positive-features",
    r"\mathrm{Var}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)",
    uses=["gaussian-moment-generating-function", "positive-features-are-unbiased"],
    assumes=["omega ~ N(0, I)", "one feature; m independent ones divide it by m"],
    wrong={
        "with |q - k|": r"\mathrm{Var}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{2 q \cdot k}\, ( e^{|q - k|^2} - 1 )",
        "the mean of the square": r"\mathrm{Var}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{2 q \cdot k}\, e^{|q + k|^2}",
    },
)
def variance_of_positive_features(rng: np.random.Generator, draw: int) -> Givens:
    """Eq. gaussian-moment-generating-function at 2 (q + k), less the square of the mean: 0 at q = -k, huge for long vectors."""
    givens = _random(rng, draw, "q", "k")
    omega = givens[r"\omega"]

    def features(x: np.ndarray) -> Any:
        return outcomes(omega.weights, positive_random_features(x[None], omega.given.raw)[0] * sqrt(len(omega.weights)))

    opposite = {"k": row(-givens["q"].raw)} if draw == 2 else {}
    return givens | opposite | {r"\phi_\omega": function(features)}


@equation(
    "trigonometric-features-are-unbiased",
    r"\mathbb{E}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr] = e^{q \cdot k}",
    uses=["exponential-and-gaussian-kernel", "gaussian-moment-generating-function"],
    assumes=["omega ~ N(0, I); cos(a - b) = cos a cos b + sin a sin b makes two features of it"],
    wrong={
        "without the factor of the norms": r"\mathbb{E}_\omega\bigl[ \cos\bigl( \omega \cdot (q - k) \bigr) \bigr] = e^{q \cdot k}",
        "q + k for q - k": r"\mathbb{E}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q + k) \bigr) \bigr] = e^{q \cdot k}",
    },
)
def trigonometric_features_are_unbiased(rng: np.random.Generator, draw: int) -> Givens:
    """E cos(omega . x) = e^{-|x|^2 / 2}, Eq. gaussian-moment-generating-function at an imaginary x; single terms are often negative."""
    return _random(rng, draw, "q", "k")


@equation(
    "variance-of-trigonometric-features",
    r"\mathrm{Var}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr]"
    r" = \tfrac{1}{2}\, e^{|q|^2 + |k|^2} \bigl( 1 - e^{-|q - k|^2} \bigr)^2",
    uses=["gaussian-moment-generating-function", "variance-of-positive-features", "trigonometric-features-are-unbiased"],
    assumes=["omega ~ N(0, I); one omega, m independent ones divide it by m"],
    wrong={
        "as for positive features": r"\mathrm{Var}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr]"
        r" = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)",
        "the mean of cos^2 is a half": r"e^{|q|^2 + |k|^2} \bigl( 1 - e^{-|q - k|^2} \bigr)^2 -> e^{|q|^2 + |k|^2}",
    },
)
def variance_of_trigonometric_features(rng: np.random.Generator, draw: int) -> Givens:
    """It is largest where the kernel is small: weights near 0 come out with either sign, and so may the normaliser."""
    givens = _random(rng, draw, "q", "k")
    return givens | ({"k": givens["q"]} if draw == 2 else {})
