"""Attention from one query to batches, and its gradients.

Rows are queries, columns are keys: p_ij is the weight of input j in output i. Numeric statements compare the reference with loops,
and derivatives come from a step along the imaginary axis, not from a formula.
"""

import math

import numpy as np
import sympy
from sympy import Matrix

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.derivatives import jacobian, plain_softmax
from attn_course.equations.moments import Expr
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, softmax_symbols, total

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def inputs(rng: np.random.Generator, q_len: int = 5, kv_len: int = 7, d_k: int = 3, d_v: int = 2) -> Arrays:
    """Return random queries, keys and values; all four sizes differ unless asked otherwise."""
    return rng.normal(size=(q_len, d_k)), rng.normal(size=(kv_len, d_k)), rng.normal(size=(kv_len, d_v))


# ---- 4.1 One query, all queries, all examples


@equation(
    "attention-of-one-query",
    r"\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}"
    r" \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j",
    rows=["D1", "D3"],
    uses=["soft-lookup", "softmax", "scaled-score-variance"],
    kind="numeric",
    scope="T_k = 7, d_k = 3, d_v = 2",
)
def one_query(rng: np.random.Generator) -> Claims:
    """Score each key, Eq. scaled-score-variance; turn scores into weights, Eq. softmax; average the values."""
    query, key, value = inputs(rng)
    for q in query:
        e = [math.exp(sum(q * k) / math.sqrt(3)) for k in key]
        yield reference.attention(q[None], key, value)[0], sum(e[j] / sum(e[m] for m in range(7)) * value[j] for j in range(7))


def _one_output(rng: np.random.Generator, divisor: float, averaged: str = "value") -> Claims:
    query, key, value = inputs(rng, d_v=3)
    weights = plain_softmax(query[0] @ key.T / divisor)
    yield reference.attention(query[:1], key, value)[0], weights @ {"value": value, "key": key}[averaged]


one_query.wrong("no scale")(lambda rng: _one_output(rng, 1.0))
one_query.wrong("divided by d_k")(lambda rng: _one_output(rng, 3.0))
one_query.wrong("the average of the inputs that are compared, not of the values", trap="X26")(
    lambda rng: _one_output(rng, math.sqrt(3), "key")
)


@equation(
    "scaled-score",
    r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}}",
    rows=["D1"],
    uses=["attention-of-one-query"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3",
)
def all_scores(rng: np.random.Generator) -> Claims:
    """Entry (i, j) of a product is row i of Q times column j of K^T, and that column is row j of K."""
    query, key, _ = inputs(rng)
    scores = reference.scaled_dot_scores(query, key)
    yield (scores, scores), (np.array([[sum(q * k) / math.sqrt(3) for k in key] for q in query]), query @ key.T / math.sqrt(3))


@all_scores.wrong("row i of the scores belongs to key i")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = inputs(rng, kv_len=5)
    yield reference.scaled_dot_scores(query, key), key @ query.T / math.sqrt(3)


@all_scores.wrong("features times features: Q^T K has the right shape when T = d_k")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = inputs(rng, q_len=3, kv_len=3)
    yield reference.scaled_dot_scores(query, key), query.T @ key / math.sqrt(3)


@equation(
    "attention-weights",
    r"p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1",
    rows=["D1", "A6"],
    uses=["softmax-inside-the-simplex", "scaled-score"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3",
)
def all_weights(rng: np.random.Generator) -> Claims:
    """Eq. softmax for each row: the normaliser runs over the keys, with the query held fixed."""
    query, key, value = inputs(rng)
    scores, (_, weights) = reference.scaled_dot_scores(query, key), reference.attention(query, key, value, return_weights=True)
    e = np.exp(scores)
    yield (weights, weights.sum(axis=-1)), (np.array([[e[i, j] / sum(e[i]) for j in range(7)] for i in range(5)]), np.ones(5))


@all_weights.wrong("scores sum to 1", trap="X23")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = inputs(rng)
    yield reference.scaled_dot_scores(query, key).sum(axis=-1), np.ones(5)


@all_weights.wrong("normalised over the queries: each column sums to 1")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    e = np.exp(reference.scaled_dot_scores(query, key))
    yield reference.attention(query, key, value, return_weights=True)[1], e / e.sum(axis=0)


@equation(
    "output-of-a-query",
    r"z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j",
    rows=["D1", "A6"],
    uses=["weights-times-values", "attention-of-one-query", "attention-weights"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_v = 2",
)
def all_outputs(rng: np.random.Generator) -> Claims:
    """Row i of the weights mixes the values into output i: the first index asks, the second answers."""
    query, key, value = inputs(rng)
    z, p = reference.attention(query, key, value, return_weights=True)
    yield z, np.array([sum(p[i, j] * value[j] for j in range(7)) for i in range(5)])


@all_outputs.wrong("p_ij read as the weight of input i in output j", trap="X2")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng, kv_len=5)
    z, p = reference.attention(query, key, value, return_weights=True)
    yield z, np.array([sum(p[j, i] * value[j] for j in range(5)) for i in range(5)])


@all_outputs.wrong("the weighted average of the embeddings, before W_V", trap="X26")
def _(rng: np.random.Generator) -> Claims:
    x, w_value = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    z, p = reference.attention(x, x, x @ w_value, return_weights=True)
    yield z, p @ x


@equation(
    "attention",
    r"Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V",
    rows=["D1"],
    uses=["scaled-score", "attention-weights", "output-of-a-query"],
    assumes=["softmax along the keys, row by row"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3, d_v = 2",
)
def matrix_form(rng: np.random.Generator) -> Claims:
    """Eqs. scaled-score, attention-weights and output-of-a-query for all i and j at once.

    Shapes: (T_q, d_k) (d_k, T_k) -> (T_q, T_k), times (T_k, d_v) -> (T_q, d_v).
    """
    query, key, value = inputs(rng)
    yield _by_loops(query, key, value), plain_softmax(query @ key.T / np.sqrt(3)) @ value


def _by_loops(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Eq. attention-of-one-query, one query after the other, in plain Python."""
    rows = []
    for q in query:
        e = [math.exp(sum(q * k) / math.sqrt(len(q))) for k in key]
        rows.append(sum(e_j / sum(e) * v for e_j, v in zip(e, value, strict=True)))
    return np.array(rows)


@matrix_form.wrong("softmax over the other axis")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    yield _by_loops(query, key, value), plain_softmax(key @ query.T / np.sqrt(3)).T @ value


@matrix_form.wrong("scaled after the softmax")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    yield _by_loops(query, key, value), plain_softmax(query @ key.T) / np.sqrt(3) @ value


@equation(
    "batched-attention",
    r"Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b",
    rows=["D1"],
    uses=["attention"],
    assumes=["b = all leading axes: examples, and later heads"],
    kind="numeric",
    scope="leading axes 2 and 3",
)
def batched_form(rng: np.random.Generator) -> Claims:
    """The last two axes are positions and features; every leading axis is a separate problem."""
    query, key, value = (rng.normal(size=(2, 3, rows, features)) for rows, features in ((5, 3), (7, 3), (7, 2)))
    output = reference.attention(query, key, value)
    for b in np.ndindex(2, 3):
        yield output[b], plain_softmax(query[b] @ key[b].T / np.sqrt(3)) @ value[b]


@batched_form.wrong("rows are data points: all examples in one sequence", trap="X19")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = (rng.normal(size=(2, rows, features)) for rows, features in ((5, 3), (7, 3), (7, 2)))
    flat = reference.attention(query.reshape(10, 3), key.reshape(14, 3), value.reshape(14, 2))
    yield reference.attention(query, key, value), flat.reshape(2, 5, 2)


@batched_form.wrong("another example changes this one", trap="X19")
def _(rng: np.random.Generator) -> Claims:
    x = rng.normal(size=(2, 5, 3))
    before, other = reference.attention(x, x, x)[0], x.copy()
    other[1] += 1.0
    yield np.abs(reference.attention(other, other, other)[0] - before).max() > 0, 1.0


@equation(
    "key-shift-invariance",
    r"\mathrm{Attention}(Q,\, K + \mathbf{1} u^\top,\, V) = \mathrm{Attention}(Q, K, V)",
    rows=["D1"],
    uses=["softmax-shift-invariance", "attention"],
    kind="numeric",
    scope="any shift u",
)
def common_shift_of_keys(rng: np.random.Generator) -> Claims:
    """Row i of the scores moves by q_i . u / sqrt(d_k), the same for every key: softmax does not see it, Eq. softmax-shift-invariance."""
    query, key, value = inputs(rng)
    yield reference.attention(query, key + rng.normal(size=3), value), plain_softmax(query @ key.T / np.sqrt(3)) @ value


@common_shift_of_keys.wrong("a common shift of the queries does not matter either")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    yield reference.attention(query + rng.normal(size=3), key, value), reference.attention(query, key, value)


@common_shift_of_keys.wrong("nor one of the values")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = inputs(rng)
    yield reference.attention(query, key, value + rng.normal(size=2)), reference.attention(query, key, value)


# ---- 4.2 The backward pass by hand: dX is the gradient of a loss with respect to X


P, V, d_output = Matrix(2, 3, real_symbols("p", 6)), Matrix(3, 2, real_symbols("v", 6)), Matrix(2, 2, real_symbols("g", 4))
S, d_weights = Matrix(2, 3, real_symbols("s", 6)), Matrix(2, 3, real_symbols("h", 6))
Z = P * V


def gradient(loss: Expr, at: Matrix) -> Matrix:
    """Differentiate a loss with respect to each entry of a matrix."""
    return at.applyfunc(lambda entry: sympy.diff(loss, entry))


def inner(a: Matrix, b: Matrix) -> Expr:
    """Return the sum of the products of matching entries."""
    return total(a_i * b_i for a_i, b_i in zip(a, b, strict=True))


@equation(
    "gradient-of-values",
    r"dV = P^\top dO",
    rows=["D2"],
    uses=["output-derivative-by-value", "attention"],
    assumes=["dO = gradient of the loss with respect to Z"],
    scope="T_q = 2, T_k = 3, d_v = 2",
)
def gradient_of_values() -> Sides:
    """Value j went into output i with weight p_ij, so it gets back p_ij of the gradient there."""
    return gradient(inner(d_output, Z), V), Matrix(3, 2, lambda j, a: total(P[i, j] * d_output[i, a] for i in range(2)))


gradient_of_values.wrong("P instead of its transpose")(
    lambda: (gradient(inner(d_output, Z), V)[:2, :], Matrix(2, 2, lambda j, a: total(P[j, i] * d_output[i, a] for i in range(2))))
)
gradient_of_values.wrong("every value gets the whole gradient")(
    lambda: (gradient(inner(d_output, Z), V), Matrix(3, 2, lambda _, a: d_output[0, a] + d_output[1, a]))
)


@equation("gradient-of-weights", r"dP = dO\, V^\top", rows=["D2"], uses=["attention"], scope="T_q = 2, T_k = 3, d_v = 2")
def gradient_of_weights() -> Sides:
    """Raising p_ij moves output i towards v_j: the gain is their dot product."""
    return gradient(inner(d_output, Z), P), Matrix(2, 3, lambda i, j: total(d_output[i, a] * V[j, a] for a in range(2)))


gradient_of_weights.wrong("with the output instead of the values")(
    lambda: (gradient(inner(d_output, Z), P)[:, :2], Matrix(2, 2, lambda i, j: total(d_output[i, a] * Z[j, a] for a in range(2))))
)
gradient_of_weights.wrong("summed over the queries")(
    lambda: (
        gradient(inner(d_output, Z), P),
        Matrix(2, 3, lambda _, j: total(d_output[i, a] * V[j, a] for i in range(2) for a in range(2))),
    )
)


def weights_of_scores() -> Matrix:
    """Return the softmax of each row of S."""
    return Matrix([softmax_symbols(S[i, :]).T for i in range(2)])


def loss_of_scores() -> Expr:
    """Return the loss as a function of the scores, with gradient dP at the weights."""
    return inner(d_weights, weights_of_scores())


@equation(
    "gradient-of-scores",
    r"dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}",
    rows=["D2"],
    uses=["softmax-vector-jacobian-product", "attention-weights"],
    scope="T_q = 2, T_k = 3",
)
def gradient_of_scores() -> Sides:
    """Eq. softmax-vector-jacobian-product for each row: a score gains only by what its weight is worth above the average."""
    p = weights_of_scores()
    return gradient(loss_of_scores(), S), Matrix(
        2, 3, lambda i, j: p[i, j] * (d_weights[i, j] - total(p[i, m] * d_weights[i, m] for m in range(3)))
    )


gradient_of_scores.wrong("the softmax treated entry by entry: P * dP")(
    lambda: (gradient(loss_of_scores(), S), sympy.HadamardProduct(weights_of_scores(), d_weights).doit())
)
gradient_of_scores.wrong("the average over all queries")(
    lambda: (
        gradient(loss_of_scores(), S),
        Matrix(2, 3, lambda i, j: weights_of_scores()[i, j] * (d_weights[i, j] - inner(weights_of_scores(), d_weights))),
    )
)


@equation(
    "zero-sum-score-gradients",
    r"\sum_{j=1}^{T_k} dS_{ij} = 0",
    rows=["D2"],
    uses=["softmax-jacobian-annihilates-constants", "gradient-of-scores"],
    scope="T_q = 2, T_k = 3",
)
def score_gradients_sum_to_zero() -> Sides:
    """Adding the same number to a whole row of scores changes nothing, so no gradient points that way."""
    return gradient(loss_of_scores(), S) * sympy.ones(3, 1), Matrix([0, 0])


score_gradients_sum_to_zero.wrong("each column sums to 0")(lambda: (sympy.ones(1, 2) * gradient(loss_of_scores(), S), Matrix([[0, 0, 0]])))
score_gradients_sum_to_zero.wrong("so do the gradients of the weights")(
    lambda: (gradient(inner(d_output, Z), P) * sympy.ones(3, 1), Matrix([0, 0]))
)


@equation(
    "score-gradient-against-mixture",
    r"\delta_i = dO_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dO_i \cdot (v_j - z_i)",
    rows=["D2"],
    uses=["gradient-of-weights", "gradient-of-scores"],
    scope="T_q = 2, T_k = 3, d_v = 2",
)
def which_score_gains() -> Sides:
    """Put Eq. gradient-of-weights into Eq. gradient-of-scores.

    A step against the gradient raises the score of a value that beats the present mixture.
    """
    gains = d_output * V.T
    deltas = Matrix(2, 1, lambda i, _: total(P[i, j] * gains[i, j] for j in range(3)))
    return (deltas, Matrix(2, 3, lambda i, j: P[i, j] * (gains[i, j] - deltas[i]))), (
        Matrix(2, 1, lambda i, _: total(d_output[i, a] * Z[i, a] for a in range(2))),
        Matrix(2, 3, lambda i, j: P[i, j] * total(d_output[i, a] * (V[j, a] - Z[i, a]) for a in range(2))),
    )


which_score_gains.wrong("compared with 0 instead of the mixture")(
    lambda: (P[0, 0] * ((d_output * V.T)[0, 0] - inner(d_output[0, :], Z[0, :])), P[0, 0] * inner(d_output[0, :], V[0, :]))
)
which_score_gains.wrong("delta taken from the values, dO . v")(
    lambda: (total(P[0, j] * (d_output * V.T)[0, j] for j in range(3)), inner(d_output[0, :], V[0, :]))
)


@equation(
    "query-and-key-gradients",
    r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    rows=["D2"],
    uses=["scaled-score", "gradient-of-scores"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3, d_v = 2",
)
def gradients_of_queries_and_keys(rng: np.random.Generator) -> Claims:
    """Eq. scaled-score is linear in Q and in K; the scale passes through once. Checked through the whole of Eq. attention."""
    query, key, value = inputs(rng)
    d_output = rng.normal(size=(5, 2))
    p, d_weights = plain_softmax(query @ key.T / np.sqrt(3)), d_output @ value.T
    d_scores = p * (d_weights - (p * d_weights).sum(axis=-1, keepdims=True))
    yield _d_query_and_key(query, key, value, d_output), (d_scores @ key / np.sqrt(3), d_scores.T @ query / np.sqrt(3))


def _d_query_and_key(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate the loss sum(dO * Z) through the whole of Eq. attention."""

    def loss(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.sum(d_output * (plain_softmax(q @ k.T / np.sqrt(q.shape[-1])) @ value))

    return jacobian(lambda q: loss(q, key), query), jacobian(lambda k: loss(query, k), key)


def _with_scale(rng: np.random.Generator, divisor: float, transposed: bool = True) -> Claims:
    query, key, value = inputs(rng, kv_len=5)
    d_output = rng.normal(size=(5, 2))
    p, d_weights = plain_softmax(query @ key.T / np.sqrt(3)), d_output @ value.T
    d_scores = p * (d_weights - (p * d_weights).sum(axis=-1, keepdims=True))
    d_key = (d_scores.T if transposed else d_scores) @ query / divisor
    yield _d_query_and_key(query, key, value, d_output), (d_scores @ key / divisor, d_key)


gradients_of_queries_and_keys.wrong("the scale forgotten on the way back")(lambda rng: _with_scale(rng, 1.0))
gradients_of_queries_and_keys.wrong("the scale applied twice")(lambda rng: _with_scale(rng, 3.0))
gradients_of_queries_and_keys.wrong("dK without the transpose")(lambda rng: _with_scale(rng, math.sqrt(3), transposed=False))
