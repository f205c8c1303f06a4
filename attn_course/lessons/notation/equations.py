"""Translations between dialects: rows or columns as positions.

A subscript c marks the dialect in which columns are positions: X_c = X^T, Q_c = Q^T, W_c = W^T and so on.
"""

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import column, row
from attn_course.reference import causal_mask

claim = about("N1")


@claim("dot-product-in-columns")
def _(normal, d_k):
    r"""\sum_{a=1}^{d_k} q_a k_a = q\, k^\top = q_c^\top k_c
    where q, k rows (1, d_k) ;; q_c, k_c columns (d_k, 1)
    One number, three spellings: the transpose stands on the key for rows and on the query for columns.
        q^T k of two rows: a table of d_k x d_k products:
            \sum_{a=1}^{d_k} q_a k_a = q^\top k = q_c\, k_c^\top
        entry by entry, without the sum: q_a k_a = q\, k^\top = q_c^\top k_c \quad (a \le d_k)
    """
    q, k = normal(2, d_k)
    return {"q": row(q), "k": row(k), "q_c": column(q), "k_c": column(k), "d_k": d_k}


@claim("scores-in-columns", rests_on="score-entry-by-entry")
def _(normal, T_q, T_k, d_k):
    r"""K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top
    where Q_c = Q^T, K_c = K^T
    The same scores. Rows are queries in our table; in the other dialect rows are keys and columns are queries.
        the same table without transposing: K_c^\top Q_c = Q\, K^\top
        Q_c^T K_c is our transposed table too: K_c^\top Q_c -> Q_c^\top K_c
        the factors transposed in their places: K_c^\top Q_c = Q^\top K
    """
    Q, K = normal(T_q, d_k), normal(T_k, d_k)
    return {"Q": Q, "K": K, "Q_c": Q.T, "K_c": K.T}


@claim("attention-in-columns", rests_on="scores-in-columns")
def _(normal, T_q, T_k, d_k, d_v):
    r"""V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)
        = \biggl( \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \biggr)^{\top}
    where columns: the softmax runs down each column, axis 0
    In both dialects the softmax runs over the keys, and the values stand on the side of the keys.
        the softmax along the same axis number in both: column -> row
        the output is not transposed: \biggl( -> ;; \biggr)^{\top} ->
    """
    Q, K, V = normal(T_q, d_k), normal(T_k, d_k), normal(T_k, d_v)
    return {"Q": Q, "K": K, "V": V, "Q_c": Q.T, "K_c": K.T, "V_c": V.T, "d_k": d_k}


@claim("projection-in-columns")
def _(normal, d_in, d_out):
    r"""W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W^\top
    where x_c = x^T a column ;; torch's nn.Linear stores W_c, (out, in), and computes x W_c^T
    A row is multiplied from the right, (in, out); a column from the left, (out, in).
        the stored matrix multiplies a row from the right: x\, W_c = \bigl( W\, x_c \bigr)^\top, \qquad W_c = W^\top
        our matrix multiplies a column from the left: W_c\, -> W\, ;; x\, W -> x\, W_c
        one matrix for both dialects: W^\top -> W
    """
    x, W = normal(d_in), normal(d_in, d_out)
    return {"x": row(x), "x_c": column(x), "W": W, "W_c": W.T}


@claim("absorbed-matrix-in-columns", rests_on="dot-product-in-columns projection-in-columns")
def _(normal, d, d_k):
    r"""(W_{Q,c}\, x_c)^\top (W_{K,c}\, y_c) = x_c^\top \bigl( W_{Q,c}^\top W_{K,c} \bigr)\, y_c = x\, \bigl( W_Q W_K^\top \bigr)\, y^\top
    where x asks, y answers
    Put Eq. projection-in-columns into Eq. dot-product-in-columns: W_Q^T W_K there is W_Q W_K^T here.
        W_K^T W_Q between the asking column and the answering one: W_{Q,c}^\top W_{K,c} -> W_{K,c}^\top W_{Q,c}
        W_Q^T W_K with rows as positions: W_K^\top -> ^\top W_K

    In the table K_c^T Q_c of Eq. scores-in-columns it stands transposed.
    """
    (x, y), (W_Q, W_K) = normal(2, d), normal(2, d, d_k)
    tokens = {"x": row(x), "x_c": column(x), "y": row(y), "y_c": column(y)}
    return tokens | {"W_Q": W_Q, "W_K": W_K, "W_{Q,c}": W_Q.T, "W_{K,c}": W_K.T}


@claim("causal-mask-in-columns", rests_on="scores-in-columns")
def _(rng, T):
    r"""M_{ij} = [\,j > i\,], \qquad (M_c)_{ji} = [\,j > i\,], \qquad M = M_c^\top
    where i = position of the query, j = position of the key
    Hidden are the keys after the query: strictly above the diagonal of Q K^T, strictly below that of K_c^T Q_c.
        strictly upper in both: ji -> ij
        the same table in both: M_c^\top -> M_c
        the diagonal hidden too: all > -> \ge
    """
    hidden = ~causal_mask(T, T)
    return {"M": hidden * 1.0, "M_c": np.array([[float(hidden[query, key]) for query in range(T)] for key in range(T)])}
