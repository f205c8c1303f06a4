"""The graded task on cross-attention that is answered in LaTeX: the gradient that reaches one row of the source."""

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
    return {"P": softmax(S), "Q": Q, "dZ": dZ, "dS": dS, "W_K": W_K, "W_V": W_V, "d_k": d_k, "dY": dY}


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
    symbols=("P", "Q", "dZ", "dS", "W_K", "W_V", "d_k"),
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
