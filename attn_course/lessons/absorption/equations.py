"""Absorption: one matrix for queries and keys, its parts and its gauge, and what biases do.

Rows are positions (x W_Q) unless an equation says columns.
"""

from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import narrow_factors
from attn_course.formulas import column, function, index, row, rows
from attn_course.reference import absorb_query_key, attention

equation = about("J1")


def drawn(rng: np.random.Generator, **shapes: tuple[int, ...]) -> dict[str, Any]:
    """Return random arrays of these shapes, by name."""
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def projections(rng: np.random.Generator, d: int, d_k: int) -> dict[str, Any]:
    """Return W_Q and W_K of one head, and the one matrix that the package makes of them."""
    W = drawn(rng, W_Q=(d, d_k), W_K=(d, d_k))
    return W | {"W": absorb_query_key(W["W_Q"], W["W_K"])[0]}


# ---- only the product matters
@equation(
    "absorbed-inner-product",
    r"\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle",
    assumes=["columns are positions: W_Q, W_K are d_k x d"],
    wrong={
        "key and query exchanged": r"\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_K^\top W_Q\, z' \bigr\rangle",
        "the product of the other convention": r"\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q W_K^\top\, z' \bigr\rangle",
    },
)
def product_in_columns(rng: np.random.Generator, d: int, d_k: int) -> Givens:
    """A matrix moves to the other side of an inner product as its transpose."""
    return {**drawn(rng, W_Q=(d_k, d), W_K=(d_k, d)), "z": column(rng.normal(size=d)), "z'": column(rng.normal(size=d))}


@equation(
    "absorbed-score",
    r"(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top",
    uses=["bilinear-score", "absorbed-inner-product"],
    assumes=["rows are positions: W_Q, W_K are d x d_k"],
    wrong={
        "X9: the product of the other convention": r"(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q^\top W_K",
        "the key asks": r"(x_i W_Q)\,(x_j W_K)^\top = x_j\, W\, x_i^\top, \qquad W = W_Q W_K^\top",
    },
)
def product_in_rows(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """The same with everything transposed: the score is a bilinear form of two tokens, with one matrix."""
    return {**projections(rng, d, d_k), "x": rows(rng.normal(size=(T, d)))}


@equation(
    "absorbed-scores-in-columns",
    r"S = (W_K X)^\top (W_Q X) = X^\top \bigl(W_K^\top W_Q\bigr) X",
    topics=["J1", "J4"],
    uses=["absorbed-inner-product"],
    assumes=["columns are positions, and softmax runs down a column: entry (j, i) is key j against query i"],
    wrong={
        "X9: W as for the inner product": r"S = (W_K X)^\top (W_Q X) = X^\top \bigl(W_Q^\top W_K\bigr) X",
        "entry (i, j) for query i and key j": r"S = (W_Q X)^\top (W_K X) = X^\top \bigl(W_Q^\top W_K\bigr) X",
    },
)
def scores_in_columns(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """With columns as positions the scores are K^T Q.

    So the matrix in the middle is the transpose of that in Eq. absorbed-inner-product.
    """
    given = drawn(rng, X=(d, T), W_Q=(d_k, d), W_K=(d_k, d))
    queries, keys = ([given[W] @ x for x in given["X"].T] for W in ("W_Q", "W_K"))
    return {**given, "S": [[query @ key for query in queries] for key in keys]}


@equation(
    "absorbed-self-attention",
    r"\mathrm{attention}(X W_Q,\, X W_K,\, X W_V) = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{X W X^\top}{\sqrt{d_k}}\Bigr)\, X W_V",
    topics=["J4"],
    uses=["self-attention", "absorbed-score"],
    assumes=["W = W_Q W_K^T", "rows are positions"],
    wrong={
        "X9: W transposed": r"\mathrm{attention}(X W_Q, X W_K, X W_V) = \mathrm{softmax}\Bigl(\frac{X W^\top X^\top}{\sqrt{d_k}}\Bigr)\,"
        r" X W_V",
        "X9: the scale outside the softmax": r"\mathrm{attention}(X W_Q,\, X W_K,\, X W_V) = \frac{1}{\sqrt{d_k}}"
        r"\, \mathrm{softmax}_{\mathrm{rows}}(X W X^\top)\, X W_V",
    },
)
def self_attention_with_one_matrix(rng: np.random.Generator, T: int, d: int, d_k: int, d_v: int) -> Givens:
    """Eq. absorbed-score for all pairs; d_k survives in the scale only, where it could be put into W as well."""
    return {**projections(rng, d, d_k), **drawn(rng, X=(T, d), W_V=(d, d_v)), r"\mathrm{attention}": function(attention), "d_k": d_k}


@equation(
    "absorbed-attention-in-columns",
    r"Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)",
    topics=["J4"],
    uses=["masked-attention-in-columns", "absorbed-scores-in-columns", "absorbed-self-attention"],
    assumes=["columns are positions", "values are the inputs themselves"],
    wrong={
        "X9: W as for the inner product": r"W_K^\top W_Q -> W_Q^\top W_K",
        "X9: the scale outside the softmax": r"Z = \frac{1}{\sqrt{d_k}}\, X\, \mathrm{softmax}_{\mathrm{columns}}(X^\top W_K^\top W_Q\, X)",
        "softmax along the rows": r"Z = X\, \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)",
    },
)
def self_attention_in_columns(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """Eq. absorbed-self-attention transposed: X acts on itself through one matrix, W_K^T W_Q, and a scale."""
    given = drawn(rng, X=(d, T), W_Q=(d_k, d), W_K=(d_k, d))
    X, W_Q, W_K = given.values()
    Z = [attention((W_Q @ x)[None], (W_K @ X).T, X.T)[0] for x in X.T]  # one token after the other
    return {**given, "Z": np.stack(Z, axis=1), "d_k": d_k}


# ---- what kind of matrix W is
@equation(
    "query-key-rank-bound",
    r"\mathrm{rank}(W_Q W_K^\top) \le d_k",
    sizes="d d_k, d >= d_k",
    uses=["absorbed-score"],
    wrong={"always d_k": r"\mathrm{rank}(W_Q W_K^\top) = d_k", "always less": r"\mathrm{rank}(W_Q W_K^\top) < d_k"},
)
def rank_of_the_product(rng: np.random.Generator, draw: int, d: int, d_k: int) -> Givens:
    """Two narrow factors say less than one d x d matrix: what is lost by d_k < d is rank, and nothing else."""
    common, own = ((1, (d_k - 2, 1)), (1, (0, d_k - 1)), (d_k, (0, 0)))[draw]  # the rank is that of what is common
    return {**dict(zip(("W_Q", "W_K"), narrow_factors(rng, d, d_k, common, own), strict=True)), "d_k": d_k}


PARTS = (
    r"s_{ij} + s_{ji} = 2\, x_i\, W_+\, x_j^\top, \qquad s_{ij} - s_{ji} = 2\, x_i\, W_-\, x_j^\top, \qquad"
    r" W_+ = \tfrac{1}{2} (W + W^\top), \quad W_- = \tfrac{1}{2} (W - W^\top)"
)


@equation(
    "symmetric-and-antisymmetric-scores",
    PARTS,
    uses=["asymmetry-of-scores", "absorbed-score"],
    assumes=["s_ij = x_i W x_j^T"],
    wrong={"scores are symmetric": r"2\, x_i\, W_-\, x_j^\top -> 0", "the factor 2 forgotten": r"2\, x -> x"},
)
def symmetric_and_antisymmetric_part(rng: np.random.Generator, T: int, d: int) -> Givens:
    """The symmetric part scores a pair without regard to who asks; the antisymmetric part is all that makes i to j unlike j to i."""
    X, W = rng.normal(size=(T, d)), rng.normal(size=(d, d))
    return {"x": rows(X), "W": W, "s": np.einsum("ia,ab,jb->ij", X, W, X), "W_+": _part(W, 1), "W_-": _part(W, -1)}


def _part(W: np.ndarray, sign: int) -> np.ndarray:
    """Return what of a matrix a mirror keeps (1) or turns (-1), entry by entry."""
    return np.array([[(W[a, b] + sign * W[b, a]) / 2 for b in range(len(W))] for a in range(len(W))])


@equation(
    "self-score-symmetric-part",
    r"x\, W\, x^\top = x\, W_+\, x^\top",
    uses=["symmetric-and-antisymmetric-scores"],
    assumes=["W_+ = (W + W^T) / 2"],
    wrong={"of the antisymmetric part": r"W_+\, x^\top -> (W - W_+)\, x^\top", "twice the symmetric part": r"= x -> = 2\, x"},
)
def self_score(rng: np.random.Generator, d: int) -> Givens:
    """Eq. symmetric-and-antisymmetric-scores with x_j = x_i: how much a token attends to itself is a matter of the symmetric part alone."""
    W = rng.normal(size=(d, d))
    return {"x": row(rng.normal(size=d)), "W": W, "W_+": _part(W, 1)}


# ---- gauge freedom
@equation(
    "query-key-gauge-freedom",
    r"(W_Q\, G)\,\bigl(W_K\, G^{-\top}\bigr)^\top = W_Q\, W_K^\top",
    uses=["absorbed-score"],
    assumes=["G invertible, d_k x d_k"],
    wrong={"the same G on both": r"G^{-\top} -> G", "the inverse without the transpose": r"-\top -> -1"},
)
def gauge_freedom(rng: np.random.Generator, d: int, d_k: int) -> Givens:
    """G and its inverse meet in the middle: single queries and keys, and single columns of W_Q, mean nothing by themselves."""
    return drawn(rng, W_Q=(d, d_k), W_K=(d, d_k), G=(d_k, d_k))


@equation(
    "effective-query-key-parameters",
    r"\mathrm{rank}\, \frac{\partial\, W_Q W_K^\top}{\partial\, (W_Q, W_K)} = 2\, d\, d_k - d_k^2",
    uses=["query-key-rank-bound", "query-key-gauge-freedom"],
    assumes=["d_k <= d", "W_Q, W_K of full rank"],
    wrong={"all entries of both": "d_k - d_k^2 -> d_k", "only d_k numbers idle": "d_k^2 -> d_k"},
)
def parameters_that_count(rng: np.random.Generator, draw: int) -> Givens:
    """Of 2 d d_k numbers the d_k^2 of G in Eq. query-key-gauge-freedom are idle; at d_k = d what is left is the d^2 of a free matrix."""
    d_k, d = 2 + draw, 2 + draw + int(rng.integers(3))  # small: there are d^2 times 2 d d_k derivatives
    return {**drawn(rng, W_Q=(d, d_k), W_K=(d, d_k)), "d": d, "d_k": d_k}


@equation(
    "frobenius-bounds-nuclear-norm",
    r"\sum_r \varsigma_r(W) \le \tfrac{1}{2} \bigl( \|W_Q\|_F^2 + \|W_K\|_F^2 \bigr)",
    sizes="d d_k, d >= d_k",
    uses=["query-key-gauge-freedom"],
    assumes=["W = W_Q W_K^T = U diag(varsigma) V^T; equality at W_Q = U sqrt(varsigma), W_K = V sqrt(varsigma)"],
    wrong={"plain decay of W": "(W) -> (W)^2", "always balanced": r"\le \tfrac -> = \tfrac"},
)
def balanced_gauge(rng: np.random.Generator, draw: int, d: int, d_k: int) -> Givens:
    """Decay of W_Q and W_K picks the balanced gauge, and acts on W as a price on the sum of its singular values: it favours low rank."""
    given = projections(rng, d, d_k) | {r"\varsigma": function(lambda r, W: np.linalg.svd(W)[1][r - 1]), "r": index(1, d)}
    if draw < 2:
        factor = (3, 1 / 3)[draw]  # other gauges of the same W
        return given | {"W_Q": factor * given["W_Q"], "W_K": given["W_K"] / factor}
    U, singular, Vt = np.linalg.svd(given["W"])
    root = np.sqrt(singular[:d_k])
    return given | {"W_Q": U[:, :d_k] * root, "W_K": Vt[:d_k].T * root}


# ---- biases
def biased(rng: np.random.Generator, T: int, d: int, d_k: int) -> dict[str, Any]:
    """Return tokens, the projections of one head and their biases."""
    biases = {"b_Q": row(rng.normal(size=d_k)), "b_K": row(rng.normal(size=d_k))}
    return {**projections(rng, d, d_k), "x": rows(rng.normal(size=(T, d))), **biases}


@equation(
    "score-with-biases",
    r"(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = x_i W x_j^\top + x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + b_Q\, b_K^\top",
    topics=["J5"],
    uses=["absorbed-score"],
    assumes=["b_Q, b_K rows", "W = W_Q W_K^T"],
    wrong={
        "the mixed terms forgotten": r"(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = x_i W x_j^\top + b_Q\, b_K^\top",
        "each bias with its own projection": r"b_K^\top + b_Q -> b_Q^\top + b_K",
    },
)
def four_terms_of_a_score(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """Multiply out: content with content, query with bias, bias with key, bias with bias."""
    return biased(rng, T, d, d_k)


@equation(
    "key-bias-cancels",
    r"\sigma_l\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)_j = \sigma_l\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)_j",
    topics=["J5"],
    uses=["softmax-shift-invariance", "score-with-biases"],
    assumes=["inside sigma, l runs over the keys", "nothing between score and softmax that a constant would change", "W = W_Q W_K^T"],
    wrong={
        "the query bias cancels as well": r"x_l^\top + b_Q W_K^\top x_l^\top -> x_l^\top",
        "with a softcap between score and softmax": r"\sigma_l\bigl(\tanh\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)\bigr)_j"
        r" = \sigma_l\bigl(\tanh\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)\bigr)_j",
    },
)
def the_key_bias_cancels(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """Every term with b_K is the same for all keys j, and softmax ignores it; b_Q stays, as a preference for some keys."""
    return biased(rng, T, d, d_k)
