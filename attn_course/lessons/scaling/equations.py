"""The spread of a row of scores, the variance of all scores, what each assumption is worth, and what the scale is not.

What is random is a list of outcomes with their probabilities, never a sample: every expectation is an exact sum.
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import uncorrelated
from attn_course.formulas import column, function, independent, outcomes, row

claim = about("C1")


# ---- One row, and all scores
@claim("row-variance-by-query", serves="C1 C2")
def _(normal, rng, d_k):
    r"""\mathrm{Var}_k[q \cdot k] = \sigma_k^2\, \|q\|^2
    where q fixed ;; entries of k uncorrelated, variance sigma_k^2, any means
    The means shift the whole row. Of the products of what varies, those of different entries have mean 0.
        as if the entries of k moved together: \|q\|^2 -> \Bigl( \sum_i q_i \Bigr)^2
        length for squared length: \|q\|^2 -> \|q\|
        the deviation for the variance: \sigma_k^2 -> \sigma_k
    """
    (points, chances), sigma = uncorrelated(normal, rng, d_k), rng.uniform(0.5, 1.8)
    return {"q": row(normal(d_k)), "k": outcomes(chances, row(normal(d_k) + sigma * points), "k"), r"\sigma_k": sigma}


# ---- Mean and variance of a dot product
@claim("score-variance-from-covariances")
def _(rng, d_k, draw):
    r"""\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k
    where q independent of k ;; means m_q, m_k ;; covariances S_q, S_k
    Three sources of spread, with mean squares that add: both vectors vary, the key alone, the query alone.
        the traces multiplied: (S_q S_k) -> (S_q)\,\mathrm{tr}(S_k)
        each mean with its own covariance: S_k\, -> S_q\, ;; S_q\, m_k -> S_k\, m_k
        the mean square: \mathrm{Var}[q \cdot k] -> \mathbb{E}[(q \cdot k)^2]
    """
    givens: dict[str, object] = {}
    for name in "qk":
        table, chances = rng.normal(size=(6, d_k)), rng.dirichlet(np.full(6, 2.0))
        if draw == 2:
            table -= chances @ table
        givens |= {name: outcomes(chances, column(table), name), f"m_{name}": column(chances @ table)}
        givens[f"S_{name}"] = np.cov(table, rowvar=False, bias=True, aweights=chances)
    return givens


def entries(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all outcomes of so many independent entries with mean 0 and variance 1, and their probabilities.

    Each takes two values, the rarer one farther from 0.
    """
    rare = rng.uniform(0.25, 0.45)
    values, chances = np.sqrt([(1 - rare) / rare, rare / (1 - rare)]) * [1, -1], np.array([rare, 1 - rare])
    return independent(values.tolist(), chances.tolist(), count)


def scores(rng: np.random.Generator, d_k: int, sigma_q: float = 1.0, sigma_k: float = 1.0) -> Givens:
    """Return q and k of independent entries with mean 0 and these standard deviations, and d_k."""
    (q, p_q), (k, p_k) = entries(rng, d_k), entries(rng, d_k)
    return {"q": outcomes(p_q, row(sigma_q * q), "q"), "k": outcomes(p_k, row(sigma_k * k), "k"), "d_k": d_k}


@claim("variance-of-a-score")
def _(rng, d_k, draw):
    r"""\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k
    where all entries independent, mean 0, variance 1 ;; normality not needed
    Products of different entries are independent, so variances add; each of them is 𝔼[q_i^2] 𝔼[k_i^2] = 1.
        as if the terms were one and the same: = d_k -> = d_k^2
        the standard deviation: = d_k -> = \sqrt{d_k}
        2 d_k, as for normal q = k: = d_k -> = 2\,d_k
    """
    stretch = (1.0, 1.0, 1.3)[draw]  # of q, undone in k: the two variances count together
    return scores(rng, d_k, stretch, 1 / stretch)


@claim("score-variance-from-deviations", rests_on="variance-of-a-score")
def _(rng, d_k):
    r"""\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2
    where entries independent, mean 0, variances sigma_q^2 and sigma_k^2
    Each of the d_k terms is a product of two variances. With one sigma for both it grows like sigma^4.
        the deviations instead of the variances: all ^2 ->
        the variances added: \mathrm{Var}[q \cdot k] = d_k\,(\sigma_q^2 + \sigma_k^2)
        d_k squared, as the factor of each entry: d_k -> d_k^2
    """
    sigma_q, sigma_k = rng.uniform(0.5, 1.8, size=2)
    return {**scores(rng, d_k, sigma_q, sigma_k), r"\sigma_q": sigma_q, r"\sigma_k": sigma_k}


@claim("scaled-score-variance", rests_on="variance-of-a-score")
def _(rng, d_k):
    r"""\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1
    where all entries independent, mean 0, variance 1
    A factor c multiplies the variance by c^2, so c = 1 / sqrt(d_k) undoes Eq. variance-of-a-score.
        divided by d_k: \sqrt{d_k} -> d_k
        scaled in the query and again in the score: q \cdot k -> (q / \sqrt{d_k}) \cdot k
        the variance goes with the factor, not with its square: 1 -> \sqrt{d_k}
    """
    return scores(rng, d_k)


# ---- What the scale is not: a new class of functions
@claim("scale-as-reparametrisation", serves="C2", whatever={r"\mathcal{L}": "the chain rule does not ask which loss it is"})
def _(normal, rng, n):
    r"""c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) = W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W
    where the loss sees W_Q through the scores c x W_Q k^T only ;; one step of gradient descent
    With W' = c W_Q the scores are the same. What changes is where W' starts, and its step, which is c^2 times as long.
        X14: the scale changes nothing at all: the same step:
            c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - \eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W
        a longer step for the smaller weights: c^2\,\eta -> c^{-2}\,\eta
        the step times c: c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - c\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W
    """
    x, keys = normal(2), normal(n, 3)

    def loss(projection: np.ndarray) -> float:
        fits = keys @ (x @ projection)
        return float(np.log(np.exp(fits - fits[2]).sum()))  # minus the logarithm of the weight of the key wanted

    w = normal(2, 3) / 2
    return {"W": w, "c": normal(), r"\eta": rng.uniform(0.3, 0.7), r"\mathcal{L}": function(loss)}
