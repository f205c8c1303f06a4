"""Softmax in practice: shifts, Jacobian, entropy, saturation, cross-entropy, blocks."""

import math

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import column, derivative, function, of
from attn_course.lessons.softmax.equations import entropy
from attn_course.reference import softmax

claim = about("B2")


# ---- shifts and log-sum-exp


@claim("softmax-shift-invariance", rests_on="softmax")
def _(normal, n):
    r"""\sigma(z + c\,\mathbf{1}) = \sigma(z)
    where c real
    e^c is a common factor of numerator and denominator.
        a common factor would not matter either: \sigma(c\,z) = \sigma(z)
        nor would a shift of one entry: \mathbf{1} -> \mathbf{1}_{1}
        the weights are shifted as well: (z) -> (z) + c\,\mathbf{1}
    """
    return {"z": normal(n), "c": normal()}


@claim("shifted-lse", rests_on="log-softmax")
def _(normal, n):
    r"""\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m}
    where m real
    Pull e^m out of the sum.
        m is not added back: = m + -> =
        m added inside and outside: - -> +
        m multiplies: + \ln -> \ln
    """
    return {"z": normal(n), "m": 2 * normal(), "n": n}


@claim(
    "stable-softmax",
    rests_on="softmax softmax-shift-invariance",
    whatever={"m": "what is subtracted from all scores cancels; that it is the largest is said beside it"},
)
def _(rng, n, draw):
    r"""\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j
    Eq. softmax-shift-invariance with c = -m: no exponent is positive, and one of them is 0.
        only the numerator is shifted: z_j - m -> z_j
        divided by the largest score instead: all - -> /
        shifted by the smallest score: \max_j -> \min_j
    """
    z = rng.normal(loc=(0, 400, -400)[draw], size=n)  # e^400 is a float64, its square is none
    return {"z": z, "m": sorted(z)[-1], "n": n}


# ---- the Jacobian
@claim("softmax-derivative", rests_on="softmax")
def _(normal, n):
    r"""\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j)
    Quotient rule on Eq. softmax.
        the diagonal term forgotten: s_i\,(\delta_{ij} - s_j) -> -s_i\,s_j
        only the diagonal, as if each weight had its own sigmoid: (\delta_{ij} - s_j) -> (1 - s_j)\,\delta_{ij}
        the sign turned round: \delta_{ij} - s_j -> s_j - \delta_{ij}
    """
    return {"z": normal(n), "s": of(softmax, "z")}


@claim("softmax-jacobian", rests_on="softmax-derivative")
def _(normal, n):
    r"""J = \mathrm{diag}(s) - s\,s^\top
    Eq. softmax-derivative for all i and j at once.
        the square of the weights instead of the outer product: s\,s^\top -> \mathrm{diag}(s \odot s)
        the sign of the outer product: - -> +
        a product of scalars: s\,s^\top -> (s^\top s)\, I
    """
    z = normal(n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z)}


@claim("softmax-jacobian-annihilates-constants", rests_on="softmax-shift-invariance softmax-jacobian")
def _(normal, n):
    r"""J\,\mathbf{1} = 0
    Adding the same number to every score changes nothing, Eq. softmax-shift-invariance, so the derivative in that direction is 0.
        the rows sum to 1, as those of weights do: 0 -> \mathbf{1}
        each weight depends on its own score alone: J_{ij} = 0 \quad (i \ne j)
        no direction does anything: J = 0
    """
    return {"J": derivative(softmax, normal(n))}


@claim(
    "softmax-vector-jacobian-product", rests_on="softmax-derivative", equivalent={r"J^\top -> J": "the Jacobian of softmax is symmetric"}
)
def _(normal, n):
    r"""J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr)
    where g = gradient of a loss with respect to s
    One dot product and two elementwise steps replace an n x n matrix.
        the weights multiply g only: J^\top g = s \odot g - (s \cdot g)\,\mathbf{1}
        each weight with its own sigmoid: J^\top g = s \odot (1 - s) \odot g
        the sum of g without weights: s \cdot -> \mathbf{1} \cdot
    """
    z = normal(n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z), "g": column(normal(n))}


# ---- entropy and temperature
@claim("softmax-entropy", rests_on="log-softmax", beside=[r"H(s) = -\sum_i s_i \ln s_i"])
def _(normal, n):
    r"""H(s) = \mathrm{lse}(z) - \sum_i s_i z_i
    where H(s) = -sum_i s_i ln s_i
    Put Eq. log-softmax into -sum s ln s; the weights sum to 1.
        the sign exchanged: H(s) = \sum_i s_i z_i - \mathrm{lse}(z)
        the scores summed without weights: s_i z_i -> z_i
        the largest score instead of the mean score: \sum_i s_i -> \max_i
    """
    z = normal(n)
    return {"z": z, "s": softmax(z), "H": function(entropy)}


# ---- saturation


@claim(
    "saturated-softmax-jacobian-vanishes",
    rests_on="softmax-jacobian",
    equivalent={r"\lVert J \rVert_2 -> \lVert J \rVert_F": "true as well: no eigenvalue is negative, so the trace bounds it too"},
    beside=[r"s_{\max} = \max_i s_i", r"J_{ij} = s_i\, (\delta_{ij} - s_j)"],
)
def _(normal, n, draw):
    r"""\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max})
    No eigenvalue is negative, so the largest is at most their sum, the trace; as s_max goes to 1 all of it vanishes.
        1 - s_max, without the factor 2: 2\,(1 - s_{\max}) -> 1 - s_{\max}
        the largest diagonal entry bounds the norm: 1 - \sum_i s_i^2 -> \max_i s_i\,(1 - s_i)
        twice the square: 2\,(1 - s_{\max}) -> 2\,(1 - s_{\max})^2
    """
    z = normal(n)
    if draw == 1:  # two scores share all the weight
        z = np.array([z[0], z[0] + 4, *z[2:] - 900])
    if draw == 2:  # one has all but a few millionths, so that the last two agree to their square; or all
        z[0] = z.max() + (14 if n < 7 else 900)
    s = softmax(z)
    return {"s": s, "J": derivative(softmax, z), r"s_{\max}": max(s)}


# ---- cross-entropy


@claim("cross-entropy-gradient", rests_on="lse-gradient log-softmax")
def _(normal, n):
    r"""\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy}
    -ln s_y = lse(z) - z_y by Eq. log-softmax: Eq. lse-gradient for the first term; the second is linear.
        target minus weight: s_i - \delta_{iy} -> \delta_{iy} - s_i
        only the entry of the target moves: s_i - \delta_{iy} -> \delta_{iy}\,(s_i - 1)
        a factor s_i too many: - \delta_{iy} -> \,(s_i - \delta_{iy})
    """
    return {"z": normal(n), "s": of(softmax, "z")}


# ---- softmax over blocks
def max_and_sum(scores: np.ndarray) -> tuple[float, float]:
    """Return the largest score and the sum of e^{z_j - m}: -infinity and 0 if there is none that is finite."""
    largest = max(scores, default=-math.inf)
    return largest, math.fsum(math.exp(score - largest) for score in scores if score > -math.inf)


@claim("merge-of-softmax-sums", rests_on="shifted-lse", may_be="empty")
def _(normal, a, b, draw):
    r"""\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B)
    where A, B disjoint, not both empty
    Bring both sums to the larger maximum, then add; order and grouping do not matter.
        only the second block is rescaled: \, e^{m_A - m} ->
        brought to the smaller maximum: \max(m_A, m_B) -> \min(m_A, m_B)
        rescaled the wrong way: \ell_{A \cup B} = \ell_A\, e^{m - m_A} + \ell_B\, e^{m - m_B}, \qquad m = \max(m_A, m_B)
    """
    base = (3, -9, 0)[draw]  # in draw 1 all scores are negative, in draw 2 B is empty
    first, second = (normal(size) + 2 * normal() + base for size in (a, b * (draw < 2)))
    (m_a, ell_a), (m_b, ell_b), (_, together) = max_and_sum(first), max_and_sum(second), max_and_sum(np.append(first, second))
    return {r"\ell_{A \cup B}": together, r"\ell_A": ell_a, r"\ell_B": ell_b, "m_A": m_a, "m_B": m_b}


@claim("online-softmax-update", rests_on="merge-of-softmax-sums")
def _(normal, n, draw):
    r"""m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'}
    where m, l: maximum and sum of e^{z_j - m} so far; m = -inf, l = 0 before the first score
    Eq. merge-of-softmax-sums with a block of one score: its maximum is x, its sum 1.
        the old sum is not rescaled: \ell\, e^{m - m'} -> \ell
        rescaled by exp(m' - m): m - m' -> m' - m
        the new score measured from the old maximum: e^{x - m'} -> e^{x - m}
    """
    z = np.sort(normal(n)) + 4 * normal()
    z = (z, z[::-1], z[:1])[draw]  # the last is a new maximum, it is the least, it is the first
    m, ell = max_and_sum(z[:-1])
    return {"x": z[-1], "m": m, r"\ell": ell, r"\ell'": max_and_sum(z)[1]}
