"""Similarities and the variance of a score.

Expectations are taken by moment algebra: entries are independent symbols with a table of moments, never samples.
"""

import numpy as np
import sympy
from sympy import Integer, Matrix, Rational, sqrt, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.moments import Expr, Table, expectation, standard, variance
from attn_course.equations.stated import equation
from attn_course.equations.symbols import dot, real_symbols, squared_distance, total

q, k = real_symbols("q", 3), real_symbols("k", 3)
h = sympy.Symbol("h", positive=True)
kappa_q, kappa_k, skew = symbols("kappa_q kappa_k gamma", real=True)
sigma_q, sigma_k = symbols("sigma_q sigma_k", positive=True)


# ---- 3.1 Three ways to be similar


@equation(
    "dot-product-by-distance",
    r"q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr)",
    rows=["A4", "C4"],
    assumes=["q, k real vectors of one length"],
    scope="d_k = 3",
)
def dot_product_by_lengths() -> Sides:
    """Multiply out |q - k|^2: near vectors have a large dot product, and so have long ones."""
    return dot(q, k), Rational(1, 2) * (dot(q, q) + dot(k, k) - squared_distance(q, k))


dot_product_by_lengths.wrong("the factor 1/2 forgotten")(lambda: (dot(q, k), dot(q, q) + dot(k, k) - squared_distance(q, k)))
dot_product_by_lengths.wrong("a function of the distance alone")(lambda: (dot(q, k), 1 - squared_distance(q, k) / 2))


@equation(
    "cosine-similarity",
    r"\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|}",
    rows=["C4"],
    uses=["dot-product-by-distance"],
    assumes=["q, k not 0", "theta = the angle in the triangle with sides |q|, |k|, |q - k|"],
    scope="d_k = 3",
)
def cosine_similarity() -> Sides:
    """Solve the law of cosines for cos theta and put Eq. dot-product-by-distance in."""
    return _cosine_by_triangle(), dot(q, k) / (sqrt(dot(q, q)) * sqrt(dot(k, k)))


def _cosine_by_triangle() -> Expr:
    cosine, a, b, c = sympy.symbols("cosine a b c", positive=True)
    (solved,) = sympy.solve(a**2 + b**2 - 2 * a * b * cosine - c**2, cosine)
    return solved.subs({a: sqrt(dot(q, q)), b: sqrt(dot(k, k)), c: sqrt(squared_distance(q, k))})


cosine_similarity.wrong("the scaled dot product called cosine similarity: q.k / sqrt(d_k)", trap="X4")(
    lambda: (_cosine_by_triangle(), dot(q, k) / sqrt(3))
)
cosine_similarity.wrong("divided by one norm only")(lambda: (_cosine_by_triangle(), dot(q, k) / sqrt(dot(k, k))))
cosine_similarity.wrong("the norms not rooted")(lambda: (_cosine_by_triangle(), dot(q, k) / (dot(q, q) * dot(k, k))))


@equation(
    "gaussian-score-expansion",
    r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2}",
    rows=["A4"],
    uses=["dot-product-by-distance"],
    assumes=["h > 0"],
    scope="d_k = 3",
)
def gaussian_score() -> Sides:
    """Eq. dot-product-by-distance solved for the squared distance. The last term is the same for every key."""
    score = -squared_distance(q, k) / (2 * h**2)
    return score, dot(q, k) / h**2 - dot(k, k) / (2 * h**2) - dot(q, q) / (2 * h**2)


gaussian_score.wrong("the cross term halved as well")(
    lambda: (-squared_distance(q, k) / (2 * h**2), (dot(q, k) - dot(k, k) - dot(q, q)) / (2 * h**2))
)
gaussian_score.wrong("only the cross term")(lambda: (-squared_distance(q, k) / (2 * h**2), dot(q, k) / h**2))


@equation(
    "equal-length-gaussian-weights",
    r"\sigma\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i",
    rows=["A4"],
    uses=["bandwidth-limits", "softmax-shift-invariance", "gaussian-score-expansion"],
    assumes=["all keys have the same length"],
    kind="numeric",
    scope="n = 1 to 7 keys, d_k = 3",
)
def gaussian_weights_on_equal_keys(rng: np.random.Generator) -> Claims:
    """Two of the terms of Eq. gaussian-score-expansion are equal for all keys.

    Softmax does not see a common shift, Eq. softmax-shift-invariance.
    """
    for n in range(1, 8):
        query, key, bandwidth = rng.normal(size=3), 1.7 * _directions(rng, n), rng.uniform(0.5, 2.0)
        exponentials = np.exp(key @ query / bandwidth**2)
        yield _gaussian_weights(query, key, bandwidth), exponentials / exponentials.sum()


def _directions(rng: np.random.Generator, n: int) -> np.ndarray:
    rows = rng.normal(size=(n, 3))
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _gaussian_weights(query: np.ndarray, key: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.asarray(reference.softmax(reference.gaussian_scores(query[None], key, bandwidth))[0])


@gaussian_weights_on_equal_keys.wrong("for keys of any length")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    yield _gaussian_weights(query, key, 1.3), reference.softmax(key @ query / 1.3**2)


@gaussian_weights_on_equal_keys.wrong("the bandwidth not squared")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), _directions(rng, 5)
    yield _gaussian_weights(query, key, 1.3), reference.softmax(key @ query / 1.3)


@equation(
    "ranking-ignores-query-length",
    r"\frac{q \cdot k_i}{q \cdot k_j} = \frac{\|k_i\| \cos\theta_i}{\|k_j\| \cos\theta_j}",
    rows=["C4"],
    uses=["cosine-similarity"],
    assumes=["one query q", "q . k_j not 0"],
    kind="numeric",
    scope="5 keys, d_k = 3",
)
def ranking_by_one_query(rng: np.random.Generator) -> Claims:
    """The length of q is common to all scores of its row; only the lengths of the keys tell the two rankings apart."""
    for _ in range(4):
        query, key = rng.normal(size=3), rng.normal(size=(5, 3))
        score, cosine, length = key @ query, reference.cosine_scores(query[None], key)[0], np.linalg.norm(key, axis=-1)
        yield np.divide.outer(score, score), (length * cosine)[:, None] / (length * cosine)[None, :]


@ranking_by_one_query.wrong("cosine ranks keys as the dot product does, whatever their lengths")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    cosine = reference.cosine_scores(query[None], key)[0]
    yield np.divide.outer(key @ query, key @ query), cosine[:, None] / cosine[None, :]


@ranking_by_one_query.wrong("the lengths of the keys divide")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    cosine = reference.cosine_scores(query[None], key)[0] / np.linalg.norm(key, axis=-1)
    yield np.divide.outer(key @ query, key @ query), cosine[:, None] / cosine[None, :]


@equation(
    "cosine-weight-bound",
    r"\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}}",
    rows=["C4"],
    uses=["softmax", "cosine-similarity"],
    assumes=["no temperature"],
    kind="numeric",
    scope="n = 1 to 64, bound sharp",
)
def flat_weights_of_cosine(rng: np.random.Generator) -> Claims:
    """Scores lie in [-1, 1], so no ratio of weights exceeds e^2. For 64 keys the bound is 0.105."""
    for n in (1, 2, 5, 64):
        query, key = rng.normal(size=4), rng.normal(size=(n, 4))
        yield Chain(_largest_cosine_weight(query, key), "<=", 1 / (1 + (n - 1) * np.exp(-2)), tight=(n == 1,))
        key = np.outer(np.repeat([1.0, -1.0], [1, n - 1]), query)  # one key along q, the others opposite
        yield Chain(_largest_cosine_weight(query, key), "<=", 1 / (1 + (n - 1) * np.exp(-2)), tight=(True,))
    yield round(1 / (1 + 63 * np.exp(-2)), 3), 0.105


def _largest_cosine_weight(query: np.ndarray, key: np.ndarray) -> float:
    return float(reference.softmax(reference.cosine_scores(query[None], key)).max())


@flat_weights_of_cosine.wrong("scores between 0 and 1: at most e^1 between two weights")
def _(rng: np.random.Generator) -> Claims:
    query = rng.normal(size=4)
    yield Chain(_largest_cosine_weight(query, np.array([query, -query, -query])), "<=", 1 / (1 + 2 * np.exp(-1)))


@flat_weights_of_cosine.wrong("a matching key gets nearly all the weight, as with unscaled dot products")
def _(rng: np.random.Generator) -> Claims:
    query, key = 3 * rng.normal(size=16), rng.normal(size=(64, 16))
    yield Chain(0.9, "<=", _largest_cosine_weight(query, np.vstack([query, key])))


@equation(
    "relative-cost-of-norms",
    r"\frac{\text{cost of all norms}}{\text{cost of all dot products}} = \frac{1}{T_q} + \frac{1}{T_k}",
    rows=["C4"],
    uses=["cosine-similarity"],
    assumes=["T_q queries, T_k keys", "cost counted in multiplications"],
    kind="numeric",
    scope="counted for four sizes",
)
def cost_of_norms(rng: np.random.Generator) -> Claims:
    """(T_q + T_k) d_k multiplications against T_q T_k d_k: for long sequences the dot product saves next to nothing."""
    for q_len, kv_len, d_k in ((1, 1, 2), (1, 5, 3), (3, 5, 2), (7, 2, 4)):
        norms = _norm_multiplications(q_len, d_k) + _norm_multiplications(kv_len, d_k)
        scores = multiplications(lambda a, b: a @ b.T, (q_len, d_k), (kv_len, d_k))
        yield norms / scores, 1 / q_len + 1 / kv_len


def _norm_multiplications(rows: int, d_k: int) -> int:
    return multiplications(lambda a: (a * a).sum(axis=-1), (rows, d_k))


@cost_of_norms.wrong("skipping the norms saves half of the work, whatever the lengths")
def _(rng: np.random.Generator) -> Claims:
    norms = _norm_multiplications(6, 3) + _norm_multiplications(5, 3)
    yield norms / multiplications(lambda a, b: a @ b.T, (6, 3), (5, 3)), 1.0


@cost_of_norms.wrong("a norm for every pair")
def _(rng: np.random.Generator) -> Claims:
    norms = _norm_multiplications(6, 3) + _norm_multiplications(5, 3)
    yield norms / multiplications(lambda a, b: a @ b.T, (6, 3), (5, 3)), 2.0


# ---- 3.2 Mean and variance of a dot product


u, w = real_symbols("u", 2), real_symbols("w", 2)  # independent, mean 0, variance 1
a_11, a_21, a_22, b_11, b_21, b_22 = symbols("a_11 a_21 a_22 b_11 b_21 b_22", real=True)
m_q, m_k = Matrix(real_symbols("m", 2)), Matrix(real_symbols("n", 2))
A, B = Matrix([[a_11, 0], [a_21, a_22]]), Matrix([[b_11, 0], [b_21, b_22]])
S_q, S_k = A * A.T, B * B.T  # every covariance has such a factor
noise: Table = {**dict.fromkeys(u, standard(kappa_q, skew)), **dict.fromkeys(w, standard(kappa_k, skew))}


def general_score() -> Expr:
    """Return q . k for q = m_q + A u and k = m_k + B w: independent vectors with any means and covariances."""
    return ((m_q + A * Matrix(u)).T * (m_k + B * Matrix(w)))[0]


@equation(
    "mean-of-a-score",
    r"\mathbb{E}[q \cdot k] = m_q \cdot m_k",
    rows=["C1"],
    assumes=["q independent of k", "means m_q, m_k"],
    scope="d_k = 2, any covariances, any distribution",
)
def mean_of_a_score() -> Sides:
    """The mean of a product of independent numbers is the product of their means."""
    return expectation(general_score(), noise), total(m_q[i] * m_k[i] for i in range(2))


mean_of_a_score.wrong("0 whatever the means")(lambda: (expectation(general_score(), noise), Integer(0)))
mean_of_a_score.wrong("the covariances added")(lambda: (expectation(general_score(), noise), (m_q.T * m_k)[0] + (S_q * S_k).trace()))


@equation(
    "score-variance-from-covariances",
    r"\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k",
    rows=["C1"],
    uses=["mean-of-a-score"],
    assumes=["q independent of k", "means m_q, m_k", "covariances S_q, S_k"],
    scope="d_k = 2, any distribution",
)
def variance_of_a_score() -> Sides:
    """E[(q.k)^2] = tr(E[q q^T] E[k k^T]) with E[q q^T] = S_q + m_q m_q^T; the square of Eq. mean-of-a-score cancels one of four terms."""
    return variance(general_score(), noise), (S_q * S_k).trace() + (m_q.T * S_k * m_q)[0] + (m_k.T * S_q * m_k)[0]


variance_of_a_score.wrong("the means forgotten")(lambda: (variance(general_score(), noise), (S_q * S_k).trace()))
variance_of_a_score.wrong("the product of the traces")(
    lambda: (variance(general_score(), noise), S_q.trace() * S_k.trace() + (m_q.T * S_k * m_q)[0] + (m_k.T * S_q * m_k)[0])
)
variance_of_a_score.wrong("each mean with its own covariance")(
    lambda: (variance(general_score(), noise), (S_q * S_k).trace() + (m_q.T * S_q * m_q)[0] + (m_k.T * S_k * m_k)[0])
)

independent: Table = {**dict.fromkeys(q, standard(kappa_q, skew)), **dict.fromkeys(k, standard(kappa_k, skew))}
"""Entries with mean 0 and variance 1, all independent; skewness and kurtosis left open."""


@equation(
    "variance-of-a-score",
    r"\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k",
    rows=["C1"],
    uses=["score-variance-from-covariances"],
    assumes=["all entries independent, mean 0, variance 1", "normality not needed"],
    scope="d_k = 3, any distribution",
)
def variance_is_d_k() -> Sides:
    """Products of different entries are independent, so variances add; each of them is E[q_i^2] E[k_i^2] = 1."""
    spread = variance(dot(q, k), independent)
    return (spread, spread), (total(variance(q[i] * k[i], independent) for i in range(3)), Integer(3))


variance_is_d_k.wrong("d_k^2, as if the terms were one and the same")(lambda: (variance(dot(q, k), independent), Integer(9)))
variance_is_d_k.wrong("the standard deviation, sqrt(d_k)")(lambda: (variance(dot(q, k), independent), sqrt(3)))
variance_is_d_k.wrong("2 d_k, which only q = k has")(lambda: (variance(dot(q, k), independent), Integer(6)))


@equation(
    "score-variance-from-deviations",
    r"\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2",
    rows=["C1"],
    uses=["score-variance-from-covariances"],
    assumes=["entries independent, mean 0, variances sigma_q^2 and sigma_k^2"],
    scope="d_k = 3, any distribution",
)
def variance_with_any_scale() -> Sides:
    """Eq. score-variance-from-covariances with S_q = sigma_q^2 I and S_k = sigma_k^2 I. With one sigma for both it grows like sigma^4."""
    return variance(sigma_q * sigma_k * dot(q, k), independent), 3 * sigma_q**2 * sigma_k**2


variance_with_any_scale.wrong("sigma where sigma^2 belongs")(
    lambda: (variance(sigma_q * sigma_k * dot(q, k), independent), 3 * sigma_q * sigma_k)
)
variance_with_any_scale.wrong("the variances added")(
    lambda: (variance(sigma_q * sigma_k * dot(q, k), independent), 3 * (sigma_q**2 + sigma_k**2))
)


@equation(
    "scaled-score-variance",
    r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1",
    rows=["C1"],
    uses=["variance-of-a-score"],
    assumes=["all entries independent, mean 0, variance 1"],
    scope="d_k = 3, any distribution",
)
def variance_of_the_scaled_score() -> Sides:
    """A factor c multiplies the variance by c^2, so c = 1 / sqrt(d_k) undoes Eq. variance-of-a-score."""
    return variance(dot(q, k) / sqrt(3), independent), Integer(1)


variance_of_the_scaled_score.wrong("divided by d_k")(lambda: (variance(dot(q, k) / 3, independent), Integer(1)))
variance_of_the_scaled_score.wrong("scaled in the query and again in the score")(
    lambda: (variance(dot(tuple(q_i / sqrt(3) for q_i in q), k) / sqrt(3), independent), Integer(1))
)


@equation(
    "variance-under-wrong-scales",
    r"\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad"
    r" \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h}",
    rows=["C1"],
    uses=["variance-of-a-score"],
    assumes=["as in {eq}`scaled-score-variance`", "h heads, d_model = h d_k"],
    scope="d_k = 3, any h",
)
def variance_under_other_scales() -> Sides:
    """Two wrong divisors: scores shrink to nothing as d_k grows, or as heads are added."""
    heads = sympy.Symbol("heads", positive=True)
    d_model = 3 * heads
    return (variance(dot(q, k) / 3, independent), variance(dot(q, k) / sqrt(d_model), independent)), (Rational(1, 3), 1 / heads)


variance_under_other_scales.wrong("sqrt(d_model) also gives 1, with 8 heads")(
    lambda: (variance(dot(q, k) / sqrt(8 * 3), independent), Integer(1))
)
variance_under_other_scales.wrong("dividing by d_k gives 1")(lambda: (variance(dot(q, k) / 3, independent), Integer(1)))
