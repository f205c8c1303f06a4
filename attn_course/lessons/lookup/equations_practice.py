"""Limits of a lookup, kernel regression, many queries, and what mixes what."""

import functools

import numpy as np
import sympy
from sympy import Integral, Matrix, exp, oo, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Limit, Sides
from attn_course.equations.derivatives import plain_softmax
from attn_course.equations.moments import Expr
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, delta, real_symbols, total
from attn_course.lessons.lookup.equations import v, x

at, target = symbols("x y", real=True)
bandwidth = sympy.Symbol("h", positive=True)
P, V, W = Matrix(2, 3, real_symbols("p", 6)), Matrix(3, 2, real_symbols("v", 6)), Matrix(2, 2, real_symbols("w", 4))


# ---- 1.5 Exact lookup and plain average: the two ends of one dial


@equation(
    "bandwidth-limits",
    r"\lim_{h \to 0^+} \alpha_i = [\,k_i \text{ is the nearest key}\,], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}",
    rows=["A2", "A3"],
    uses=["normalised-similarities", "soft-lookup"],
    assumes=["s(q, k) = e^{-|q - k|^2 / 2 h^2}", "one key is nearest"],
    kind="numeric",
    scope="m = 1 to 7",
)
def two_limits_of_a_lookup(rng: np.random.Generator) -> Claims:
    """The ratio of two similarities is e to the difference of squared distances over 2 h^2: infinite at one end, 1 at the other."""
    for m in range(1, 8):
        query, key = rng.normal(size=(1, 2)), rng.normal(size=(m, 2))
        distance = np.linalg.norm(key - query, axis=-1)
        yield Limit(_gaussian_weights(query, key, 0.25 ** np.arange(10)), (distance == distance.min()) * 1.0)
        yield Limit(_gaussian_weights(query, key, 4.0 ** np.arange(3, 18)), np.ones(m) / m)


def _gaussian_weights(query: np.ndarray, key: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    return np.array([reference.softmax(reference.gaussian_scores(query, key, float(h)))[0] for h in bandwidths])


two_limits_of_a_lookup.wrong("a query that equals a key gets its value at any h", trap="X32")(
    lambda rng: (_gaussian_weights(np.zeros((1, 2)), np.eye(3, 2), np.array([1.0]))[0], np.array([0.0, 0.0, 1.0]))
)


@two_limits_of_a_lookup.wrong("the two ends exchanged")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=(1, 2)), rng.normal(size=(5, 2))
    yield Limit(_gaussian_weights(query, key, 0.25 ** np.arange(10)), np.ones(5) / 5)


# ---- 1.6 An old friend: kernel regression


@equation(
    "nadaraya-watson-regression",
    r"\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy} = \sum_{i=1}^{m} \frac{K_h(x - x_i)}{\sum_{j=1}^{m} K_h(x - x_j)}\, y_i",
    rows=["A3"],
    uses=["normalised-similarities", "soft-lookup"],
    assumes=["p(x, y) estimated by (1/m) sum_i K_h(x - x_i) K_h(y - y_i)", "K_h a Gaussian of width h"],
    scope="m = 3",
)
def nadaraya_watson() -> Sides:
    """The conditional mean of a kernel density is attention: x asks, x_i are the keys, y_i the values."""
    return _conditional_mean(), total(_kernel(at - x[i]) * v[i] for i in range(3)) / total(_kernel(at - x[j]) for j in range(3))


def _kernel(distance: Expr) -> Expr:
    return exp(-(distance**2) / (2 * bandwidth**2))


@functools.cache
def _conditional_mean() -> Expr:
    """Integrate term by term; every term is K_h(x - x_i) times an integral over y."""
    centre = sympy.Symbol("c", real=True)
    bump = _kernel(target - centre)
    mass, mean = (Integral(factor * bump, (target, -oo, oo)).doit() for factor in (1, target))
    above = total(_kernel(at - x_i) * mean.subs(centre, y_i) for x_i, y_i in zip(x, v, strict=True))
    return above / total(_kernel(at - x_i) * mass for x_i in x)


nadaraya_watson.wrong("one constant for the normaliser: K_h(0)")(
    lambda: (_conditional_mean(), total(_kernel(at - x[i]) * v[i] for i in range(3)) / 3)
)
nadaraya_watson.wrong("the kernel compares x with y")(
    lambda: (_conditional_mean(), total(_kernel(at - v[i]) * v[i] for i in range(3)) / total(_kernel(at - v[j]) for j in range(3)))
)


@equation(
    "affine-maps-pass-through",
    r"\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + b",
    rows=["A3", "A6"],
    uses=["weights-on-the-simplex"],
    kind="numeric",
    scope="m = 1 to 7, values of 3 entries mapped to 2",
)
def affine_maps_pass_through(rng: np.random.Generator) -> Claims:
    """Linearity, and for b that the weights sum to 1: a change of units of the values changes the answer alike, a constant is kept."""
    for m in range(1, 8):
        value, matrix, shift, alpha = rng.normal(size=(m, 3)), rng.normal(size=(3, 2)), rng.normal(size=2), rng.dirichlet(np.ones(m))
        yield sum(alpha[i] * (value[i] @ matrix + shift) for i in range(m)), (alpha @ value) @ matrix + shift


@affine_maps_pass_through.wrong("also for weights that do not sum to 1")
def _(rng: np.random.Generator) -> Claims:
    value, matrix, shift, alpha = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2), rng.uniform(1, 2, size=4)
    yield alpha @ (value @ matrix + shift), (alpha @ value) @ matrix + shift


@affine_maps_pass_through.wrong("any map passes through: the square of the average")
def _(rng: np.random.Generator) -> Claims:
    value, alpha = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    yield alpha @ value**2, (alpha @ value) ** 2


# ---- 1.7 Many queries: Z = P V


@equation(
    "weights-times-values",
    r"z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \;\Longleftrightarrow\; Z = P\,V, \qquad P\,\mathbf{1} = \mathbf{1}",
    rows=["A6"],
    uses=["weights-on-the-simplex", "soft-lookup"],
    assumes=["row i of P holds the weights of query i"],
    kind="numeric",
    scope="T_out = 1 to 6, T_in = 4",
)
def one_row_for_each_query(rng: np.random.Generator) -> Claims:
    """P has one row for each query and one column for each pair: the output is as long as the list of queries, not as the context."""
    for t_out in range(1, 7):
        similarity, value = rng.uniform(0.1, 1.0, size=(t_out, 4)), rng.normal(size=(4, 2))
        weights = similarity / similarity.sum(axis=-1, keepdims=True)
        answers = np.array([sum(row[j] / sum(row) * value[j] for j in range(4)) for row in similarity])
        yield (answers, weights @ np.ones(4)), (weights @ value, np.ones(t_out))


@one_row_for_each_query.wrong("the columns sum to 1")
def _(rng: np.random.Generator) -> Claims:
    similarity = rng.uniform(0.1, 1.0, size=(4, 4))
    yield (similarity / similarity.sum(axis=-1, keepdims=True)).sum(axis=0), np.ones(4)


@one_row_for_each_query.wrong("one output for each pair")
def _(rng: np.random.Generator) -> Claims:
    output = reference.attention(rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 2)))
    yield len(output), 5


@equation(
    "output-in-convex-hull",
    r"\min_j\, a \cdot v_j \;\le\; a \cdot z \;\le\; \max_j\, a \cdot v_j",
    rows=["A6"],
    uses=["weights-on-the-simplex", "weights-times-values"],
    assumes=["a any direction"],
    kind="numeric",
    scope="m = 1 to 6, both bounds reached",
)
def convex_hull(rng: np.random.Generator) -> Claims:
    """An average with weights in [0, 1] lies between the extremes, in every direction: in the convex hull of the values."""
    for m in range(1, 7):
        value, direction = rng.normal(size=(m, 2)), rng.normal(size=2)
        along, lowest, highest = value @ direction, np.eye(m)[(value @ direction).argmin()], np.eye(m)[(value @ direction).argmax()]
        for alpha, tight in ((rng.dirichlet(np.ones(m)), (m == 1, m == 1)), (lowest, (True, m == 1)), (highest, (m == 1, True))):
            yield Chain(along.min(), "<=", direction @ (alpha @ value), "<=", along.max(), tight=tight)


@convex_hull.wrong("also for weights of any sign that sum to 1", trap="X3")
def _(rng: np.random.Generator) -> Claims:
    yield Chain(0.0, "<=", np.array([2.0, -1.0]) @ np.array([1.0, 0.0]), "<=", 1.0)


@convex_hull.wrong("also for similarities that are not normalised")
def _(rng: np.random.Generator) -> Claims:
    yield Chain(1.0, "<=", np.array([1.0, 2.0]) @ np.array([1.0, 3.0]), "<=", 3.0)


# ---- 1.8 Fixed weights and weights that depend on the data; positions and features


@equation(
    "output-derivative-by-value",
    r"\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ab}",
    rows=["A1", "A5"],
    uses=["recurrent-gradient-product", "weights-times-values"],
    assumes=["P does not depend on V"],
    scope="T_out = 2, T_in = 3, two features",
)
def positions_are_mixed() -> Sides:
    """Weights from the left mix positions and leave features alone; any position is one factor away, however far it stands."""
    return _mixing(P * V), Matrix(4, 6, lambda z, y: P[z // 2, y // 2] * delta(z % 2, y % 2))


def _mixing(z: Matrix) -> Matrix:
    return column(z).jacobian(column(V))


positions_are_mixed.wrong("Z = V W: weights from the right, which mix features", trap="X10")(
    lambda: (_mixing((V * W)[:2, :]), Matrix(4, 6, lambda z, y: P[z // 2, y // 2] * delta(z % 2, y % 2)))
)
positions_are_mixed.wrong("only the own position counts")(
    lambda: (_mixing(P * V), Matrix(4, 6, lambda z, y: P[z // 2, y // 2] * delta(z, y)))
)


@equation(
    "linear-attention-two-readings",
    r"\bigl( X W_Q W_K^\top X^\top \bigr)\, X W_V = X\, \bigl( W_Q W_K^\top X^\top X W_V \bigr)",
    rows=["A1"],
    uses=["weights-times-values", "output-derivative-by-value"],
    assumes=["no softmax: linear attention"],
    kind="numeric",
    scope="m = 5 positions, 3 features in, 2 out",
)
def two_readings_of_linear_attention(rng: np.random.Generator) -> Claims:
    """Brackets move: P(X), m x m, mixes positions; W(X), v x v', mixes features. Both depend on the data."""
    x, w_query, w_key, w_value = (rng.normal(size=shape) for shape in ((5, 3), (3, 4), (3, 4), (3, 2)))
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    z = np.array([sum(np.dot(query[i], key[j]) * value[j] for j in range(5)) for i in range(5)])
    yield z, x @ (w_query @ w_key.T @ x.T @ x @ w_value)


@two_readings_of_linear_attention.wrong("Z = V W(Q, K), with the weights from the right", trap="X10")
def _(rng: np.random.Generator) -> Claims:
    x, w_query, w_key = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    weights = (x @ w_query) @ (x @ w_key).T
    yield weights @ x, x @ weights


@two_readings_of_linear_attention.wrong("the same with softmax in between")
def _(rng: np.random.Generator) -> Claims:
    x = rng.normal(size=(5, 3))
    yield plain_softmax(x @ x.T) @ x, x @ plain_softmax(x.T @ x)


@equation(
    "opposite-query-inverts-ratios",
    r"\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_j)}{\alpha(q, k_i)}",
    rows=["A1"],
    uses=["normalised-similarities"],
    assumes=["s(q, k) = e^{q.k}"],
    kind="numeric",
    scope="5 keys",
)
def weights_that_flip(rng: np.random.Generator) -> Claims:
    """A ratio of weights is e^{q.(k_i - k_j)}: the opposite query turns it over. Fixed weights cannot do that."""
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    turned, alpha = _exponential_weights(-query, key), _exponential_weights(query, key)
    yield turned[:, None] / turned[None, :], alpha[None, :] / alpha[:, None]


def _exponential_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    similarity = np.exp(key @ query)
    return np.asarray(similarity / similarity.sum())


@weights_that_flip.wrong("the weights stay, as those of a fixed layer")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    yield _exponential_weights(-query, key), _exponential_weights(query, key)


@weights_that_flip.wrong("the weights change sign")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=3), rng.normal(size=(5, 3))
    yield _exponential_weights(-query, key), -_exponential_weights(query, key)


@equation(
    "linear-attention-is-cubic",
    r"Z(c\,X) = c^3\, Z(X), \qquad Z(X) = X X^\top X",
    rows=["A1"],
    uses=["linear-attention-two-readings"],
    assumes=["linear attention with all three projections left out"],
    scope="two positions, two features",
)
def linear_attention_is_cubic() -> Sides:
    """X enters three times: once each as query, key and value. It is linear in each role, not in the input."""
    scaled, X = bandwidth * V[:2, :], V[:2, :]
    return scaled * scaled.T * scaled, bandwidth**3 * X * X.T * X


def _cubic() -> Matrix:
    scaled = bandwidth * V[:2, :]
    return scaled * scaled.T * scaled


linear_attention_is_cubic.wrong("linear in the input")(lambda: (_cubic(), bandwidth * V[:2, :] * V[:2, :].T * V[:2, :]))
linear_attention_is_cubic.wrong("quadratic: the weights scale, the values do not")(
    lambda: (_cubic(), bandwidth**2 * V[:2, :] * V[:2, :].T * V[:2, :])
)
