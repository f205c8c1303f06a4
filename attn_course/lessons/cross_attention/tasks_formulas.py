"""The graded tasks on cross-attention that are answered in LaTeX: the gradient of a row of the source, and maps read backwards."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import derivative
from attn_course.reference import scaled_dot_scores, softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _source_row(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A loss that is linear in the output; its gradients at the source and at the scores are those of finite differences."""
    T_q, T_k, d_y, d_k = sizes.values()
    Q, Y, W_K, W_V, dZ = (rng.normal(size=shape) for shape in ((T_q, d_k), (T_k, d_y), (d_y, d_k), (d_y, 2), (T_q, 2)))
    W_K = W_K / math.sqrt(d_y)  # moderate scores, so that every source row is asked
    S = scaled_dot_scores(Q, Y @ W_K)
    dY = derivative(lambda source: np.vdot(dZ, softmax(scaled_dot_scores(Q, source @ W_K)) @ (source @ W_V)), Y)
    dS = derivative(lambda scores: np.vdot(dZ, softmax(scores) @ (Y @ W_V)), S)
    return {"P": softmax(S), "Q": Q, "dZ": dZ, "dS": dS, "W_K": W_K, "W_V": W_V, "d_k": d_k, "T_q": T_q, "dY": dY}


SOURCE_ROW = Task(
    id="gradient-of-source-row",
    title="What one source row is taught",
    entry="my_gradient",
    kind="formula",
    equation="gradient-of-source",
    points=3,
    difficulty=3,
    minutes=10,
    trains="the chain rule over two ways, with every transpose in its place",
    symbols=("P", "Q", "dZ", "dS", "W_K", "W_V", "d_k", "T_q"),
    functions=(r"\sqrt",),
    left="dY_j",
    cases=at_sizes("T_q T_k d_y d_k", _source_row),
    tolerance=1e-7,
    answer=r"\sum_i \left( \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)",
    wrong=[
        Wrong(
            "through the values alone",
            r"\sum_i P_{ij} dZ_i W_V^\top",
            "that is what arrives through the values; the row is a key as well, and the scores know it",
        ),
        Wrong(
            "through the keys alone",
            r"\sum_i \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top",
            "that is what arrives through the keys; the row is a value as well, and the output holds it with the weight P_ij",
        ),
        Wrong(
            "the scale forgotten",
            r"\sum_i \left( dS_{ij} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)",
            "dS belongs to the scaled scores; the derivative of such a score by its key still has the factor 1 / sqrt(d_k)",
        ),
        Wrong(
            "divided by d_k",
            r"\sum_i \left( \frac{dS_{ij}}{d_k} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)",
            "the scores are divided by the root of d_k, so the gradient is too",
        ),
        Wrong(
            "both ways scaled",
            r"\frac{1}{\sqrt{d_k}} \sum_i \left( dS_{ij} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)",
            "the scale stands in the scores only; the way through the values has none",
        ),
        Wrong(
            "weights for the gradient at the scores",
            r"\sum_i P_{ij} \left( \frac{Q_i W_K^\top}{\sqrt{d_k}} + dZ_i W_V^\top \right)",
            "the way through the values is right; through the keys the gradient comes from the scores, dS_ij, not from the weights",
        ),
        Wrong(
            "the keys with a minus",
            r"\sum_i \left( P_{ij} dZ_i W_V^\top - \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top \right)",
            "two ways to the same row add up; any minus is inside dS already",
        ),
        Wrong(
            "one target row only",
            r"\frac{dS_{1,j}}{\sqrt{d_k}} Q_1 W_K^\top + P_{1,j} dZ_1 W_V^\top",
            "every row of the target has asked the source row, so all of them teach it: sum over i",
        ),
    ],
    hints=[
        "Row j of the source makes one key and one value. Where does each of them come in, and which target rows see it?",
        "Its value comes into output i with the weight P_ij, its key into the scaled score (i, j). Then go back through W_V and W_K.",
        r"A sum over i of two terms: a weight times `dZ_i W_V^\top`, and an entry of dS, scaled, times a row and `W_K^\top`.",
    ],
)

# ---- a map read backwards

BOTH_DIRECTIONS = Task(
    id="map-read-backwards",
    title="A map read backwards",
    entry="my_derivation",
    kind="derivation",
    equation="balance-of-both-directions",
    points=2,
    difficulty=2,
    minutes=8,
    trains="over which index a softmax sums",
    symbols=("S", "T_q", "T_k"),
    functions=(r"\sigma", r"\exp"),
    cases=at_sizes("T_q T_k", lambda rng, **sizes: {"S": rng.normal(size=tuple(sizes.values())), **sizes}),
    least_steps=3,
    answer=[
        r"\frac{\sigma(S)_{ij}}{\sigma(S^\top)_{ji}}",
        r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{\sigma(S^\top)_{ji}}",
        r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{e^{S_{ij}} / \sum_{l=1}^{T_q} e^{S_{lj}}}",
        r"\frac{e^{S_{ij}} \sum_{l=1}^{T_q} e^{S_{lj}}}{e^{S_{ij}} \sum_{l=1}^{T_k} e^{S_{il}}}",
        r"\frac{\sum_{l=1}^{T_q} e^{S_{lj}}}{\sum_{l=1}^{T_k} e^{S_{il}}}",
    ],
    wrong=[
        Wrong(
            "the map back taken for the transpose",
            "1",
            "that would give both directions the same normaliser; but one softmax sums over the source, the other over the target",
        ),
        Wrong(
            "the normalisers exchanged",
            r"\frac{\sum_l e^{S_{il}}}{\sum_l e^{S_{lj}}}",
            "each normaliser divides its own weight: that of the numerator's softmax, the sum over l of e^{S_il}, ends up beneath",
        ),
        Wrong(
            "a product for the quotient",
            r"\frac{e^{S_{ij}} e^{S_{ij}}}{\sum_l e^{S_{il}} \sum_k e^{S_{kj}}}",
            "that is the product of both weights; to divide by a quotient is to multiply by it turned upside down",
        ),
        Wrong(
            "the scores summed, not their exponentials",
            r"\frac{\sum_l S_{lj}}{\sum_l S_{il}}",
            "a softmax divides by the sum of the exponentials of the scores, not by the sum of the scores",
        ),
        Wrong(
            "the exponential of a sum",
            r"\frac{e^{\sum_l S_{lj}}}{e^{\sum_l S_{il}}}",
            "the exponential of a sum is a product of exponentials; a softmax divides by their sum",
        ),
        Wrong(
            "the second softmax left out",
            r"\frac{1}{\sum_l e^{S_{il}}}",
            "both weights have a normaliser: that of the second softmax, beneath the bar, comes up",
        ),
        Wrong(
            "the first softmax left out",
            r"\sum_l e^{S_{lj}}",
            "both weights have a normaliser: that of the first softmax stays beneath",
        ),
    ],
    hints=[
        "Write each weight as an exponential over a sum. Which index is fixed in the sum, and which one runs?",
        "The rows of S belong to the target and the columns to the source: in the map back, the entry is the same and the sum runs over i.",
        r"Before the goal stands a fraction with `e^{S_{ij}}` both above and beneath, each times one of the two sums.",
    ],
)
