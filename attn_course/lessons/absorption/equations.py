"""Absorption: one matrix for queries and keys, its parts and its gauge, and what biases do.

Rows are positions (x W_Q) unless an equation says columns. Symbolic matrices are 2 x 2 with d_k = 2 where rank plays no part.
"""

from collections.abc import Callable

import numpy as np
import sympy

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.matrices import matrix_symbols, weights_of
from attn_course.equations.stated import Statement, equation

W_Q, W_K, G = matrix_symbols("a", 2, 2), matrix_symbols("b", 2, 2), matrix_symbols("g", 2, 2)
x, y = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 2)  # rows x_i, x_j


# ---- 10.1 only the product matters


@equation(
    "absorbed-inner-product",
    r"\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle",
    rows=["J1"],
    assumes=["columns are positions: W_Q, W_K are d_k x d"],
    scope="d = 2, d_k = 2",
)
def product_in_columns() -> Sides:
    """A matrix moves to the other side of an inner product as its transpose."""
    return ((W_Q * x.T).T * (W_K * y.T))[0], (x * (W_Q.T * W_K) * y.T)[0]


product_in_columns.wrong("W_K^T W_Q: key and query exchanged")(lambda: (((W_Q * x.T).T * (W_K * y.T))[0], (x * (W_K.T * W_Q) * y.T)[0]))
product_in_columns.wrong("W_Q W_K^T, the product of the other convention")(
    lambda: (((W_Q * x.T).T * (W_K * y.T))[0], (x * (W_Q * W_K.T) * y.T)[0])
)


@equation(
    "absorbed-score",
    r"(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top",
    rows=["J1"],
    uses=["bilinear-score", "absorbed-inner-product"],
    assumes=["rows are positions: W_Q, W_K are d x d_k"],
    scope="d = 2, d_k = 2",
)
def product_in_rows() -> Sides:
    """The same with everything transposed: the score is a bilinear form of two tokens, with one matrix."""
    return ((x * W_Q) * (y * W_K).T)[0], (x * (W_Q * W_K.T) * y.T)[0]


product_in_rows.wrong("W_Q^T W_K, the product of the other convention", trap="X9")(
    lambda: (((x * W_Q) * (y * W_K).T)[0], (x * (W_Q.T * W_K) * y.T)[0])
)
product_in_rows.wrong("W transposed: the key asks")(lambda: (((x * W_Q) * (y * W_K).T)[0], (x * (W_K * W_Q.T) * y.T)[0]))


@equation(
    "absorbed-scores-in-columns",
    r"(W_K X)^\top (W_Q X) = X^\top \bigl(W_K^\top W_Q\bigr) X",
    rows=["J1", "J4"],
    uses=["absorbed-inner-product"],
    assumes=["columns are positions, and softmax runs down a column: entry (j, i) is key j against query i"],
    scope="d = 2, T = 2",
)
def scores_in_columns() -> Sides:
    """With columns as positions the scores are K^T Q.

    So the matrix in the middle is the transpose of that in Eq. absorbed-inner-product.
    """
    X = matrix_symbols("x", 2, 2)
    return (W_K * X).T * (W_Q * X), X.T * (W_K.T * W_Q) * X


@scores_in_columns.wrong("W = W_Q^T W_K, as for the inner product", trap="X9")
def _() -> Sides:
    X = matrix_symbols("x", 2, 2)
    return (W_K * X).T * (W_Q * X), X.T * (W_Q.T * W_K) * X


def _weights(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X (5, 4), W_Q (4, 3), W_K (4, 3) and W_V (4, 2); rows are positions."""
    return rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))


@equation(
    "absorbed-self-attention",
    r"\mathrm{attention}(X W_Q,\, X W_K,\, X W_V) = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{X W X^\top}{\sqrt{d_k}}\Bigr)\, X W_V",
    rows=["J4"],
    uses=["self-attention", "absorbed-score"],
    assumes=["W = W_Q W_K^T", "rows are positions"],
    kind="numeric",
    scope="T = 5, d = 4, d_k = 3",
)
def self_attention_with_one_matrix(rng: np.random.Generator) -> Claims:
    """Eq. absorbed-score for all pairs; d_k survives in the scale only, where it could be put into W as well."""
    for _ in range(3):
        X, w_query, w_key, w_value = _weights(rng)
        W = w_query @ w_key.T
        yield reference.attention(X @ w_query, X @ w_key, X @ w_value), weights_of(X @ W @ X.T / np.sqrt(3)) @ (X @ w_value)


def _one_matrix(form: Callable[..., np.ndarray]) -> Statement:
    """State that another form of self-attention, with W_V = 1, is right."""

    def statement(rng: np.random.Generator) -> Sides:
        X, w_query, w_key, _ = _weights(rng)
        return reference.attention(X @ w_query, X @ w_key, X), form(X, w_query, w_key)

    return statement


self_attention_with_one_matrix.wrong("divided by sqrt(d), the size of W")(
    _one_matrix(lambda X, w_query, w_key: weights_of(X @ w_query @ w_key.T @ X.T / np.sqrt(4)) @ X)
)
self_attention_with_one_matrix.wrong("W transposed", trap="X9")(
    _one_matrix(lambda X, w_query, w_key: weights_of(X @ w_key @ w_query.T @ X.T / np.sqrt(3)) @ X)
)
self_attention_with_one_matrix.wrong("no scale", trap="X9")(
    _one_matrix(lambda X, w_query, w_key: weights_of(X @ w_query @ w_key.T @ X.T) @ X)
)


@equation(
    "absorbed-attention-in-columns",
    r"Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)",
    rows=["J4"],
    uses=["masked-attention-in-columns", "absorbed-scores-in-columns", "absorbed-self-attention"],
    assumes=["columns are positions", "values are the inputs themselves"],
    kind="numeric",
    scope="T = 5, d = 4, d_k = 3",
)
def self_attention_in_columns(rng: np.random.Generator) -> Claims:
    """Eq. absorbed-self-attention transposed: X acts on itself through one matrix, W_K^T W_Q, and a scale."""
    for _ in range(3):
        X, w_query, w_key, _w_value = _weights(rng)
        columns, W_query, W_key = X.T, w_query.T, w_key.T
        left = reference.attention(X @ w_query, X @ w_key, X).T
        yield left, columns @ weights_of(columns.T @ W_key.T @ W_query @ columns / np.sqrt(3), axis=0)


def _in_columns(scores: Callable[..., np.ndarray], axis: int = 0) -> Statement:
    """State that other scores of columns, from X, W_Q and W_K of that convention, are right."""

    def statement(rng: np.random.Generator) -> Sides:
        X, w_query, w_key, _ = _weights(rng)
        return reference.attention(X @ w_query, X @ w_key, X).T, X.T @ weights_of(scores(X.T, w_query.T, w_key.T), axis=axis)

    return statement


self_attention_in_columns.wrong("X softmax(X^T W X) with W = W_Q^T W_K and no scale", trap="X9")(
    _in_columns(lambda X, w_query, w_key: X.T @ w_query.T @ w_key @ X)
)
self_attention_in_columns.wrong("the scale put in, W still transposed", trap="X9")(
    _in_columns(lambda X, w_query, w_key: X.T @ w_query.T @ w_key @ X / np.sqrt(3))
)
self_attention_in_columns.wrong("W right, but no scale", trap="X9")(_in_columns(lambda X, w_query, w_key: X.T @ w_key.T @ w_query @ X))
self_attention_in_columns.wrong("softmax along the rows")(
    _in_columns(lambda X, w_query, w_key: X.T @ w_key.T @ w_query @ X / np.sqrt(3), axis=1)
)


# ---- 10.2 what kind of matrix W is


@equation(
    "query-key-rank-bound",
    r"\mathrm{rank}(W_Q W_K^\top) \le d_k",
    rows=["J1"],
    uses=["absorbed-score"],
    kind="numeric",
    scope="d = 5, d_k = 1 to 5, bound attained",
)
def rank_of_the_product(rng: np.random.Generator) -> Claims:
    """Two narrow factors say less than one d x d matrix: what is lost by d_k < d is rank, and nothing else."""
    for d_k in range(1, 6):
        w_query, w_key = rng.normal(size=(5, d_k)), rng.normal(size=(5, d_k))
        yield Chain(np.linalg.matrix_rank(w_query @ w_key.T), "<=", d_k, tight=(True,))


rank_of_the_product.wrong("the product has full rank")(
    lambda rng: (np.linalg.matrix_rank(rng.normal(size=(5, 2)) @ rng.normal(size=(2, 5))), 5)
)


@equation(
    "symmetric-and-antisymmetric-scores",
    r"s_{ij} + s_{ji} = 2\, x_i\, W_+\, x_j^\top, \qquad s_{ij} - s_{ji} = 2\, x_i\, W_-\, x_j^\top, \qquad"
    r" W_\pm = \tfrac{1}{2} (W \pm W^\top)",
    rows=["J1"],
    uses=["asymmetry-of-scores", "absorbed-score"],
    assumes=["s_ij = x_i W x_j^T"],
    scope="d = 2",
)
def symmetric_and_antisymmetric_part() -> Sides:
    """The symmetric part scores a pair without regard to who asks; the antisymmetric part is all that makes i to j unlike j to i."""
    W = matrix_symbols("w", 2, 2)
    s_ij, s_ji = (x * W * y.T)[0], (y * W * x.T)[0]
    return (s_ij + s_ji, s_ij - s_ji), ((2 * x * ((W + W.T) / 2) * y.T)[0], (2 * x * ((W - W.T) / 2) * y.T)[0])


@symmetric_and_antisymmetric_part.wrong("scores are symmetric")
def _() -> Sides:
    W = matrix_symbols("w", 2, 2)
    return (x * W * y.T)[0] - (y * W * x.T)[0], sympy.Integer(0)


@equation(
    "self-score-symmetric-part",
    r"x\, W\, x^\top = x\, W_+\, x^\top",
    rows=["J1"],
    uses=["symmetric-and-antisymmetric-scores"],
    scope="d = 2",
)
def self_score() -> Sides:
    """Eq. symmetric-and-antisymmetric-scores with x_j = x_i: how much a token attends to itself is a matter of the symmetric part alone."""
    W = matrix_symbols("w", 2, 2)
    return (x * W * x.T)[0], (x * ((W + W.T) / 2) * x.T)[0]


@self_score.wrong("of the antisymmetric part")
def _() -> Sides:
    W = matrix_symbols("w", 2, 2)
    return (x * W * x.T)[0], (x * ((W - W.T) / 2) * x.T)[0]


# ---- 10.3 gauge freedom


@equation(
    "query-key-gauge-freedom",
    r"(W_Q\, G)\,\bigl(W_K\, G^{-\top}\bigr)^\top = W_Q\, W_K^\top",
    rows=["J1"],
    uses=["absorbed-score"],
    assumes=["G invertible, d_k x d_k"],
    scope="d = 2, d_k = 2, any G",
)
def gauge_freedom() -> Sides:
    """G and its inverse meet in the middle: single queries and keys, and single columns of W_Q, mean nothing by themselves."""
    return (W_Q * G) * (W_K * G.inv().T).T, W_Q * W_K.T


gauge_freedom.wrong("the same G on both")(lambda: ((W_Q * G) * (W_K * G).T, W_Q * W_K.T))
gauge_freedom.wrong("the inverse without the transpose")(lambda: ((W_Q * G) * (W_K * G.inv()).T, W_Q * W_K.T))


@equation(
    "effective-query-key-parameters",
    r"\mathrm{rank}\, \frac{\partial\, W_Q W_K^\top}{\partial\, (W_Q, W_K)} = 2\, d\, d_k - d_k^2",
    rows=["J1"],
    uses=["query-key-rank-bound", "query-key-gauge-freedom"],
    assumes=["W_Q, W_K of full rank"],
    kind="numeric",
    scope="d = 5, d_k = 1 to 5",
)
def parameters_that_count(rng: np.random.Generator) -> Claims:
    """Of 2 d d_k numbers the d_k^2 of G in Eq. query-key-gauge-freedom are idle; at d_k = d what is left is the d^2 of a free matrix."""
    for d_k in range(1, 6):
        w_query, w_key = rng.normal(size=(2, 5, d_k))
        by_query = np.einsum("bc,ar->abrc", w_key, np.eye(5)).reshape(25, -1)
        by_key = np.einsum("ac,br->abrc", w_query, np.eye(5)).reshape(25, -1)
        yield np.linalg.matrix_rank(np.hstack([by_query, by_key])), 2 * 5 * d_k - d_k**2


@parameters_that_count.wrong("all 2 d d_k")
def _(rng: np.random.Generator) -> Sides:
    w_query, w_key = rng.normal(size=(2, 5, 3))
    by_query, by_key = np.einsum("bc,ar->abrc", w_key, np.eye(5)), np.einsum("ac,br->abrc", w_query, np.eye(5))
    return np.linalg.matrix_rank(np.hstack([by_query.reshape(25, -1), by_key.reshape(25, -1)])), 2 * 5 * 3


@equation(
    "frobenius-bounds-nuclear-norm",
    r"\sum_r \varsigma_r(W) \le \tfrac{1}{2} \bigl( \|W_Q\|_F^2 + \|W_K\|_F^2 \bigr)",
    rows=["J1"],
    uses=["query-key-gauge-freedom"],
    assumes=["W = W_Q W_K^T = U diag(varsigma) V^T; equality at W_Q = U sqrt(varsigma), W_K = V sqrt(varsigma)"],
    kind="numeric",
    scope="d = 5, d_k = 1 to 4, bound attained",
)
def balanced_gauge(rng: np.random.Generator) -> Claims:
    """Decay of W_Q and W_K picks the balanced gauge, and acts on W as a price on the sum of its singular values: it favours low rank."""
    for d_k in range(1, 5):
        w_query, w_key = rng.normal(size=(2, 5, d_k))
        U, singular, Vt = np.linalg.svd(w_query @ w_key.T)
        root = np.sqrt(singular[:d_k])
        for query, key, balanced in ((w_query, w_key, False), (U[:, :d_k] * root, Vt[:d_k].T * root, True)):
            total = np.linalg.svd(query @ key.T, compute_uv=False).sum()
            yield Chain(total, "<=", (np.sum(query**2) + np.sum(key**2)) / 2, tight=(balanced,))


@balanced_gauge.wrong("the sum of the squared singular values: plain decay of W")
def _(rng: np.random.Generator) -> Claims:
    w_query, w_key = 3 * rng.normal(size=(2, 5, 3))
    yield Chain(np.sum((w_query @ w_key.T) ** 2), "<=", (np.sum(w_query**2) + np.sum(w_key**2)) / 2)


# ---- 10.4 biases


@equation(
    "score-with-biases",
    r"(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = x_i W x_j^\top + x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + b_Q\, b_K^\top",
    rows=["J5"],
    uses=["absorbed-score"],
    assumes=["b_Q, b_K rows"],
    scope="d = 2, d_k = 2",
)
def four_terms_of_a_score() -> Sides:
    """Multiply out: content with content, query with bias, bias with key, bias with bias."""
    b_Q, b_K = matrix_symbols("p", 1, 2), matrix_symbols("r", 1, 2)
    left = (x * W_Q + b_Q) * (y * W_K + b_K).T
    return left[0], (x * W_Q * W_K.T * y.T + x * W_Q * b_K.T + b_Q * W_K.T * y.T + b_Q * b_K.T)[0]


@four_terms_of_a_score.wrong("the mixed terms forgotten")
def _() -> Sides:
    b_Q, b_K = matrix_symbols("p", 1, 2), matrix_symbols("r", 1, 2)
    return ((x * W_Q + b_Q) * (y * W_K + b_K).T)[0], (x * W_Q * W_K.T * y.T + b_Q * b_K.T)[0]


@equation(
    "key-bias-cancels",
    r"\sigma\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)_j = \sigma\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)_j",
    rows=["J5"],
    uses=["softmax-shift-invariance", "score-with-biases"],
    assumes=["inside sigma, l runs over the keys", "nothing between score and softmax that a constant would change"],
    kind="numeric",
    scope="T = 5, d = 4, d_k = 3",
)
def the_key_bias_cancels(rng: np.random.Generator) -> Claims:
    """Every term with b_K is the same for all keys j, and softmax ignores it; b_Q stays, as a preference for some keys."""
    for _ in range(3):
        X, w_query, w_key, _w_value = _weights(rng)
        b_query, b_key = rng.normal(size=(2, 3))
        biased = weights_of((X @ w_query + b_query) @ (X @ w_key + b_key).T)
        yield biased, weights_of(X @ w_query @ w_key.T @ X.T + b_query @ w_key.T @ X.T)


def _biased(change: Callable[..., np.ndarray]) -> Statement:
    """State that attention does not change when a bias is left out; `change` computes weights from queries and keys."""

    def statement(rng: np.random.Generator) -> Sides:
        X, w_query, w_key, _ = _weights(rng)
        b_key = rng.normal(size=3)
        query = np.hstack([X @ w_query, X[:, :1]])
        return change(query, np.hstack([X @ w_key + b_key, X[:, :1]])), change(query, np.hstack([X @ w_key, X[:, :1]]))

    return statement


the_key_bias_cancels.wrong("with softcap between score and softmax")(_biased(lambda query, key: weights_of(2 * np.tanh(query @ key.T / 2))))
the_key_bias_cancels.wrong("with RoPE on the biased key")(
    _biased(lambda query, key: weights_of(reference.rope(query, np.arange(5)) @ reference.rope(key, np.arange(5)).T))
)


@the_key_bias_cancels.wrong("the query bias cancels as well")
def _(rng: np.random.Generator) -> Sides:
    X, w_query, w_key, _ = _weights(rng)
    b_query, b_key = rng.normal(size=(2, 3))
    return weights_of((X @ w_query + b_query) @ (X @ w_key + b_key).T), weights_of(X @ w_query @ w_key.T @ X.T)
