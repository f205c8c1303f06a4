"""Softmax: its meaning, its derivatives, and what a computer makes of it."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import claim
from attn_course.formulas import function, of, vector
from attn_course.reference import softmax


# ---- what softmax is
@claim("softmax", serves="B1")
def _(normal, n):
    r"""\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}}
    where z real
    The only weights that sum to 1 and have the ratios e^{z_i - z_j}.
        X24: a function of one entry alone, as if all other scores were 0: \sigma(z)_i = \frac{e^{z_i}}{e^{z_i} + n - 1}
        scores divided by their sum: \sigma(z)_i = \frac{z_i}{\sum_{j=1}^{n} z_j}
        exponentials over the sum of the scores: e^{z_j} -> z_j
    """

    def weights_by_ratios(z: np.ndarray) -> np.ndarray:
        """Solve w_i = e^{z_i - z_1} w_1 and sum_i w_i = 1."""
        conditions = np.eye(n)
        conditions[:, 0] -= np.exp(z - z[0])
        conditions[0] = 1.0
        return np.linalg.solve(conditions, np.eye(n)[0])

    return {"z": vector(normal(n)), "n": n, r"\sigma": function(weights_by_ratios)}


@claim("softmax-with-temperature", serves="B1", rests_on="softmax")
def _(normal, rng, n):
    r"""p_i = \frac{e^{z_i / T}}{\sum_{j=1}^{n} e^{z_j / T}} = \sigma(z / T)_i
    where T > 0 ;; p: weights with the factor e^{1/T} for a lead of one point
    A lead of z_i - z_j points then has the factor e^{(z_i - z_j) / T}: Eq. softmax for the scores z / T.
        multiplied by T: p_i = \frac{e^{T z_i}}{\sum_{j=1}^{n} e^{T z_j}} = \sigma(T z)_i
        weights divided by T: p_i = \frac{e^{z_i} / T}{\sum_{j=1}^{n} e^{z_j}} = \sigma(z)_i / T
        the sign of an energy: p_i = \frac{e^{-z_i / T}}{\sum_{j=1}^{n} e^{-z_j / T}} = \sigma(-z / T)_i
    """
    z, T = normal(n), rng.uniform(0.4, 3)
    return {"z": z, "n": n, "T": T, "p": reference.softmax(z, temperature=T)}


# ---- what a computer makes of it
@claim("softmax-shift-invariance", serves="B2", rests_on="softmax")
def _(normal, n):
    r"""\sigma(z + c\,\mathbf{1}) = \sigma(z)
    where c real
    e^c is a common factor of numerator and denominator.
        a common factor would not matter either: \sigma(c\,z) = \sigma(z)
        nor would a shift of one entry: \mathbf{1} -> \mathbf{1}_{1}
        the weights are shifted as well: (z) -> (z) + c\,\mathbf{1}
    """
    return {"z": normal(n), "c": normal()}


@claim(
    "stable-softmax",
    serves="B2",
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


# ---- what it is best at
ENTROPY = r"H(x) = -\sum_j x_j \ln x_j"


def entropy(p: np.ndarray) -> float:
    """Return the entropy of weights in nats, by its definition."""
    return -sum(one * np.log(one) for one in p)


@claim("lse-is-best-compromise", serves="B1", rests_on="softmax")
def _(normal, rng, n, draw):
    r"""p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z + H(\sigma(z))
    where p_i >= 0 with sum 1 ;; 0 ln 0 = 0
    The mean of the logarithms of e^{z_i} / p_i is at most the logarithm of their mean; equal only for p = softmax(z).
        the largest score as the bound: \mathrm{lse}(z) -> \max_j z_j
        every choice is as good: \le -> =
        from below: \le -> \ge
        entropy left out: p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z
    """
    z, weights = normal(n), rng.uniform(0.1, 0.9, size=n)
    p = softmax(z) if draw == 2 else weights / weights.sum()  # the last attains it
    return {"z": z, "p": p, "H": function(entropy, formula=ENTROPY)}


# ---- its derivatives, and what being wrong costs
@claim("lse-gradient", serves="B1", rests_on="softmax")
def _(normal, n):
    r"""\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i
    The chain rule for ln sum_j e^{z_j}; the line p . z + H(p) with p = softmax(z) touches it there, with the same slope.
        the inner derivative forgotten: \sigma(z)_i -> \frac{1}{\sum_j e^{z_j}}
        the logarithm of the weight: = -> = \ln
        multiplied by the score: = -> = z_i\,
    """
    return {"z": normal(n)}


@claim("softmax-derivative", serves="B2", rests_on="lse-gradient")
def _(normal, n):
    r"""\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j)
    ln s_i = z_i - lse(z), and Eq. lse-gradient; the derivative of s_i is s_i times that of ln s_i.
        the diagonal term forgotten: s_i\,(\delta_{ij} - s_j) -> -s_i\,s_j
        only the diagonal, as if each weight had its own sigmoid: (\delta_{ij} - s_j) -> (1 - s_j)\,\delta_{ij}
        the sign turned round: \delta_{ij} - s_j -> s_j - \delta_{ij}
    """
    return {"z": normal(n), "s": of(softmax, "z")}


@claim("cross-entropy-gradient", serves="B2", rests_on="lse-gradient")
def _(normal, n):
    r"""\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy}
    -ln s_y = lse(z) - z_y: Eq. lse-gradient for the first term; the second is linear.
        target minus weight: s_i - \delta_{iy} -> \delta_{iy} - s_i
        only the entry of the target moves: s_i - \delta_{iy} -> \delta_{iy}\,(s_i - 1)
        a factor s_i too many: - \delta_{iy} -> \,(s_i - \delta_{iy})
    """
    return {"z": normal(n), "s": of(softmax, "z")}


@claim(
    "weighted-mean-derivative",
    serves="B2",
    rests_on="lse-gradient",
    whatever={"g": "the numbers that are averaged may be any: only the weights are those of a softmax"},
)
def _(normal, n):
    r"""\frac{d}{dt} \sum_{j=1}^{n} s_j g_j = \mathrm{Cov}_s\Bigl(g, \frac{d z}{dt}\Bigr)
    where s = softmax(z) ;; z has a derivative by t, and g does not depend on t
    d ln s_j = dz_j - sum_l s_l dz_l by Eq. lse-gradient; put ds_j = s_j d ln s_j into the sum, and centre g.
        the weights held still: \mathrm{Cov}_s\Bigl(g, \frac{d z}{dt}\Bigr) -> 0
        the mean product, not centred:
            \mathrm{Cov}_s\Bigl(g, \frac{d z}{dt}\Bigr) -> \sum_{j=1}^{n} s_j g_j \frac{d z_j}{dt}
        the sign turned round: = \mathrm{Cov} -> = -\mathrm{Cov}
        with the scores in place of their derivatives: \frac{d z}{dt} -> z
    """
    (a, b), at = normal(2, n), normal()

    def scores(t: float) -> np.ndarray:
        return a + b * np.sin(t)

    return {
        "t": at,
        "z": of(scores, "t"),
        "g": vector(normal(n)),
        "s": of(lambda t: softmax(scores(t)), "t"),
        "n": n,
    }
