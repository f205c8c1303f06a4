"""Self-attention without and with projections, and the order of tokens.

X holds one token per row. Derivatives come from a step along the
imaginary axis, not from a formula.
"""

import math
from itertools import permutations

import numpy as np
import sympy
from sympy import Integer, Matrix, sqrt

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.derivatives import jacobian, plain_softmax
from attn_course.equations.moments import NORMAL, Expr, Table, expectation, standard, variance
from attn_course.equations.stated import equation
from attn_course.equations.symbols import dot, real_symbols

x, y = real_symbols("x", 3), real_symbols("y", 3)
kappa = sympy.Symbol("kappa", real=True)
normal: Table = dict.fromkeys((*x, *y), NORMAL)
any_entries: Table = dict.fromkeys((*x, *y), standard(kappa))
Weights = tuple[np.ndarray, np.ndarray, np.ndarray]


def self_attention_inputs(rng: np.random.Generator, length: int = 5, d_model: int = 4) -> tuple[np.ndarray, Weights]:
    """Return tokens X and projections W_Q, W_K, W_V with d_k = 3 and d_v = 2."""
    return rng.normal(size=(length, d_model)), (
        rng.normal(size=(d_model, 3)),
        rng.normal(size=(d_model, 3)),
        rng.normal(size=(d_model, 2)),
    )


def self_attention(x: np.ndarray, weights: Weights) -> np.ndarray:
    """Return softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V, for real or complex tokens."""
    query, key, value = (x @ weight for weight in weights)
    return np.asarray(plain_softmax(query @ key.T / np.sqrt(query.shape[-1])) @ value)


# ---- 5.1 The plainest form: every token is query, key and value


@equation(
    "self-attention-without-projections",
    r"z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{v}}}\, x_j",
    rows=["E1"],
    uses=["attention-of-one-query", "output-of-a-query"],
    assumes=["Q = K = V = X", "v = number of features of a token"],
    kind="numeric",
    scope="T = 1 to 6, v = 3",
)
def attention_without_projections(rng: np.random.Generator) -> Claims:
    """Eq. attention-of-one-query for each row of X, with X itself as keys and values; the token itself is one of them."""
    for length in range(1, 7):
        tokens = rng.normal(size=(length, 3))
        e = np.exp([[sum(a * b) / math.sqrt(3) for b in tokens] for a in tokens])
        yield (
            reference.attention(tokens, tokens, tokens),
            np.array([sum(row[j] / sum(row) * tokens[j] for j in range(length)) for row in e]),
        )


@attention_without_projections.wrong("the scale of the queries' other length, sqrt(q) with q = 2", trap="X11")
def _(rng: np.random.Generator) -> Claims:
    tokens = rng.normal(size=(5, 3))
    yield reference.attention(tokens, tokens, tokens), plain_softmax(tokens @ tokens.T / np.sqrt(2)) @ tokens


@attention_without_projections.wrong("all other tokens, without the token itself", trap="X22")
def _(rng: np.random.Generator) -> Claims:
    tokens = rng.normal(size=(5, 3))
    yield reference.attention(tokens, tokens, tokens), reference.attention(tokens, tokens, tokens, mask=~np.eye(5, dtype=bool))


@equation(
    "heavy-diagonal-of-scores",
    r"\mathbb{E}[s_{ii}] = \sqrt{v}, \qquad \mathbb{E}[s_{ij}] = 0, \qquad \mathrm{Var}[s_{ij}] = 1 \quad (i \ne j)",
    rows=["E1", "C1"],
    uses=["scaled-score-variance", "equal-query-key-moments", "self-attention-without-projections"],
    assumes=["entries of X independent, mean 0, variance 1"],
    scope="v = 3, any distribution",
)
def heavy_diagonal() -> Sides:
    """Off the diagonal Eq. scaled-score-variance holds.

    On it query and key are the same vector, Eq. equal-query-key-moments, and the score is |x_i|^2 / sqrt(v).
    """
    diagonal, other = dot(x, x) / sqrt(3), dot(x, y) / sqrt(3)
    return (expectation(diagonal, any_entries), expectation(other, any_entries), variance(other, any_entries)), (
        sqrt(3),
        Integer(0),
        Integer(1),
    )


heavy_diagonal.wrong("the independence argument covers the diagonal: mean 0", trap="X30")(
    lambda: (expectation(dot(x, x) / sqrt(3), any_entries), Integer(0))
)
heavy_diagonal.wrong("the diagonal has variance 1 too", trap="X30")(lambda: (variance(dot(x, x) / sqrt(3), normal), Integer(1)))


@equation(
    "self-weight-grows",
    r"\mathbb{E}[p_{ii}] \approx 0.17,\; 0.51,\; 0.97 \quad \text{for} \quad v = 4,\, 16,\, 64",
    rows=["E1"],
    uses=["heavy-diagonal-of-scores"],
    assumes=["T = 32 tokens, standard normal entries"],
    kind="statistical",
    scope="T = 32, within 0.008",
)
def self_weight_grows(rng: np.random.Generator) -> Claims:
    """A lead of sqrt(v) against 31 scores of spread 1: in many dimensions each token sees little but itself."""
    means = np.array([_mean_self_weight(rng, v) for v in (4, 16, 64)])  # standard errors: 0.001 and less
    yield Chain(np.abs(means - np.array([0.17, 0.51, 0.97])), "<=", 0.008)


def _mean_self_weight(rng: np.random.Generator, v: int, draws: int = 1000) -> float:
    tokens = rng.normal(size=(draws, 32, v))
    weights = plain_softmax(tokens @ tokens.swapaxes(-1, -2) / np.sqrt(v))
    return float(np.diagonal(weights, axis1=-2, axis2=-1).mean())


self_weight_grows.wrong("1/32 each, as for independent queries and keys", trap="X30")(
    lambda rng: (np.round([_mean_self_weight(rng, v) for v in (4, 16, 64)], 2), np.full(3, 0.03))
)
self_weight_grows.wrong("the scale keeps it the same for every v", trap="X30")(
    lambda rng: (np.round([_mean_self_weight(rng, v) for v in (4, 16, 64)], 2), np.full(3, 0.17))
)


# ---- 5.2 Do two tokens see each other alike? The first cause


@equation(
    "detailed-balance-of-weights",
    r"p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}}",
    rows=["E3"],
    uses=["attention-weights", "self-attention-without-projections"],
    assumes=["s_ij = s_ji, as in {eq}`self-attention-without-projections`"],
    kind="numeric",
    scope="T = 1 to 6, v = 3",
)
def detailed_balance(rng: np.random.Generator) -> Claims:
    """Both sides are e^{s_ij}. Scores are symmetric, weights are not, unless all rows have the same normaliser."""
    for length in range(1, 7):
        p, Z = _map_and_normalisers(rng.normal(size=(length, 3)))
        yield p * Z[:, None], p.T * Z[None, :]


def _map_and_normalisers(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights = reference.attention(tokens, tokens, tokens, return_weights=True)[1]
    return weights, np.exp(tokens @ tokens.T / np.sqrt(tokens.shape[-1])).sum(axis=-1)


@detailed_balance.wrong("symmetric scores give symmetric weights")
def _(rng: np.random.Generator) -> Claims:
    p, _ = _map_and_normalisers(rng.normal(size=(5, 3)))
    yield p, p.T


@detailed_balance.wrong("each weight with the other's normaliser")
def _(rng: np.random.Generator) -> Claims:
    p, Z = _map_and_normalisers(rng.normal(size=(5, 3)))
    yield p * Z[None, :], p.T * Z[:, None]


@equation(
    "normalisers-are-stationary",
    r"\sum_{i=1}^{T} Z_i\, p_{ij} = Z_j",
    rows=["E3"],
    uses=["detailed-balance-of-weights"],
    kind="numeric",
    scope="T = 1 to 6, v = 3",
)
def who_is_looked_at(rng: np.random.Generator) -> Claims:
    """Sum Eq. detailed-balance-of-weights over i; rows of P sum to 1. Weighted by the normalisers, each token collects its own."""
    for length in range(1, 7):
        tokens = rng.normal(size=(length, 3))
        p = reference.attention(tokens, tokens, tokens, return_weights=True)[1]
        Z = np.exp(reference.scaled_dot_scores(tokens, tokens)).sum(axis=-1)
        yield (
            np.array([sum(Z[i] * p[i, j] for i in range(length)) for j in range(length)]),
            np.exp(tokens @ tokens.T / np.sqrt(3)).sum(axis=0),
        )


@who_is_looked_at.wrong("each token is looked at equally: columns sum to 1")
def _(rng: np.random.Generator) -> Claims:
    tokens = rng.normal(size=(5, 3))
    yield reference.attention(tokens, tokens, tokens, return_weights=True)[1].sum(axis=0), np.ones(5)


@who_is_looked_at.wrong("also with two different projections")
def _(rng: np.random.Generator) -> Claims:
    tokens, (w_query, w_key, _) = self_attention_inputs(rng)
    scores = reference.scaled_dot_scores(tokens @ w_query, tokens @ w_key)
    yield np.exp(scores).sum(axis=-1) @ plain_softmax(scores), np.exp(scores).sum(axis=-1)


# ---- 5.3 Three projections of one input


@equation(
    "self-attention",
    r"Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V",
    rows=["E1", "A7"],
    uses=["attention", "self-attention-without-projections"],
    assumes=["Q = X W_Q, K = X W_K, V = X W_V"],
    kind="numeric",
    scope="T = 5, d_model = 4, d_k = 3, d_v = 2",
)
def attention_with_projections(rng: np.random.Generator) -> Claims:
    """Eq. attention with three different views of the same tokens: what each asks, what it answers to, what it passes on."""
    x, (w_query, w_key, w_value) = self_attention_inputs(rng)
    output = reference.attention(x @ w_query, x @ w_key, x @ w_value)
    yield output, plain_softmax(x @ w_query @ w_key.T @ x.T / np.sqrt(3)) @ x @ w_value


@attention_with_projections.wrong("the value inside the softmax", trap="X1")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, w_value) = self_attention_inputs(rng)
    output = reference.attention(x @ w_query, x @ w_key, x @ w_value)
    yield output, plain_softmax((x @ w_query @ w_key.T @ x.T / np.sqrt(3)) @ x @ w_value)


@attention_with_projections.wrong("X multiplied with Q, K and V instead of W_Q, W_K and W_V", trap="X12")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, w_value) = self_attention_inputs(rng, length=4)  # T = d_model, so that shapes compose
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    yield reference.attention(query, key, value), reference.attention(x @ query, x @ key, x @ value)


@attention_with_projections.wrong("queries and values are the same set", trap="X13")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    w_value = rng.normal(size=(4, 3))
    yield reference.attention(x @ w_query, x @ w_key, x @ w_value), reference.attention(x @ w_query, x @ w_key, x @ w_query)


@equation(
    "bilinear-score",
    r"s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}}",
    rows=["E1"],
    uses=["scaled-score", "self-attention"],
    kind="numeric",
    scope="T = 5, d_model = 4, d_k = 3",
)
def bilinear_scores(rng: np.random.Generator) -> Claims:
    """The two projections meet in one product: each feature of token i against each feature of token j, with a learned factor."""
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    scores, pairs = reference.scaled_dot_scores(x @ w_query, x @ w_key), w_query @ w_key.T
    yield scores, np.array([[x[i] @ pairs @ x[j] / np.sqrt(3) for j in range(5)] for i in range(5)])


@bilinear_scores.wrong("the product the other way round")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    yield reference.scaled_dot_scores(x @ w_query, x @ w_key), x @ w_key @ w_query.T @ x.T / np.sqrt(3)


@bilinear_scores.wrong("scaled by the length of the input")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    yield reference.scaled_dot_scores(x @ w_query, x @ w_key), x @ w_query @ w_key.T @ x.T / np.sqrt(4)


@equation(
    "asymmetry-of-scores",
    r"S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top",
    rows=["E3"],
    uses=["bilinear-score"],
    kind="numeric",
    scope="T = 5, d_model = 4, d_k = 3",
)
def second_cause_of_asymmetry(rng: np.random.Generator) -> Claims:
    """Transpose Eq. bilinear-score. With W_Q = W_K the scores are symmetric.

    Otherwise asking and answering differ even before the softmax.
    """
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    scores = reference.scaled_dot_scores(x @ w_query, x @ w_key)
    yield scores - scores.T, x @ (w_query @ w_key.T - w_key @ w_query.T) @ x.T / np.sqrt(3)


@second_cause_of_asymmetry.wrong("scores are symmetric whatever the projections")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    scores = reference.scaled_dot_scores(x @ w_query, x @ w_key)
    yield scores, scores.T


@second_cause_of_asymmetry.wrong("the softmax is the only cause: no difference for two projections")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng)
    scores = reference.scaled_dot_scores(x @ w_query, x @ w_key)
    yield scores - scores.T, np.zeros((5, 5))


@equation(
    "self-attention-parameters",
    r"\#\{\text{parameters}\} = d_{\text{model}}\,(2\,d_k + d_v)",
    rows=["E1"],
    uses=["self-attention"],
    assumes=["no biases"],
    kind="numeric",
    scope="T = 2, 5 and 11",
)
def what_is_learned(rng: np.random.Generator) -> Claims:
    """Three matrices, whatever the number of tokens: the T x T weights are computed anew for every input."""
    for length in (2, 5, 11):
        x, weights = self_attention_inputs(rng, length)
        assert self_attention(x, weights).shape == (length, 2)
        yield sum(weight.size for weight in weights), 4 * (2 * 3 + 2)


@what_is_learned.wrong("what is learned is a set of attention weights, T^2 of them", trap="X20")
def _(rng: np.random.Generator) -> Claims:
    for length in (2, 5, 11):
        yield sum(weight.size for weight in self_attention_inputs(rng, length)[1]), length**2


@what_is_learned.wrong("another input meets the same attention weights", trap="X20")
def _(rng: np.random.Generator) -> Claims:
    (x, (w_query, w_key, _)), (other, _) = self_attention_inputs(rng), self_attention_inputs(rng)
    yield plain_softmax(x @ w_query @ w_key.T @ x.T), plain_softmax(other @ w_query @ w_key.T @ other.T)


@equation(
    "gradients-through-projections",
    r"dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top",
    rows=["E1", "D2"],
    uses=["gradient-of-values", "query-and-key-gradients", "self-attention"],
    assumes=["dW_K and dW_V alike"],
    kind="numeric",
    scope="T = 5, d_model = 4, d_k = 3, d_v = 2",
)
def three_paths_back(rng: np.random.Generator) -> Claims:
    """Each projection is linear; X feeds all three, so three gradients arrive at it and add up."""
    x, (w_query, w_key, w_value) = self_attention_inputs(rng)
    d_output = rng.normal(size=(5, 2))
    d_query, d_key, d_value = reference.attention_backward(x @ w_query, x @ w_key, x @ w_value, d_output)
    yield (
        _d_w_query_and_x(x, (w_query, w_key, w_value), d_output),
        (x.T @ d_query, d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T),
    )


def _d_w_query_and_x(x: np.ndarray, weights: Weights, d_output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    def loss(tokens: np.ndarray, w_query: np.ndarray) -> np.ndarray:
        return np.sum(d_output * self_attention(tokens, (w_query, *weights[1:])))

    return jacobian(lambda w_query: loss(x, w_query), weights[0]), jacobian(lambda tokens: loss(tokens, weights[0]), x)


@three_paths_back.wrong("only the path through the values")
def _(rng: np.random.Generator) -> Claims:
    x, weights = self_attention_inputs(rng)
    d_output = rng.normal(size=(5, 2))
    query, key, value = (x @ weight for weight in weights)
    d_value = reference.attention_backward(query, key, value, d_output)[2]
    yield _d_w_query_and_x(x, weights, d_output)[1], d_value @ weights[2].T


@three_paths_back.wrong("the transpose of dW_Q")
def _(rng: np.random.Generator) -> Claims:
    x, weights = rng.normal(size=(5, 3)), (rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 2)))
    d_output = rng.normal(size=(5, 2))
    query, key, value = (x @ weight for weight in weights)
    d_query = reference.attention_backward(query, key, value, d_output)[0]
    yield _d_w_query_and_x(x, weights, d_output)[0], d_query.T @ x


# ---- 5.4 A set of tokens: what a permutation does


@equation(
    "permuted-scores",
    r"S(\Pi X) = \Pi\, S(X)\, \Pi^\top",
    rows=["E1"],
    uses=["bilinear-score"],
    assumes=["Pi a permutation matrix"],
    kind="numeric",
    scope="T = 4, every permutation",
)
def permuted_scores(rng: np.random.Generator) -> Claims:
    """Put Pi X into Eq. bilinear-score: one Pi comes out on each side. A pair of tokens keeps its score wherever the two stand."""
    x, (w_query, w_key, _) = self_attention_inputs(rng, length=4)
    for order in permutations(range(4)):
        shuffle, moved = np.eye(4)[list(order)], x[list(order)]
        yield reference.scaled_dot_scores(moved @ w_query, moved @ w_key), shuffle @ (x @ w_query @ w_key.T @ x.T / np.sqrt(3)) @ shuffle.T


@permuted_scores.wrong("only the rows move")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng, length=4)
    scores, moved = reference.scaled_dot_scores(x @ w_query, x @ w_key), x[[1, 2, 3, 0]]
    yield reference.scaled_dot_scores(moved @ w_query, moved @ w_key), scores[[1, 2, 3, 0]]


@permuted_scores.wrong("neighbours score higher: a pair loses when it is pulled apart", trap="X25")
def _(rng: np.random.Generator) -> Claims:
    x, (w_query, w_key, _) = self_attention_inputs(rng, length=4)
    near, far = (reference.scaled_dot_scores(x[order] @ w_query, x[order] @ w_key) for order in ([0, 1, 2, 3], [0, 3, 2, 1]))
    yield np.sign(near[0, 1] - far[0, 3]), 1.0


@equation(
    "permuted-weights",
    r"\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)\, \Pi^\top",
    rows=["E1"],
    uses=["attention-weights", "permuted-scores"],
    assumes=["softmax along each row"],
    kind="numeric",
    scope="T = 4, every permutation",
)
def permuted_weights(rng: np.random.Generator) -> Claims:
    """Exponentials go entry by entry, and the sum of a row does not depend on the order of its terms."""
    scores = rng.normal(size=(4, 4))
    for order in permutations(range(4)):
        shuffle = np.eye(4)[list(order)]
        yield (
            reference.softmax(shuffle @ scores @ shuffle.T),
            shuffle @ (np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)) @ shuffle.T,
        )


@permuted_weights.wrong("for any orthogonal matrix in place of Pi")
def _(rng: np.random.Generator) -> Claims:
    scores, turn = rng.normal(size=(4, 4)), np.linalg.qr(rng.normal(size=(4, 4)))[0]
    yield reference.softmax(turn @ scores @ turn.T), turn @ reference.softmax(scores) @ turn.T


@permuted_weights.wrong("the weights do not move at all")
def _(rng: np.random.Generator) -> Claims:
    scores, shuffle = rng.normal(size=(4, 4)), np.eye(4)[[1, 2, 3, 0]]
    yield reference.softmax(shuffle @ scores @ shuffle.T), reference.softmax(scores)


@equation(
    "permutation-equivariance",
    r"Z(\Pi X) = \Pi\, Z(X)",
    rows=["E1"],
    uses=["pair-order-invariance", "self-attention", "permuted-scores", "permuted-weights"],
    assumes=["no mask, no positions"],
    kind="numeric",
    scope="T = 4, every permutation",
)
def permutation_equivariance(rng: np.random.Generator) -> Claims:
    """Pi P Pi^T Pi X W_V, and Pi^T Pi = 1. Outputs move along with their tokens: the order of a sentence is invisible."""
    x, weights = self_attention_inputs(rng, length=4)
    for order in permutations(range(4)):
        shuffle, moved = np.eye(4)[list(order)], x[list(order)]
        yield reference.attention(*(moved @ weight for weight in weights)), shuffle @ self_attention(x, weights)


@permutation_equivariance.wrong("invariant: the output does not change")
def _(rng: np.random.Generator) -> Claims:
    x, weights = self_attention_inputs(rng, length=4)
    yield self_attention(x[[1, 2, 3, 0]], weights), self_attention(x, weights)


@permutation_equivariance.wrong("neighbouring tokens count more: a shuffle of the others changes the first output", trap="X25")
def _(rng: np.random.Generator) -> Claims:
    x, weights = self_attention_inputs(rng, length=4)
    change = self_attention(x[[0, 3, 1, 2]], weights)[0] - self_attention(x, weights)[0]
    yield np.abs(change).max() > 1e-12, 1.0


@equation(
    "score-with-added-positions",
    r"(x_i + t_i)\, M\, (x_j + t_j)^\top = x_i M x_j^\top + x_i M t_j^\top + t_i M x_j^\top + t_i M t_j^\top",
    rows=["E1"],
    uses=["bilinear-score", "permutation-equivariance"],
    assumes=["t_i = a vector that depends on the position i only", "M = W_Q W_K^T"],
    scope="d_model = 2",
)
def positions_added() -> Sides:
    """Multiply out: content to content, content to place, place to content, place to place. The last three break the symmetry."""
    scores, a, b, s, t, m = _with_positions()
    return scores, a * m * b.T + a * m * t.T + s * m * b.T + s * m * t.T


def _with_positions() -> tuple[Expr, Matrix, Matrix, Matrix, Matrix, Matrix]:
    a, b, s, t = (Matrix([real_symbols(letter, 2)]) for letter in "abst")
    m = Matrix(2, 2, real_symbols("m", 4))
    return (a + s) * m * (b + t).T, a, b, s, t, m


def _two_terms() -> Sides:
    scores, a, b, s, t, m = _with_positions()
    return scores, a * m * b.T + s * m * t.T


def _one_cross_term() -> Sides:
    scores, a, b, s, t, m = _with_positions()
    return scores, a * m * b.T + 2 * a * m * t.T + s * m * t.T


positions_added.wrong("content and place do not mix: two terms")(_two_terms)
positions_added.wrong("the two cross terms are equal")(_one_cross_term)
