"""Attention without softmax: the exponential kernel, its features, random features.

From Eq. exponential-kernel-features on, queries are taken as already divided by sqrt(d_k), so that a score is q . k.
"""

from math import exp, factorial, sqrt
from typing import Any

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import function, independent, normal_nodes, outcomes, powers, row, rows, vector
from attn_course.reference import attention, positive_random_features

claim = about("K1")


# ---- the kernel inside softmax attention
@claim("softmax-as-kernel-smoother", serves="K1 A4", rests_on="soft-lookup softmax")
def _(normal, T_q, T_k, d_k, d_v):
    r"""z_i = \frac{\sum_j \kappa(q_i, k_j)\, v_j}{\sum_j \kappa(q_i, k_j)}, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}
    Two steps, similarity and normalised average: the kernel is the numerator, softmax its row-normalised smoother.
        not normalised: z_i = \sum_j \kappa(q_i, k_j)\, v_j, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}
        divided by d_k: \sqrt{d_k} -> d_k
    """
    Q, K, V = normal(T_q, d_k), normal(T_k, d_k), normal(T_k, d_v)
    kappa = function(lambda q, k: exp(sum(q * k) / sqrt(d_k)), formula=r"\kappa(x, y) = e^{x \cdot y / \sqrt{d_k}}")
    return {r"\kappa": kappa, "q": rows(Q), "k": rows(K), "v": rows(V), "z": rows(attention(Q, K, V)), "d_k": d_k}


@claim("exponential-kernel-features")
def _(rng):
    r"""e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}
    The series of exp, each power by the multinomial theorem: the features are all monomials, and no finite number of them will do.
        the monomials up to degree 2 are enough: e^{q \cdot k} = \sum_{|\alpha| \le 2} \frac{q^\alpha k^\alpha}{\alpha!}
        the factorials forgotten: e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} q^\alpha\, k^\alpha
    """
    q, k = rng.uniform(0.2, 0.8, size=(2, 2)) * rng.choice([-1, 1], size=(2, 2))
    return {"q": row(q), "k": row(k), "N": 5, r"\alpha": powers(2, "N")}


def _monomials(x: np.ndarray) -> np.ndarray:
    """Return the features of the exponential kernel up to x_a^16: to 1e-14 where no |x_a| is above 1."""
    features = np.ones(1)
    for entry in x:
        features = np.outer(features, [entry**degree / sqrt(factorial(degree)) for degree in range(17)]).ravel()
    return features


@claim("exponential-kernel-positive-definite", rests_on="exponential-kernel-features")
def _(normal, rng, n, draw):
    r"""\sum_{i,j} c_i\, c_j\, e^{x_i \cdot x_j} = \Bigl\| \sum_i c_i\, \phi(x_i) \Bigr\|^2 \ge 0
    where phi: the features of {eq}`exponential-kernel-features` ;; both arguments from the same space
    A square is never negative: e^{x . y} is a Mercer kernel of queries and keys.
        so is the row-normalised smoother: \sum_{i,j} c_i\, c_j\, \sigma_l(x_i \cdot x_l)_j = \| \sum_i c_i\, \phi(x_i) \|^2 \ge 0
        so is any function of a dot product: \sum_{i,j} c_i\, c_j\, |x_i \cdot x_j| = \| \sum_i c_i\, \phi(x_i) \|^2 \ge 0
    """
    x, c = rng.uniform(-1, 1, size=(n, 2 + draw % 2)), normal(n) * (30 if draw == 0 else 1)
    if draw == 1:  # nothing is left
        c = np.zeros(n)
    return {"x": rows(x), "c": vector(c), r"\phi": function(_monomials)}


# ---- random features
def _random(rng: np.random.Generator, draw: int, *names: str) -> dict[str, Any]:
    """Return rows by their names, and omega ~ N(0, I), exactly: Gauss nodes for each of its two or three coordinates."""
    d = 2 + draw % 2
    nodes, weights = normal_nodes(24)
    points, chances = independent(nodes.tolist(), weights.tolist(), d)
    return {r"\omega": outcomes(chances, row(points)), **{name: row(rng.uniform(-0.6, 0.6, size=d)) for name in names}}


@claim(
    "positive-features-are-unbiased",
    equivalent={r"\omega \cdot x - \lvert x \rvert^{2} / 2 -> -\omega \cdot x - \lvert x \rvert^{2} / 2": "omega is as likely as -omega"},
)
def _(rng, draw):
    r"""\mathbb{E}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{q \cdot k}, \qquad
        \phi_\omega(x) = e^{\omega \cdot x - |x|^2 / 2}
    where omega ~ N(0, I)
    E e^{omega . x} = e^{|x|^2 / 2} at x = q + k, the squares of q and k divided out; and all features are positive.
        no norms: \mathbb{E}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{q \cdot k}, \qquad \phi_\omega(x) = e^{\omega \cdot x}
        of the Gaussian kernel: q \cdot k -> -|q - k|^2 / 2
    """
    return _random(rng, draw, "q", "k")


@claim("variance-of-positive-features", rests_on="positive-features-are-unbiased")
def _(rng, draw):
    r"""\mathrm{Var}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)
    where omega ~ N(0, I) ;; one feature; m independent ones divide it by m
    E e^{omega . x} = e^{|x|^2 / 2} at x = 2 (q + k), less the square of the mean: 0 at q = -k, huge for long vectors.
        with |q - k|: \mathrm{Var}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{2 q \cdot k}\, ( e^{|q - k|^2} - 1 )
        the mean of the square: \mathrm{Var}_\omega[ \phi_\omega(q)\, \phi_\omega(k) ] = e^{2 q \cdot k}\, e^{|q + k|^2}
    """
    givens = _random(rng, draw, "q", "k")
    omega = givens[r"\omega"]

    def features(x: np.ndarray) -> Any:
        return outcomes(omega.weights, positive_random_features(x[None], omega.given.raw)[0] * sqrt(len(omega.weights)))

    opposite = {"k": row(-givens["q"].raw)} if draw == 2 else {}
    return givens | opposite | {r"\phi_\omega": function(features)}
