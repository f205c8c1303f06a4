"""The graded tasks of lesson softmax about derivatives: of ln s, the Jacobian, cross-entropy."""

from collections.abc import Callable
from functools import partial

import numpy as np

from attn_course.reference import softmax, softmax_jacobian
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong


def _log_softmax_points(rng: np.random.Generator) -> list[Case]:
    """Points that honour the symbols: where delta_ij is 1, i and j are the same entry."""
    s_i, s_j = rng.uniform(0.05, 0.95, size=(2, 16))
    delta = np.repeat([0.0, 1.0], 8)
    return [Case("16 points", s_i=s_i, s_j=np.where(delta == 1.0, s_i, s_j), delta_ij=delta)]


LOG_SOFTMAX_DERIVATIVE = Task(
    id="log-softmax-derivative",
    title="Differentiate the logarithm of a weight",
    entry="my_derivative",
    kind="derive",
    equation="log-softmax",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the chain rule through log-sum-exp",
    symbols=("s_i", "s_j", "delta_ij"),
    cases=_log_softmax_points,
    answer=lambda s_i, s_j, delta_ij: delta_ij - s_j,
    wrong=[
        Wrong(
            "the derivative of s_i itself",
            lambda s_i, s_j, delta_ij: s_i * (delta_ij - s_j),
            "that is the derivative of s_i; the logarithm divides it by s_i",
        ),
        Wrong(
            "the Kronecker delta forgotten", lambda s_i, s_j, delta_ij: -s_j, "z_i itself depends on z_j when i = j: that term is missing"
        ),
        Wrong(
            "the normaliser forgotten",
            lambda s_i, s_j, delta_ij: delta_ij,
            "lse(z) depends on every z_j, with derivative s_j: that term is missing",
        ),
        Wrong("the sign turned round", lambda s_i, s_j, delta_ij: s_j - delta_ij, "ln s_i = z_i - lse(z): the term from z_i is positive"),
        Wrong(
            "s_i where s_j belongs",
            lambda s_i, s_j, delta_ij: delta_ij - s_i,
            "you differentiate by z_j, and lse(z) has derivative s_j there",
        ),
        Wrong(
            "the delta times s_j",
            lambda s_i, s_j, delta_ij: s_j * delta_ij - s_j,
            "the derivative of z_i by z_j is delta_ij alone, with no weight on it",
        ),
        Wrong(
            "divided by s_i once too often",
            lambda s_i, s_j, delta_ij: (delta_ij - s_j) / s_i,
            "the s_i of d s_i / d z_j cancels against the 1 / s_i of the logarithm: nothing is left to divide",
        ),
        Wrong(
            "a weight too many in the second term",
            lambda s_i, s_j, delta_ij: delta_ij - s_i * s_j,
            "lse(z) has the derivative s_j, not s_i s_j",
        ),
        Wrong(
            "the case i = j alone",
            lambda s_i, s_j, delta_ij: 1 - s_j,
            "that is the derivative where i = j; for every other j the first term is 0, and delta_ij says so",
        ),
    ],
    hints=[
        "Start from {eq}`log-softmax`, which writes the logarithm as a difference of two terms.",
        "The derivative of z_i by z_j is delta_ij; {eq}`lse-gradient` has the derivative of lse(z).",
        "Keep the index j in mind: which score is raised, and whose weight does the second term bring?",
    ],
)


def _outer(weights: np.ndarray) -> np.ndarray:
    return weights[..., :, None] * weights[..., None, :]


def _jacobian(scores: np.ndarray, temperature: float, *, divisor: Callable[[float], float] = float) -> np.ndarray:
    """The derivative of softmax(scores / temperature) by the scores, divided by what `divisor` makes of the temperature."""
    return softmax_jacobian(softmax(scores, temperature=temperature)) / divisor(temperature)


def _without(scores: np.ndarray, temperature: float, *, diagonal: float, outer: float) -> np.ndarray:
    """The two terms of the Jacobian, each times a number."""
    weights = softmax(scores, temperature=temperature)
    return (diagonal * weights[..., :, None] * np.eye(scores.shape[-1]) + outer * _outer(weights)) / temperature


def _plain_jacobian(scores: np.ndarray, temperature: float) -> np.ndarray:
    unnormalised = np.exp(scores / temperature)
    return softmax_jacobian(unnormalised / unnormalised.sum(axis=-1, keepdims=True)) / temperature


JACOBIAN = Task(
    id="softmax-jacobian",
    title="The Jacobian at a temperature",
    entry="my_jacobian",
    kind="write",
    equation="softmax-jacobian",
    points=3,
    difficulty=3,
    minutes=12,
    trains="the chain rule through a temperature, with leading axes",
    answer=_jacobian,
    forbid=(forbidden.SOFTMAX, forbidden.AUTOGRAD),
    cases=lambda rng: [
        Case("one row of scores", scores=rng.normal(size=5), temperature=1.5),
        Case("three rows, cold", scores=rng.normal(size=(3, 7)), temperature=0.4),
        Case("two leading axes, hot", scores=rng.normal(size=(2, 3, 5)), temperature=3.0),
        Case("one row near 1000, one near -1000", scores=rng.normal(size=(2, 7)) + np.array([[1000.0], [-1000.0]]), temperature=0.5),
        Case("a nearly saturated row", scores=10.0 * rng.normal(size=7), temperature=2.0),
        Case("one score only", scores=rng.normal(size=(3, 1)), temperature=0.7),
    ],
    wrong=[
        Wrong(
            "the derivative by z / T",
            partial(_jacobian, divisor=lambda temperature: 1.0),
            "that is the derivative by z / T, which is what the softmax sees; by z itself the chain rule brings one more factor",
        ),
        Wrong(
            "multiplied by T",
            partial(_jacobian, divisor=lambda temperature: 1 / temperature),
            "the derivative of z / T by z is 1 / T, not T",
        ),
        Wrong("divided by T twice", partial(_jacobian, divisor=lambda temperature: temperature**2), "the chain rule brings 1 / T once"),
        Wrong(
            "the temperature forgotten",
            lambda scores, temperature: softmax_jacobian(softmax(scores)),
            "the weights are those of the scores divided by T, {eq}`softmax-with-temperature`",
        ),
        Wrong(
            "the off-diagonal terms forgotten",
            lambda scores, temperature: _jacobian(scores, temperature) * np.eye(scores.shape[-1]),
            "a softmax couples its entries: raising z_j lowers every other s_i, off the diagonal",
        ),
        Wrong(
            "the diagonal term forgotten",
            partial(_without, diagonal=0.0, outer=-1.0),
            "only the product s_i s_j is there; the delta_ij s_i of {eq}`softmax-derivative` adds s_i on the diagonal",
        ),
        Wrong(
            "the outer product added",
            partial(_without, diagonal=1.0, outer=1.0),
            "the outer product enters with a minus: rows of J sum to 0, {eq}`softmax-jacobian-annihilates-constants`; yours do not",
        ),
        Wrong("the sign turned round", partial(_without, diagonal=-1.0, outer=1.0), "raising z_i raises s_i: the diagonal is positive"),
        Wrong(
            "the derivative of ln s_i",
            lambda scores, temperature: (
                (np.eye(scores.shape[-1]) - np.expand_dims(softmax(scores, temperature=temperature), -2)) / temperature
            ),
            "that is the derivative of ln s_i by z_j; multiply row i by s_i",
        ),
        Wrong(
            "no maximum subtracted",
            _plain_jacobian,
            "exp overflows to inf (or every term underflows to 0), and NaN is left: subtract the maximum first, {eq}`stable-softmax`",
        ),
    ],
    hints=[
        "There are two functions, one inside the other: z / T, and the softmax of that. What does the chain rule say?",
        "First the weights, stably; then the two terms of {eq}`softmax-jacobian` for each row; then the factor of the inner function.",
        "weights (..., n) give a diagonal and an outer product, both (..., n, n): which axes have to be made?",
    ],
)


def _cross_entropy_points(rng: np.random.Generator) -> list[Case]:
    s_i, temperature = rng.uniform(0.05, 0.95, size=16), rng.uniform(0.3, 3.0, size=16)
    return [Case("16 points", s_i=s_i, delta_iy=np.repeat([0.0, 1.0], 8), T=temperature)]


CROSS_ENTROPY_GRADIENT = Task(
    id="tempered-cross-entropy-gradient",
    title="Cross-entropy at a temperature",
    entry="my_gradient",
    kind="derive",
    equation="log-softmax",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the gradient that training starts from",
    symbols=("s_i", "delta_iy", "T"),
    cases=_cross_entropy_points,
    answer=lambda s_i, delta_iy, t: (s_i - delta_iy) / t,
    wrong=[
        Wrong(
            "the temperature forgotten",
            lambda s_i, delta_iy, t: s_i - delta_iy,
            "z enters as z / T, so the chain rule leaves a factor 1 / T",
        ),
        Wrong("multiplied by T", lambda s_i, delta_iy, t: t * (s_i - delta_iy), "the derivative of z / T by z is 1 / T, not T"),
        Wrong(
            "the sign turned round", lambda s_i, delta_iy, t: (delta_iy - s_i) / t, "that is the gradient of ln s_y; the loss is -ln s_y"
        ),
        Wrong("the label forgotten", lambda s_i, delta_iy, t: s_i / t, "the term -z_y / T of the loss depends on z_i when i = y"),
        Wrong(
            "one term without its 1 / T",
            lambda s_i, delta_iy, t: s_i / t - delta_iy,
            "both terms of the loss hold z / T: lse(z / T) and -z_y / T",
        ),
        Wrong(
            "a factor s_i too many",
            lambda s_i, delta_iy, t: s_i * (s_i - delta_iy) / t,
            "the logarithm's 1 / s_y cancels the weight in front of the Jacobian: no factor s_i is left",
        ),
        Wrong(
            "only the right class considered",
            lambda s_i, delta_iy, t: (s_i - 1) / t,
            "for i other than y nothing is subtracted: delta_iy is 0 there",
        ),
        Wrong("divided by T twice", lambda s_i, delta_iy, t: (s_i - delta_iy) / t**2, "the chain rule gives one factor 1 / T, not two"),
    ],
    hints=[
        "The loss is minus the logarithm of a weight, {eq}`log-softmax`, with z / T in place of z.",
        "Which two terms does the loss have, and in which of them does z_i stand? What does the inner function z / T add?",
        "First differentiate as if T were 1, with {eq}`lse-gradient`. Then ask in which places T stands.",
    ],
)
