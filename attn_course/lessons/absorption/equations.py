"""Absorption: one matrix for queries and keys, its parts and its gauge, and what biases do.

Rows are positions (x W_Q) unless an equation says columns.
"""

from typing import Any

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import Normal, named, narrow_factors
from attn_course.formulas import column, function, index, row, rows
from attn_course.reference import absorb_query_key, attention

claim = about("J1")


def projections(normal: Normal, d: int, d_k: int) -> dict[str, Any]:
    """Return W_Q and W_K of one head, and the one matrix that the package makes of them."""
    W = named(normal, W_Q=(d, d_k), W_K=(d, d_k))
    return W | {"W": absorb_query_key(W["W_Q"], W["W_K"])[0]}


# ---- only the product matters
@claim("absorbed-inner-product")
def _(normal, d, d_k):
    r"""\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle
    where columns are positions: W_Q, W_K are d_k x d
    A matrix moves to the other side of an inner product as its transpose.
        key and query exchanged: W_Q^\top W_K\, -> W_K^\top W_Q\,
        the product of the other convention: W_Q^\top W_K\, -> W_Q W_K^\top\,
    """
    return {**named(normal, W_Q=(d_k, d), W_K=(d_k, d)), "z": column(normal(d)), "z'": column(normal(d))}


@claim("absorbed-score", rests_on="bilinear-score absorbed-inner-product")
def _(normal, T, d, d_k):
    r"""(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top
    where rows are positions: W_Q, W_K are d x d_k
    The same with everything transposed: the score is a bilinear form of two tokens, with one matrix.
        X9: the product of the other convention: W_K^\top -> ^\top W_K
        the key asks: x_i\, W\, x_j -> x_j\, W\, x_i
    """
    return {**projections(normal, d, d_k), "x": rows(normal(T, d))}


@claim("absorbed-scores-in-columns", serves="J1 J4", rests_on="absorbed-inner-product")
def _(normal, T, d, d_k):
    r"""S = (W_K X)^\top (W_Q X) = X^\top \bigl(W_K^\top W_Q\bigr) X
    where columns are positions, and softmax runs down a column: entry (j, i) is key j against query i
    With columns as positions the scores are K^T Q.
        X9: W as for the inner product: W_K^\top W_Q -> W_Q^\top W_K
        entry (i, j) for query i and key j: S = (W_Q X)^\top (W_K X) = X^\top \bigl(W_Q^\top W_K\bigr) X

    So the matrix in the middle is the transpose of that in Eq. absorbed-inner-product.
    """
    given = named(normal, X=(d, T), W_Q=(d_k, d), W_K=(d_k, d))
    queries, keys = ([given[W] @ x for x in given["X"].T] for W in ("W_Q", "W_K"))
    return {**given, "S": [[query @ key for query in queries] for key in keys]}


@claim("absorbed-self-attention", serves="J4", rests_on="self-attention absorbed-score")
def _(normal, T, d, d_k, d_v):
    r"""\mathrm{attention}(X W_Q,\, X W_K,\, X W_V) = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{X W X^\top}{\sqrt{d_k}}\Bigr)\, X W_V
    where W = W_Q W_K^T ;; rows are positions
    Eq. absorbed-score for all pairs; d_k survives in the scale only, where it could be put into W as well.
        X9: W transposed: \mathrm{attention}(X W_Q, X W_K, X W_V) = \mathrm{softmax}\Bigl(\frac{X W^\top X^\top}{\sqrt{d_k}}\Bigr)\, X W_V
        X9: the scale outside the softmax:
            \mathrm{attention}(X W_Q,\, X W_K,\, X W_V) = \frac{1}{\sqrt{d_k}}\, \mathrm{softmax}_{\mathrm{rows}}(X W X^\top)\, X W_V
    """
    layer = function(attention, formula=r"\mathrm{attention}(A, B, C) = \mathrm{softmax}\Bigl(\frac{A B^\top}{\sqrt{d_k}}\Bigr)\, C")
    return {**projections(normal, d, d_k), **named(normal, X=(T, d), W_V=(d, d_v)), r"\mathrm{attention}": layer, "d_k": d_k}


@claim(
    "absorbed-attention-in-columns", serves="J4", rests_on="masked-attention-in-columns absorbed-scores-in-columns absorbed-self-attention"
)
def _(normal, T, d, d_k):
    r"""Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)
    where columns are positions ;; values are the inputs themselves
    Eq. absorbed-self-attention transposed: X acts on itself through one matrix, W_K^T W_Q, and a scale.
        X9: W as for the inner product: W_K^\top W_Q -> W_Q^\top W_K
        X9: the scale outside the softmax: Z = \frac{1}{\sqrt{d_k}}\, X\, \mathrm{softmax}_{\mathrm{columns}}(X^\top W_K^\top W_Q\, X)
        softmax along the rows: columns -> rows
    """
    given = named(normal, X=(d, T), W_Q=(d_k, d), W_K=(d_k, d))
    X, W_Q, W_K = given.values()
    Z = [attention((W_Q @ x)[None], (W_K @ X).T, X.T)[0] for x in X.T]  # one token after the other
    return {**given, "Z": np.stack(Z, axis=1), "d_k": d_k}


# ---- what kind of matrix W is
@claim("query-key-rank-bound", rests_on="absorbed-score", sizes="d d_k, d >= d_k")
def _(normal, draw, d, d_k):
    r"""\mathrm{rank}(W_Q W_K^\top) \le d_k
    Two narrow factors say less than one d x d matrix: what is lost by d_k < d is rank, and nothing else.
        always d_k: \le -> =
        always less: \le -> <
    """
    common, own = ((1, (d_k - 2, 1)), (1, (0, d_k - 1)), (d_k, (0, 0)))[draw]  # the rank is that of what is common
    return {**dict(zip(("W_Q", "W_K"), narrow_factors(normal, d, d_k, common, own), strict=True)), "d_k": d_k}


@claim("symmetric-and-antisymmetric-scores", rests_on="asymmetry-of-scores absorbed-score")
def _(normal, T, d):
    r"""s_{ij} + s_{ji} = 2\, x_i\, W_+\, x_j^\top, \qquad s_{ij} - s_{ji} = 2\, x_i\, W_-\, x_j^\top, \qquad
        W_+ = \tfrac{1}{2} (W + W^\top), \quad W_- = \tfrac{1}{2} (W - W^\top)
    where s_ij = x_i W x_j^T
    The symmetric part scores a pair without regard to who asks; the antisymmetric part is all that makes i to j unlike j to i.
        scores are symmetric: 2\, x_i\, W_-\, x_j^\top -> 0
        the factor 2 forgotten: all 2\, x -> x
    """
    X, W = normal(T, d), normal(d, d)
    return {"x": rows(X), "W": W, "s": np.einsum("ia,ab,jb->ij", X, W, X), "W_+": _part(W, 1), "W_-": _part(W, -1)}


def _part(W: np.ndarray, sign: int) -> np.ndarray:
    """Return what of a matrix a mirror keeps (1) or turns (-1), entry by entry."""
    return np.array([[(W[a, b] + sign * W[b, a]) / 2 for b in range(len(W))] for a in range(len(W))])


@claim(
    "self-score-symmetric-part",
    rests_on="symmetric-and-antisymmetric-scores",
    beside=(r"W_+ = \tfrac{1}{2} (W + W^\top)",),
)
def _(normal, d):
    r"""x\, W\, x^\top = x\, W_+\, x^\top
    where W_+ = (W + W^T) / 2
    Eq. symmetric-and-antisymmetric-scores with x_j = x_i: how much a token attends to itself is a matter of the symmetric part alone.
        of the antisymmetric part: W_+\, x^\top -> (W - W_+)\, x^\top
        twice the symmetric part: = x -> = 2\, x
    """
    W = normal(d, d)
    return {"x": row(normal(d)), "W": W, "W_+": _part(W, 1)}


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


@claim("effective-query-key-parameters", rests_on="query-key-rank-bound query-key-gauge-freedom")
def _(normal, rng, draw):
    r"""\mathrm{rank}\, \frac{\partial\, W_Q W_K^\top}{\partial\, (W_Q, W_K)} = 2\, d\, d_k - d_k^2
    where d_k <= d ;; W_Q, W_K of full rank
    Of 2 d d_k numbers the d_k^2 of G in Eq. query-key-gauge-freedom are idle; at d_k = d what is left is the d^2 of a free matrix.
        all entries of both: d_k - d_k^2 -> d_k
        only d_k numbers idle: d_k^2 -> d_k
    """
    d_k, d = 2 + draw, 2 + draw + int(rng.integers(3))  # small: there are d^2 times 2 d d_k derivatives
    return {**named(normal, W_Q=(d, d_k), W_K=(d, d_k)), "d": d, "d_k": d_k}


@claim(
    "frobenius-bounds-nuclear-norm",
    rests_on="query-key-gauge-freedom",
    sizes="d d_k, d >= d_k",
    beside=(r"\sum_r \varsigma_r(W) = \|W\|_*",),
)
def _(normal, draw, d, d_k):
    r"""\sum_r \varsigma_r(W) \le \tfrac{1}{2} \bigl( \|W_Q\|_F^2 + \|W_K\|_F^2 \bigr)
    where W = W_Q W_K^T = U diag(varsigma) V^T; equality at W_Q = U sqrt(varsigma), W_K = V sqrt(varsigma)
    Decay of W_Q and W_K picks the balanced gauge, and acts on W as a price on the sum of its singular values: it favours low rank.
        plain decay of W: (W) -> (W)^2
        always balanced: \le \tfrac -> = \tfrac
    """
    given = projections(normal, d, d_k) | {r"\varsigma": function(lambda r, W: np.linalg.svd(W)[1][r - 1]), "r": index(1, d)}
    if draw < 2:
        factor = (3, 1 / 3)[draw]  # other gauges of the same W
        return given | {"W_Q": factor * given["W_Q"], "W_K": given["W_K"] / factor}
    U, singular, Vt = np.linalg.svd(given["W"])
    root = np.sqrt(singular[:d_k])
    return given | {"W_Q": U[:, :d_k] * root, "W_K": Vt[:d_k].T * root}


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
