"""Similarities and the variance of a score.

What is random is a list of outcomes with their probabilities, never a sample: every expectation is an exact sum.
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import column, independent, outcomes, row, rows

equation = about("C1")


# ---- Three ways to be similar
@equation(
    "dot-product-by-distance",
    r"q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr)",
    topics=["A4", "C4"],
    assumes=["q, k real vectors of one length"],
    wrong={
        "the factor 1/2 forgotten": r"q \cdot k = \|q\|^2 + \|k\|^2 - \|q - k\|^2",
        "a function of the distance alone": r"q \cdot k = 1 - \tfrac{1}{2} \|q - k\|^2",
    },
)
def dot_product_by_lengths(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Multiply out |q - k|^2: near vectors have a large dot product, and so have long ones."""
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(q if draw == 2 else k)}


def keys_at(rng: np.random.Generator, q: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return keys of random lengths, one at each of the angles to q."""
    ahead, aside = q / np.linalg.norm(q), rng.normal(size=(len(angles), len(q)))
    aside -= np.outer(aside @ ahead, ahead)
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    turned = np.cos(angles)[:, None] * ahead + np.sin(angles)[:, None] * aside
    return np.asarray(rng.uniform(0.5, 2.0, size=(len(angles), 1)) * turned)


@equation(
    "cosine-similarity",
    r"\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|}",
    topics=["C4"],
    uses=["dot-product-by-distance"],
    assumes=["q, k not 0", "theta = the angle between q and k"],
    wrong={"divided by one norm only": r"\|q\|\,\|k\| -> \|k\|", "the norms not rooted": r"\|q\|\,\|k\| -> \|q\|^2\,\|k\|^2"},
)
def cosine_similarity(rng: np.random.Generator, d_k: int) -> Givens:
    """Solve the law of cosines for cos theta and put Eq. dot-product-by-distance in."""
    q, theta = rng.normal(size=d_k), rng.uniform(0.2, 3.0)
    return {"q": row(q), "k": row(keys_at(rng, q, np.array([theta]))[0]), r"\theta": theta}


@equation(
    "gaussian-score-expansion",
    r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2}",
    topics=["A4"],
    uses=["dot-product-by-distance"],
    assumes=["h > 0"],
    wrong={
        "the cross term halved as well": r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k - \|k\|^2 - \|q\|^2}{2 h^2}",
        "only the cross term": r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2}",
    },
)
def gaussian_score(rng: np.random.Generator, d_k: int) -> Givens:
    """Eq. dot-product-by-distance solved for the squared distance. The last term is the same for every key."""
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(k), "h": rng.uniform(0.6, 1.5)}


@equation(
    "equal-length-gaussian-weights",
    r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i",
    topics=["A4"],
    uses=["bandwidth-limits", "softmax-shift-invariance", "gaussian-score-expansion"],
    assumes=["all keys have the same length"],
    wrong={
        "bandwidth not squared": r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h} \Bigr)_i",
        "the factor 1/2 kept": r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{2 h^2} \Bigr)_i",
        "the distance not squared": r"\sigma_j\Bigl( -\frac{\|q - k_j\|}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i",
    },
)
def gaussian_weights_on_equal_keys(rng: np.random.Generator, n: int, d_k: int) -> Givens:
    """Two of the terms of Eq. gaussian-score-expansion are equal for all keys.

    Softmax does not see a common shift, Eq. softmax-shift-invariance.
    """
    k = rng.normal(size=(n, d_k))
    k *= rng.uniform(0.7, 1.7) / np.linalg.norm(k, axis=-1, keepdims=True)
    return {"q": row(rng.normal(size=d_k)), "k": rows(k), "h": rng.uniform(0.6, 1.5)}


@equation(
    "ranking-ignores-query-length",
    r"\frac{q \cdot k_i}{q \cdot k_j} = \frac{\|k_i\| \cos\theta_i}{\|k_j\| \cos\theta_j}",
    topics=["C4"],
    uses=["cosine-similarity"],
    assumes=["one query q", "q . k_j not 0"],
    wrong={
        "cosine ranks keys as the dot product does": r"\frac{q \cdot k_i}{q \cdot k_j} = \frac{\cos\theta_i}{\cos\theta_j}",
        "the lengths of the keys divide": r"\frac{q \cdot k_i}{q \cdot k_j} = \frac{\|k_j\| \cos\theta_i}{\|k_i\| \cos\theta_j}",
    },
)
def ranking_by_one_query(rng: np.random.Generator, n: int, d_k: int) -> Givens:
    """The length of q is common to all scores of its row; only the lengths of the keys tell the two rankings apart."""
    q, theta = rng.normal(size=d_k), rng.uniform(0.2, 1.3, size=n) + np.pi / 2 * rng.integers(2, size=n)
    return {"q": row(q), "k": rows(keys_at(rng, q, theta)), r"\theta": theta}


@equation(
    "cosine-weight-bound",
    r"\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}}",
    topics=["C4"],
    uses=["softmax", "cosine-similarity"],
    assumes=["no temperature"],
    wrong={
        "scores between 0 and 1: at most e^1 between two weights": r"\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-1}}",
        "n other keys": r"\sigma(\cos\theta)_i \le \frac{1}{1 + n\,e^{-2}}",
        "a matching key gets nearly all the weight": r"\max_i \sigma(\cos\theta)_i \ge 1 - \frac{1}{n}",
    },
)
def flat_weights_of_cosine(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Scores lie in [-1, 1], so no ratio of weights exceeds e^2. For 64 keys the bound is 0.105."""
    theta = rng.uniform(0, np.pi, size=n)
    if draw == 2:  # one key along q, the others opposite
        theta[:] = np.pi
        theta[rng.integers(n)] = 0.0
    return {r"\theta": theta, "n": n}


@equation(
    "relative-cost-of-norms",
    r"\frac{\text{cost of all norms}}{\text{cost of all dot products}} = \frac{1}{T_q} + \frac{1}{T_k}",
    topics=["C4"],
    uses=["cosine-similarity"],
    assumes=["T_q queries, T_k keys", "cost counted in multiplications"],
    wrong={
        "norms at every pair": r"\frac{\text{cost of all norms}}{\text{cost of all dot products}} = \frac{2\,T_q T_k}{T_q T_k}",
        "the lengths added": r"\frac{\text{cost of all norms}}{\text{cost of all dot products}} = \frac{1}{T_q + T_k}",
    },
)
def cost_of_norms(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """(T_q + T_k) d_k multiplications against T_q T_k d_k: for long sequences the dot product saves next to nothing."""
    norms = multiplications(lambda q, k: [(q * q).sum(axis=-1), (k * k).sum(axis=-1)], (T_q, d_k), (T_k, d_k))
    products = multiplications(lambda q, k: q @ k.T, (T_q, d_k), (T_k, d_k))
    return {r"\text{cost of all norms}": norms, r"\text{cost of all dot products}": products, "T_q": T_q, "T_k": T_k}


# ---- Mean and variance of a dot product
def any_vectors(rng: np.random.Generator, d_k: int, *, centred: bool = False) -> tuple[dict[str, np.ndarray], Givens]:
    """Return outcomes and weights of q and k, each of any distribution and independent of the other; and both as givens."""
    tables = {name: rng.normal(size=(6, d_k)) for name in "qk"}
    weights = {f"p_{name}": rng.dirichlet(np.full(6, 2.0)) for name in "qk"}
    if centred:
        tables = {name: table - weights[f"p_{name}"] @ table for name, table in tables.items()}
    return tables | weights, {name: outcomes(weights[f"p_{name}"], row(table), name) for name, table in tables.items()}


@equation(
    "mean-of-a-score",
    r"\mathbb{E}[q \cdot k] = m_q \cdot m_k",
    assumes=["q independent of k", "means m_q, m_k"],
    wrong={
        "the lengths of the means": r"\mathbb{E}[q \cdot k] = \|m_q\|\,\|m_k\|",
        "as if for squares too": r"\mathbb{E}[(q \cdot k)^2] = (m_q \cdot m_k)^2",
    },
)
def mean_of_a_score(rng: np.random.Generator, d_k: int) -> Givens:
    """The mean of a product of independent numbers is the product of their means."""
    tables, givens = any_vectors(rng, d_k)
    return {**givens, **{f"m_{name}": row(np.average(tables[name], axis=0, weights=tables[f"p_{name}"])) for name in "qk"}}


@equation(
    "score-variance-from-covariances",
    r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
    uses=["mean-of-a-score"],
    assumes=["q independent of k", "means m_q, m_k", "covariances S_q, S_k"],
    wrong={
        "the traces multiplied": r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q)\,\mathrm{tr}(S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
        "each mean with its own covariance": r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_q\, m_q + m_k^\top S_k\, m_k",
        "the mean square": r"\mathbb{E}[(q \cdot k)^2] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
    },
)
def variance_of_a_score(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """E[(q.k)^2] = tr(E[q q^T] E[k k^T]) with E[q q^T] = S_q + m_q m_q^T; the square of Eq. mean-of-a-score cancels one of four terms."""
    tables, givens = any_vectors(rng, d_k, centred=draw == 2)
    means = {f"m_{name}": column(np.average(tables[name], axis=0, weights=tables[f"p_{name}"])) for name in "qk"}
    spreads = {f"S_{name}": np.cov(tables[name], rowvar=False, bias=True, aweights=tables[f"p_{name}"]) for name in "qk"}
    return {**givens, **means, **spreads}


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
    uses=["score-variance-from-covariances"],
    assumes=["all entries independent, mean 0, variance 1", "normality not needed"],
    wrong={
        "as if the terms were one and the same": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k^2",
        "the standard deviation": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = \sqrt{d_k}",
        "2 d_k, which only normal q = k has": r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = 2\,d_k",
    },
)
def variance_is_d_k(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Products of different entries are independent, so variances add; each of them is E[q_i^2] E[k_i^2] = 1."""
    stretch = (1.0, 1.0, 1.3)[draw]  # of q, undone in k: the two variances count together
    return scores(rng, d_k, stretch, 1 / stretch)


@equation(
    "score-variance-from-deviations",
    r"\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2",
    uses=["score-variance-from-covariances"],
    assumes=["entries independent, mean 0, variances sigma_q^2 and sigma_k^2"],
    wrong={
        "the deviations instead of the variances": r"\mathrm{Var}[q \cdot k] = d_k\,\sigma_q\,\sigma_k",
        "the variances added": r"\mathrm{Var}[q \cdot k] = d_k\,(\sigma_q^2 + \sigma_k^2)",
    },
)
def variance_with_any_scale(rng: np.random.Generator, d_k: int) -> Givens:
    """Eq. score-variance-from-covariances with S_q = sigma_q^2 I and S_k = sigma_k^2 I. With one sigma for both it grows like sigma^4."""
    sigma_q, sigma_k = rng.uniform(0.5, 1.8, size=2)
    return {**scores(rng, d_k, sigma_q, sigma_k), r"\sigma_q": sigma_q, r"\sigma_k": sigma_k}


@equation(
    "scaled-score-variance",
    r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1",
    uses=["variance-of-a-score"],
    assumes=["all entries independent, mean 0, variance 1"],
    wrong={"divided by d_k": r"\sqrt{d_k} -> d_k", "scaled in the query and again in the score": r"q \cdot k -> (q / \sqrt{d_k}) \cdot k"},
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
    },
)
def variance_under_other_scales(rng: np.random.Generator, d_k: int) -> Givens:
    """Two wrong divisors: scores shrink to nothing as d_k grows, or as heads are added."""
    h = int(rng.integers(2, 17))
    return {**scores(rng, d_k), r"d_{\text{model}}": h * d_k, "h": h}
