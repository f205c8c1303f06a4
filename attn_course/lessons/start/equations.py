"""A score and an output entry by entry, and the table of scores with columns as positions."""

import numpy as np

from attn_course.equations.core import Givens, equation
from attn_course.reference import softmax


@equation(
    "score-entry-by-entry",
    r"\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja}",
    topics=["D1"],
    wrong={
        "the keys ask": r"\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ja} K_{ia}",
        "one entry, without the sum": r"\bigl( Q K^\top \bigr)_{ij} = Q_{ij} K_{ij} \quad (i, j \le d_k)",
        "the keys not turned": r"\bigl( Q K \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja}",
    },
)
def one_score(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Row i of the queries meets row j of the keys: multiply entry by entry, and add."""
    return {"Q": rng.normal(size=(T_q, d_k)), "K": rng.normal(size=(T_k, d_k)), "d_k": d_k}


@equation(
    "output-entry-by-entry",
    r"\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja}",
    topics=["A6"],
    assumes=["each row of P sums to 1"],
    wrong={
        "summed over the queries": r"\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ji} V_{ja}",
        "a plain mean": r"\bigl( P V \bigr)_{ia} = \frac{1}{T_k} \sum_{j=1}^{T_k} V_{ja}",
        "a plain sum": r"\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} V_{ja}",
    },
)
def one_output(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Entry a of the output of query i is the average of entry a of all values, under the weights of row i."""
    return {"P": softmax(rng.normal(size=(T_q, T_k))), "V": rng.normal(size=(T_k, d_v)), "T_k": T_k}


@equation(
    "scores-in-columns",
    r"K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top",
    topics=["N1"],
    uses=["score-entry-by-entry"],
    assumes=["Q_c = Q^T, K_c = K^T"],
    wrong={
        "the same table without transposing": r"K_c^\top Q_c = Q\, K^\top",
        "Q_c^T K_c is our transposed table too": r"Q_c^\top K_c = \bigl( Q\, K^\top \bigr)^\top",
        "the factors transposed in their places": r"K_c^\top Q_c = Q^\top K",
    },
)
def two_tables_of_scores(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """The same scores. Rows are queries in our table; in the other dialect rows are keys and columns are queries."""
    Q, K = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k))
    return {"Q": Q, "K": K, "Q_c": Q.T, "K_c": K.T}
