"""Translations between dialects: rows or columns as positions.

A subscript c marks the dialect in which columns are positions: X_c = X^T, Q_c = Q^T, W_c = W^T and so on.
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, row
from attn_course.reference import causal_mask

equation = about("N1")


@equation(
    "dot-product-in-columns",
    r"\sum_{a=1}^{d_k} q_a k_a = q\, k^\top = q_c^\top k_c",
    assumes=["q, k rows (1, d_k)", "q_c, k_c columns (d_k, 1)"],
    wrong={
        "q^T k of two rows: a table of d_k x d_k products": r"\sum_{a=1}^{d_k} q_a k_a = q^\top k = q_c\, k_c^\top",
        "entry by entry, without the sum": r"q_a k_a = q\, k^\top = q_c^\top k_c \quad (a \le d_k)",
    },
)
def row_or_column(rng: np.random.Generator, d_k: int) -> Givens:
    """One number, three spellings: the transpose stands on the key for rows and on the query for columns."""
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(k), "q_c": column(q), "k_c": column(k), "d_k": d_k}


@equation(
    "attention-in-columns",
    r"V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)"
    r" = \biggl( \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \biggr)^{\top}",
    uses=["scores-in-columns"],
    assumes=["columns: the softmax runs down each column, axis 0"],
    wrong={
        "the softmax along the same axis number in both": "column -> row",
        "the output is not transposed": (
            r"V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)"
            r" = \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V"
        ),
    },
)
def two_forms_of_attention(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """In both dialects the softmax runs over the keys, and the values stand on the side of the keys."""
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    return {"Q": Q, "K": K, "V": V, "Q_c": Q.T, "K_c": K.T, "V_c": V.T, "d_k": d_k}


@equation(
    "projection-in-columns",
    r"W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W^\top",
    assumes=["x_c = x^T a column", "torch's nn.Linear stores W_c, (out, in), and computes x W_c^T"],
    wrong={
        "the stored matrix multiplies a row from the right": r"x\, W_c = \bigl( W\, x_c \bigr)^\top, \qquad W_c = W^\top",
        "our matrix multiplies a column from the left": r"W\, x_c = \bigl( x\, W_c \bigr)^\top, \qquad W_c = W^\top",
        "one matrix for both dialects": r"W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W",
    },
)
def two_projections(rng: np.random.Generator, d_in: int, d_out: int) -> Givens:
    """A row is multiplied from the right, (in, out); a column from the left, (out, in)."""
    x, W = rng.normal(size=d_in), rng.normal(size=(d_in, d_out))
    return {"x": row(x), "x_c": column(x), "W": W, "W_c": W.T}


@equation(
    "absorbed-matrix-in-columns",
    r"(W_{Q,c}\, x_c)^\top (W_{K,c}\, y_c) = x_c^\top \bigl( W_{Q,c}^\top W_{K,c} \bigr)\, y_c = x\, \bigl( W_Q W_K^\top \bigr)\, y^\top",
    uses=["dot-product-in-columns", "projection-in-columns"],
    assumes=["x asks, y answers"],
    wrong={
        "W_K^T W_Q between the asking column and the answering one": r"W_{Q,c}^\top W_{K,c} -> W_{K,c}^\top W_{Q,c}",
        "W_Q^T W_K with rows as positions": r"\bigl( W_Q W_K^\top \bigr) -> \bigl( W_Q^\top W_K \bigr)",
    },
)
def two_spellings_of_one_matrix(rng: np.random.Generator, d: int, d_k: int) -> Givens:
    """Put Eq. projection-in-columns into Eq. dot-product-in-columns: W_Q^T W_K there is W_Q W_K^T here.

    In the table K_c^T Q_c of Eq. scores-in-columns it stands transposed.
    """
    (x, y), (W_Q, W_K) = rng.normal(size=(2, d)), rng.normal(size=(2, d, d_k))
    tokens = {"x": row(x), "x_c": column(x), "y": row(y), "y_c": column(y)}
    return tokens | {"W_Q": W_Q, "W_K": W_K, "W_{Q,c}": W_Q.T, "W_{K,c}": W_K.T}


@equation(
    "causal-mask-in-columns",
    r"M_{ij} = [\,j > i\,], \qquad (M_c)_{ji} = [\,j > i\,], \qquad M = M_c^\top",
    uses=["scores-in-columns"],
    assumes=["i = position of the query, j = position of the key"],
    wrong={
        "strictly upper in both": r"M_{ij} = [\,j > i\,], \qquad (M_c)_{ij} = [\,j > i\,], \qquad M = M_c^\top",
        "the same table in both": r"M_{ij} = [\,j > i\,], \qquad (M_c)_{ji} = [\,j > i\,], \qquad M = M_c",
        "the diagonal hidden too": r"M_{ij} = [\,j \ge i\,], \qquad (M_c)_{ji} = [\,j \ge i\,], \qquad M = M_c^\top",
    },
)
def two_triangles(rng: np.random.Generator, T: int) -> Givens:
    """Hidden are the keys after the query: strictly above the diagonal of Q K^T, strictly below that of K_c^T Q_c."""
    hidden = ~causal_mask(T, T)
    return {"M": hidden * 1.0, "M_c": np.array([[float(hidden[query, key]) for query in range(T)] for key in range(T)])}
