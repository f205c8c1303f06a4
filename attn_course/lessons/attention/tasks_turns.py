"""What the lesson on attention asks its reader before it shows its own."""

import math

import numpy as np

from attn_course.reference import attention, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong


def _scores(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    return query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])


def _pairs(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, *leading: int) -> Case:
    return Case(name, query=rng.normal(size=(*leading, q_len, d_k)), key=rng.normal(size=(*leading, kv_len, d_k)))


ALL_SCORES = Task(
    id="all-scores",
    title="Scores for any batch",
    entry="my_scores",
    kind="write",
    equation="scaled-score",
    points=1,
    difficulty=1,
    minutes=4,
    trains="leading axes",
    your_turn=True,
    answer=_scores,
    cases=lambda rng: [
        _pairs("no leading axis", rng, 3, 5, 7),
        _pairs("a batch of two", rng, 7, 3, 5, 2),
        _pairs("two leading axes", rng, 5, 7, 11, 2, 3),
        _pairs("one query", rng, 1, 5, 3, 2),
    ],
    wrong=[
        Wrong("no scale", lambda query, key: query @ key.swapaxes(-1, -2), "the dot products are divided by the root of d_k"),
        Wrong(
            "divided by d_k",
            lambda query, key: _scores(query, key) / math.sqrt(query.shape[-1]),
            "a dot product of d_k terms spreads like the root of d_k; you divided by d_k itself",
        ),
        Wrong(
            "axis 1 for the features",
            lambda query, key: query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[1]),
            "with leading axes in front, axis 1 is no longer that of the features: count from the end, `query.shape[-1]`",
        ),
        Wrong(
            "the keys ask",
            lambda query, key: _scores(query, key).swapaxes(-1, -2),
            "the first index asks: row i belongs to query i, and column j to key j",
        ),
    ],
    hints=[
        "Row i of the result belongs to query i, column j to key j.",
        "`@` multiplies the last two axes; which two axes of the keys must be exchanged?",
        "Two operations: a product of two arrays, one of them with two axes exchanged, and a division by a root.",
    ],
)


def _inputs(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int, *leading: int) -> Case:
    pairs = _pairs(name, rng, q_len, kv_len, d_k, *leading)
    return Case(name, **pairs.inputs, value=rng.normal(size=(*leading, kv_len, d_v)))


def _attend(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, divisor: float | None = None, axis: int = -1) -> np.ndarray:
    root = math.sqrt(query.shape[-1]) if divisor is None else divisor
    return softmax(query @ key.swapaxes(-1, -2) / root, axis) @ value


BATCHED_ATTENTION = Task(
    id="attention-of-batches",
    title="Batched attention",
    entry="my_batched_attention",
    kind="write",
    equation="batched-attention",
    points=2,
    difficulty=2,
    minutes=5,
    trains="the whole formula, for any leading axes",
    your_turn=True,
    answer=attention,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=lambda rng: [
        _inputs("no leading axis", rng, 3, 5, 7, 2),
        _inputs("as many queries as keys", rng, 5, 5, 3, 2, 7),
        _inputs("a batch of two", rng, 7, 3, 5, 11, 2),
        _inputs("two leading axes", rng, 5, 7, 11, 3, 2, 13),
        _inputs("one query", rng, 1, 5, 3, 2, 7),
        _inputs("one key", rng, 5, 1, 3, 2, 7),
    ],
    wrong=[
        Wrong(
            "no scale",
            lambda query, key, value: _attend(query, key, value, divisor=1.0),
            "the scores are not divided by the root of d_k, {eq}`scaled-score`",
        ),
        Wrong(
            "divided by d_k",
            lambda query, key, value: _attend(query, key, value, divisor=query.shape[-1]),
            "a dot product of d_k terms spreads like the root of d_k; you divided by d_k itself",
        ),
        Wrong(
            "the root of d_v",
            lambda query, key, value: _attend(query, key, value, divisor=math.sqrt(value.shape[-1])),
            "the scale belongs to the vectors that are compared: it is the number of entries of a query, not of a value",
        ),
        Wrong(
            "the root of the number of keys",
            lambda query, key, value: _attend(query, key, value, divisor=math.sqrt(key.shape[-2])),
            "the scale is the root of the number of features, the last axis of `query`; you took an axis of positions",
        ),
        Wrong(
            "axis 1 for the features",
            lambda query, key, value: _attend(query, key, value, divisor=math.sqrt(query.shape[1])),
            "with leading axes in front, axis 1 is no longer that of the features: count from the end, `query.shape[-1]`",
        ),
        Wrong(
            "softmax over the queries",
            lambda query, key, value: _attend(query, key, value, axis=-2),
            "the weights of one query sum to 1 over the keys, the last axis; yours sum to 1 over the queries",
        ),
        Wrong(
            "softmax over the first axis",
            lambda query, key, value: _attend(query, key, value, axis=0),
            "in a batch the first axis counts the examples: the softmax runs over the keys, the last axis of the scores",
        ),
        Wrong(
            "scaled after the softmax",
            lambda query, key, value: _attend(query, key, value, divisor=1.0) / math.sqrt(query.shape[-1]),
            "the scale must act on the scores; behind the softmax the weights no longer sum to 1",
        ),
    ],
    hints=[
        "Three steps: scores, weights, output. `a @ b` multiplies the last two axes and carries leading ones along.",
        "Only the scores need a transposition, and it must exchange the last two axes alone: `swapaxes(-1, -2)`.",
        "terms = np.exp(...) of shape (..., T_q, T_k); weights = terms / terms.sum(axis=..., keepdims=True)",
    ],
)


def _erased(weights: np.ndarray, value: np.ndarray, factor: float) -> np.ndarray:
    """The first value is erased, and the last one gets it, times a factor."""
    other = value.copy()
    other[0] = 0.0
    other[-1] += factor * value[0]
    return other


def _spread(weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The first value is erased, and all others get the same share of it."""
    other = value + weights[0] / (1.0 - weights[0]) * value[0]
    other[0] = 0.0
    return other


def _only_last(weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The last value gives the whole output, and all others are erased."""
    other = np.zeros_like(value)
    other[-1] = weights @ value / weights[-1]
    return other


def _values(name: str, rng: np.random.Generator, kv_len: int, d_v: int, spread: float = 1.0) -> Case:
    return Case(name, weights=softmax(spread * rng.normal(size=kv_len)), value=rng.normal(size=(kv_len, d_v)))


OTHER_VALUES = Task(
    id="same-output-other-values",
    title="Another context, the same output",
    entry="my_values",
    kind="write",
    equation="output-of-a-query",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what one output cannot show",
    your_turn=True,
    answer=lambda weights, value: _erased(weights, value, weights[0] / weights[-1]),
    cases=lambda rng: [
        _values("five values of three numbers", rng, 5, 3),
        _values("three values of seven numbers", rng, 3, 7),
        _values("two values", rng, 2, 5),
        _values("values of one number", rng, 7, 1),
        _values("weights that differ much", rng, 11, 2, 2.0),
    ],
    wrong=[
        Wrong(
            "the first value is added to the last",
            lambda weights, value: _erased(weights, value, 1.0),
            "the last value counts with another weight than the first: what is added to it comes out with its own weight",
        ),
        Wrong(
            "the first value with its weight",
            lambda weights, value: _erased(weights, value, weights[0]),
            "the output has lost weight times value, but what is added to the last value comes out with the weight of the last",
        ),
        Wrong(
            "the ratio turned over",
            lambda weights, value: _erased(weights, value, weights[-1] / weights[0]),
            "a last value of small weight must change by much: its weight stands below the line",
        ),
        Wrong(
            "the sign turned round",
            lambda weights, value: _erased(weights, value, -weights[0] / weights[-1]),
            "what the first value gave is missing now: the last one must add it",
        ),
        Wrong(
            "nothing makes up for it",
            lambda weights, value: _erased(weights, value, 0.0),
            "the output has lost what the first value gave: the last one must make up for it",
        ),
        Wrong(
            "all others make up for it",
            _spread,
            "the output is the right one, but those between first and last must stay as they are",
        ),
        Wrong(
            "all erased but the last",
            _only_last,
            "the output is the right one, but only the first value is erased: those in between stay as they are",
        ),
    ],
    hints=[
        "By how much does the first value change, and what does that do to the output?",
        "Two terms of the sum of weight times change are not zero, and together they must be zero.",
        "Solve that for the change of the last value. Work on a copy: the input must stay as it is.",
    ],
)

TURNS = [ALL_SCORES, BATCHED_ATTENTION, OTHER_VALUES]
