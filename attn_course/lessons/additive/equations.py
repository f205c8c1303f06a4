"""Additive attention.

Rows are positions: query (T_q, d_q), key (T_k, d_k), W_Q (d_q, d_h), W_K (d_k, d_h), score vector v (d_h).
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import sympy
from sympy import Matrix, symbols, tanh

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Limit, Moment, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import matrix_symbols, weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, delta, real_symbols, softmax_symbols, total

z, c = real_symbols("z", 3), sympy.Symbol("c", real=True)
q, k = column(real_symbols("q", 2)), column(real_symbols("k", 2))
W_Q, W_K, v = matrix_symbols("a", 2, 2), matrix_symbols("b", 2, 2), column(real_symbols("v", 2))
preactivation = W_Q.T * q + W_K.T * k
score = (v.T * preactivation.applyfunc(tanh))[0]

_Point: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _points(rng: np.random.Generator) -> Iterator[_Point]:
    """Yield query, key, w_query, w_key and w_score with axes that all differ; the last point is saturated."""
    for size in (0.1, 1.0, 1000.0):
        yield (
            rng.normal(size=(3, 4)) * size,
            rng.normal(size=(5, 2)) * size,
            rng.normal(size=(4, 7)),
            rng.normal(size=(2, 7)),
            rng.normal(size=7),
        )


def _hidden(point: _Point) -> np.ndarray:
    """Return tanh of the sums of projections, (q_len, kv_len, d_h), pair by pair."""
    query, key, w_query, w_key, _ = point
    return np.array([[np.tanh(query_i @ w_query + key_j @ w_key) for key_j in key] for query_i in query])


# ---- 6.1 from a vector to a score


@equation(
    "plain-sum-ignores-query",
    r"\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}}",
    rows=["F1"],
    uses=["softmax-shift-invariance"],
    assumes=["score = a + b_j: a depends on the query only, b_j on key j only"],
    scope="n = 3",
)
def a_plain_sum_ignores_the_query() -> Sides:
    """Without a nonlinearity the query shifts all scores alike and cancels: u . q + v . k_j would be no attention."""
    return softmax_symbols([c + z_j for z_j in z]), Matrix(3, 1, lambda j, _: sympy.exp(z[j]) / total(sympy.exp(z_l) for z_l in z))


a_plain_sum_ignores_the_query.wrong("the query moves the weights")(
    lambda: (softmax_symbols([c + z_j for z_j in z]), softmax_symbols([c * z_j for z_j in z]))
)


@equation(
    "additive-score",
    r"e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr) = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i W_Q)_r + (k_j W_K)_r \bigr)",
    rows=["F1", "A4"],
    uses=["soft-lookup"],
    assumes=["W_Q: d_q x d_h", "W_K: d_k x d_h", "v: d_h", "q_i, k_j columns in the first form, rows in the second"],
    kind="numeric",
    scope="T_q = 3, T_k = 5, d_q = 4, d_k = 2, d_h = 7",
)
def additive_score(rng: np.random.Generator) -> Claims:
    """Project both to d_h numbers, add, bend, and let v make one number of them."""
    for point in _points(rng):
        query, key, w_query, w_key, v = point
        a, b = query @ w_query, key @ w_key
        yield reference.additive_scores(*point), sum(v[r] * np.tanh(a[:, None, r] + b[None, :, r]) for r in range(7))


@additive_score.wrong("tanh(q + k) itself: as many numbers as features, not one score", trap="X6")
def _(rng: np.random.Generator) -> Sides:
    query_i, key_j = rng.normal(size=4), rng.normal(size=4)
    return float(np.tanh(query_i + key_j).size), 1.0


@additive_score.wrong("the entries of tanh(q + k) added up: no v, no projections", trap="X6")
def _(rng: np.random.Generator) -> Claims:
    query, key, w = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(2, 4, 4))
    scores = reference.additive_scores(query, key, w[0], w[1], rng.normal(size=4))
    yield scores, np.tanh(query[:, None] + key[None]).sum(axis=-1)


@additive_score.wrong("tanh of each projection, then the sum")
def _(rng: np.random.Generator) -> Claims:
    for point in _points(rng):
        query, key, w_query, w_key, v = point
        yield reference.additive_scores(*point), np.tanh(query @ w_query)[:, None] @ v + np.tanh(key @ w_key)[None] @ v


@additive_score.wrong("the pair multiplied instead of added")
def _(rng: np.random.Generator) -> Claims:
    for point in _points(rng):
        query, key, w_query, w_key, v = point
        yield reference.additive_scores(*point), np.tanh((query @ w_query)[:, None] * (key @ w_key)[None]) @ v


@equation(
    "concatenation-adds-projections",
    r"[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K",
    rows=["F1"],
    assumes=["q, k rows"],
    kind="numeric",
    scope="d_q = 4, d_k = 2, d_h = 7",
)
def one_hidden_layer(rng: np.random.Generator) -> Claims:
    """So Eq. additive-score is a network with one hidden layer that reads the pair: tanh in the middle, v at the end."""
    for query, key, w_query, w_key, _v in _points(rng):
        yield np.hstack([query[0], key[0]]) @ np.vstack([w_query, w_key]), query[0] @ w_query + key[0] @ w_key


@one_hidden_layer.wrong("the projections side by side")
def _(rng: np.random.Generator) -> Claims:
    for query, key, w_query, w_key, _v in _points(rng):
        yield (np.hstack([query[0], key[0]]) @ np.vstack([w_query, w_key])).size, np.hstack([query[0] @ w_query, key[0] @ w_key]).size


@one_hidden_layer.wrong("the matrices in the other order")
def _(rng: np.random.Generator) -> Claims:
    for query, _key, w_query, w_key, _v in _points(rng):
        pair = np.hstack([query[0], query[1, :2]])
        yield pair @ np.vstack([w_key, w_query]), query[0] @ w_query + query[1, :2] @ w_key


# ---- 6.2 what the score can be


@equation(
    "additive-score-bound",
    r"|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1",
    rows=["F1", "F2"],
    uses=["additive-score"],
    kind="numeric",
    scope="plain and saturated points, bound sharp",
)
def scores_are_bounded(rng: np.random.Generator) -> Claims:
    """|tanh| < 1: however long the vectors, a score stays within |v|_1, and comes as close to it as tanh does to 1."""
    for point in _points(rng):
        v = point[4]
        signs = np.ones((4, 1)) * np.sign(v)
        sharp = reference.additive_scores(np.full((1, 4), 50.0), np.full((1, 2), 50.0), signs, signs[:2], v)
        for e, attained in ((reference.additive_scores(*point), False), (sharp, True)):
            yield Chain(np.abs(e), "<=", np.abs(v).sum(), tight=(attained,))


@scores_are_bounded.wrong("by 1")
def _(rng: np.random.Generator) -> Claims:
    for point in _points(rng):
        yield Chain(np.abs(reference.additive_scores(*point)), "<=", 1)


@scores_are_bounded.wrong("by the length of v")
def _(rng: np.random.Generator) -> Sides:
    v = np.ones(7)
    sharp = reference.additive_scores(np.full((1, 4), 50.0), np.full((1, 2), 50.0), np.ones((4, 7)), np.ones((2, 7)), v)
    return Chain(np.abs(sharp), "<=", np.sqrt(np.sum(v**2)))  # type: ignore[return-value]


@equation(
    "additive-weight-bound",
    r"\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}}",
    rows=["F1"],
    uses=["ratio-of-weights", "cosine-weight-bound", "additive-score-bound"],
    assumes=["n keys"],
    kind="numeric",
    scope="additive scores of n = 2 to 7 keys, bound attained",
)
def no_weight_is_arbitrarily_large(rng: np.random.Generator) -> Claims:
    """By Eq. additive-score-bound two scores differ by at most 2 |v|_1, and so do the logarithms of two weights.

    Sharper attention needs a larger v.
    """
    for n in range(2, 8):
        v, opposite = rng.normal(size=7) / 4, np.full((n, 2), -50.0)
        opposite[0] = 50.0  # every unit saturated, at +1 for the first key and at -1 for all others, whatever the query
        for key, sharp in ((opposite, True), (rng.normal(size=(n, 2)), False)):
            e = reference.additive_scores(rng.normal(size=(1, 4)), key, rng.normal(size=(4, 7)), np.ones((2, 1)) * np.sign(v), v)
            yield Chain(weights_of(e).max(), "<=", 1 / (1 + (n - 1) * np.exp(-2 * np.abs(v).sum())), tight=(sharp,))


@no_weight_is_arbitrarily_large.wrong("weights can come as close to 1 as one likes, whatever v")
def _(rng: np.random.Generator) -> Claims:
    for point in _points(rng):
        scores = reference.additive_scores(*point[:4], point[4] / 10)
        yield Limit(np.array([weights_of(scores * 1.0).max()] * 3), 1.0)


@no_weight_is_arbitrarily_large.wrong("e^{-|v|_1}: only the largest score counted")
def _(rng: np.random.Generator) -> Claims:
    yield Chain(weights_of(np.array([1.0, -1.0, -1.0])).max(), "<=", 1 / (1 + 2 * np.exp(-1)))


@equation(
    "additive-score-is-odd",
    r"e(-q, -k) = -e(q, k)",
    rows=["F1"],
    uses=["additive-score"],
    assumes=["e as in {eq}`additive-score`, without a bias inside tanh"],
    kind="numeric",
    scope="T_q = 3, T_k = 5, d_q = 4, d_k = 2, d_h = 7",
)
def score_is_odd(rng: np.random.Generator) -> Claims:
    """tanh is odd: turn query and keys round, and the ranking turns round. A dot product stays, so equality needs a bias to be seen."""
    for point in _points(rng):
        query, key, *weights = point
        yield reference.additive_scores(-query, -key, *weights), -(_hidden(point) @ weights[-1])


@score_is_odd.wrong("even, as the dot product is")
def _(rng: np.random.Generator) -> Claims:
    for point in _points(rng):
        query, key, *weights = point
        yield reference.additive_scores(-query, -key, *weights), _hidden(point) @ weights[-1]


@score_is_odd.wrong("also with a bias")
def _(rng: np.random.Generator) -> Claims:
    for query, key, w_query, w_key, w_score in _points(rng):
        plus, minus = (np.tanh((x @ w_query)[:, None] + y @ w_key + 1.0) @ w_score for x, y in ((query, key), (-query, -key)))
        yield minus, -plus


@equation(
    "additive-derivative-by-query",
    r"\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t^2) \bigr), \qquad t = \tanh\bigl(W_Q^\top q + W_K^\top k\bigr)",
    rows=["F1"],
    uses=["additive-score"],
    scope="d_q = d_k = d_h = 2",
)
def gradient_by_the_query() -> Sides:
    """Chain rule; where a unit is saturated, t = +-1, nothing passes."""
    t = preactivation.applyfunc(tanh)
    return column(score.diff(q_a) for q_a in q), W_Q * column(v[r] * (1 - t[r] ** 2) for r in range(2))


gradient_by_the_query.wrong("the derivative of tanh forgotten")(lambda: (column(score.diff(q_a) for q_a in q), W_Q * v))
gradient_by_the_query.wrong("W_Q transposed")(
    lambda: (column(score.diff(q_a) for q_a in q), W_Q.T * column(v[r] * (1 - tanh(preactivation[r]) ** 2) for r in range(2)))
)


@equation(
    "additive-query-key-interaction",
    r"\frac{\partial^2 e}{\partial q_a\, \partial k_b} = -2 \sum_{r=1}^{d_h} v_r\, t_r\, (1 - t_r^2)\, (W_Q)_{ar}\, (W_K)_{br}",
    rows=["F1"],
    uses=["additive-derivative-by-query"],
    assumes=["t as in {eq}`additive-derivative-by-query`"],
    scope="d_q = d_k = d_h = 2",
)
def interaction_of_query_and_key() -> Sides:
    """It is 0 at q = k = 0, where the dot product has delta_ab.

    Small additive scores are sums, and by Eq. plain-sum-ignores-query sums do not attend.
    """
    t = preactivation.applyfunc(tanh)
    interaction = Matrix(2, 2, lambda i, j: -2 * total(v[r] * t[r] * (1 - t[r] ** 2) * W_Q[i, r] * W_K[j, r] for r in range(2)))
    return Matrix(2, 2, lambda i, j: score.diff(q[i]).diff(k[j])), interaction


interaction_of_query_and_key.wrong("as for the dot product")(
    lambda: (Matrix(2, 2, lambda i, j: score.diff(q[i]).diff(k[j])), Matrix(2, 2, delta))
)
interaction_of_query_and_key.wrong("none: the projections are added")(
    lambda: (Matrix(2, 2, lambda i, j: score.diff(q[i]).diff(k[j])), sympy.zeros(2, 2))
)


@equation(
    "square-units-make-products",
    r"q \cdot k = \tfrac{1}{4} \sum_{a=1}^{d} (q_a + k_a)^2 - \tfrac{1}{4} \sum_{a=1}^{d} (q_a - k_a)^2",
    rows=["F1", "A4"],
    uses=["dot-product-by-distance"],
    scope="d = 2",
)
def dot_product_as_an_additive_score() -> Sides:
    """The form of Eq. additive-score with squares in place of tanh, 2 d hidden units and v = +-1/4: a sum bent once can hold a product."""
    return (q.T * k)[0], total((q[a] + k[a]) ** 2 for a in range(2)) / 4 - total((q[a] - k[a]) ** 2 for a in range(2)) / 4


dot_product_as_an_additive_score.wrong("the first sum alone")(lambda: ((q.T * k)[0], total((q[a] + k[a]) ** 2 for a in range(2)) / 4))
dot_product_as_an_additive_score.wrong("1/2 instead of 1/4")(
    lambda: ((q.T * k)[0], total((q[a] + k[a]) ** 2 - (q[a] - k[a]) ** 2 for a in range(2)) / 2)
)


@equation(
    "tanh-units-make-products",
    r"q\,k = \lim_{\varepsilon \to 0} \frac{f(q + k) - f(q - k)}{4\,\varepsilon^2 \tanh''(\beta)}, \qquad"
    r" f(x) = \tanh(\beta + \varepsilon x) + \tanh(\beta - \varepsilon x)",
    rows=["F1"],
    uses=["square-units-make-products"],
    assumes=["a bias beta inside tanh with tanh''(beta) not 0"],
    scope="one feature, beta = 1/2",
)
def tanh_units_make_a_square() -> Sides:
    """f is even, so it starts with a square: four tanh units with a bias for each feature come as close to q . k as one likes."""
    epsilon, x, y = symbols("epsilon q k", positive=True)
    beta = sympy.Rational(1, 2)

    def f(argument: sympy.Expr) -> sympy.Expr:
        return tanh(beta + epsilon * argument) + tanh(beta - epsilon * argument)

    curvature = -2 * tanh(beta) * (1 - tanh(beta) ** 2)
    expanded = sympy.series(f(x + y) - f(x - y), epsilon, 0, 3).removeO()
    return (expanded / (4 * epsilon**2 * curvature)).subs(epsilon, 1), x * y


@tanh_units_make_a_square.wrong("also without the bias, around tanh(0)")
def _() -> Sides:
    epsilon, x, y = symbols("epsilon q k", positive=True)
    even = tanh(epsilon * (x + y)) + tanh(-epsilon * (x + y)) - tanh(epsilon * (x - y)) - tanh(-epsilon * (x - y))
    return even / epsilon**2, x * y


# ---- 6.3 what it costs, and where it helps


@equation(
    "additive-score-flops",
    r"F_{\mathrm{add}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 4\, T_q\, T_k\, d_h",
    rows=["F2"],
    uses=["additive-score"],
    assumes=["a multiply-add counts 2, a sum and a tanh 1 each"],
    kind="numeric",
    scope="five shapes, counted while computing",
)
def flops_of_additive_scores(rng: np.random.Generator) -> Claims:
    """Each vector is projected once, not once for each pair; each pair and unit takes a sum, a tanh and a multiply-add."""
    for q_len, kv_len, d_q, d_k, d_h in ((3, 5, 4, 2, 7), (1, 5, 4, 4, 4), (5, 1, 2, 3, 4), (2, 3, 1, 1, 1), (6, 7, 5, 5, 3)):
        yield _counted_additive(q_len, kv_len, d_q, d_k, d_h), 2 * d_h * (q_len * d_q + kv_len * d_k) + 4 * q_len * kv_len * d_h


def _counted_additive(q_len: int, kv_len: int, d_q: int, d_k: int, d_h: int) -> int:
    """Count the multiply-adds of the products, and the sums and tanh as entries of the arrays they fill."""
    shapes = (q_len, d_q), (kv_len, d_k), (d_q, d_h), (d_k, d_h), (d_h,)
    products = multiplications(lambda x, y, w_q, w_k, v: ((x @ w_q)[:, None] + (y @ w_k)[None]) @ v, *shapes)
    sums = (np.zeros((q_len, 1, d_h)) + np.zeros((1, kv_len, d_h))).size
    return 2 * products + sums + np.tanh(np.zeros((q_len, kv_len, d_h))).size


flops_of_additive_scores.wrong("every pair projected again")(
    lambda rng: (_counted_additive(3, 5, 4, 2, 7), 2 * 3 * 5 * 7 * (4 + 2) + 4 * 3 * 5 * 7)
)
flops_of_additive_scores.wrong("as many as the dot product")(
    lambda rng: (_counted_additive(3, 5, 4, 2, 7), 2 * 7 * (3 * 4 + 5 * 2) + 2 * 3 * 5 * 7)
)


@equation(
    "dot-score-flops",
    r"F_{\mathrm{dot}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 2\, T_q\, T_k\, d_h",
    rows=["F2"],
    uses=["additive-score-flops"],
    assumes=["queries and keys projected to d_h", "a multiply-add counts 2"],
    kind="numeric",
    scope="five shapes, counted while computing",
)
def flops_of_dot_scores(rng: np.random.Generator) -> Claims:
    """Half as many for each pair, and all of them in matrix products: a factor of 2 on paper, far more on hardware made for products."""
    for q_len, kv_len, d_q, d_k, d_h in ((3, 5, 4, 2, 7), (1, 5, 4, 4, 4), (5, 1, 2, 3, 4), (2, 3, 1, 1, 1), (6, 7, 5, 5, 3)):
        yield _counted_dot(q_len, kv_len, d_q, d_k, d_h), 2 * d_h * (q_len * d_q + kv_len * d_k) + 2 * q_len * kv_len * d_h


def _counted_dot(q_len: int, kv_len: int, d_q: int, d_k: int, d_h: int) -> int:
    shapes = (q_len, d_q), (kv_len, d_k), (d_q, d_h), (d_k, d_h)
    return 2 * multiplications(lambda x, y, w_q, w_k: (x @ w_q) @ (y @ w_k).T, *shapes)


flops_of_dot_scores.wrong("T_q T_k, one for each score")(lambda rng: (_counted_dot(3, 5, 4, 2, 7), 2 * 7 * (3 * 4 + 5 * 2) + 2 * 3 * 5))


@equation(
    "additive-memory-overhead",
    r"\frac{M_{\mathrm{add}}}{M_{\mathrm{dot}}} = \frac{T_q\, T_k\, d_h}{T_q\, T_k} = d_h",
    rows=["F2"],
    uses=["additive-score"],
    assumes=["all pairs at once, intermediates kept (as training does)"],
    kind="numeric",
    scope="three shapes",
)
def memory_of_the_pairs(rng: np.random.Generator) -> Claims:
    """tanh stands between the sum and v, so a number for each pair and unit must exist; a matrix product sums as it goes."""
    for q_len, kv_len, d_h in ((3, 5, 7), (1, 4, 2), (6, 5, 3)):
        pairs = rng.normal(size=(q_len, 1, d_h)) + rng.normal(size=(1, kv_len, d_h))
        scores = rng.normal(size=(q_len, d_h)) @ rng.normal(size=(d_h, kv_len))
        yield pairs.nbytes / scores.nbytes, q_len * kv_len * d_h / (q_len * kv_len)


memory_of_the_pairs.wrong("none")(lambda rng: ((np.zeros((3, 1, 7)) + np.zeros((1, 5, 7))).nbytes / np.zeros((3, 5)).nbytes, 1.0))


@equation(
    "additive-score-variance",
    r"\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \mathbb{E}\bigl[\tanh^2(g)\bigr] < 1, \quad g \sim N(0, 2)",
    rows=["F2"],
    uses=["variance-after-projection", "additive-score"],
    assumes=[
        "q, k independent, standard normal",
        "entries of W_Q, W_K independent, mean 0, variance 1/d, normal; those of v mean 0, variance 1/d_h",
        "over draws of vectors and weights",
    ],
    kind="statistical",
    scope="d = d_h = 64; 20 000 draws, 2 %",
)
def spread_of_additive_scores(rng: np.random.Generator) -> Moment:
    """|q|^2 / d and |k|^2 / d tend to 1: no d is left. Unscaled dot products, of variance d_k, saturate softmax, additive ones do not."""
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(60)
    expected = node_weights @ np.tanh(np.sqrt(2) * nodes) ** 2 / node_weights.sum()
    return Moment(_additive_draws(rng) ** 2, expected, resolution=0.02)


def _additive_draws(rng: np.random.Generator, d: int = 64, draws: int = 20_000) -> np.ndarray:
    """Draw scores: given q, the entries of q W_Q are normal with variance |q|^2 / d, and no matrix need be drawn."""
    query, key = rng.normal(size=(2, draws, d))
    lengths = np.sqrt(((query**2).sum(axis=-1) + (key**2).sum(axis=-1)) / d)
    hidden = np.tanh(lengths[:, None] * rng.normal(size=(draws, d)))
    return np.asarray((hidden * rng.normal(size=(draws, d)) / np.sqrt(d)).sum(axis=-1))


spread_of_additive_scores.wrong("d_h, as for a dot product")(lambda rng: Moment(_additive_draws(rng) ** 2, 64.0, resolution=0.02))
spread_of_additive_scores.wrong("1: tanh taken for +-1")(lambda rng: Moment(_additive_draws(rng) ** 2, 1.0, resolution=0.02))


@equation(
    "unscaled-and-scaled-variance",
    r"\mathrm{Var}[\,q \cdot k\,] = d, \qquad \mathrm{Var}\Bigl[\frac{q \cdot k}{\sqrt{d}}\Bigr] = 1",
    rows=["F2"],
    uses=["variance-of-a-score", "scaled-score-variance", "additive-score-variance"],
    assumes=["entries of q, k independent, mean 0, variance 1"],
    kind="statistical",
    scope="d = 4 and 64; 40 000 draws, 2 %",
)
def spread_of_dot_scores(rng: np.random.Generator) -> Claims:
    """The rival's scale: with sqrt(d) divided out, dot products spread as little as additive scores, and the two come level."""
    for d in (4, 64):
        query, key = rng.normal(size=(2, 40_000, d))
        dot = (query * key).sum(axis=-1)
        yield Moment(dot**2, d * 1.0, resolution=0.02)
        yield Moment((dot / np.sqrt(d)) ** 2, d / d, resolution=0.02)


@spread_of_dot_scores.wrong("sqrt(d)")
def _(rng: np.random.Generator) -> Moment:
    query, key = rng.normal(size=(2, 40_000, 64))
    return Moment((query * key).sum(axis=-1) ** 2, 8.0, resolution=0.02)


@spread_of_dot_scores.wrong("1 without the scale")
def _(rng: np.random.Generator) -> Moment:
    query, key = rng.normal(size=(2, 40_000, 64))
    return Moment((query * key).sum(axis=-1) ** 2, 1.0, resolution=0.02)


# ---- 6.5 the aligner


@equation(
    "additive-attention",
    r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad"
    r" \alpha_{ij} = \frac{e^{e_{ij}}}{\sum_{l=1}^{T_k} e^{e_{il}}}, \qquad"
    r" e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr)",
    rows=["A5", "F1"],
    uses=["softmax", "additive-score"],
    assumes=[
        "s_{i-1}: state of the decoder before it writes word i",
        "h_j: annotation of source word j",
        "T_k real words: padding is left out",
    ],
    kind="numeric",
    scope="T_q = 3, T_k = 5 and 2 rows of padding",
)
def context_of_the_aligner(rng: np.random.Generator) -> Claims:
    """Keys and values are the same annotations: what is compared is what is passed on."""
    for s, h, *weights in _points(rng):
        e = reference.additive_scores(s, h, *weights)
        terms = np.exp(e - np.abs(weights[-1]).sum())  # no overflow, Eq. additive-score-bound
        padded = np.vstack([h, np.full((2, 2), 7.0)])
        masked = np.where(np.arange(7) < 5, reference.additive_scores(s, padded, *weights), -np.inf)
        context = [sum(terms[i, j] * h[j] for j in range(5)) / sum(terms[i, j] for j in range(5)) for i in range(3)]
        yield np.array(context), weights_of(masked) @ padded


@context_of_the_aligner.wrong("a database of keys with values of their own", trap="X33")
def _(rng: np.random.Generator) -> Claims:
    for s, h, *weights in _points(rng):
        alpha = weights_of(reference.additive_scores(s, h, *weights))
        yield alpha @ h, alpha @ rng.normal(size=h.shape)


@context_of_the_aligner.wrong("the similarity itself as a weight, without a softmax", trap="X33")
def _(rng: np.random.Generator) -> Claims:
    for s, h, *weights in _points(rng):
        e = reference.additive_scores(s, h, *weights)
        yield weights_of(e) @ h, e @ h


@context_of_the_aligner.wrong("padding takes part")
def _(rng: np.random.Generator) -> Claims:
    for s, h, *weights in _points(rng):
        alone, padded = (weights_of(reference.additive_scores(s, key, *weights)) for key in (h, np.vstack([h, np.zeros((2, 2))])))
        yield alone @ h, padded[:, :5] @ h
