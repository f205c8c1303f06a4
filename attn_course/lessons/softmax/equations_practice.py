"""Softmax in practice: shifts, Jacobian, entropy, saturation, cross-entropy, blocks."""

import math

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, derivative, function, of
from attn_course.lessons.softmax.equations import entropy
from attn_course.reference import softmax

equation = about("B2")


# ---- shifts and log-sum-exp


@equation(
    "softmax-shift-invariance",
    r"\sigma(z + c\,\mathbf{1}) = \sigma(z)",
    uses=["softmax"],
    assumes=["c real"],
    wrong={
        "a common factor would not matter either": r"\sigma(c\,z) = \sigma(z)",
        "nor would a shift of one entry": r"\sigma(z + c\,\mathbf{1}_{1}) = \sigma(z)",
        "the weights are shifted as well": r"\sigma(z + c\,\mathbf{1}) = \sigma(z) + c\,\mathbf{1}",
    },
)
def shift_invariance(rng: np.random.Generator, n: int) -> Givens:
    """e^c is a common factor of numerator and denominator."""
    return {"z": rng.normal(size=n), "c": rng.normal()}


@equation(
    "shifted-lse",
    r"\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m}",
    uses=["log-softmax"],
    assumes=["m real"],
    wrong={
        "m is not added back": r"\mathrm{lse}(z) = \ln \sum_{j=1}^{n} e^{z_j - m}",
        "m added inside and outside": r"\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j + m}",
        "m multiplies": r"\mathrm{lse}(z) = m \ln \sum_{j=1}^{n} e^{z_j - m}",
    },
)
def shifted_lse(rng: np.random.Generator, n: int) -> Givens:
    """Pull e^m out of the sum."""
    return {"z": rng.normal(size=n), "m": 2 * rng.normal(), "n": n}


@equation(
    "stable-softmax",
    r"\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j",
    uses=["softmax", "softmax-shift-invariance"],
    wrong={
        "only the numerator is shifted": r"\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j}}, \qquad m = \max_j z_j",
        "divided by the largest score instead": r"\sigma(z)_i = \frac{e^{z_i / m}}{\sum_{j=1}^{n} e^{z_j / m}}, \qquad m = \max_j z_j",
        "shifted by the smallest score": r"\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \min_j z_j",
    },
    whatever={"m": "what is subtracted from all scores cancels; that it is the largest is said beside it"},
)
def stable_softmax(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Eq. softmax-shift-invariance with c = -m: no exponent is positive, and one of them is 0."""
    z = rng.normal(loc=(0, 400, -400)[draw], size=n)  # e^400 is a float64, its square is none
    return {"z": z, "m": sorted(z)[-1], "n": n}


# ---- the Jacobian
@equation(
    "softmax-derivative",
    r"\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j)",
    uses=["softmax"],
    wrong={
        "the diagonal term forgotten": r"\frac{\partial s_i}{\partial z_j} = -s_i\,s_j",
        "only the diagonal, as if each weight had its own sigmoid": r"\frac{\partial s_i}{\partial z_j} = s_i\,(1 - s_j)\,\delta_{ij}",
        "the sign turned round": r"\frac{\partial s_i}{\partial z_j} = s_i\,(s_j - \delta_{ij})",
    },
)
def softmax_derivative(rng: np.random.Generator, n: int) -> Givens:
    """Quotient rule on Eq. softmax."""
    return {"z": rng.normal(size=n), "s": of(softmax, "z")}


@equation(
    "softmax-jacobian",
    r"J = \mathrm{diag}(s) - s\,s^\top",
    uses=["softmax-derivative"],
    wrong={
        "the square of the weights instead of the outer product": r"J = \mathrm{diag}(s) - \mathrm{diag}(s \odot s)",
        "the sign of the outer product": r"J = \mathrm{diag}(s) + s\,s^\top",
        "a product of scalars": r"J = \mathrm{diag}(s) - (s^\top s)\, I",
    },
)
def softmax_jacobian(rng: np.random.Generator, n: int) -> Givens:
    """Eq. softmax-derivative for all i and j at once."""
    z = rng.normal(size=n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z)}


@equation(
    "softmax-jacobian-annihilates-constants",
    r"J\,\mathbf{1} = 0",
    uses=["softmax-shift-invariance", "softmax-jacobian"],
    wrong={
        "the rows sum to 1, as those of weights do": r"J\,\mathbf{1} = \mathbf{1}",
        "each weight depends on its own score alone": r"J_{ij} = 0 \quad (i \ne j)",
        "no direction does anything": r"J = 0",
    },
)
def jacobian_annihilates_constants(rng: np.random.Generator, n: int) -> Givens:
    """Adding the same number to every score changes nothing, Eq. softmax-shift-invariance, so the derivative in that direction is 0."""
    return {"J": derivative(softmax, rng.normal(size=n))}


@equation(
    "softmax-vector-jacobian-product",
    r"J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr)",
    uses=["softmax-derivative"],
    assumes=["g = gradient of a loss with respect to s"],
    wrong={
        "the weights multiply g only": r"J^\top g = s \odot g - (s \cdot g)\,\mathbf{1}",
        "each weight with its own sigmoid": r"J^\top g = s \odot (1 - s) \odot g",
        "the sum of g without weights": r"J^\top g = s \odot \bigl(g - (\mathbf{1} \cdot g)\,\mathbf{1}\bigr)",
    },
    equivalent={r"J^\top -> J": "the Jacobian of softmax is symmetric"},
)
def vector_jacobian_product(rng: np.random.Generator, n: int) -> Givens:
    """One dot product and two elementwise steps replace an n x n matrix."""
    z = rng.normal(size=n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z), "g": column(rng.normal(size=n))}


# ---- entropy and temperature
@equation(
    "softmax-entropy",
    r"H(s) = \mathrm{lse}(z) - \sum_i s_i z_i",
    uses=["log-softmax"],
    assumes=["H(s) = -sum_i s_i ln s_i"],
    wrong={
        "the sign exchanged": r"H(s) = \sum_i s_i z_i - \mathrm{lse}(z)",
        "the scores summed without weights": r"H(s) = \mathrm{lse}(z) - \sum_i z_i",
        "the largest score instead of the mean score": r"H(s) = \mathrm{lse}(z) - \max_i z_i",
    },
)
def entropy_of_softmax(rng: np.random.Generator, n: int) -> Givens:
    """Put Eq. log-softmax into -sum s ln s; the weights sum to 1."""
    z = rng.normal(size=n)
    return {"z": z, "s": softmax(z), "H": function(entropy)}


# ---- saturation


@equation(
    "saturated-softmax-jacobian-vanishes",
    r"\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max})",
    uses=["softmax-jacobian"],
    wrong={
        "1 - s_max, without the factor 2": r"\|J\|_2 \le 1 - \sum_i s_i^2 \le 1 - s_{\max}",
        "the largest diagonal entry bounds the norm": r"\|J\|_2 \le \max_i s_i\,(1 - s_i) \le 2\,(1 - s_{\max})",
        "twice the square": r"2\,(1 - s_{\max}) -> 2\,(1 - s_{\max})^2",
    },
    equivalent={r"\lVert J \rVert_2 -> \lVert J \rVert_F": "true as well: no eigenvalue is negative, so the trace bounds it too"},
)
def saturation(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """No eigenvalue is negative, so the largest is at most their sum, the trace; as s_max goes to 1 all of it vanishes."""
    z = rng.normal(size=n)
    if draw == 1:  # two scores share all the weight
        z = np.array([z[0], z[0] + 4, *z[2:] - 900])
    if draw == 2:  # one has all but a few millionths, so that the last two agree to their square; or all
        z[0] = z.max() + (14 if n < 7 else 900)
    s = softmax(z)
    return {"s": s, "J": derivative(softmax, z), r"s_{\max}": max(s)}


# ---- cross-entropy


@equation(
    "cross-entropy-gradient",
    r"\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy}",
    uses=["lse-gradient", "log-softmax"],
    wrong={
        "target minus weight": r"\frac{\partial}{\partial z_i}\,(-\ln s_y) = \delta_{iy} - s_i",
        "only the entry of the target moves": r"\frac{\partial}{\partial z_i}\,(-\ln s_y) = \delta_{iy}\,(s_i - 1)",
        "a factor s_i too many": r"\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i\,(s_i - \delta_{iy})",
    },
)
def cross_entropy_gradient(rng: np.random.Generator, n: int) -> Givens:
    """-ln s_y = lse(z) - z_y by Eq. log-softmax: Eq. lse-gradient for the first term; the second is linear."""
    return {"z": rng.normal(size=n), "s": of(softmax, "z")}


# ---- softmax over blocks
def max_and_sum(scores: np.ndarray) -> tuple[float, float]:
    """Return the largest score and the sum of e^{z_j - m}: -infinity and 0 if there is none."""
    largest = max(scores, default=-math.inf)
    return largest, math.fsum(math.exp(score - largest) for score in scores)


@equation(
    "merge-of-softmax-sums",
    r"\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B)",
    uses=["shifted-lse"],
    assumes=["A, B disjoint, not both empty"],
    wrong={
        "only the second block is rescaled": r"\ell_{A \cup B} = \ell_A + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B)",
        "brought to the smaller maximum": (r"\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \min(m_A, m_B)"),
        "rescaled the wrong way": r"\ell_{A \cup B} = \ell_A\, e^{m - m_A} + \ell_B\, e^{m - m_B}, \qquad m = \max(m_A, m_B)",
    },
)
def merge_of_two_blocks(rng: np.random.Generator, a: int, b: int, draw: int) -> Givens:
    """Bring both sums to the larger maximum, then add; order and grouping do not matter."""
    base = (3, -9, 0)[draw]  # in draw 1 all scores are negative, in draw 2 B is empty
    first, second = (rng.normal(size=size) + 2 * rng.normal() + base for size in (a, b * (draw < 2)))
    (m_a, ell_a), (m_b, ell_b), (_, together) = max_and_sum(first), max_and_sum(second), max_and_sum(np.append(first, second))
    return {r"\ell_{A \cup B}": together, r"\ell_A": ell_a, r"\ell_B": ell_b, "m_A": m_a, "m_B": m_b}


@equation(
    "online-softmax-update",
    r"m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'}",
    uses=["merge-of-softmax-sums"],
    assumes=["m, l: maximum and sum of e^{z_j - m} so far; m = -inf, l = 0 before the first score"],
    wrong={
        "the old sum is not rescaled": r"\ell\, e^{m - m'} -> \ell",
        "rescaled by exp(m' - m)": "m - m' -> m' - m",
        "the new score measured from the old maximum": "e^{x - m'} -> e^{x - m}",
    },
)
def online_update(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Eq. merge-of-softmax-sums with a block of one score: its maximum is x, its sum 1."""
    z = np.sort(rng.normal(size=n)) + 4 * rng.normal()
    z = (z, z[::-1], z[:1])[draw]  # the last is a new maximum, it is the least, it is the first
    m, ell = max_and_sum(z[:-1])
    return {"x": z[-1], "m": m, r"\ell": ell, r"\ell'": max_and_sum(z)[1]}
