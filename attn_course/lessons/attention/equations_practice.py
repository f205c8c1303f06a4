"""Attention as a function, what one output can hold, and what it costs."""

import math
from itertools import combinations

import numpy as np
import sympy
from sympy import Matrix, Rational, exp, log, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Equal, Sides
from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.derivatives import jacobian, plain_softmax
from attn_course.equations.moments import Expr, standard, variance
from attn_course.equations.stated import equation
from attn_course.equations.symbols import dot, positive_symbols, real_symbols, softmax_symbols, squared_distance, total
from attn_course.lessons.attention.equations import inputs

k_i, k_j = real_symbols("k", 3), real_symbols("l", 3)
p, v, x = positive_symbols("p", 3), real_symbols("v", 3), real_symbols("x", 3)
others, odds = symbols("m a", positive=True)
kappa, margin = symbols("kappa Delta", real=True)


# ---- 4.3 Attention as a function of the query


@equation(
    "output-derivative-by-query",
    r"\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad"
    r" \bar{k} = \sum_{j=1}^{T_k} p_j k_j",
    rows=["D3", "L2"],
    uses=["softmax-derivative", "attention-of-one-query"],
    kind="numeric",
    scope="T_k = 1 to 7, d_k = 3, d_v = 2",
)
def jacobian_in_the_query(rng: np.random.Generator) -> Claims:
    """Eq. softmax-derivative and the chain rule: the covariance of values and keys under the weights.

    Smooth everywhere, and not constant.
    """
    for n in range(1, 8):
        query, key, value = inputs(rng, 1, n)
        p = plain_softmax(query[0] @ key.T / np.sqrt(3))
        z, mean = p @ value, p @ key
        slopes = sum(p[j] * np.outer(value[j] - z, key[j] - mean) for j in range(n)) / np.sqrt(3)
        yield Equal(_slope(query[0], key, value), slopes, scale=np.abs(key).max() * np.abs(value).max())


def _slope(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    return jacobian(lambda q: plain_softmax(q @ key.T / np.sqrt(len(query))) @ value, query)


@jacobian_in_the_query.wrong("not centred: the mean of v k^T")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, 1)
    p = plain_softmax(query[0] @ key.T / np.sqrt(3))
    yield _slope(query[0], key, value), (p[:, None] * value).T @ key / np.sqrt(3)


@jacobian_in_the_query.wrong("the scale forgotten")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, 1)
    p = plain_softmax(query[0] @ key.T / np.sqrt(3))
    yield _slope(query[0], key, value), (p[:, None] * (value - p @ value)).T @ (key - p @ key)


@jacobian_in_the_query.wrong("the same slope everywhere, as for a linear map")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, 2)
    yield _slope(query[0], key, value), _slope(query[1], key, value)


@equation(
    "bounded-slope-in-query",
    r"\Bigl\| \frac{\partial z}{\partial q} \Bigr\|_2 \le \frac{\mathrm{diam}(V)\,\mathrm{diam}(K)}{4 \sqrt{d_k}}",
    rows=["L2"],
    uses=["output-derivative-by-query"],
    assumes=["diam = largest distance between two rows"],
    kind="numeric",
    scope="T_k = 2 to 7, d_k = 3, bound sharp",
)
def slope_is_bounded(rng: np.random.Generator) -> Claims:
    """A covariance is at most the product of two standard deviations, each at most half a diameter. Sharp for two equal weights."""
    for n in range(2, 8):
        for spread in (0.3, 3.0):
            query, key, value = inputs(rng, 1, n)
            query[0] = 0.0 if spread < 1 else query[0]
            value *= spread
            norm, diameters = np.linalg.norm(_slope(query[0], key, value), ord=2), _diameter(value) * _diameter(key)
            yield Chain(norm, "<=", diameters / (4 * np.sqrt(3)), tight=(n == 2 and spread < 1,))


def _diameter(rows: np.ndarray) -> float:
    return max(float(np.linalg.norm(a - b)) for a, b in combinations(rows, 2))


def _at_two_equal_weights(rng: np.random.Generator, divisor: float) -> Claims:
    _, key, value = inputs(rng, 1, 2)
    yield Chain(np.linalg.norm(_slope(np.zeros(3), key, value), ord=2), "<=", _diameter(value) * _diameter(key) / divisor)


slope_is_bounded.wrong("8 instead of 4")(lambda rng: _at_two_equal_weights(rng, 8 * math.sqrt(3)))
slope_is_bounded.wrong("d_k instead of its root")(lambda rng: _at_two_equal_weights(rng, 4 * 3.0))


@equation(
    "query-misses-own-key",
    r"q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06",
    rows=["L2"],
    uses=["attention-of-one-query"],
    kind="numeric",
    scope="two keys",
)
def a_query_on_its_key_may_miss_it(rng: np.random.Generator) -> Claims:
    """The scores are 1 and 5 over sqrt(2): a long key in about the same direction wins against the very key the query sits on."""
    p_1 = _weight_of_first_key()
    yield (p_1, round(p_1, 2)), (1 / (1 + math.exp(4 / math.sqrt(2))), 0.06)


def _weight_of_first_key() -> float:
    key = np.array([[1.0, 0.0], [5.0, 0.0]])
    return float(reference.attention(key[:1], key, np.array([[1.0], [0.0]]))[0, 0])


a_query_on_its_key_may_miss_it.wrong("q near k_1 gives an output near v_1")(lambda rng: Chain(0.5, "<=", _weight_of_first_key()))
a_query_on_its_key_may_miss_it.wrong("attention maps a query to its value", trap="X32")(lambda rng: (_weight_of_first_key(), 1.0))


@equation(
    "lead-of-own-key",
    r"k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)",
    rows=["L2"],
    uses=["dot-product-by-distance", "query-misses-own-key"],
    scope="d_k = 3",
)
def lead_of_the_own_key() -> Sides:
    """Eq. dot-product-by-distance with q = k_i.

    For keys of equal length the own key always has the largest score; a longer key can overtake it.
    """
    lead = dot(k_i, k_i) - dot(k_i, k_j)
    return lead, squared_distance(k_i, k_j) / 2 + Rational(1, 2) * (dot(k_i, k_i) - dot(k_j, k_j))


lead_of_the_own_key.wrong("a function of the distance alone")(lambda: (dot(k_i, k_i) - dot(k_i, k_j), squared_distance(k_i, k_j) / 2))
lead_of_the_own_key.wrong("longer keys fall behind")(
    lambda: (dot(k_i, k_i) - dot(k_i, k_j), squared_distance(k_i, k_j) / 2 + (dot(k_j, k_j) - dot(k_i, k_i)) / 2)
)


@equation(
    "gaussian-finds-own-key",
    r"\|z - v_i\| \le (1 - p_i)\,\mathrm{diam}(V) \le \frac{(n - 1)\,a}{1 + (n - 1)\,a}\; \mathrm{diam}(V), \qquad a = e^{-r^2 / 2 h^2}",
    rows=["L2"],
    uses=["bandwidth-limits", "gaussian-score-expansion", "output-of-a-query"],
    assumes=["Gaussian similarity of bandwidth h", "q = k_i", "all other keys at least r away"],
    kind="numeric",
    scope="n = 2 to 6 keys, h from 1/2 to 2, both bounds sharp",
)
def gaussian_weights_do_find_the_key(rng: np.random.Generator) -> Claims:
    """Separated keys and a small bandwidth: then near keys do give near outputs."""
    for n in range(2, 7):
        for h, stretch in ((0.5, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 0.5)):
            key, value = np.diag(1.0 + stretch * np.arange(n)), rng.normal(size=(n, 2))  # stretch 0: all keys at one distance
            weights = reference.softmax(reference.gaussian_scores(key[:1], key, h))[0]
            error, diameter, rest = np.linalg.norm(weights @ value - value[0]), _diameter(value), 1 - weights[0]
            a, tight = math.exp(-(_nearest(key) ** 2) / (2 * h**2)), (n == 2, stretch == 0 or n == 2)
            yield Chain(error, "<=", rest * diameter, "<=", (n - 1) * a / (1 + (n - 1) * a) * diameter, tight=tight, scale=diameter)


def _nearest(key: np.ndarray) -> float:
    return float(np.linalg.norm(key[1:] - key[0], axis=-1).min())


@gaussian_weights_do_find_the_key.wrong("the dot product finds it too")
def _(rng: np.random.Generator) -> Claims:
    key, value = np.array([[1.0, 0.0], [5.0, 0.0]]), np.array([[1.0], [0.0]])
    z = reference.attention(key[:1], key, value)[0]
    yield Chain(np.linalg.norm(z - value[0]), "<=", np.exp(-(4.0**2) / 2) * 1.0)


@gaussian_weights_do_find_the_key.wrong("at every bandwidth, if the keys differ")
def _(rng: np.random.Generator) -> Claims:
    key, value = np.eye(5), rng.normal(size=(5, 2))
    weights = reference.softmax(reference.gaussian_scores(key[:1], key, 10.0))[0]
    yield Chain(np.linalg.norm(weights @ value - value[0]), "<=", 0.01)


@equation(
    "linear-map-from-context",
    r"q\,(K^\top V) = \sum_{j=1}^{T_k} (q \cdot k_j)\, v_j, \qquad k_i\,(K^\top V) = v_i",
    rows=["L2"],
    uses=["linear-attention-two-readings", "output-of-a-query"],
    assumes=["second equation: the keys are orthonormal"],
    kind="numeric",
    scope="T_k = 3, d_k = 5, d_v = 2",
)
def linear_in_the_query(rng: np.random.Generator) -> Claims:
    """Without softmax the output is linear in q, with a matrix made from the context: only one fixed matrix for all contexts fails."""
    key, value = np.linalg.qr(rng.normal(size=(5, 3)))[0].T, rng.normal(size=(3, 2))
    query, context = rng.normal(size=5), key.T @ value
    yield (query @ context, key @ context), (sum(np.dot(query, key[j]) * value[j] for j in range(3)), value * 1.0)


@linear_in_the_query.wrong("keys of unit length are enough")
def _(rng: np.random.Generator) -> Claims:
    key, value = rng.normal(size=(3, 5)), rng.normal(size=(3, 2))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    yield key @ (key.T @ value), value


@linear_in_the_query.wrong("one fixed matrix serves every context")
def _(rng: np.random.Generator) -> Claims:
    key, other = (np.linalg.qr(rng.normal(size=(5, 3)))[0].T for _ in range(2))
    value = rng.normal(size=(3, 2))
    yield other @ (key.T @ value), value


@equation(
    "self-attention-not-lipschitz",
    r"\frac{\partial z_1}{\partial x_1} \Big|_{x_1 = 0} = \frac{1}{n} + \frac{1}{n} \sum_{j} x_j^2"
    r" - \Bigl( \frac{1}{n} \sum_{j} x_j \Bigr)^2",
    rows=["L2"],
    uses=["output-derivative-by-query"],
    assumes=["queries, keys and values all equal x, with d_k = 1"],
    scope="n = 3",
)
def not_lipschitz_in_its_input() -> Sides:
    """A token at 0 weighs all alike, yet its slope is the variance of the others: as a map of X attention has no global bound."""
    slope = sympy.diff(_first_output(), x[0]).subs(x[0], 0)
    tokens = (sympy.Integer(0), *x[1:])
    return slope, Rational(1, 3) + total(x_j**2 for x_j in tokens) / 3 - (total(tokens) / 3) ** 2


def _first_output() -> Expr:
    return (softmax_symbols([x[0] * x_j for x_j in x]).T * Matrix(x))[0]


not_lipschitz_in_its_input.wrong("only through the values: 1/n")(lambda: (sympy.diff(_first_output(), x[0]).subs(x[0], 0), Rational(1, 3)))
not_lipschitz_in_its_input.wrong("the second moment instead of the variance")(
    lambda: (sympy.diff(_first_output(), x[0]).subs(x[0], 0), Rational(1, 3) + (x[1] ** 2 + x[2] ** 2) / 3)
)


# ---- 4.4 What one output can hold


@equation(
    "doubled-context-same-output",
    r"\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D)",
    rows=["L1"],
    uses=["duplicated-pair-counts-twice", "attention-of-one-query"],
    assumes=["D = the pairs (k_j, v_j); every pair occurs twice on the left"],
    kind="numeric",
    scope="T_k = 1 to 7",
)
def an_average_cannot_count(rng: np.random.Generator) -> Claims:
    """Numerator and denominator both double: d_v numbers come out, however long the context is."""
    for n in range(1, 8):
        query, key, value = inputs(rng, kv_len=n)
        twice = reference.attention(query, np.vstack([key, key]), np.vstack([value, value]))
        yield twice, plain_softmax(query @ key.T / np.sqrt(3)) @ value


@an_average_cannot_count.wrong("twice the context, twice the output")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    twice = reference.attention(query, np.vstack([key, key]), np.vstack([value, value]))
    yield twice, 2 * reference.attention(query, key, value)


@an_average_cannot_count.wrong("repeating some of the pairs does not matter either")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    yield reference.attention(query, np.vstack([key, key[:2]]), np.vstack([value, value[:2]])), reference.attention(query, key, value)


@equation(
    "variance-of-an-output",
    r"\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2",
    rows=["L1"],
    uses=["output-of-a-query"],
    assumes=["values independent, variance 1, and independent of the weights", "one entry of z"],
    scope="T_k = 3, any distribution, any weights",
)
def what_is_left_of_many_values() -> Sides:
    """Variances add with squared factors. Under uniform weights 1 / T_k: the more is averaged, the less of each is left."""
    return variance(dot(p, v), dict.fromkeys(v, standard(kappa))), total(p_j**2 for p_j in p)


what_is_left_of_many_values.wrong("1, since the weights sum to 1")(
    lambda: (variance(dot(p, v), dict.fromkeys(v, standard(kappa))).subs({p[0]: 0.5, p[1]: 0.25, p[2]: 0.25}), sympy.Integer(1))
)
what_is_left_of_many_values.wrong("the square of the sum")(lambda: (variance(dot(p, v), dict.fromkeys(v, standard(kappa))), total(p) ** 2))


@equation(
    "margin-grows-with-context",
    r"\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad \Delta = \ln (n - 1) + \ln \frac{p}{1 - p}",
    rows=["L1"],
    uses=["attention-weights"],
    assumes=["one key whose score is Delta above the n - 1 others, which are equal", "0 < p < 1", "n > 1"],
    scope="every n and p",
)
def margin_that_grows_with_the_context() -> Sides:
    """Solve for Delta: to keep half of the weight in twice the context, its score must rise by ln 2. Bounded scores lose it at last."""
    return _margin_of_weight(), log(others) + log(odds)  # others = n - 1, odds = p / (1 - p)


def _margin_of_weight() -> Expr:
    (solved,) = sympy.solve(exp(margin) / (exp(margin) + others) - odds / (1 + odds), margin)
    return solved


margin_that_grows_with_the_context.wrong("the same margin at any length")(lambda: (_margin_of_weight(), log(odds)))
margin_that_grows_with_the_context.wrong("in proportion to the length")(lambda: (_margin_of_weight(), others * log(odds)))


@equation(
    "values-from-all-outputs",
    r"V = P^{-1} Z",
    rows=["L1"],
    uses=["attention"],
    assumes=["as many queries as keys", "P invertible"],
    kind="numeric",
    scope="T = 1 to 6",
)
def all_outputs_together(rng: np.random.Generator) -> Claims:
    """One output is a single mixture, but self-attention makes T of them: together they can hold every value."""
    for n in range(1, 7):
        query, key, value = inputs(rng, n, n, d_k=n)
        z, p = reference.attention(3 * query, query + 0.1 * key, value, return_weights=True)
        yield Equal(value, np.linalg.inv(p) @ z, scale=np.linalg.cond(p))


@all_outputs_together.wrong("from the first output alone")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, 4, 4)
    z, p = reference.attention(query, key, value, return_weights=True)
    yield value, np.linalg.pinv(p[:1]) @ z[:1]


@all_outputs_together.wrong("the transpose undoes it")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, 4, 4)
    z, p = reference.attention(query, key, value, return_weights=True)
    yield value, p.T @ z


# ---- 4.5 What it costs

SIZES = ((1, 1, 1, 1), (5, 7, 3, 2), (2, 3, 5, 1), (4, 4, 2, 3))  # T_q, T_k, d_k, d_v


@equation(
    "attention-flops",
    r"\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v)",
    rows=["D1"],
    uses=["attention"],
    assumes=["a multiplication and its addition count 2", "the two matrix products; softmax adds a few operations per score"],
    kind="numeric",
    scope="counted for four sizes",
)
def operations_of_attention(rng: np.random.Generator) -> Claims:
    """T_q T_k dot products of length d_k, then T_q d_v sums of length T_k: quadratic in the length of the sequence."""
    for q_len, kv_len, d_k, d_v in SIZES:
        yield _counted_flops(q_len, kv_len, d_k, d_v), 2 * q_len * kv_len * (d_k + d_v)


def _counted_flops(q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    return 2 * multiplications(lambda q, k, v: (q @ k.T) @ v, (q_len, d_k), (kv_len, d_k), (kv_len, d_v))


operations_of_attention.wrong("the lengths added instead of multiplied: linear in the sequence")(
    lambda rng: (_counted_flops(5, 7, 3, 2), 2 * (5 + 7) * (3 + 2))
)
operations_of_attention.wrong("one FLOP for a multiplication and its addition")(lambda rng: (_counted_flops(5, 7, 3, 2), 5 * 7 * (3 + 2)))


@equation(
    "attention-traffic",
    r"\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k",
    rows=["D1"],
    uses=["attention", "attention-flops"],
    assumes=["three steps: scores, softmax, output; each reads its inputs from memory and writes its result there"],
    kind="numeric",
    scope="traced for four sizes",
)
def traffic_of_attention(rng: np.random.Generator) -> Claims:
    """Inputs and output once, and the T_q x T_k matrix four times: written, read, written, read. For long sequences nothing else counts."""
    for q_len, kv_len, d_k, d_v in SIZES:
        yield _moved(q_len, kv_len, d_k, d_v), (q_len + kv_len) * (d_k + d_v) + 4 * q_len * kv_len


def _moved(q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    def three_steps(q: Traced, k: Traced, v: Traced) -> Traced:
        return (q @ k.T).elementwise() @ v

    return traced(three_steps, (q_len, d_k), (kv_len, d_k), (kv_len, d_v))[0]


traffic_of_attention.wrong("only inputs and output, as if nothing were stored in between")(
    lambda rng: (_moved(5, 7, 3, 2), (5 + 7) * (3 + 2))
)
traffic_of_attention.wrong("the score matrix moved once")(lambda rng: (_moved(5, 7, 3, 2), (5 + 7) * (3 + 2) + 5 * 7))
