"""Attention from one query to batches.

Rows are queries, columns are keys: p_ij is the weight of input j in output i. Outputs and weights come from the reference.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.formulas import function, matrices, row, rows

equation = about("D1")


def inputs(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random queries, keys and values."""
    return rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))


# ---- One query, all queries, all examples
@equation(
    "attention-of-one-query",
    r"\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}"
    r" \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j",
    topics=["D1", "D3"],
    uses=["soft-lookup", "softmax", "scaled-score-variance"],
    wrong={
        "not normalised": r"\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} e^{q \cdot k_j / \sqrt{d_k}}\, v_j",
        "divided by d_k": r"\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} \frac{e^{q \cdot k_j / d_k}}{\sum_l e^{q \cdot k_l / d_k}} v_j",
        "scores for weights": r"\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} \frac{q \cdot k_j}{\sqrt{d_k}}\, v_j",
    },
)
def one_query(rng: np.random.Generator, T_k: int, d_k: int, d_v: int) -> Givens:
    """Score each key, Eq. scaled-score-variance; turn scores into weights, Eq. softmax; average the values."""
    q, K, V = inputs(rng, 1, T_k, d_k, d_v)
    attention = function(lambda q, K, V: reference.attention(q[None], K, V)[0])
    return {r"\mathrm{Attention}": attention, "q": row(q[0]), "K": K, "V": V, "k": rows(K), "v": rows(V), "T_k": T_k, "d_k": d_k}


@equation(
    "scaled-score",
    r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}}",
    topics=["D1"],
    uses=["attention-of-one-query"],
    wrong={
        "row i of the scores belongs to key i": r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(K Q^\top)_{ij}}{\sqrt{d_k}}",
        "features times features": r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q^\top K)_{ij}}{\sqrt{d_k}}",
        "the scale only once": r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = (Q K^\top)_{ij}",
    },
)
def all_scores(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Entry (i, j) of a product is row i of Q times column j of K^T, and that column is row j of K."""
    Q, K, _ = inputs(rng, T_q, T_k, d_k, 1)
    return {"s": reference.scaled_dot_scores(Q, K), "q": rows(Q), "k": rows(K), "Q": Q, "K": K, "d_k": d_k}


@equation(
    "attention-weights",
    r"p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1",
    topics=["D1", "A6"],
    uses=["softmax-inside-the-simplex", "scaled-score"],
    wrong={
        "X23: scores sum to 1": r"p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} s_{ij} = 1",
        "normalised over the queries": r"p_{ij} = \frac{e^{s_{ij}}}{\sum_{l} e^{s_{lj}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1",
        "scores divided by their sum": r"p_{ij} = \frac{s_{ij}}{\sum_{l=1}^{T_k} s_{il}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1",
    },
)
def all_weights(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Eq. softmax for each row: the normaliser runs over the keys, with the query held fixed."""
    Q, K, V = inputs(rng, T_q, T_k, d_k, 1)
    return {"s": reference.scaled_dot_scores(Q, K), "p": reference.attention(Q, K, V, return_weights=True)[1], "T_k": T_k}


@equation(
    "output-of-a-query",
    r"z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j",
    topics=["D1", "A6"],
    uses=["weights-times-values", "attention-of-one-query", "attention-weights"],
    wrong={
        "X2: p_ij read as the weight of input i in output j": r"z_i = \sum_{j=1}^{T_k} p_{ji}\, v_j",
        "the plain mean of the weighted values": r"z_i = \frac{1}{T_k} \sum_{j=1}^{T_k} p_{ij}\, v_j",
        "only the heaviest value": r"z_i = \sum_{j=1}^{T_k} [\,p_{ij} = \max_l p_{il}\,]\, v_j",
    },
)
def all_outputs(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Row i of the weights mixes the values into output i: the first index asks, the second answers."""
    Q, K, V = inputs(rng, T_q, T_k, 2, d_v)
    z, p = reference.attention(Q, K, V, return_weights=True)
    return {"z": rows(z), "p": p, "v": rows(V), "T_k": T_k}


@equation(
    "attention",
    r"Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V",
    topics=["D1"],
    uses=["scaled-score", "attention-weights", "output-of-a-query"],
    assumes=["softmax along the keys, row by row"],
    wrong={
        "softmax over the other axis": r"Z = P\,V = \mathrm{softmax}\Bigl( \frac{K Q^\top}{\sqrt{d_k}} \Bigr)^\top V",
        "scaled after the softmax": r"Z = P\,V = \frac{\mathrm{softmax}\bigl( Q K^\top \bigr)}{\sqrt{d_k}}\, V",
        "X26: the average of the keys": r"Z = P\,K = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V",
        "no softmax": r"Z = P\,V = \frac{Q K^\top}{\sqrt{d_k}}\, V",
    },
)
def matrix_form(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Eqs. scaled-score, attention-weights and output-of-a-query for all i and j at once.

    Shapes: (T_q, d_k) (d_k, T_k) -> (T_q, T_k), times (T_k, d_v) -> (T_q, d_v).
    """
    Q, K, V = inputs(rng, T_q, T_k, d_k, d_v)
    Z, P = reference.attention(Q, K, V, return_weights=True)
    return {"Q": Q, "K": K, "V": V, "Z": Z, "P": P, "d_k": d_k}


@equation(
    "batched-attention",
    r"Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b",
    topics=["D1"],
    uses=["attention"],
    assumes=["b = all leading axes: examples, and later heads"],
    wrong={
        "X19: all examples attend to each other": r"Z_b = \sum_{c} \mathrm{softmax}\Bigl( \frac{Q_b K_c^\top}{\sqrt{d_k}} \Bigr)\, V_c",
        "the values of the first example for all": r"Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_1",
    },
)
def batched_form(rng: np.random.Generator, B: int, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """The last two axes are positions and features; every leading axis is a separate problem."""
    Q, K, V = (rng.normal(size=(B, rows, features)) for rows, features in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    return {"Q": matrices(Q), "K": matrices(K), "V": matrices(V), "Z": matrices(reference.attention(Q, K, V)), "d_k": d_k}
