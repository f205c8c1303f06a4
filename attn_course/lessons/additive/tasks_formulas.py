"""The graded tasks of lesson additive that are answered in LaTeX: two gradients and a limit."""

from typing import Any

import numpy as np

from attn_course.formulas import column, derivative, vector
from attn_course.reference import additive_scores, softmax
from attn_course.tasks.core import Task, Wrong, at_sizes

SUM = r"W_Q^\top q + W_K^\top k"


def _weights(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw projections that leave the units between straight and saturated, and a score vector."""
    return rng.normal(size=(d_q, d_h)) / np.sqrt(2 * d_q), rng.normal(size=(d_k, d_h)) / np.sqrt(2 * d_k), rng.normal(size=d_h)


def _one_pair(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Draw a query, a key and weights, and return the two and what an answer may hold."""
    q, k, (w_q, w_k, v) = rng.normal(size=d_q), rng.normal(size=d_k), _weights(rng, d_q, d_k, d_h)
    return q, k, {"q": column(q), "k": column(k), "W_Q": w_q, "W_K": w_k, "v": column(v)}


def _score(q: np.ndarray, k: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, v: np.ndarray) -> float:
    return float(additive_scores(q[None], k[None], w_q, w_k, v)[0, 0])


def _projection_gradient(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    q, k, given = _one_pair(rng, d_q, d_k, d_h)
    return {**given, "G": derivative(lambda moved: _score(q, k, moved, given["W_K"], given["v"].raw), given["W_Q"])}


PROJECTION_GRADIENT = Task(
    id="gradient-of-query-projection",
    title="One entry of a projection",
    entry="my_entry_gradient",
    kind="formula",
    equation="additive-derivative-by-query",
    points=2,
    difficulty=2,
    minutes=7,
    trains="the chain rule through tanh",
    symbols=("q", "k", "W_Q", "W_K", "v"),
    functions=(r"\tanh",),
    left="G_{ar}",
    cases=at_sizes("d_q d_k d_h", _projection_gradient),
    answer=rf"q_a v_r \left( 1 - \tanh({SUM})_r^2 \right)",
    wrong=[
        Wrong(
            "tanh itself for its derivative",
            rf"q_a v_r \tanh({SUM})_r",
            "the derivative of tanh is 1 minus its square: it is largest where tanh is 0, and 0 where tanh is near 1 or -1",
        ),
        Wrong("the square forgotten", rf"q_a v_r \left( 1 - \tanh({SUM})_r \right)", "the derivative of tanh is 1 minus its square"),
        Wrong("the bend forgotten", r"q_a v_r", "v_r multiplies tanh of a sum: the chain rule brings the derivative of tanh"),
        Wrong(
            "the score vector forgotten",
            rf"q_a \left( 1 - \tanh({SUM})_r^2 \right)",
            "that is the derivative of unit r; the score holds this unit times v_r",
        ),
        Wrong(
            "summed over the units",
            rf"q_a \sum_u v_u \left( 1 - \tanh({SUM})_u^2 \right)",
            "the entry in row a and column r of W_Q stands in the sum of unit r only, so no other unit moves",
        ),
        Wrong(
            "the derivative by the query",
            rf"(W_Q)_{{ar}} v_r \left( 1 - \tanh({SUM})_r^2 \right)",
            "that is what unit r gives to the derivative by q_a; here the entry of W_Q moves, and q_a is what it is multiplied by",
        ),
        Wrong(
            "the second derivative of tanh",
            rf"-2 q_a v_r \tanh({SUM})_r \left( 1 - \tanh({SUM})_r^2 \right)",
            "that differentiates tanh twice; once is enough here",
        ),
        Wrong(
            "the key left out",
            r"q_a v_r \left( 1 - \tanh(W_Q^\top q)_r^2 \right)",
            "the slope is taken where unit r stands, and there the projection of the key counts too",
        ),
    ],
    hints=[
        "In which units does the entry in row a and column r of W_Q stand, and what is it multiplied by there?",
        "Only unit r moves. The chain rule multiplies the factor in front of it, the slope of tanh, and what the entry is multiplied by.",
        "A product of three: an entry of the query, an entry of the score vector, and 1 minus the square of a hidden unit.",
    ],
)


def _weight_gradient(rng: np.random.Generator, n: int, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    q, keys, (w_q, w_k, v) = rng.normal(size=d_q), rng.normal(size=(n, d_k)), _weights(rng, d_q, d_k, d_h)

    def weights(query: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(additive_scores(query[None], keys, w_q, w_k, v))[0])

    given = {r"\alpha": vector(weights(q)), "t": np.tanh(q @ w_q + keys @ w_k), "W_Q": w_q, "v": column(v), "n": n}
    return {**given, "D": derivative(weights, q)}


WEIGHT_GRADIENT = Task(
    id="query-moves-weight",
    title="How the query moves a weight",
    entry="my_weight_gradient",
    kind="formula",
    equation="additive-derivative-by-query",
    points=3,
    difficulty=4,
    minutes=12,
    trains="two saturations in one gradient",
    symbols=(r"\alpha", "t", "W_Q", "v", "n"),
    left="D_{ja}",
    cases=at_sizes("n d_q d_k d_h", _weight_gradient),
    answer=r"\alpha_j \sum_r (W_Q)_{ar} v_r \left( \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 \right)",
    wrong=[
        Wrong(
            "the gradient of the score",
            r"\sum_r (W_Q)_{ar} v_r (1 - t_{jr}^2)",
            "that is the derivative of the score of key j; the weight is a softmax of all scores, and all of them move",
        ),
        Wrong(
            "the other scores held fixed",
            r"\alpha_j (1 - \alpha_j) \sum_r (W_Q)_{ar} v_r (1 - t_{jr}^2)",
            "that moves the score of key j alone; the query moves the scores of all keys, {eq}`softmax-derivative`",
        ),
        Wrong(
            "the sum beneath forgotten",
            r"\alpha_j \sum_r (W_Q)_{ar} v_r (1 - t_{jr}^2)",
            "the sum beneath the fraction bar of the softmax moves as well: take away the mean of what comes from all keys",
        ),
        Wrong(
            "a plain mean",
            r"\alpha_j \sum_r (W_Q)_{ar} v_r \left( \frac{1}{n} \sum_l t_{lr}^2 - t_{jr}^2 \right)",
            "the mean that the softmax takes away is weighted: key l counts with its weight, not with 1 / n",
        ),
        Wrong(
            "the weight in front forgotten",
            r"\sum_r (W_Q)_{ar} v_r \left( \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 \right)",
            "that is the derivative of the logarithm of the weight; multiply it by the weight",
        ),
        Wrong(
            "the square of the mean",
            r"\alpha_j \sum_r (W_Q)_{ar} v_r \left( \left( \sum_l \alpha_l t_{lr} \right)^2 - t_{jr}^2 \right)",
            "the slopes 1 - t^2 of all keys are averaged, so the squares are: square first, then take the mean",
        ),
        Wrong(
            "the score vector forgotten",
            r"\alpha_j \sum_r (W_Q)_{ar} \left( \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 \right)",
            "a score is the sum of v_r times unit r, so v_r stands in its derivative too",
        ),
        Wrong(
            "tanh itself for its derivative",
            r"\alpha_j \sum_r (W_Q)_{ar} v_r \left( t_{jr} - \sum_l \alpha_l t_{lr} \right)",
            "t is tanh itself; the query acts through its derivative, 1 - t^2",
        ),
    ],
    hints=[
        "First differentiate the score of key j by one entry of the query. Then: what does a softmax do when all its scores change?",
        "By {eq}`softmax-derivative` a weight changes by itself times the change of its score, less the weighted mean of all changes.",
        "The weight times a sum over the units; each term is a projection times v_r times a difference: a mean of squares less one square.",
    ],
)


def _saturated(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    while True:  # until some unit ends at -1, one against its entry of v, one against the query's part, one against the key's part
        q, k, given = _one_pair(rng, d_q, d_k, d_h)
        w_q, w_k, v = given["W_Q"], given["W_K"], given["v"].raw
        sums = q @ w_q + k @ w_k
        if all((sums * side < 0).any() for side in (1, v, q @ w_q, k @ w_k)):
            break
    nearest = float(np.abs(sums).min())
    return {**given, "L": _score(50 / nearest * q, 50 / nearest * k, w_q, w_k, v)}  # tanh of 50 is 1 to the last bit


SIGN = r"\frac{(%s)_r}{|(%s)_r|}"

SATURATED_SCORE = Task(
    id="saturated-additive-score",
    title="What a saturated score is",
    entry="my_limit",
    kind="formula",
    equation="additive-score-bound",
    points=2,
    difficulty=3,
    minutes=8,
    trains="limits of tanh, unit by unit",
    symbols=("q", "k", "W_Q", "W_K", "v"),
    left="L",
    cases=at_sizes("d_q d_k d_h", _saturated),
    answer=r"\sum_r v_r " + SIGN % (SUM, SUM),
    wrong=[
        Wrong(
            "every unit at plus one",
            r"\sum_r v_r",
            "a unit goes to -1 where its sum is negative: the sign of the sum decides, unit by unit",
        ),
        Wrong(
            "the bound taken for the limit",
            r"\sum_r |v_r|",
            "that is the bound of {eq}`additive-score-bound`; it is reached only if each unit goes to the side that v_r has",
        ),
        Wrong(
            "nothing left", "0", "only the gradient goes to 0: the units stay at 1 or -1, and the score is the sum of what v makes of them"
        ),
        Wrong(
            "steps from 0 to 1",
            rf"\sum_r v_r [({SUM})_r > 0]",
            "where the sum is negative tanh goes to -1, not to 0",
        ),
        Wrong(
            "the sign of the whole",
            rf"\frac{{v^\top ({SUM})}}{{|v^\top ({SUM})|}}",
            "each unit is bent before v adds them up: the sign is taken inside the sum over the units",
        ),
        Wrong(
            "query and key bent apart",
            r"\sum_r v_r \left( " + SIGN % (r"W_Q^\top q", r"W_Q^\top q") + " + " + SIGN % (r"W_K^\top k", r"W_K^\top k") + r" \right)",
            "tanh takes the sum of the two projections, so there is one sign for each unit, not two",
        ),
        Wrong("not bent at all", rf"v^\top ({SUM})", "tanh never leaves the range from -1 to 1, however large its argument becomes"),
        Wrong(
            "the key left out",
            r"\sum_r v_r " + SIGN % (r"W_Q^\top q", r"W_Q^\top q"),
            "the key grows as well, so the sum of both projections decides on which side unit r ends",
        ),
    ],
    hints=[
        "What does tanh(c x) tend to if c grows and x is positive? And if x is negative?",
        "Every unit ends at the sign of its own sum. A sign can be written as a number divided by its absolute value.",
        r"A sum over the units: `v_r` times a fraction, with the sum of both projections above, and its absolute value below.",
    ],
)
