"""The graded tasks on the gradients of attention."""

import math

import numpy as np

from attn_course.lessons.gradients.tasks_formulas import CHAIN_RULE, DELTA, KEY_GRADIENT, SCORE_GRADIENTS
from attn_course.lessons.gradients.tasks_passes import PASSES
from attn_course.lessons.gradients.tasks_turns import TURNS
from attn_course.reference import softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong

Gradients = tuple[np.ndarray, np.ndarray, np.ndarray]


def _draw(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Return queries, keys and values whose sizes differ wherever two could be mistaken for each other."""
    return {
        "query": rng.normal(size=(q_len, d_k)),
        "key": rng.normal(size=(kv_len, d_k)),
        "value": rng.normal(size=(kv_len, d_v)),
    }


def _score_points(rng: np.random.Generator) -> list[Case]:
    p_j, v_j, z, t = rng.uniform(0.05, 0.95, size=16), *rng.normal(size=(3, 16))
    return [Case("16 points", p_j=p_j, v_j=v_j, z=z, t=t)]


SCORE_GRADIENT = Task(
    id="score-gradient",
    title="The gradient of one score",
    entry="my_score_gradient",
    kind="derive",
    equation="score-gradient-against-mixture",
    points=1,
    difficulty=2,
    minutes=6,
    trains="the backward pass of one row",
    symbols=("p_j", "v_j", "z", "t"),
    cases=_score_points,
    answer=lambda p_j, v_j, z, t: p_j * (z - t) * (v_j - z),
    wrong=[
        Wrong(
            "compared with zero instead of the mixture",
            lambda p_j, v_j, z, t: p_j * (z - t) * v_j,
            "raising one score lowers all other weights: what counts is v_j minus the present mixture z",
        ),
        Wrong(
            "the softmax treated entry by entry",
            lambda p_j, v_j, z, t: p_j * (1 - p_j) * (z - t) * v_j,
            "p (1 - p) is only the diagonal of the softmax Jacobian; the other weights move as well, {eq}`softmax-derivative`",
        ),
        Wrong(
            "the sign turned round",
            lambda p_j, v_j, z, t: p_j * (z - t) * (z - v_j),
            "dL/dz is z - t, and dz / ds_j has the sign of v_j - z, for a larger score moves z towards v_j: one of them is turned round",
        ),
        Wrong(
            "the derivative of the output alone",
            lambda p_j, v_j, z, t: p_j * (v_j - z),
            "that is dz / ds_j; the loss changes with z at the rate z - t, which is missing",
        ),
        Wrong(
            "the weight forgotten",
            lambda p_j, v_j, z, t: (z - t) * (v_j - z),
            "a score moves its own weight in proportion to that weight, {eq}`softmax-derivative`: the factor p_j is missing",
        ),
        Wrong(
            "the loss without its factor one half",
            lambda p_j, v_j, z, t: 2 * p_j * (z - t) * (v_j - z),
            "the loss is half of the square, so its derivative by z is z - t",
        ),
    ],
    hints=[
        "The chain rule has two factors: how the loss changes with z, and how z changes with the score.",
        "dL/dz = z - t. For the other factor put {eq}`softmax-derivative` into z = sum of p_l v_l; two terms remain.",
        "In the second factor the weight of key j stands before a bracket. Which sum in the bracket is the output z?",
    ],
)


def _backward(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    d_output: np.ndarray,
    *,
    divisor: float | None = None,
    forward_divisor: float | None = None,
    axis: int = 0,
    centre: str = "columns",
) -> Gradients:
    """The backward pass where the queries compete for each key, with one step done differently; `divisor` is that of dQ and dK."""
    root = math.sqrt(query.shape[-1])
    p, d_weights = softmax(query @ key.T / (forward_divisor or root), axis=axis), d_output @ value.T
    gain = p * d_weights
    subtracted = {
        "columns": gain.sum(axis=0),
        "rows": gain.sum(axis=1, keepdims=True),
        "all": gain.sum(),
        "none": 0.0,
        "own": gain,
        "plain": d_weights.mean(axis=0),
    }[centre]
    d_scores = p * (d_weights - subtracted)
    divisor = divisor or root
    return d_scores @ key / divisor, d_scores.T @ query / divisor, p.T @ d_output


def _backward_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, q_len, kv_len, d_k, d_v in (
        ("fewer queries than keys", 3, 7, 5, 2),
        ("more queries than keys", 7, 5, 3, 11),
        ("one key", 5, 1, 2, 3),
    ):
        cases.append(Case(name, **_draw(rng, q_len, kv_len, d_k, d_v), d_output=rng.normal(size=(q_len, d_v))))
    return cases


BACKWARD = Task(
    id="attention-backward",
    title="The backward pass where queries compete",
    entry="my_attention_backward",
    kind="write",
    equation="score-gradient-over-row",
    points=3,
    difficulty=3,
    minutes=15,
    trains="asking anew which weights a score touches",
    answer=_backward,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=_backward_cases,
    wrong=[
        Wrong(
            "the softmax of the lesson, over the keys",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, axis=1, centre="rows"),
            "that is the backward pass of the lesson, where each row of weights sums to 1; here each column does",
        ),
        Wrong(
            "the mean of a row subtracted",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="rows"),
            "a score shares its normaliser with the scores of its column, so it touches the weights of that column: collect over these",
        ),
        Wrong(
            "the mean of a column, of weights that sum to 1 along a row",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, axis=1),
            "the weights themselves are still those of a softmax over the keys; here the queries share out the weight of each key",
        ),
        Wrong(
            "the scale forgotten in the backward pass",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=1.0),
            "the scores are Q K^T / sqrt(d_k), so their derivative by Q or K keeps the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`",
        ),
        Wrong(
            "the scale applied twice in the backward pass",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=query.shape[-1]),
            "dQ and dK hold one factor 1 / sqrt(d_k), not two",
        ),
        Wrong(
            "the scale forgotten in the scores",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, forward_divisor=1.0),
            "dQ and dK have their factor 1 / sqrt(d_k), but the weights are those of Q K^T without it",
        ),
        Wrong(
            "no scale in either pass",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=1.0, forward_divisor=1.0),
            "the scale is missing in both passes: the weights are those of Q K^T / sqrt(d_k), and dQ and dK keep that factor",
        ),
        Wrong(
            "nothing subtracted from dP",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="none"),
            "dS = P * dP leaves out that the weights of a column sum to 1: a mean must be subtracted from dP first",
        ),
        Wrong(
            "the softmax treated entry by entry",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="own"),
            "p (1 - p) dP is the derivative of separate logistic functions; the weights of a column depend on each other",
        ),
        Wrong(
            "one mean for all keys",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="all"),
            "every key has a mean of its own: sum P * dP over the queries, and over nothing else",
        ),
        Wrong(
            "the plain mean subtracted",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="plain"),
            "what is subtracted is the mean of a column of dP under the weights p_ij, not the plain mean",
        ),
    ],
    hints=[
        "Which of the five gradients does the softmax enter, and for which does it not matter how the weights were made?",
        "Ask the three questions of one score, as {eq}`score-gradient-over-row` does. Over which index does the sum run now?",
        "What is subtracted from dP is one number for each key. It is no longer a dot product of dZ and the output.",
    ],
)


TASKS = [SCORE_GRADIENT, DELTA, SCORE_GRADIENTS, KEY_GRADIENT, CHAIN_RULE, BACKWARD, *PASSES, *TURNS]
