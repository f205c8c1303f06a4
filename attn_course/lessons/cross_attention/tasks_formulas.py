"""The tasks on cross-attention that are answered in LaTeX: the gradient of a row of the source, and maps read backwards."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import derivative
from attn_course.reference import scaled_dot_scores, softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _source_row(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A loss that is linear in the output; its gradients at the source and at the scores are those of finite differences."""
    T_q, T_k, d_y, d_k = sizes.values()
    Q, Y, W_K, W_V, dZ = (rng.normal(size=shape) for shape in ((T_q, d_k), (T_k, d_y), (d_y, d_k), (d_y, 2), (T_q, 2)))
    W_K = W_K / math.sqrt(d_y)  # moderate scores, so that every source row is asked
    S = scaled_dot_scores(Q, Y @ W_K)
    dY = derivative(lambda source: np.vdot(dZ, softmax(scaled_dot_scores(Q, source @ W_K)) @ (source @ W_V)), Y)
    dS = derivative(lambda scores: np.vdot(dZ, softmax(scores) @ (Y @ W_V)), S)
    return {"P": softmax(S), "Q": Q, "dZ": dZ, "dS": dS, "W_K": W_K, "W_V": W_V, "d_k": d_k, "T_q": T_q, "dY": dY}


my_gradient = asked_formula(
    "gradient-of-source-row",
    "What one source row is taught",
    entry="my_gradient",
    asks=r"""
        What does row $j$ of the source learn in cross-attention, {eq}`cross-attention`? Write row $j$ of
        $\partial \mathcal{L} / \partial Y$,

        $$dY_j = \ldots$$

        with the weights $P$ ($T_q \times T_k$), the queries $Q$, the gradients $dZ$ at the output and $dS$ at the **scaled** scores, and
        the projections of keys and values. The scale is $1/\sqrt{d_k}$.
    """,
    equation="gradient-of-source",
    points=3,
    difficulty=3,
    minutes=10,
    trains="the chain rule over two ways, with every transpose in its place",
    answer=r"\sum_i \left( \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)",
    symbols=("P", "Q", "dZ", "dS", "W_K", "W_V", "d_k", "T_q"),
    functions=(r"\sqrt",),
    left="dY_j",
    cases=at_sizes("T_q T_k d_y d_k", _source_row),
    tolerance=1e-7,
    slips=r"""
        through the values alone
            \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top + ->
            that is what arrives through the values; the row is a key as well, and the scores know it
        through the keys alone
            ` + P_{ij} dZ_i W_V^\top` ->
            that is what arrives through the keys; the row is a value as well, and the output holds it with the weight P_ij
        the scale forgotten
            \frac{dS_{ij}}{\sqrt{d_k}} -> dS_{ij}
            dS belongs to the scaled scores; the derivative of such a score by its key still has the factor 1 / sqrt(d_k)
        divided by d_k
            \sqrt{d_k} -> d_k
            the scores are divided by the root of d_k, so the gradient is too
        both ways scaled
            + P_{ij} -> + \frac{P_{ij}}{\sqrt{d_k}}
            the scale stands in the scores only; the way through the values has none
        weights for the gradient at the scores
            dS_{ij} -> P_{ij}
            the way through the values is right; through the keys the gradient comes from the scores, dS_ij, not from the weights
        the keys with a minus
            \left( \frac -> \left( -\frac
            two ways to the same row add up; any minus is inside dS already
        one target row only
            \sum_i -> ;; all {ij} -> {1,j} ;; Q_i -> Q_1 ;; dZ_i -> dZ_1
            every row of the target has asked the source row, so all of them teach it: sum over i
    """,
    hints=r"""
        Row j of the source makes one key and one value. Where does each of them come in, and which target rows see it?
        Its value comes into output i with the weight P_ij, its key into the scaled score (i, j). Then go back through W_V and W_K.
        A sum over i of two terms: a weight times `dZ_i W_V^\top`, and an entry of dS, scaled, times a row and `W_K^\top`.
    """,
    why="""
        This is row $j$ of {eq}`gradient-of-source`. The row $y_j$ makes the value $y_j W_V$, which output $i$ holds with the weight
        $P_{ij}$, and the key $y_j W_K$, whose dot product with $Q_i$, scaled, is score $(i, j)$. Both come back through the transposed
        projection. The sum runs over the target: every row that asks also teaches, and a source row with small weights everywhere
        learns little.
    """,
)

my_derivation = asked_formula(
    "map-read-backwards",
    "A map read backwards",
    entry="my_derivation",
    asks=r"""
        Let $S$ be the scaled scores, with the target in its rows and the source in its columns. $\sigma(S)$ is the map by which the target
        reads the source, and $\sigma(S^\top)$, from the same scores, the map by which the source reads the target; $\sigma$ normalises
        rows. By what factor do the two weights of the pair $(i, j)$ differ? Derive it line by line, each equal to the one before, in three
        steps or more.
    """,
    equation="balance-of-both-directions",
    points=2,
    difficulty=2,
    minutes=8,
    trains="over which index a softmax sums",
    answer=[
        r"\frac{\sigma(S)_{ij}}{\sigma(S^\top)_{ji}}",
        r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{\sigma(S^\top)_{ji}}",
        r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{e^{S_{ij}} / \sum_{l=1}^{T_q} e^{S_{lj}}}",
        r"\frac{e^{S_{ij}} \sum_{l=1}^{T_q} e^{S_{lj}}}{e^{S_{ij}} \sum_{l=1}^{T_k} e^{S_{il}}}",
        r"\frac{\sum_{l=1}^{T_q} e^{S_{lj}}}{\sum_{l=1}^{T_k} e^{S_{il}}}",
    ],
    symbols=("S", "T_q", "T_k"),
    functions=(r"\sigma", r"\exp"),
    cases=at_sizes("T_q T_k", lambda rng, **sizes: {"S": rng.normal(size=tuple(sizes.values())), **sizes}),
    least_steps=3,
    slips=r"""
        the map back taken for the transpose
            line 5: -> 1
            that would give both directions the same normaliser; but one softmax sums over the source, the other over the target
        the normalisers exchanged
            line 5: \sum_{l=1}^{T_q} e^{S_{lj}}}{\sum_{l=1}^{T_k} e^{S_{il}} -> \sum_{l=1}^{T_k} e^{S_{il}}}{\sum_{l=1}^{T_q} e^{S_{lj}}
            each normaliser divides its own weight: that of the numerator's softmax, the sum over l of e^{S_il}, ends up beneath
        a product for the quotient
            line 4: -> \frac{e^{S_{ij}} e^{S_{ij}}}{\sum_l e^{S_{il}} \sum_k e^{S_{kj}}}
            that is the product of both weights; to divide by a quotient is to multiply by it turned upside down
        the scores summed, not their exponentials
            line 5: e^{S_{lj}} -> S_{lj} ;; e^{S_{il}} -> S_{il}
            a softmax divides by the sum of the exponentials of the scores, not by the sum of the scores
        the exponential of a sum
            line 5: \sum_{l=1}^{T_q} e^{S_{lj}} -> e^{\sum_{l=1}^{T_q} S_{lj}} ;; \sum_{l=1}^{T_k} e^{S_{il}} -> e^{\sum_{l=1}^{T_k} S_{il}}
            the exponential of a sum is a product of exponentials; a softmax divides by their sum
        the second softmax left out
            line 5: {\sum_{l=1}^{T_q} e^{S_{lj}}} -> {1}
            both weights have a normaliser: that of the second softmax, beneath the bar, comes up
        the first softmax left out
            line 5: {\sum_{l=1}^{T_k} e^{S_{il}}} -> {1}
            both weights have a normaliser: that of the first softmax stays beneath
    """,
    hints="""
        Write each weight as an exponential over a sum. Which index is fixed in the sum, and which one runs?
        The rows of S belong to the target and the columns to the source: in the map back, the entry is the same and the sum runs over
            i.
        Before the goal stands a fraction with `e^{S_{ij}}` both above and beneath, each times one of the two sums.
    """,
    why=r"""
        Entry $(j, i)$ of $S^\top$ is $S_{ij}$, so both weights have the same exponential above, and it cancels. What differs is the
        normaliser: the first softmax sums over the source, in row $i$ of $S$, the second over the target, in column $j$. This is
        {eq}`balance-of-both-directions` once more. A source token that many ask for has a large column sum, so a column of the map
        cannot be read as a translation in the other direction.
    """,
)
