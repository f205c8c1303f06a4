"""Softmax in the deeper sections: how sure it can be, its Jacobian, blocks of scores."""

import math

import numpy as np

from attn_course.equations.core import claim
from attn_course.formulas import column, derivative, function, vector
from attn_course.lessons.softmax.equations import ENTROPY, entropy
from attn_course.reference import softmax


# ---- how sure
@claim(
    "softmax-inside-the-simplex",
    serves="B1",
    rests_on="softmax",
    equivalent={"1 -> 2": "weaker: what is below 1 is below 2, and no weight reaches its bound"},
)
def _(rng, n, draw):
    r"""0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1
    where n >= 2 ;; finite z ;; exact arithmetic (checked where float64 has room: scores within 32 of each other)
    Each numerator is positive and smaller than the sum of two or more of them.
        X16: also for a single entry: (z)_i < -> (z_{1:1})_i <
        X16: also for a score of -inf: 0 < -> 0 < \lim_{z_1 \to -\infty}
        X21: only a few weights are positive: 0 < -> \min_i ;; < 1 -> = 0
    """
    z = rng.uniform(-16, 16, size=n)
    if draw == 2:  # one weight is all but 1
        z = np.append(16, z[1:] / 8 - 13)
    return {"z": vector(z), "n": n}


@claim("weight-of-mixed-key", serves="B1", rests_on="lse-is-best-compromise softmax-inside-the-simplex")
def _(normal, rng, n, d, draw):
    r"""s_a \le \frac{1}{1 + e^{H(c)}}
    where s = softmax of any query's scores ;; k_a = sum_l c_l k_l over the other keys, with c_l >= 0 of sum 1
    s_a = 1 / (1 + e^{lse - z_a}) with lse over the others, which is at least c . z + H(c) = z_a + H(c) by Eq. lse-is-best-compromise.
        entropy counted twice: H(c) -> 2\, H(c)
        reached by every query: \le -> =
        reached by none: \le -> <
    """
    shares = rng.uniform(0.1, 0.9, size=n)
    c = shares / shares.sum()
    others = normal(n, n + d)
    query = normal(n + d) if draw < 2 else np.linalg.lstsq(others, np.log(c), rcond=None)[0]  # the last attains it
    weights = softmax(np.append(others, [c @ others], axis=0) @ query)
    return {"c": c, "s_a": weights[-1], "H": function(entropy, formula=ENTROPY)}


@claim("softmax-jacobian", serves="B2", rests_on="softmax-derivative")
def _(normal, n):
    r"""J = \mathrm{diag}(s) - s\,s^\top
    Eq. softmax-derivative for all i and j at once.
        the square of the weights instead of the outer product: s\,s^\top -> \mathrm{diag}(s \odot s)
        the sign of the outer product: - -> +
        a product of scalars: s\,s^\top -> (s^\top s)\, I
    """
    z = normal(n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z)}


@claim(
    "softmax-vector-jacobian-product",
    serves="B2",
    rests_on="softmax-derivative",
    equivalent={r"J^\top -> J": "the Jacobian of softmax is symmetric"},
)
def _(normal, n):
    r"""J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr)
    where g = gradient of a loss with respect to s
    The sum of g_i times Eq. softmax-derivative: one dot product and two elementwise steps replace an n x n matrix.
        the weights multiply g only: J^\top g = s \odot g - (s \cdot g)\,\mathbf{1}
        each weight with its own sigmoid: J^\top g = s \odot (1 - s) \odot g
        the sum of g without weights: s \cdot -> \mathbf{1} \cdot
    """
    z = normal(n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z), "g": column(normal(n))}


# ---- softmax over blocks
@claim("log-softmax", serves="B1 B2", rests_on="softmax")
def _(normal, n):
    r"""\ln \sigma(z)_i = z_i - \mathrm{lse}(z)
    where lse(z) = ln sum_j e^{z_j}
    The logarithm of the quotient in Eq. softmax.
        the largest score instead of lse: \mathrm{lse}(z) -> \max_j z_j
        divided by lse: \ln \sigma(z)_i = \frac{z_i}{\mathrm{lse}(z)}
        the sign exchanged: \ln \sigma(z)_i = \mathrm{lse}(z) - z_i
    """
    return {"z": normal(n)}


@claim("shifted-lse", serves="B2", rests_on="softmax")
def _(normal, n):
    r"""\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m}
    where m real
    Pull e^m out of the sum.
        m is not added back: = m + -> =
        m added inside and outside: - -> +
        m multiplies: + \ln -> \ln
    """
    return {"z": normal(n), "m": 2 * normal(), "n": n}


def max_and_sum(scores: np.ndarray) -> tuple[float, float]:
    """Return the largest score and the sum of e^{z_j - m}: -infinity and 0 if there is none that is finite."""
    largest = max(scores, default=-math.inf)
    return largest, math.fsum(math.exp(score - largest) for score in scores if score > -math.inf)


@claim("merge-of-softmax-sums", serves="B2", rests_on="shifted-lse", may_be="empty")
def _(normal, a, b, draw):
    r"""\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B)
    where A, B disjoint ;; a finite score in A or B
    Bring both sums to the larger maximum, then add; order and grouping do not matter.
        only the second block is rescaled: \, e^{m_A - m} ->
        brought to the smaller maximum: \max(m_A, m_B) -> \min(m_A, m_B)
        rescaled the wrong way: \ell_{A \cup B} = \ell_A\, e^{m - m_A} + \ell_B\, e^{m - m_B}, \qquad m = \max(m_A, m_B)
    """
    base = (3, -9, 0)[draw]  # in draw 1 all scores are negative, in draw 2 B is empty
    first, second = (normal(size) + 2 * normal() + base for size in (a, b * (draw < 2)))
    (m_a, ell_a), (m_b, ell_b), (_, together) = max_and_sum(first), max_and_sum(second), max_and_sum(np.append(first, second))
    return {r"\ell_{A \cup B}": together, r"\ell_A": ell_a, r"\ell_B": ell_b, "m_A": m_a, "m_B": m_b}


@claim("online-softmax-update", serves="B2", rests_on="merge-of-softmax-sums")
def _(normal, n, draw):
    r"""m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'}
    where x finite ;; m, l: maximum and sum of e^{z_j - m} so far; m = -inf, l = 0 before the first score
    Eq. merge-of-softmax-sums with a block of one score: its maximum is x, its sum 1.
        the old sum is not rescaled: \ell\, e^{m - m'} -> \ell
        rescaled by exp(m' - m): m - m' -> m' - m
        the new score measured from the old maximum: e^{x - m'} -> e^{x - m}
    """
    z = np.sort(normal(n)) + 4 * normal()
    z = (z, z[::-1], z[:1])[draw]  # the last is a new maximum, it is the least, it is the first
    m, ell = max_and_sum(z[:-1])
    return {"x": z[-1], "m": m, r"\ell": ell, r"\ell'": max_and_sum(z)[1]}
