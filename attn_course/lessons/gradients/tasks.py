"""The graded tasks on the gradients of attention."""

import math

import numpy as np

from attn_course.lessons.gradients.tasks_formulas import CHAIN_RULE, DELTA, KEY_GRADIENT, SCORE_GRADIENTS
from attn_course.lessons.gradients.tasks_passes import PASSES
from attn_course.lessons.gradients.tasks_turns import TURNS
from attn_course.reference import attention_backward, softmax
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
            "that is dz / ds_j; the loss answers to z with the factor z - t",
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
        "The chain rule has two factors: how the loss answers to z, and how z answers to the score.",
        "dL/dz = z - t. For the other factor put {eq}`softmax-derivative` into z = sum of p_l v_l; two terms remain.",
        "What comes out is a product of three factors: a weight, an error, and a difference of a value and a mean.",
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
    centre: str = "rows",
) -> Gradients:
    """The whole backward pass of attention with one step done differently; `divisor` is used on the way back."""
    root = math.sqrt(query.shape[-1])
    p, d_weights = softmax(query @ key.T / (forward_divisor or root)), d_output @ value.T
    gain = (p * d_weights).sum(axis=-1, keepdims=True)
    subtracted = {"rows": gain, "all": gain.sum(), "none": 0.0, "plain": d_weights.mean(axis=-1, keepdims=True)}[centre]
    d_scores = p * (d_weights - subtracted)
    divisor = divisor or root
    return d_scores @ key / divisor, d_scores.T @ query / divisor, p.T @ d_output


def _diagonal_backward(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> Gradients:
    p, d_weights = softmax(query @ key.T / math.sqrt(query.shape[-1])), d_output @ value.T
    d_scores = p * (1 - p) * d_weights / math.sqrt(query.shape[-1])
    return d_scores @ key, d_scores.T @ query, p.T @ d_output


def _backward_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, q_len, kv_len, d_k, d_v in (
        ("fewer queries than keys", 3, 7, 5, 2),
        ("more queries than keys", 7, 5, 3, 11),
        ("one query", 1, 5, 2, 3),
    ):
        cases.append(Case(name, **_draw(rng, q_len, kv_len, d_k, d_v), d_output=rng.normal(size=(q_len, d_v))))
    return cases


BACKWARD = Task(
    id="attention-backward",
    title="The backward pass",
    entry="my_attention_backward",
    kind="write",
    equation="query-and-key-gradients",
    points=2,
    difficulty=3,
    minutes=12,
    trains="five gradients, five shapes",
    answer=attention_backward,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=_backward_cases,
    wrong=[
        Wrong(
            "the scale forgotten on the way back",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=1.0),
            "the scores are Q K^T / sqrt(d_k), so their derivative by Q or K keeps the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`",
        ),
        Wrong(
            "the scale applied twice on the way back",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=query.shape[-1]),
            "dQ and dK hold one factor 1 / sqrt(d_k), not two",
        ),
        Wrong(
            "the scale forgotten in the scores",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, forward_divisor=1.0),
            "dQ and dK have their factor 1 / sqrt(d_k), but the weights are those of Q K^T without it",
        ),
        Wrong(
            "no scale on either way",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, divisor=1.0, forward_divisor=1.0),
            "the scale is missing on both ways: the weights are those of Q K^T / sqrt(d_k), and dQ and dK keep that factor",
        ),
        Wrong(
            "nothing subtracted from dP",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="none"),
            "dS = P * dP leaves out that weights sum to 1: subtract delta_i from each row of dP first, {eq}`gradient-of-scores`",
        ),
        Wrong(
            "the softmax treated entry by entry",
            _diagonal_backward,
            "p (1 - p) dP is the derivative of separate logistic functions; the weights of a row depend on each other",
        ),
        Wrong(
            "one delta for all queries",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="all"),
            "every query has a delta of its own: sum P * dP along the last axis and keep that axis",
        ),
        Wrong(
            "the plain mean subtracted",
            lambda query, key, value, d_output: _backward(query, key, value, d_output, centre="plain"),
            "delta_i is the mean of row i of dP under the weights p_ij, not the plain mean",
        ),
    ],
    hints=[
        "Go back through the three steps in reverse: output, softmax, scores. A gradient has the shape of what it belongs to.",
        "For each product ask over which index it sums, as {eq}`gradient-of-values` and {eq}`query-and-key-gradients` do.",
        "Weights again, two products, one line entry by entry with a mean of each row that keeps its axis, and two more products.",
    ],
)


TASKS = [SCORE_GRADIENT, DELTA, SCORE_GRADIENTS, KEY_GRADIENT, CHAIN_RULE, BACKWARD, *PASSES, *TURNS]
