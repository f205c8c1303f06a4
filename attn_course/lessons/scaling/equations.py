"""The variance of a score: what it is, what each assumption is worth, what softmax sees of it, and what the scale is not.

What is random is a list of outcomes with their probabilities, never a sample: every expectation is an exact sum.
"""

import itertools

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, function, independent, outcomes, row

equation = about("C1")


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


@equation(
    "mean-of-a-score",
    r"\mathbb{E}[q \cdot k] = m_q \cdot m_k",
    assumes=["q independent of k", "means m_q, m_k"],
    wrong={
        "the lengths of the means": r"\mathbb{E}[q \cdot k] = \|m_q\|\,\|m_k\|",
        "as if for squares too": r"\mathbb{E}[(q \cdot k)^2] = (m_q \cdot m_k)^2",
        "zero, as for centred entries": r"\mathbb{E}[q \cdot k] = 0",
    },
)
def mean_of_a_score(rng: np.random.Generator, d_k: int) -> Givens:
    """The mean of a product of independent numbers is the product of their means."""
    tables, givens = any_vectors(rng, d_k)
    return {**givens, **{f"m_{name}": column(np.average(tables[name], axis=0, weights=tables[f"p_{name}"])) for name in "qk"}}


@equation(
    "score-variance-by-entries",
    r"\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij}"
    r" + (m_k)_i (m_k)_j (S_q)_{ij} \bigr)",
    uses=["mean-of-a-score"],
    assumes=["q independent of k", "means m_q, m_k", "covariances S_q, S_k"],
    wrong={
        "each variance of q with each of k": r"\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ii} (S_k)_{jj}"
        r" + (m_q)_i (m_q)_j (S_k)_{ij} + (m_k)_i (m_k)_j (S_q)_{ij} \bigr)",
        "the means forgotten": r"\mathrm{Var}[q \cdot k] = \sum_{i,\,j} (S_q)_{ij} (S_k)_{ij}",
        "each mean with its own covariance": r"\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij}"
        r" + (m_q)_i (m_q)_j (S_q)_{ij} + (m_k)_i (m_k)_j (S_k)_{ij} \bigr)",
    },
    equivalent={f"(S_{name})_{{i j}} -> (S_{name})_{{j i}}": "a covariance matrix is symmetric" for name in "qk"},
)
def variance_by_entries(rng: np.random.Generator, d_k: int) -> Givens:
    """The mean of a product of four entries comes apart into one of q and one of k; of four products, the square of the mean cancels."""
    return any_moments(rng, d_k)


@equation(
    "score-variance-from-covariances",
    r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
    uses=["score-variance-by-entries"],
    assumes=["q independent of k", "means m_q, m_k", "covariances S_q, S_k"],
    wrong={
        "the traces multiplied": r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q)\,\mathrm{tr}(S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
        "each mean with its own covariance": r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_q\, m_q + m_k^\top S_k\, m_k",
        "the mean square": r"\mathbb{E}[(q \cdot k)^2] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
    },
)
def variance_of_a_score(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Eq. score-variance-by-entries with the sum of products of two symmetric matrices written as the trace of their product."""
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


@equation(
    "variance-of-a-score",
    r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k",
    assumes=["all entries independent, mean 0, variance 1", "normality not needed"],
    wrong={
        "as if the terms were one and the same": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k^2",
        "the standard deviation": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = \sqrt{d_k}",
        "2 d_k, as for normal q = k": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = 2\,d_k",
    },
)
def variance_is_d_k(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Products of different entries are independent, so variances add; each of them is E[q_i^2] E[k_i^2] = 1."""
    stretch = (1.0, 1.0, 1.3)[draw]  # of q, undone in k: the two variances count together
    return scores(rng, d_k, stretch, 1 / stretch)


@equation(
    "score-variance-from-deviations",
    r"\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2",
    uses=["variance-of-a-score"],
    assumes=["entries independent, mean 0, variances sigma_q^2 and sigma_k^2"],
    wrong={
        "the deviations instead of the variances": r"\mathrm{Var}[q \cdot k] = d_k\,\sigma_q\,\sigma_k",
        "the variances added": r"\mathrm{Var}[q \cdot k] = d_k\,(\sigma_q^2 + \sigma_k^2)",
        "d_k squared, as the factor of each entry": r"\mathrm{Var}[q \cdot k] = d_k^2\,\sigma_q^2\,\sigma_k^2",
    },
)
def variance_with_any_scale(rng: np.random.Generator, d_k: int) -> Givens:
    """Each of the d_k terms is a product of two variances. With one sigma for both it grows like sigma^4."""
    sigma_q, sigma_k = rng.uniform(0.5, 1.8, size=2)
    return {**scores(rng, d_k, sigma_q, sigma_k), r"\sigma_q": sigma_q, r"\sigma_k": sigma_k}


@equation(
    "scaled-score-variance",
    r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1",
    uses=["variance-of-a-score"],
    assumes=["all entries independent, mean 0, variance 1"],
    wrong={
        "divided by d_k": r"\sqrt{d_k} -> d_k",
        "scaled in the query and again in the score": r"q \cdot k -> (q / \sqrt{d_k}) \cdot k",
        "the variance goes with the factor, not with its square": r"1 -> \sqrt{d_k}",
    },
)
def variance_of_the_scaled_score(rng: np.random.Generator, d_k: int) -> Givens:
    """A factor c multiplies the variance by c^2, so c = 1 / sqrt(d_k) undoes Eq. variance-of-a-score."""
    return scores(rng, d_k)


@equation(
    "variance-under-wrong-scales",
    r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad"
    r" \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h}",
    uses=["variance-of-a-score"],
    assumes=["as in {eq}`scaled-score-variance`", "h heads, d_model = h d_k"],
    wrong={
        "d_model for d_k": r"h > 1: \qquad \mathrm{Var}[q \cdot k / \sqrt{d_{\text{model}}}] = d_k\,\mathrm{Var}[q \cdot k / d_k] = 1",
        "d_k for its root": r"\mathrm{Var}[q \cdot k / d_k] = 1, \qquad \mathrm{Var}[q \cdot k / \sqrt{d_{\text{model}}}] = \frac{1}{h}",
        "deviations for variances": r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{\sqrt{d_k}}, \qquad"
        r" \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{\sqrt{h}}",
    },
)
def variance_under_other_scales(rng: np.random.Generator, d_k: int) -> Givens:
    """Two wrong divisors: scores shrink to nothing as d_k grows, or as heads are added."""
    h = int(rng.integers(2, 17))
    return {**scores(rng, d_k), r"d_{\text{model}}": h * d_k, "h": h}


# ---- What softmax sees of it
@equation(
    "spread-within-a-row",
    r"\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)",
    topics=["C2"],
    uses=["score-variance-by-entries"],
    assumes=["q independent of k", "mean m_q", "covariances S_q, S_k", "a row: one query q, a random key k"],
    wrong={
        "the variance of all scores": r"\mathrm{Var}[q \cdot k]"
        r" = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)",
        "the same for every query": r"\mathrm{Var}_k[q \cdot k]"
        r" = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)",
        "the mean query only": r"\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} (m_q)_i (m_q)_j (S_k)_{ij}",
    },
    equivalent={f"(S_{name})_{{i j}} -> (S_{name})_{{j i}}": "a covariance matrix is symmetric" for name in "qk"},
)
def spread_of_one_row(rng: np.random.Generator, d_k: int) -> Givens:
    """With q fixed, its covariance is 0 and its mean is q; the mean of the keys shifts the whole row, and does not count."""
    return {name: given for name, given in any_moments(rng, d_k).items() if name != "m_k"}


# ---- When q and k are not independent
def directions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return perpendicular rows of length 1, turned at random."""
    return np.asarray(np.linalg.qr(rng.normal(size=(count, count)))[0])


def normal_vectors(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights with all moments of independent standard normal entries up to degree 5 (Stroud and Secrest, 1963)."""
    unit = np.sqrt(count / 2 + 1) * directions(rng, count)
    pairs = [a * one + b * other for one, other in itertools.combinations(unit, 2) for a in (1, -1) for b in (1, -1)]
    points = np.vstack([np.zeros(count), np.sqrt(2) * unit, -np.sqrt(2) * unit, pairs])
    return points, np.repeat([2 * count + 4, 2 - count / 2, 1], [1, 2 * count, len(pairs)]) / (count + 2) ** 2


@equation(
    "correlated-query-key-moments",
    r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k",
    uses=["variance-of-a-score"],
    assumes=["normal entries with mean 0 and variance 1", "correlation rho between q_i and k_i, no other dependence"],
    wrong={
        "the mean stays 0": r"\mathbb{E}[q \cdot k] = 0, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k",
        "the variance stays d_k": r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = d_k",
        "the variance shrinks": r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 - \rho^2)\,d_k",
    },
)
def correlated_query_and_key(rng: np.random.Generator, d_k: int) -> Givens:
    """Write k_i = rho q_i + sqrt(1 - rho^2) e_i with e_i independent of q_i, and use E[q_i^4] = 3."""
    (q, p_q), (e, p_e), rho = normal_vectors(rng, d_k), normal_vectors(rng, d_k), rng.uniform(-0.9, 0.9)
    k = rho * q[:, None] + np.sqrt(1 - rho**2) * e
    q, chances = np.broadcast_to(q[:, None], k.shape), np.outer(p_q, p_e).ravel()
    random = {name: outcomes(chances, row(table.reshape(-1, d_k))) for name, table in (("q", q), ("k", k))}
    return {**random, r"\rho": rho, "d_k": d_k}


@equation(
    "equal-query-key-moments",
    r"\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k",
    uses=["variance-of-a-score"],
    assumes=["k = q", "entries independent, mean 0, variance 1", "kappa = E[q_i^4]: 3 for normal entries, 1 for +1 and -1"],
    wrong={
        "mean 0, as for independent vectors": r"\mathbb{E}[q \cdot q] = 0, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k",
        "variance d_k, as for independent vectors": r"\kappa > 1: \qquad \mathbb{E}[q \cdot q] = \mathrm{Var}[q \cdot q] = d_k",
        "variance 2 d_k for any entries": r"\kappa > 1: \qquad \mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = 2\,d_k",
    },
)
def query_equal_to_key(rng: np.random.Generator, d_k: int) -> Givens:
    """Each term is q_i^2, with mean 1 and variance kappa - 1: for normal entries mean d_k and variance 2 d_k."""
    q, chances, fourth = entries(rng, d_k)
    return {"q": outcomes(chances, row(q)), r"\kappa": fourth, "d_k": d_k}


# ---- What the scale is not: a new class of functions
@equation(
    "scale-as-reparametrisation",
    r"c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) = W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
    topics=["C2"],
    assumes=["the loss sees W_Q through the scores c x W_Q k^T only", "one step of gradient descent"],
    wrong={
        "X14: the scale changes nothing at all: the same step": r"c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - \eta"
        r"\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
        "a longer step for the smaller weights": r"c^2\,\eta -> c^{-2}\,\eta",
        "the step times c": r"c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - c\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
    },
    whatever={r"\mathcal{L}": "the chain rule does not ask which loss it is"},
)
def scale_as_reparametrisation(rng: np.random.Generator, n: int) -> Givens:
    """With W' = c W_Q the scores are the same. What changes is where W' starts, and its step, which is c^2 times as long."""
    x, keys = rng.normal(size=2), rng.normal(size=(n, 3))

    def loss(projection: np.ndarray) -> float:
        fits = keys @ (x @ projection)
        return float(np.log(np.exp(fits - fits[2]).sum()))  # minus the logarithm of the weight of the key wanted

    w = rng.normal(size=(2, 3)) / 2
    return {"W": w, "c": rng.normal(), r"\eta": rng.uniform(0.3, 0.7), r"\mathcal{L}": function(loss)}
