"""The spread of a row of scores, the variance of all scores, what each assumption is worth, and what the scale is not.

What is random is a list of outcomes with their probabilities, never a sample: every expectation is an exact sum.
"""

import itertools

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import Normal, uncorrelated
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
def any_vectors(rng: np.random.Generator, d_k: int, *, centred: bool = False) -> tuple[dict[str, np.ndarray], Givens]:
    """Return outcomes and weights of q and k, each of any distribution and independent of the other; and both as givens."""
    tables = {name: rng.normal(size=(6, d_k)) for name in "qk"}
    weights = {f"p_{name}": rng.dirichlet(np.full(6, 2.0)) for name in "qk"}
    if centred:
        tables = {name: table - weights[f"p_{name}"] @ table for name, table in tables.items()}
    return tables | weights, {name: outcomes(weights[f"p_{name}"], column(table), name) for name, table in tables.items()}


def any_moments(rng: np.random.Generator, d_k: int, *, centred: bool = False) -> Givens:
    """Return q and k as random columns of any distribution, independent of each other, with their means and covariances."""
    tables, givens = any_vectors(rng, d_k, centred=centred)
    means = {f"m_{name}": column(np.average(tables[name], axis=0, weights=tables[f"p_{name}"])) for name in "qk"}
    spreads = {f"S_{name}": np.cov(tables[name], rowvar=False, bias=True, aweights=tables[f"p_{name}"]) for name in "qk"}
    return {**givens, **means, **spreads}


@claim("score-variance-from-covariances")
def _(rng, d_k, draw):
    r"""\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k
    where q independent of k ;; means m_q, m_k ;; covariances S_q, S_k
    Three sources of spread, with mean squares that add: both vectors vary, the key alone, the query alone.
        the traces multiplied: (S_q S_k) -> (S_q)\,\mathrm{tr}(S_k)
        each mean with its own covariance: S_k\, -> S_q\, ;; S_q\, m_k -> S_k\, m_k
        the mean square: \mathrm{Var}[q \cdot k] -> \mathbb{E}[(q \cdot k)^2]
    """
    return any_moments(rng, d_k, centred=draw == 2)


def entries(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return all outcomes of so many independent entries with mean 0 and variance 1, their probabilities, and the fourth moment of one.

    Each takes two values, the rarer one farther from 0.
    """
    rare = rng.uniform(0.25, 0.45)
    values, chances = np.sqrt([(1 - rare) / rare, rare / (1 - rare)]) * [1, -1], np.array([rare, 1 - rare])
    return *independent(values.tolist(), chances.tolist(), count), float(chances @ values**4)


def scores(rng: np.random.Generator, d_k: int, sigma_q: float = 1.0, sigma_k: float = 1.0) -> Givens:
    """Return q and k of independent entries with mean 0 and these standard deviations, and d_k."""
    (q, p_q, _), (k, p_k, _) = entries(rng, d_k), entries(rng, d_k)
    return {"q": outcomes(p_q, row(sigma_q * q), "q"), "k": outcomes(p_k, row(sigma_k * k), "k"), "d_k": d_k}


@claim("variance-of-a-score")
def _(rng, d_k, draw):
    r"""\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k
    where all entries independent, mean 0, variance 1 ;; normality not needed
    Products of different entries are independent, so variances add; each of them is E[q_i^2] E[k_i^2] = 1.
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


@claim("variance-under-wrong-scales", rests_on="variance-of-a-score", beside=(r"d_{\text{model}} = h\, d_k",))
def _(rng, d_k):
    r"""\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
        \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h}
    where as in {eq}`scaled-score-variance` ;; h heads, d_model = h d_k
    Two wrong divisors: scores shrink to nothing as d_k grows, or as heads are added.
        d_model for d_k: h > 1: \qquad \mathrm{Var}[q \cdot k / \sqrt{d_{\text{model}}}] = d_k\,\mathrm{Var}[q \cdot k / d_k] = 1
        d_k for its root: \mathrm{Var}[q \cdot k / d_k] = 1, \qquad \mathrm{Var}[q \cdot k / \sqrt{d_{\text{model}}}] = \frac{1}{h}
        deviations for variances:
            \mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{\sqrt{d_k}}, \qquad \mathrm{Var}\Bigl[ \frac{q \cdot
            k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{\sqrt{h}}
    """
    h = int(rng.integers(2, 17))
    return {**scores(rng, d_k), r"d_{\text{model}}": h * d_k, "h": h}


# ---- What softmax sees of it
@claim(
    "spread-within-a-row",
    serves="C2",
    rests_on="row-variance-by-query",
    equivalent={f"(S_{name})_{{i j}} -> (S_{name})_{{j i}}": "a covariance matrix is symmetric" for name in "qk"},
)
def _(rng, d_k):
    r"""\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)
    where q independent of k ;; mean m_q ;; covariances S_q, S_k ;; a row: one query q, a random key k
    With q fixed, its covariance is 0 and its mean is q; the mean of the keys shifts the whole row, and does not count.
        the variance of all scores: \mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] -> \mathrm{Var}[q \cdot k]
        the same for every query: \mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] -> \mathrm{Var}_k[q \cdot k]
        the mean query only: \mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} (m_q)_i (m_q)_j (S_k)_{ij}
    """
    return {name: given for name, given in any_moments(rng, d_k).items() if name != "m_k"}


# ---- When q and k are not independent
def directions(normal: Normal, count: int) -> np.ndarray:
    """Return perpendicular rows of length 1, turned at random."""
    return np.asarray(np.linalg.qr(normal(count, count))[0])


def normal_vectors(normal: Normal, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights with all moments of independent standard normal entries up to degree 5 (Stroud and Secrest, 1963)."""
    unit = np.sqrt(count / 2 + 1) * directions(normal, count)
    pairs = [a * one + b * other for one, other in itertools.combinations(unit, 2) for a in (1, -1) for b in (1, -1)]
    points = np.vstack([np.zeros(count), np.sqrt(2) * unit, -np.sqrt(2) * unit, pairs])
    return points, np.repeat([2 * count + 4, 2 - count / 2, 1], [1, 2 * count, len(pairs)]) / (count + 2) ** 2


@claim("correlated-query-key-moments", rests_on="variance-of-a-score")
def _(normal, rng, d_k):
    r"""\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k
    where normal entries with mean 0 and variance 1 ;; correlation rho between q_i and k_i, no other dependence
    Write k_i = rho q_i + sqrt(1 - rho^2) e_i with e_i independent of q_i, and use E[q_i^4] = 3.
        the mean stays 0: \rho\,d_k -> 0
        the variance stays d_k: (1 + \rho^2)\,d_k -> d_k
        the variance shrinks: + -> -
    """
    (q, p_q), (e, p_e), rho = normal_vectors(normal, d_k), normal_vectors(normal, d_k), rng.uniform(-0.9, 0.9)
    k = rho * q[:, None] + np.sqrt(1 - rho**2) * e
    q, chances = np.broadcast_to(q[:, None], k.shape), np.outer(p_q, p_e).ravel()
    random = {name: outcomes(chances, row(table.reshape(-1, d_k))) for name, table in (("q", q), ("k", k))}
    return {**random, r"\rho": rho, "d_k": d_k}


@claim("equal-query-key-moments", rests_on="variance-of-a-score")
def _(rng, d_k):
    r"""\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k
    where k = q ;; entries independent, mean 0, variance 1 ;; kappa = E[q_i^4]: 3 for normal entries, 1 for +1 and -1
    Each term is q_i^2, with mean 1 and variance kappa - 1: for normal entries mean d_k and variance 2 d_k.
        mean 0, as for independent vectors: = d_k -> = 0
        variance d_k, as for independent vectors: \kappa > 1: \qquad \mathbb{E}[q \cdot q] = \mathrm{Var}[q \cdot q] = d_k
        variance 2 d_k for any entries: \kappa > 1: \qquad \mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = 2\,d_k
    """
    q, chances, fourth = entries(rng, d_k)
    return {"q": outcomes(chances, row(q)), r"\kappa": fourth, "d_k": d_k}


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
