"""Translations between dialects: rows or columns as positions.

A subscript c marks the dialect in which columns are positions: X_c = X^T, Q_c = Q^T, W_c = W^T and so on.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.claims import Claims
from attn_course.equations.derivatives import plain_softmax
from attn_course.equations.stated import equation

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def _inputs(rng: np.random.Generator, q_len: int = 5, kv_len: int = 7) -> Arrays:
    """Return queries, keys and values with positions as rows; d_k = 3, d_v = 2."""
    return rng.normal(size=(q_len, 3)), rng.normal(size=(kv_len, 3)), rng.normal(size=(kv_len, 2))


# ---- 0.4 One letter, several meanings: a table of dialects


@equation(
    "dot-product-in-columns",
    r"\sum_{a=1}^{d_k} q_a k_a = q\, k^\top = q_c^\top k_c",
    rows=["N1"],
    assumes=["q, k rows (1, d_k)", "q_c, k_c columns (d_k, 1)"],
    kind="numeric",
    scope="d_k = 3",
)
def row_or_column(rng: np.random.Generator) -> Claims:
    """One number, three spellings: the transpose stands on the key for rows and on the query for columns."""
    query, key, _ = _inputs(rng, 1, 1)
    query_c, key_c = query.T, key.T
    yield (
        ((query @ key.T).item(), (query_c.T @ key_c).item()),
        (
            sum(query[0, a] * key[0, a] for a in range(3)),
            sum(query_c[a, 0] * key_c[a, 0] for a in range(3)),
        ),
    )


@row_or_column.wrong("q^T k of two rows: a table of d_k x d_k products")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = _inputs(rng, 1, 1)
    yield np.full((3, 3), (query * key).sum()), query.T @ key


@row_or_column.wrong("entry by entry, without the sum")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = _inputs(rng, 1, 1)
    yield np.full(3, (query * key).sum()), (query * key)[0]


@equation(
    "scores-in-columns",
    r"K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top",
    rows=["N1"],
    uses=["dot-product-in-columns"],
    assumes=["Q_c = Q^T, K_c = K^T"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3",
)
def two_tables_of_scores(rng: np.random.Generator) -> Claims:
    """The same scores. Rows are queries in our table; in the other dialect rows are keys and columns are queries."""
    query, key, _ = _inputs(rng)
    query_c, key_c = query.T, key.T
    yield key_c.T @ query_c, np.array([[sum(query[i] * key[j]) for i in range(5)] for j in range(7)])


@two_tables_of_scores.wrong("the same table without transposing")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = _inputs(rng, 5, 5)
    yield key @ query.T, query @ key.T


@two_tables_of_scores.wrong("Q_c^T K_c is our transposed table too")
def _(rng: np.random.Generator) -> Claims:
    query, key, _ = _inputs(rng, 5, 5)
    yield query @ key.T, (query @ key.T).T


@equation(
    "attention-in-columns",
    r"V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)"
    r" = \biggl( \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \biggr)^{\top}",
    rows=["N1"],
    uses=["scores-in-columns"],
    assumes=["columns: the softmax runs down each column, axis 0"],
    kind="numeric",
    scope="T_q = 5, T_k = 7, d_k = 3, d_v = 2",
)
def two_forms_of_attention(rng: np.random.Generator) -> Claims:
    """In both dialects the softmax runs over the keys, and the values stand on the side of the keys."""
    query, key, value = _inputs(rng)
    e = np.exp(key @ query.T / np.sqrt(3))
    yield value.T @ (e / e.sum(axis=0)), (plain_softmax(query @ key.T / np.sqrt(3)) @ value).T


def _columns(query: np.ndarray, key: np.ndarray, value: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(key @ query.T / np.sqrt(3))
    return np.asarray(value.T @ (e / e.sum(axis=axis, keepdims=True)))


@two_forms_of_attention.wrong("the softmax along the same axis number in both")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = _inputs(rng)
    yield _columns(query, key, value, axis=1), reference.attention(query, key, value).T


@two_forms_of_attention.wrong("the output is not transposed")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = _inputs(rng, 2, 7)
    yield _columns(query, key, value, axis=0), reference.attention(query, key, value)


@equation(
    "projection-in-columns",
    r"W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W^\top",
    rows=["N1"],
    assumes=["x_c = x^T a column", "torch's nn.Linear stores W_c, (out, in), and computes x W_c^T"],
    kind="numeric",
    scope="4 features in, 3 out",
)
def two_projections(rng: np.random.Generator) -> Claims:
    """A row is multiplied from the right, (in, out); a column from the left, (out, in)."""
    x, weight = rng.normal(size=(1, 4)), rng.normal(size=(4, 3))
    stored, column = weight.T, x.T
    yield stored @ column, np.array([[sum(x[0, i] * weight[i, o] for i in range(4))] for o in range(3)])


@two_projections.wrong("the stored matrix multiplies a row from the right")
def _(rng: np.random.Generator) -> Claims:
    x, weight = rng.normal(size=(1, 4)), rng.normal(size=(4, 4))
    yield weight.T @ x.T, (x @ weight.T).T


@two_projections.wrong("our matrix multiplies a column from the left")
def _(rng: np.random.Generator) -> Claims:
    x, weight = rng.normal(size=(1, 4)), rng.normal(size=(4, 4))
    yield weight @ x.T, (x @ weight).T


@equation(
    "absorbed-matrix-in-columns",
    r"(W_{Q,c}\, x_c)^\top (W_{K,c}\, y_c) = x_c^\top \bigl( W_{Q,c}^\top W_{K,c} \bigr)\, y_c = x\, \bigl( W_Q W_K^\top \bigr)\, y^\top",
    rows=["N1"],
    uses=["dot-product-in-columns", "projection-in-columns"],
    assumes=["x asks, y answers"],
    kind="numeric",
    scope="4 features, d_k = 4",
)
def two_spellings_of_one_matrix(rng: np.random.Generator) -> Claims:
    """Put Eq. projection-in-columns into Eq. dot-product-in-columns: W_Q^T W_K there is W_Q W_K^T here.

    In the table K_c^T Q_c of Eq. scores-in-columns it stands transposed.
    """
    x, y, w_query, w_key = (rng.normal(size=shape) for shape in ((1, 4), (1, 4), (4, 4), (4, 4)))
    x_c, y_c, w_query_c, w_key_c = x.T, y.T, w_query.T, w_key.T
    score = ((w_query_c @ x_c) * (w_key_c @ y_c)).sum()
    yield (score, score), ((x_c.T @ w_query_c.T @ w_key_c @ y_c).item(), (x @ w_query @ w_key.T @ y.T).item())


@two_spellings_of_one_matrix.wrong("W_K^T W_Q between the asking column and the answering one")
def _(rng: np.random.Generator) -> Claims:
    x, y, w_query, w_key = rng.normal(size=(1, 4)), rng.normal(size=(1, 4)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    yield (w_query.T @ x.T).T @ (w_key.T @ y.T), x @ (w_key @ w_query.T) @ y.T


@two_spellings_of_one_matrix.wrong("W_Q^T W_K with rows as positions")
def _(rng: np.random.Generator) -> Claims:
    x, y, w_query, w_key = (rng.normal(size=shape) for shape in ((1, 3), (1, 3), (3, 3), (3, 3)))
    yield (x @ w_query) @ (y @ w_key).T, x @ w_query.T @ w_key @ y.T


@equation(
    "causal-mask-in-columns",
    r"[\,j > i\,]_{\text{row } i,\ \text{column } j} = \Bigl( [\,j > i\,]_{\text{row } j,\ \text{column } i} \Bigr)^{\top}",
    rows=["N1"],
    uses=["scores-in-columns"],
    assumes=["i = position of the query, j = position of the key"],
    kind="numeric",
    scope="T = 1 to 6",
)
def two_triangles(rng: np.random.Generator) -> Claims:
    """Hidden are the keys after the query: strictly above the diagonal of Q K^T, strictly below that of K_c^T Q_c."""
    for length in range(1, 7):
        hidden = np.array([[float(j > i) for j in range(length)] for i in range(length)])
        yield hidden, np.tril(np.ones((length, length)), k=-1).T


@two_triangles.wrong("strictly lower in both")
def _(rng: np.random.Generator) -> Claims:
    yield np.array([[float(j > i) for j in range(4)] for i in range(4)]), np.tril(np.ones((4, 4)), k=-1)


@two_triangles.wrong("the diagonal hidden too")
def _(rng: np.random.Generator) -> Claims:
    yield np.array([[float(j > i) for j in range(4)] for i in range(4)]), np.triu(np.ones((4, 4)))
