"""Absorption: one matrix for queries and keys, its parts and its gauge, and what biases do.

Rows are positions (x W_Q) unless an equation says columns.
"""

from typing import Any

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import Normal, named
from attn_course.formulas import column, row, rows
from attn_course.reference import absorb_query_key, attention

claim = about("J1")


def projections(normal: Normal, d: int, d_k: int) -> dict[str, Any]:
    """Return W_Q and W_K of one head, and the one matrix that the package makes of them."""
    W = named(normal, W_Q=(d, d_k), W_K=(d, d_k))
    return W | {"W": absorb_query_key(W["W_Q"], W["W_K"])[0]}


# ---- only the product matters
@claim("absorbed-inner-product", rests_on="absorbed-score")
def _(normal, d, d_k):
    r"""\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle
    where columns are positions: W_Q, W_K are d_k x d
    A matrix moves to the other side of an inner product as its transpose.
        key and query exchanged: W_Q^\top W_K\, -> W_K^\top W_Q\,
        the product of the other convention: W_Q^\top W_K\, -> W_Q W_K^\top\,
    """
    return {**named(normal, W_Q=(d_k, d), W_K=(d_k, d)), "z": column(normal(d)), "z'": column(normal(d))}


@claim("absorbed-score", rests_on="bilinear-score")
def _(normal, T, d, d_k):
    r"""(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top
    where rows are positions: W_Q, W_K are d x d_k
    Products may be bracketed at will: the score is a bilinear form of two tokens, with one matrix.
        X9: the product of the other convention: W_K^\top -> ^\top W_K
        the key asks: x_i\, W\, x_j -> x_j\, W\, x_i
    """
    return {**projections(normal, d, d_k), "x": rows(normal(T, d))}


@claim("absorbed-attention-in-columns", serves="J4", rests_on="masked-attention-in-columns absorbed-inner-product")
def _(normal, T, d, d_k):
    r"""Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)
    where columns are positions ;; values are the inputs themselves
    Scores are K^T Q, keys in rows: X acts on itself through one matrix, W_K^T W_Q, and a scale.
        X9: W as for the inner product: W_K^\top W_Q -> W_Q^\top W_K
        X9: the scale outside the softmax: Z = \frac{1}{\sqrt{d_k}}\, X\, \mathrm{softmax}_{\mathrm{columns}}(X^\top W_K^\top W_Q\, X)
        softmax along the rows: columns -> rows
    """
    given = named(normal, X=(d, T), W_Q=(d_k, d), W_K=(d_k, d))
    X, W_Q, W_K = given.values()
    Z = [attention((W_Q @ x)[None], (W_K @ X).T, X.T)[0] for x in X.T]  # one token after the other
    return {**given, "Z": np.stack(Z, axis=1), "d_k": d_k}


# ---- what kind of matrix W is
@claim("self-score-symmetric-part", rests_on="asymmetry-of-scores absorbed-score", beside=(r"W_+ = \tfrac{1}{2} (W + W^\top)",))
def _(normal, d):
    r"""x\, W\, x^\top = x\, W_+\, x^\top
    where W_+ = (W + W^T) / 2
    The symmetric part scores a pair whoever asks, and a token with itself is such a pair; the rest makes i to j unlike j to i.
        of the antisymmetric part: W_+\, x^\top -> (W - W_+)\, x^\top
        twice the symmetric part: = x -> = 2\, x
    """
    W = normal(d, d)
    return {"x": row(normal(d)), "W": W, "W_+": np.array([[(W[a, b] + W[b, a]) / 2 for b in range(d)] for a in range(d)])}


# ---- gauge freedom
@claim("query-key-gauge-freedom", rests_on="absorbed-score")
def _(normal, d, d_k):
    r"""(W_Q\, G)\,\bigl(W_K\, G^{-\top}\bigr)^\top = W_Q\, W_K^\top
    where G invertible, d_k x d_k
    G and its inverse meet in the middle: single queries and keys, and single columns of W_Q, mean nothing by themselves.
        the same G on both: G^{-\top} -> G
        the inverse without the transpose: -\top -> -1
    """
    return named(normal, W_Q=(d, d_k), W_K=(d, d_k), G=(d_k, d_k))


# ---- biases
def biased(normal: Normal, T: int, d: int, d_k: int) -> dict[str, Any]:
    """Return tokens, the projections of one head and their biases."""
    biases = {"b_Q": row(normal(d_k)), "b_K": row(normal(d_k))}
    return {**projections(normal, d, d_k), "x": rows(normal(T, d)), **biases}


@claim("score-with-biases", serves="J5", rests_on="absorbed-score")
def _(normal, T, d, d_k):
    r"""(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = x_i W x_j^\top + x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + b_Q\, b_K^\top
    where b_Q, b_K rows ;; W = W_Q W_K^T
    Multiply out: content with content, query with bias, bias with key, bias with bias.
        the mixed terms forgotten: x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + ->
        each bias with its own projection: b_K^\top + b_Q -> b_Q^\top + b_K
    """
    return biased(normal, T, d, d_k)


@claim("key-bias-cancels", serves="J5", rests_on="softmax-shift-invariance score-with-biases")
def _(normal, T, d, d_k):
    r"""\sigma_l\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)_j = \sigma_l\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)_j
    where inside sigma, l runs over the keys ;; nothing between score and softmax that a constant would change ;; W = W_Q W_K^T
    Every term with b_K is the same for all keys j, and softmax ignores it; b_Q stays, as a preference for some keys.
        the query bias cancels as well: x_l^\top + b_Q W_K^\top x_l^\top -> x_l^\top
        with a softcap between score and softmax:
            \sigma_l\bigl(\tanh\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)\bigr)_j = \sigma_l\bigl(\tanh\bigl(x_i W x_l^\top + b_Q
            W_K^\top x_l^\top\bigr)\bigr)_j
    """
    return biased(normal, T, d, d_k)
