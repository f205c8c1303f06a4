"""The variance of a score in practice: broken assumptions, the normal limit, softmax, training, norms.

Symbolic statements take expectations by moment algebra or by integrals over the normal density.
"""

import functools

import numpy as np
import sympy
from sympy import Integer, Integral, Rational, exp, log, oo, pi, sqrt, symbols

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.moments import NORMAL, Expr, Table, covariance, expectation, standard, variance
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, dot, real_symbols, total
from attn_course.lessons.scaling.equations import independent, k, kappa_k, kappa_q, q

other = real_symbols("r", 3)  # a second key
x, y = real_symbols("x", 3), real_symbols("y", 2)
rho = sympy.Symbol("rho", real=True)
t, eta = symbols("t eta", real=True)
c, s, sigma, epsilon, d = symbols("c s sigma epsilon d", positive=True)
normal: Table = dict.fromkeys((*q, *k, *other), NORMAL)
spread = sympy.Symbol("xi", real=True)  # what is integrated over


# ---- 3.3 Break each assumption


@equation(
    "correlated-query-key-moments",
    r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k",
    rows=["C1"],
    uses=["variance-of-a-score"],
    assumes=["normal entries with mean 0 and variance 1", "correlation rho between q_i and k_i, no other dependence"],
    scope="d_k = 3, every rho",
)
def correlated_query_and_key() -> Sides:
    """Write k_i = rho q_i + sqrt(1 - rho^2) e_i with e_i independent of q_i, and use E[q_i^4] = 3."""
    score = _correlated_score()
    return (expectation(score, normal), variance(score, normal)), (3 * rho, 3 * (1 + rho**2))


def _correlated_score() -> Expr:
    return dot(q, tuple(rho * q_i + sqrt(1 - rho**2) * e_i for q_i, e_i in zip(q, k, strict=True)))


correlated_query_and_key.wrong("the mean stays 0")(lambda: (expectation(_correlated_score(), normal), Integer(0)))
correlated_query_and_key.wrong("the variance stays d_k")(lambda: (variance(_correlated_score(), normal), Integer(3)))
correlated_query_and_key.wrong("the variance shrinks: (1 - rho^2) d_k")(lambda: (variance(_correlated_score(), normal), 3 * (1 - rho**2)))


@equation(
    "equal-query-key-moments",
    r"\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k",
    rows=["C1"],
    uses=["variance-of-a-score"],
    assumes=["k = q", "entries independent, mean 0, variance 1", "kappa = E[q_i^4]: 3 for normal entries, 1 for +1 and -1"],
    scope="d_k = 3, any distribution",
)
def query_equal_to_key() -> Sides:
    """Each term is q_i^2, with mean 1 and variance kappa - 1: for normal entries mean d_k and variance 2 d_k."""
    return (expectation(dot(q, q), independent), variance(dot(q, q), independent)), (Integer(3), 3 * (kappa_q - 1))


query_equal_to_key.wrong("mean 0, as for independent vectors")(lambda: (expectation(dot(q, q), independent), Integer(0)))
query_equal_to_key.wrong("variance d_k, as for independent vectors")(lambda: (variance(dot(q, q), normal), Integer(3)))
query_equal_to_key.wrong("variance 2 d_k for any entries")(lambda: (variance(dot(q, q), independent), Integer(6)))


@equation(
    "covariance-within-a-row",
    r"\mathrm{Cov}[q \cdot k,\, q \cdot k'] = 0, \qquad \mathrm{Cov}\bigl[ (q \cdot k)^2, (q \cdot k')^2 \bigr] = 2\,d_k",
    rows=["C1"],
    uses=["variance-of-a-score", "equal-query-key-moments"],
    assumes=["two keys, one query", "all entries independent and standard normal"],
    scope="d_k = 3",
)
def scores_of_one_row() -> Sides:
    """Given q each square has mean |q|^2, so their covariance is Var |q|^2: a long query makes the whole row large."""
    first, second = dot(q, k), dot(q, other)
    return (covariance(first, second, normal), covariance(first**2, second**2, normal)), (Integer(0), Integer(2 * 3))


scores_of_one_row.wrong("uncorrelated, hence independent: squares uncorrelated too")(
    lambda: (covariance(dot(q, k) ** 2, dot(q, other) ** 2, normal), Integer(0))
)
scores_of_one_row.wrong("scores that share q are correlated")(lambda: (covariance(dot(q, k), dot(q, other), normal), Integer(3)))


@equation(
    "score-normal-given-query",
    r"\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{t^2 \|q\|^2 / 2}",
    rows=["C1"],
    assumes=["k standard normal, q given"],
    scope="d_k = 3, every q and t",
)
def normal_given_the_query() -> Sides:
    """The moment generating function of N(0, |q|^2): given q, and only then, a score is exactly normal."""
    return sympy.prod(_exponential_moment(t * q_i) for q_i in q), exp(t**2 * total(q_i**2 for q_i in q) / 2)


@functools.cache
def _gaussian_integral() -> tuple[Expr, Expr]:
    """Return a symbol a and E[e^{a z}] for a standard normal z."""
    a = sympy.Symbol("a", real=True)
    return a, Integral(exp(a * spread - spread**2 / 2) / sqrt(2 * pi), (spread, -oo, oo)).doit()


def _exponential_moment(slope: Expr) -> Expr:
    a, moment = _gaussian_integral()
    return moment.subs(a, slope)


def _mgf_given_q() -> Expr:
    return sympy.prod(_exponential_moment(t * q_i) for q_i in q)


normal_given_the_query.wrong("variance d_k even when q is given")(lambda: (_mgf_given_q(), exp(t**2 * 3 / 2)))
normal_given_the_query.wrong("standard deviation |q|^2")(lambda: (_mgf_given_q(), exp(t**2 * dot(q, q) ** 2 / 2)))


# ---- 3.4 Normal only in the limit


@equation(
    "kurtosis-of-a-score",
    r"\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = 3 + \frac{\kappa_q \kappa_k - 3}{d_k}",
    rows=["C1"],
    uses=["variance-of-a-score"],
    assumes=["all entries independent, mean 0, variance 1, fourth moments kappa_q and kappa_k"],
    scope="d_k = 1, 2, 3, any distribution",
)
def kurtosis_of_a_score() -> Claims:
    """Of the fourth power survive d_k terms with one index and 3 d_k (d_k - 1) with two pairs of indices."""
    for d_k in (1, 2, 3):
        table = {symbol: independent[symbol] for symbol in (*q[:d_k], *k[:d_k])}
        yield expectation(dot(q[:d_k], k[:d_k]) ** 4, table) / d_k**2, 3 + (kappa_q * kappa_k - 3) / Integer(d_k)


def _kurtosis(table: Table) -> Expr:
    return expectation(dot(q, k) ** 4, table) / 9


kurtosis_of_a_score.wrong("the kurtoses added")(lambda: (_kurtosis(independent), 3 + (kappa_q + kappa_k - 3) / Integer(3)))
kurtosis_of_a_score.wrong("it does not depend on d_k")(lambda: (_kurtosis(independent), kappa_q * kappa_k))


@equation(
    "kurtosis-with-normal-entries",
    r"\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k}",
    rows=["C1"],
    uses=["kurtosis-of-a-score"],
    assumes=["all entries independent and standard normal"],
    scope="d_k = 1, 2, 3",
)
def kurtosis_with_normal_entries() -> Claims:
    """Eq. kurtosis-of-a-score with kappa_q = kappa_k = 3. A normal variable has 3, so no score of finite d_k is normal."""
    for d_k in (1, 2, 3):
        score = dot(q[:d_k], k[:d_k])
        table = dict.fromkeys((*q[:d_k], *k[:d_k]), NORMAL)
        yield expectation(score**4, table) / expectation(score**2, table) ** 2, 3 + Rational(6, d_k)


kurtosis_with_normal_entries.wrong("q.k follows N(0, d_k) exactly: kurtosis 3", trap="X5")(lambda: (_kurtosis(normal), Integer(3)))
kurtosis_with_normal_entries.wrong("9, the kurtosis of a single product")(lambda: (_kurtosis(normal), Integer(9)))


@equation(
    "scaled-score-approaches-normal",
    r"\mathbb{E}\bigl[ e^{t\,q \cdot k / \sqrt{d_k}} \bigr] = \Bigl( 1 - \frac{t^2}{d_k} \Bigr)^{-d_k / 2}"
    r" \xrightarrow[d_k \to \infty]{} e^{t^2 / 2}",
    rows=["C1"],
    uses=["score-normal-given-query"],
    assumes=["all entries independent and standard normal", "t^2 < d_k"],
    scope="every d_k above 4",
)
def approach_to_the_normal() -> Sides:
    """Average Eq. score-normal-given-query over q at t / sqrt(d_k): one integral for each entry of q.

    The limit is that of a standard normal variable.
    """
    return (_score_mgf(), sympy.limit((1 - t**2 / d) ** (-d / 2), d, oo)), ((1 - t**2 / (4 + d)) ** (-(4 + d) / 2), exp(t**2 / 2))


def _score_mgf() -> Expr:
    """Average e^{t^2 q_i^2 / (2 d_k)} over q_i, to the power d_k = 4 + d."""
    width = sympy.Symbol("a", positive=True)  # 1 - t^2 / d_k
    one_entry = Integral(exp(-width * spread**2 / 2) / sqrt(2 * pi), (spread, -oo, oo)).doit()
    return (one_entry ** (4 + d)).subs(width, 1 - t**2 / (4 + d))


approach_to_the_normal.wrong("that of a normal variable at every d_k", trap="X5")(lambda: (_score_mgf(), exp(t**2 / 2)))
approach_to_the_normal.wrong("the power d_k instead of d_k / 2")(lambda: (_score_mgf(), (1 - t**2 / (4 + d)) ** (-(4 + d))))


# ---- 3.5 What the spread does to softmax


@equation(
    "log-weight-ratio-variance",
    r"\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = 2\,c^2\,d_k",
    rows=["C2"],
    uses=["ratio-of-weights", "log-softmax", "variance-of-a-score"],
    assumes=["w = softmax of the scores c q.k", "all entries independent, mean 0, variance 1"],
    scope="d_k = 3, any distribution, any c",
)
def spread_of_log_ratios() -> Sides:
    """ln(w_i / w_j) = c q.(k_i - k_j). With c = 1 typical ratios of weights grow like e^{sqrt(2 d_k)}; with c = 1 / sqrt(d_k) they stay."""
    return variance(_log_ratio(), _row_table()), 2 * c**2 * 3


def _log_ratio() -> Expr:
    w_i, w_j = exp(c * dot(q, k)), exp(c * dot(q, other))  # the normaliser cancels
    return sympy.expand_log(log(w_i / w_j), force=True)


def _row_table() -> Table:
    return {**independent, **dict.fromkeys(other, standard(kappa_k))}


spread_of_log_ratios.wrong("the two scores cancel, since they share q")(lambda: (variance(_log_ratio(), _row_table()), Integer(0)))
spread_of_log_ratios.wrong("the variance of one score")(lambda: (variance(_log_ratio(), _row_table()), c**2 * 3))
spread_of_log_ratios.wrong("c instead of c^2")(lambda: (variance(_log_ratio(), _row_table()), 2 * c * 3))


@equation(
    "effective-share-of-keys",
    r"\frac{(\mathbb{E}\,e^{z})^2}{\mathbb{E}\,e^{2z}} = e^{-s^2}",
    rows=["C2"],
    uses=["softmax", "score-normal-given-query"],
    assumes=["scores z normal with mean 0 and variance s^2", "n keys, n large: 1 / sum_j w_j^2 is about n times the left side"],
    scope="every s",
)
def share_of_keys_in_use() -> Sides:
    """1 / sum w^2 counts the keys that matter. Scaled scores (s = 1) leave 37 % of them; unscaled ones e^{-d_k}, that is: a single one."""
    return _mean_weight() ** 2 / _exponential_moment(2 * s), exp(-(s**2))


def _mean_weight() -> Expr:
    return _exponential_moment(s)


share_of_keys_in_use.wrong("e^{-s}")(lambda: (_mean_weight() ** 2 / _exponential_moment(2 * s), exp(-s)))
share_of_keys_in_use.wrong("all keys, whatever the spread")(lambda: (_mean_weight() ** 2 / _exponential_moment(2 * s), Integer(1)))


@equation(
    "entropy-lost-to-spread",
    r"\frac{\mathbb{E}[z\,e^{z}]}{\mathbb{E}[e^{z}]} - \ln \mathbb{E}[e^{z}] = \frac{s^2}{2}",
    rows=["C2"],
    uses=["softmax-entropy", "score-normal-given-query"],
    assumes=["scores z normal with mean 0 and variance s^2", "n keys, n large: ln n - H(w) is about the left side"],
    scope="every s",
)
def entropy_below_its_maximum() -> Sides:
    """Eq. softmax-entropy with means for sums.

    Half a nat is lost at s = 1; at s^2 = d_k more than ln n would be: then one key has it all.
    """
    a, moment = _gaussian_integral()
    tilted_mean = (s * moment.diff(a) / moment).subs(a, s)
    return tilted_mean - log(_mean_weight()), s**2 / 2


def _entropy_gap() -> Expr:
    a, moment = _gaussian_integral()
    return (s * moment.diff(a) / moment).subs(a, s) - log(_mean_weight())


entropy_below_its_maximum.wrong("s^2, the shift of the mean alone")(lambda: (_entropy_gap(), s**2))
entropy_below_its_maximum.wrong("linear in the spread")(lambda: (_entropy_gap(), s / 2))


# ---- 3.6 What the scale is not: a new class of functions


@equation(
    "scale-as-reparametrisation",
    r"c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) = W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
    rows=["C2"],
    assumes=["the loss sees W_Q through the scores c x W_Q k^T only", "one step of gradient descent"],
    scope="one entry of W, any loss",
)
def scale_as_reparametrisation() -> Sides:
    """With W' = c W_Q the scores are the same. What changes is where W' starts, and its step, which is c^2 times as long."""
    return c * _stepped(), c * y[0] - c**2 * eta * slope.subs(spread, c * y[0])


loss = sympy.Function("L")
slope = loss(spread).diff(spread)


def _stepped() -> Expr:
    return y[0] - eta * loss(c * y[0]).diff(y[0])


def _step_of(step: Expr) -> Expr:
    return c * y[0] - step * slope.subs(spread, c * y[0])


scale_as_reparametrisation.wrong("the scale changes nothing at all: the same step", trap="X14")(lambda: (c * _stepped(), _step_of(eta)))
scale_as_reparametrisation.wrong("the step shrinks by c only")(lambda: (c * _stepped(), _step_of(c * eta)))


@equation(
    "scale-in-the-initialisation",
    r"\sigma_q^2 = \frac{1}{d_k}: \qquad \mathrm{Var}[q \cdot k] = 1, \qquad"
    r" \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = \frac{1}{d_k}",
    rows=["C1", "C2"],
    uses=["score-variance-from-deviations", "scale-as-reparametrisation"],
    assumes=["entries independent, mean 0", "Var q_i = 1 / d_k, Var k_i = 1"],
    scope="d_k = 3, any distribution",
)
def scale_inside_the_initialisation() -> Sides:
    """A start that already holds the factor: here dividing by sqrt(d_k) once more makes the weights uniform, and does not help."""
    small = tuple(q_i / sqrt(3) for q_i in q)
    return (variance(dot(small, k), independent), variance(dot(small, k) / sqrt(3), independent)), (Integer(1), Rational(1, 3))


scale_inside_the_initialisation.wrong("the scale is needed whatever the initialisation", trap="X14")(
    lambda: (variance(dot(tuple(q_i / sqrt(3) for q_i in q), k) / sqrt(3), independent), Integer(1))
)
scale_inside_the_initialisation.wrong("unscaled scores always have variance d_k")(
    lambda: (variance(dot(tuple(q_i / sqrt(3) for q_i in q), k), independent), Integer(3))
)


# ---- 3.7 What LayerNorm fixes, and what it does not


@equation(
    "layer-norm-moments",
    r"\frac{1}{d} \sum_{i=1}^{d} \mathrm{LN}(x)_i = 0, \qquad \frac{1}{d} \sum_{i=1}^{d} \mathrm{LN}(x)_i^2 = \frac{v}{v + \varepsilon}",
    rows=["C3"],
    assumes=["LN(x)_i = (x_i - mean) / sqrt(v + epsilon), before gain and bias", "v = variance of the entries of x"],
    scope="d = 3, every x",
)
def layer_norm() -> Sides:
    """It fixes the mean square of each token, so its length is about sqrt(d); nothing is said about single entries."""
    mean = total(x) / 3
    v = total(x_i**2 for x_i in x) / 3 - mean**2
    return (total(_layer_normed()) / 3, total(_layer_normed().applyfunc(lambda entry: entry**2)) / 3), (Integer(0), v / (v + epsilon))


def _layer_normed() -> Expr:
    mean = total(x) / 3
    centred = column(x_i - mean for x_i in x)
    return centred / sqrt(total(entry**2 for entry in centred) / 3 + epsilon)


layer_norm.wrong("each token has length 1")(lambda: (total(entry**2 for entry in _layer_normed()), Integer(1)))
layer_norm.wrong("every single entry has square 1")(lambda: (_layer_normed()[0] ** 2, Integer(1)))


weight, weight_k = sympy.Matrix(2, 2, real_symbols("w", 4)), sympy.Matrix(2, 2, real_symbols("v", 4))
initial: Table = dict.fromkeys((*weight, *weight_k), standard(kappa_q))


@equation(
    "variance-after-projection",
    r"\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2",
    rows=["C3"],
    uses=["layer-norm-moments"],
    assumes=["x fixed", "entries of W independent, mean 0, variance sigma_w^2"],
    scope="d_model = 2, any distribution of W",
)
def variance_after_a_projection() -> Sides:
    """A sum of d_model independent terms. After LayerNorm |x|^2 = d_model, so the queries have variance sigma_w^2 d_model, not 1."""
    projected = sigma * sympy.Matrix([y]) * weight
    return column(variance(entry, initial) for entry in projected), sympy.ones(2, 1) * sigma**2 * total(y_i**2 for y_i in y)


def _query_variance() -> Expr:
    return variance((sigma * sympy.Matrix([y]) * weight)[0], initial)


variance_after_a_projection.wrong("sigma_w^2 alone: the sum forgotten")(lambda: (_query_variance(), sigma**2))
variance_after_a_projection.wrong("the variance of x is kept")(lambda: (_query_variance(), dot(y, y) / 2))


@equation(
    "default-initialisation-variances",
    r"d\;\mathrm{Var}\Bigl[ U\bigl(-\tfrac{1}{\sqrt{d}}, \tfrac{1}{\sqrt{d}}\bigr) \Bigr] = \tfrac{1}{3}, \qquad"
    r" d\;\mathrm{Var}\Bigl[ U\bigl(-\sqrt{\tfrac{6}{d + 3d}}, \sqrt{\tfrac{6}{d + 3d}}\bigr) \Bigr] = \tfrac{1}{2}",
    rows=["C3"],
    uses=["variance-after-projection"],
    assumes=["d = d_model", "torch's nn.Linear, and the packed (3d, d) matrix of nn.MultiheadAttention under Xavier's rule"],
    scope="every d",
)
def variance_at_initialisation() -> Sides:
    """U(-b, b) has variance b^2 / 3. With a standard deviation of 0.02 instead it is 0.0004 d_model."""
    return (d * _uniform_variance(1 / sqrt(d)), d * _uniform_variance(sqrt(6 / (d + 3 * d)))), (Rational(1, 3), Rational(1, 2))


def _uniform_variance(bound: Expr) -> Expr:
    return Integral(spread**2 / (2 * bound), (spread, -bound, bound)).doit()


variance_at_initialisation.wrong("nn.Linear keeps unit variance")(lambda: (d * _uniform_variance(1 / sqrt(d)), Integer(1)))
variance_at_initialisation.wrong("Xavier on the packed matrix is Xavier on each of the three")(
    lambda: (d * _uniform_variance(sqrt(6 / (d + 3 * d))), Integer(1))
)


@equation(
    "score-variance-at-initialisation",
    r"\mathrm{Var}_W\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2",
    rows=["C3"],
    uses=["score-variance-from-deviations", "variance-after-projection"],
    assumes=["x, y fixed", "entries of W_Q, W_K independent, mean 0, variances sigma_Q^2 and sigma_K^2"],
    scope="d_model = d_k = 2, any distribution of the weights",
)
def score_variance_at_initialisation() -> Sides:
    """Eq. score-variance-from-deviations after Eq. variance-after-projection.

    With |x|^2 = |y|^2 = d_model: 1/9 for nn.Linear, 1/4 for packed Xavier.
    """
    return _initial_score_variance(), sigma**2 * c**2 * (x[0] ** 2 + x[1] ** 2) * (y[0] ** 2 + y[1] ** 2)


def _initial_score_variance() -> Expr:
    score = (sigma * sympy.Matrix([x[:2]]) * weight * (c * sympy.Matrix([y]) * weight_k).T)[0] / sqrt(2)
    return variance(score, initial)


def _after_layer_norm() -> Expr:
    """Put in nn.Linear's variance, 1 / (3 d_model), and two tokens whose mean square is 1."""
    return _initial_score_variance().subs({sigma: 1 / sqrt(6), c: 1 / sqrt(6), x[0]: 1, x[1]: -1, y[0]: 1, y[1]: -1})


score_variance_at_initialisation.wrong("LayerNorm makes queries and keys unit-variance, hence 1", trap="X17")(
    lambda: (_after_layer_norm(), Integer(1))
)
score_variance_at_initialisation.wrong("1/3, the variance of one query entry")(lambda: (_after_layer_norm(), Rational(1, 3)))


@equation(
    "query-key-normalisation",
    r"\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}",
    rows=["C3", "C4"],
    uses=["cosine-similarity", "layer-norm-moments"],
    assumes=["q, k not 0"],
    kind="numeric",
    scope="d_k = 1 to 8",
)
def query_key_norm(rng: np.random.Generator) -> Claims:
    """Normalise queries and keys themselves: mean square 1 by construction, and a score within sqrt(d_k), whatever the weights."""
    for d_k in range(1, 9):
        query, key = 5 * rng.normal(size=(3, d_k)), 0.1 * rng.normal(size=(4, d_k))
        yield reference.scaled_dot_scores(_rms(query), _rms(key)), np.sqrt(d_k) * reference.cosine_scores(query, key)


def _rms(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True)))


@query_key_norm.wrong("the cosine itself")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    yield reference.scaled_dot_scores(_rms(query), _rms(key)), reference.cosine_scores(query, key)


@query_key_norm.wrong("normalising the input x is enough", trap="X17")
def _(rng: np.random.Generator) -> Claims:
    x_rows, w_query, w_key = _rms(rng.normal(size=(5, 4))), rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    query, key = x_rows @ w_query, x_rows @ w_key
    yield reference.scaled_dot_scores(query, key), 2.0 * reference.cosine_scores(query, key)
