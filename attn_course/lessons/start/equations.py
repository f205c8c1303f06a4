"""A score, a weight and an output of attention, entry by entry."""

import math

from attn_course.equations.core import claim
from attn_course.reference import softmax


@claim("score-entry-by-entry", serves="D1")
def _(normal, T_q, T_k, d_k):
    r"""\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja}
    Row i of the queries meets row j of the keys: multiply entry by entry, and add.
        the keys ask: Q_{ia} K_{ja} -> Q_{ja} K_{ia}
        one entry, without the sum: \bigl( Q K^\top \bigr)_{ij} = Q_{ij} K_{ij} \quad (i, j \le d_k)
        the keys not turned: K^\top -> K
    """
    return {"Q": normal(T_q, d_k), "K": normal(T_k, d_k), "d_k": d_k}


@claim("weight-entry-by-entry", serves="D1", rests_on="score-entry-by-entry")
def _(normal, T_q, T_k, d_k):
    r"""P_{ij} = \frac{e^{S_{ij} / \sqrt{d_k}}}{\sum_l e^{S_{il} / \sqrt{d_k}}}
    where S = Q K^T
    The powers of e in a row, divided by their sum: positive numbers that sum to 1.
        summed over the queries: S_{il} -> S_{lj}
        no scale: all ` / \sqrt{d_k}` ->
        divided by d_k: all \sqrt{d_k} -> d_k
        the sum left out: P_{ij} = e^{S_{ij} / \sqrt{d_k}}
    """
    scores = normal(T_q, d_k) @ normal(T_k, d_k).T
    return {"S": scores, "P": softmax(scores / math.sqrt(d_k)), "d_k": d_k}


@claim("output-entry-by-entry", serves="A6")
def _(normal, T_q, T_k, d_v):
    r"""\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja}
    where each row of P sums to 1
    Entry a of the output of query i is the average of entry a of all values, under the weights of row i.
        summed over the queries: ij -> ji
        a plain mean: \bigl( P V \bigr)_{ia} = \frac{1}{T_k} \sum_{j=1}^{T_k} V_{ja}
        a plain sum: P_{ij} ->
    """
    return {"P": softmax(normal(T_q, T_k)), "V": normal(T_k, d_v), "T_k": T_k}
