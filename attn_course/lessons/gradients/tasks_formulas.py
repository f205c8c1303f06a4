"""The graded tasks on gradients that are answered in LaTeX: two gradients and the sum of delta as formulas, and one derivation."""

from typing import Any

import numpy as np

from attn_course.formulas import column, derivative, rows
from attn_course.reference import attention, scaled_dot_scores, softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _random(rng: np.random.Generator, *shapes: tuple[int, int]) -> list[np.ndarray]:
    return [rng.normal(size=shape) for shape in shapes]


def _back_to_the_scores(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Weights, any gradient that reaches them, and what becomes of it at the scores, by differences."""
    T_q, T_k = sizes.values()
    S, dP = _random(rng, (T_q, T_k), (T_q, T_k))
    return {"P": softmax(S), "dP": dP, "dS": derivative(lambda moved: np.vdot(dP, softmax(moved)), S)}


def _totals(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Values, the gradient there by differences, and delta as what a factor on each output would add to the loss."""
    T_q, T_k, d_v = sizes.values()
    S, V, dZ = _random(rng, (T_q, T_k), (T_k, d_v), (T_q, d_v))
    P = softmax(S)
    dV = derivative(lambda moved: np.vdot(dZ, P @ moved), V)
    delta = derivative(lambda factors: np.vdot(dZ, factors[:, None] * (P @ V)), np.ones(T_q))
    return {"V": V, "dV": dV, "T_k": T_k, r"\delta": column(delta)}


DELTA = Task(
    id="delta-without-weights",
    title="All the means together, without a weight",
    entry="my_total",
    kind="formula",
    equation="gradient-of-values",
    points=1,
    difficulty=2,
    minutes=6,
    trains="exchanging two sums",
    symbols=("V", "dV", "T_k"),
    left=r"\sum_i \delta_i",
    cases=at_sizes("T_q T_k d_v", _totals),
    answer=r"\sum_{j=1}^{T_k} dV_j \cdot V_j",
    wrong=[
        Wrong(
            "the mean over the keys",
            r"\frac{1}{T_k} \sum_{j=1}^{T_k} dV_j \cdot V_j",
            "nothing was averaged: the sums over queries and over keys only change places",
        ),
        Wrong(
            "all pairs of values",
            r"\sum_{j=1}^{T_k} \sum_{l=1}^{T_k} dV_j \cdot V_l",
            "each value meets its own gradient only: both stand with the same index j",
        ),
        Wrong(
            "the gradients alone",
            r"\sum_{j=1}^{T_k} dV_j \cdot dV_j",
            "that is the squared size of the gradient; one of the two rows must be the value itself",
        ),
        Wrong(
            "the values alone",
            r"\sum_{j=1}^{T_k} V_j \cdot V_j",
            "that is the squared size of the values; one of the two rows must be the gradient there",
        ),
        Wrong(
            "the sign turned",
            r"-\sum_{j=1}^{T_k} dV_j \cdot V_j",
            "delta_i is the mean itself; a minus comes only when it is subtracted",
        ),
    ],
    hints=[
        "Write delta_i out as a sum over keys and features, with weights, the gradient at the output, and values.",
        "You now have three sums. Do the one over the queries first: what does not depend on i goes in front of it.",
        "Compare the sum over the queries that is left with {eq}`value-gradient-by-entry`.",
    ],
)

SCORE_GRADIENTS = Task(
    id="gradient-through-the-softmax",
    title="The gradient of all scores as one formula",
    entry="my_formula",
    kind="formula",
    equation="gradient-of-scores",
    points=2,
    difficulty=2,
    minutes=10,
    trains="row sums in matrix notation",
    symbols=("P", "dP"),
    functions=("diag",),
    left="dS",
    cases=at_sizes("T_q T_k", _back_to_the_scores),
    answer=r"P \odot \bigl( dP - (P \odot dP)\, \mathbf{1} \mathbf{1}^\top \bigr)",
    wrong=[
        Wrong(
            "nothing subtracted",
            r"P \odot dP",
            "the weights of a row sum to 1, so raising one score lowers its other weights: subtract the mean of the row from dP",
        ),
        Wrong(
            "the softmax treated entry by entry",
            r"P \odot dP - P \odot P \odot dP",
            "p (1 - p) is only the diagonal of the softmax Jacobian; the other weights of the row move as well, {eq}`softmax-jacobian`",
        ),
        Wrong(
            "row sums of dP alone",
            r"P \odot (dP - dP\, \mathbf{1} \mathbf{1}^\top)",
            "what is subtracted is the mean of the row of dP under its weights: multiply dP by P, entry by entry, before you sum",
        ),
        Wrong(
            "column sums",
            r"P \odot (dP - \mathbf{1} \mathbf{1}^\top (P \odot dP))",
            "ones on the left sum each column, over the queries; the softmax runs along a row, so the ones belong on the right",
        ),
        Wrong(
            "no parentheses around the entrywise product",
            r"P \odot (dP - P \odot dP\, \mathbf{1} \mathbf{1}^\top)",
            r"side by side is multiplied first, so the ones sum up dP before P gets there: write `(P \odot dP)`",
        ),
        Wrong(
            "the weight of the score forgotten",
            r"dP - (P \odot dP)\, \mathbf{1} \mathbf{1}^\top",
            "a score moves its own weight in proportion to that weight: multiply by P, entry by entry",
        ),
        Wrong(
            "the mean not weighted by P",
            r"P \odot dP - (P \odot dP)\, \mathbf{1} \mathbf{1}^\top",
            "P multiplies the whole difference: the row sum in the second term needs the factor P as well",
        ),
        Wrong(
            "plus for minus",
            r"P \odot (dP + (P \odot dP)\, \mathbf{1} \mathbf{1}^\top)",
            "what the other weights lose counts against the score: the row sum comes with a minus",
        ),
    ],
    hints=[
        "Write the answer for one row first, with indices, and then look for a matrix that holds all the row sums.",
        r"A product with `\mathbf{1}` sums the rows or the columns of a matrix. On which side must the ones stand here?",
        r"A column has one entry for each row. Another product with ones copies each of them along its row.",
    ],
)


def _back_to_the_keys(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A forward pass, the gradient at its output, and that of the keys by differences through the whole of it."""
    T_q, T_k, d_k, d_v = sizes.values()
    Q, K, V, dZ = _random(rng, (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v))
    Z, P = attention(Q, K, V, return_weights=True)
    dK = derivative(lambda moved: np.vdot(dZ, attention(Q, moved, V)), K)
    return {"P": P, "Q": Q, "V": V, "Z": Z, "dZ": dZ, "d_k": d_k, "T_q": T_q, "T_k": T_k, "dK": dK}


KEY_GRADIENT = Task(
    id="gradient-of-one-key",
    title="What one key learns from all queries",
    entry="my_key_gradient",
    kind="formula",
    equation="query-and-key-gradients",
    points=3,
    difficulty=2,
    minutes=12,
    trains="putting two steps of the backward pass together",
    symbols=("P", "Q", "V", "Z", "dZ", "d_k", "T_q", "T_k"),
    functions=(r"\sqrt",),
    left="dK_j",
    cases=at_sizes("T_q T_k d_k d_v", _back_to_the_keys),
    answer=r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij}\, \bigl( dZ_i \cdot (V_j - Z_i) \bigr)\, Q_i",
    wrong=[
        Wrong(
            "the scale forgotten",
            r"\sum_i P_{ij}\, (dZ_i \cdot (V_j - Z_i))\, Q_i",
            "the scores are Q K^T / sqrt(d_k), so dK keeps the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`",
        ),
        Wrong(
            "divided by d_k",
            r"\frac{1}{d_k} \sum_i P_{ij}\, (dZ_i \cdot (V_j - Z_i))\, Q_i",
            "the scale passes through once, as 1 / sqrt(d_k); 1 / d_k is its square",
        ),
        Wrong(
            "compared with zero instead of the mixture",
            r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij}\, (dZ_i \cdot V_j)\, Q_i",
            "raising one score lowers the other weights of its row: what counts is value j minus the output of the query that asks",
        ),
        Wrong(
            "the mixture beats the value",
            r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij}\, (dZ_i \cdot (Z_i - V_j))\, Q_i",
            "the sign is turned round: raising s_ij moves the output of query i from Z_i towards V_j",
        ),
        Wrong(
            "the weight forgotten",
            r"\frac{1}{\sqrt{d_k}} \sum_i (dZ_i \cdot (V_j - Z_i))\, Q_i",
            "a score moves its own weight in proportion to that weight, {eq}`score-gradient-against-mixture`: the factor P_ij is missing",
        ),
        Wrong(
            "the weights summed apart",
            r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} \sum_l (dZ_l \cdot (V_j - Z_l))\, Q_l",
            "weight, cost and query of one term belong to the same query i: one sum over i holds all three",
        ),
        Wrong(
            "the softmax treated entry by entry",
            r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} (1 - P_{ij})\, (dZ_i \cdot V_j)\, Q_i",
            "p (1 - p) is only the diagonal of the softmax Jacobian; the other weights of the row move as well, {eq}`softmax-jacobian`",
        ),
    ],
    hints=[
        "Which scores does key j take part in? The gradient at the key collects all of these.",
        "How fast does key j move one of these scores? And what does the loss lose or gain with that score?",
        "If a dS is left in your formula, which equation writes it with weights, values and outputs?",
    ],
)


def _weights_and_gains(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A forward pass, the gradient at its output, and the one at its weights by differences."""
    T_q, T_k, d_v = sizes.values()
    Q, K, V, dZ = _random(rng, (T_q, 2), (T_k, 2), (T_k, d_v), (T_q, d_v))
    p = softmax(scaled_dot_scores(Q, K))
    dP = derivative(lambda moved: np.vdot(dZ, moved @ V), p)
    return {"p": p, "dP": dP, "dZ": rows(dZ), "v": rows(V), "z": rows(attention(Q, K, V)), "T_k": T_k}


CHAIN_RULE = Task(
    id="from-jacobian-to-output",
    title="From the Jacobian to pairs of values",
    entry="my_derivation",
    kind="derivation",
    equation="score-gradient-against-mixture",
    points=2,
    difficulty=3,
    minutes=12,
    trains="sums in which a bracket keeps one term, and a sum of weights put in where it is 1",
    symbols=("p", "dP", "dZ", "v", "z", "T_k"),
    cases=at_sizes("T_q T_k d_v", _weights_and_gains),
    least_steps=3,
    answer=[
        r"\sum_l dP_{il}\, p_{il} ([l = j] - p_{ij})",
        r"\sum_l dP_{il}\, p_{il} [l = j] - \sum_l dP_{il}\, p_{il}\, p_{ij}",
        r"dP_{ij}\, p_{ij} - p_{ij} \sum_l p_{il}\, dP_{il}",
        r"p_{ij} \bigl( \sum_l p_{il}\, dP_{ij} - \sum_l p_{il}\, dP_{il} \bigr)",
        r"p_{ij} \sum_l p_{il}\, (dP_{ij} - dP_{il})",
        r"p_{ij} \sum_l p_{il}\, dZ_i \cdot (v_j - v_l)",
    ],
    wrong=[
        Wrong(
            "only the diagonal of the Jacobian",
            r"dP_{ij}\, p_{ij} (1 - p_{ij})",
            "the terms with l other than j do not vanish: [l = j] is 0 there, but p_ij is not",
        ),
        Wrong(
            "the sum over l done as if only l = j were left",
            r"p_{ij}\, dP_{ij}",
            "[l = j] picks out one term of the first sum only; the sum with p_ij stays",
        ),
        Wrong(
            "p_il taken for p_ij",
            r"p_{ij}\, dP_{ij} - \sum_l p_{il}\, p_{il}\, dP_{il}",
            "in each term of the second sum stand p_il and p_ij, once each: p_ij does not depend on l and goes in front",
        ),
        Wrong(
            "the term l = j left out",
            r"p_{ij}\, dP_{ij} - p_{ij} \sum_{l \ne j} p_{il}\, dP_{il}",
            "the difference has two terms where l = j, so the sum with p_ij runs over all l, j among them",
        ),
        Wrong(
            "the weight of the second term lost",
            r"p_{ij}\, dP_{ij} - \sum_l p_{il}\, dP_{il}",
            "the factor p_ij of the second term must stay, in front of the sum",
        ),
        Wrong(
            "a sum without its weights",
            r"p_{ij} (dP_{ij} - \sum_l dP_{il})",
            "each term of the sum holds its weight p_il: without it the sum is no mean",
        ),
        Wrong(
            "the value of key j in every term",
            r"p_{ij} \bigl( dP_{ij} - \sum_l p_{il}\, (dZ_i \cdot v_j) \bigr)",
            "in dP_il the value is v_l: only dP_ij, without an l, belongs to the value of key j",
        ),
        Wrong(
            "plus for minus",
            r"p_{ij} \sum_l p_{il}\, dZ_i \cdot (v_j + v_l)",
            "the second term comes with a minus, from [l = j] - p_ij",
        ),
        Wrong(
            "dP_ij once for each key",
            r"p_{ij} \sum_l (dP_{ij} - p_{il}\, dP_{il})",
            "inside a sum over the keys a term is counted T_k times; with the weights p_il, which sum to 1, it is counted once",
        ),
        Wrong(
            "the pairs turned round",
            r"p_{ij} \sum_l p_{il}\, dZ_i \cdot (v_l - v_j)",
            "the term with [l = j] is positive and belongs to key j, so v_j comes first",
        ),
    ],
    hints=[
        "Multiply the bracket out. What does a sum over l leave of a term that holds [l = j]?",
        "Which factors of the other sum do not depend on l? You should now have a single term and a sum, and both hold $p_{ij}$.",
        "A single term can go into a sum over l if it is multiplied by something that sums to 1. What does, in row i?",
    ],
)
