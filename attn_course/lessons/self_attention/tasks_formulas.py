"""The graded tasks of lesson self_attention that are answered in LaTeX: formulas for scores, and for what a token gets back."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import derivative, matrix, row, rows, vector
from attn_course.reference import rope, scaled_dot_scores
from attn_course.tasks.core import Task, Wrong, at_sizes


def _scores(rng: np.random.Generator, n: int, d_model: int, d_k: int) -> dict[str, Any]:
    X, (W_Q, W_K) = rng.normal(size=(n, d_model)), rng.normal(size=(2, d_model, d_k))
    return {"X": X, "x": rows(X), "W_Q": W_Q, "W_K": W_K, "d_k": d_k, "s": scaled_dot_scores(X @ W_Q, X @ W_K)}


SCORE_ASYMMETRY = Task(
    id="asymmetry-of-two-scores",
    title="How differently two tokens score each other",
    entry="my_asymmetry",
    kind="formula",
    equation="asymmetry-of-scores",
    points=2,
    difficulty=2,
    minutes=7,
    trains="a matrix product, read entry by entry",
    symbols=("x", "X", "W_Q", "W_K", "d_k"),
    functions=(r"\sqrt",),
    left="s_{ij} - s_{ji}",
    cases=at_sizes("n d_model d_k", _scores),
    answer=r"\frac{x_i (W_Q W_K^\top - W_K W_Q^\top) x_j^\top}{\sqrt{d_k}}",
    wrong=[
        Wrong(
            "symmetric scores",
            "0",
            "scores are symmetric without projections; here x_i is projected by W_Q in one of the two scores, and by W_K in the other",
        ),
        Wrong(
            "the sign",
            r"\frac{x_i (W_K W_Q^\top - W_Q W_K^\top) x_j^\top}{\sqrt{d_k}}",
            "in s_ij token i asks: its projection is W_Q, so W_Q W_K^T is the product with the plus",
        ),
        Wrong(
            "the score alone",
            r"\frac{x_i W_Q W_K^\top x_j^\top}{\sqrt{d_k}}",
            "that is s_ij; the score s_ji, in which token j asks, is still to be subtracted",
        ),
        Wrong(
            "twice the score",
            r"\frac{2 x_i W_Q W_K^\top x_j^\top}{\sqrt{d_k}}",
            "s_ji is not -s_ij: exchange the tokens in the score, and see which matrix then stands between x_i and x_j",
        ),
        Wrong(
            "a plus between the two",
            r"\frac{x_i (W_Q W_K^\top + W_K W_Q^\top) x_j^\top}{\sqrt{d_k}}",
            "that is the sum of the two scores, which does not change when the tokens are exchanged; the difference changes its sign",
        ),
        Wrong(
            "divided by d_k, not by its root",
            r"\frac{x_i (W_Q W_K^\top - W_K W_Q^\top) x_j^\top}{d_k}",
            "scores are divided by the root of d_k, {eq}`bilinear-score`",
        ),
        Wrong(
            "no scale",
            r"x_i (W_Q W_K^\top - W_K W_Q^\top) x_j^\top",
            "both scores are divided by the root of d_k, so their difference is too",
        ),
        Wrong(
            "each projection with itself",
            r"\frac{x_i (W_Q W_Q^\top - W_K W_K^\top) x_j^\top}{\sqrt{d_k}}",
            "in a score a query meets a key, so each of the two products holds one W_Q and one W_K",
        ),
    ],
    hints=[
        "Write both scores with {eq}`bilinear-score`. Which token asks in the second one?",
        "A score is a single number, so it equals its own transpose. Transpose the second score, and x_i stands on the left there too.",
        r"Between `x_i` and `x_j^\top` stands a difference of two products of the projections; the second is the transpose of the first.",
    ],
)


def _rotary_score(rng: np.random.Generator, h: int) -> dict[str, Any]:
    q, k = rng.normal(size=(2, h, 2))
    theta, pace, p, offsets = rng.uniform(5, 50), rng.uniform(0.4, 0.8), int(rng.integers(4, 30)), np.arange(-4, 5)
    queries = rope(np.tile(q.ravel(), (len(offsets), 1)), pace * (p + offsets), theta, layout="interleaved")
    key = rope(k.reshape(1, -1), pace * np.array([p]), theta, layout="interleaved")
    frequencies = pace * theta ** (-np.arange(h) / h)  # in steps of one position the first is not 1
    return {"q": q, "k": k, r"\omega": vector(frequencies), "h": h, "S": vector((queries @ key.T)[:, 0], start=-4)}


ROTARY_SCORE = Task(
    id="rotary-score-by-offset",
    title="A rotary score knows the offset only",
    entry="my_rotary_score",
    kind="formula",
    equation="rotated-pair-score",
    points=3,
    difficulty=3,
    minutes=10,
    trains="sums of angles",
    symbols=("q", "k", r"\omega", "h"),
    functions=(r"\cos", r"\sin"),
    left="S_r",
    cases=at_sizes("h", _rotary_score),
    answer=r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_m r) + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_m r) \right)",
    wrong=[
        Wrong(
            "the cosine alone",
            r"\sum_{m=1}^{h} (q_m \cdot k_m) \cos(\omega_m r)",
            "that holds only where q_m and k_m are parallel; turning one of them also brings in a term with the sine",
        ),
        Wrong(
            "turned the other way",
            r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_m r) + (q_{m2} k_{m1} - q_{m1} k_{m2}) \sin(\omega_m r) \right)",
            "that is the score if the query stands r places before the key; the sine changes its sign when the offset does",
        ),
        Wrong(
            "a plus in the cross term",
            r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_m r) + (q_{m1} k_{m2} + q_{m2} k_{m1}) \sin(\omega_m r) \right)",
            "the first row of a rotation holds minus sine, the second plus sine: the two cross products come with opposite signs",
        ),
        Wrong(
            "sine and cosine exchanged",
            r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \sin(\omega_m r) + (q_{m1} k_{m2} - q_{m2} k_{m1}) \cos(\omega_m r) \right)",
            "for r = 0 the score must be the plain dot product of q and k: which of the two functions is 1 there?",
        ),
        Wrong(
            "no positions",
            r"\sum_{m=1}^{h} q_m \cdot k_m",
            "that is the score for r = 0 only: both are then turned by the same angles",
        ),
        Wrong(
            "one frequency for all pairs",
            r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_1 r) + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_1 r) \right)",
            "each pair turns at its own speed: the frequency carries the index of the pair",
        ),
        Wrong(
            "the pairs without the cross products",
            r"\sum_{m=1}^{h} (q_m \cdot k_m) \left( \cos(\omega_m r) + \sin(\omega_m r) \right)",
            "the sine does not come with the dot product: turn k by a quarter, and see which entries of q and k meet",
        ),
    ],
    hints=[
        "Look at one pair first. Turn the query by an angle a and the key by b, and multiply: on which angle does the product depend?",
        "Only the difference of the angles counts, so leave the key as it is, turn the query by its frequency times r, and multiply out.",
        "Each pair gives its dot product times a cosine, plus a difference of two products times a sine. Then sum over the pairs.",
    ],
)


def _score_with_itself(rng: np.random.Generator, d_model: int, d_k: int) -> dict[str, Any]:
    x, (W_Q, W_K) = rng.normal(size=d_model), rng.normal(size=(2, d_model, d_k))
    slopes = derivative(lambda moved: float((moved @ W_Q) @ (moved @ W_K)) / math.sqrt(d_k), x)
    return {"x": row(x), "W_Q": matrix(W_Q), "W_K": matrix(W_K), "d_k": d_k, "g": row(slopes)}


SELF_SCORE_GRADIENT = Task(
    id="gradient-of-self-score",
    title="A token moves its own score twice",
    entry="my_self_gradient",
    kind="formula",
    equation="gradients-through-projections",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the product rule with rows and matrices",
    symbols=("x", "W_Q", "W_K", "d_k"),
    functions=(r"\sqrt",),
    left="g",
    cases=at_sizes("d_model d_k", _score_with_itself),
    answer=r"\frac{1}{\sqrt{d_k}} x (W_Q W_K^\top + W_K W_Q^\top)",
    wrong=[
        Wrong(
            "the query's part alone",
            r"\frac{1}{\sqrt{d_k}} x W_K W_Q^\top",
            "that is what comes back through the query; the token is the key as well, and that gives a second term",
        ),
        Wrong(
            "the key's part alone",
            r"\frac{1}{\sqrt{d_k}} x W_Q W_K^\top",
            "that is what comes back through the key; the token is the query as well, and that gives a second term",
        ),
        Wrong(
            "twice the key's part",
            r"\frac{2}{\sqrt{d_k}} x W_Q W_K^\top",
            "the two parts are equal only where W_Q W_K^T is symmetric; write each of them down for itself",
        ),
        Wrong(
            "twice the query's part",
            r"\frac{2}{\sqrt{d_k}} x W_K W_Q^\top",
            "the two parts are equal only where W_Q W_K^T is symmetric: through the key comes back another one",
        ),
        Wrong(
            "the difference of the two parts",
            r"\frac{1}{\sqrt{d_k}} x (W_Q W_K^\top - W_K W_Q^\top)",
            "the gradients of the two roles add up; the difference belongs to the asymmetry of two scores, {eq}`asymmetry-of-scores`",
        ),
        Wrong(
            "each projection with itself",
            r"\frac{1}{\sqrt{d_k}} x (W_Q W_Q^\top + W_K W_K^\top)",
            "what comes back to the query is the key, x W_K, and it returns through W_Q: each product holds one W_Q and one W_K",
        ),
        Wrong("no scale", r"x (W_Q W_K^\top + W_K W_Q^\top)", "the score is divided by the root of d_k, so its gradient is too"),
    ],
    hints=[
        "How often does x stand in the score? Move one occurrence at a time, and hold the other fixed.",
        r"With the key held fixed the score is x times a column; its gradient is that column, written as a row. The same with the query.",
        r"`x` times a sum of two products of the projections, of which one is the transpose of the other, and the scale in front.",
    ],
)
