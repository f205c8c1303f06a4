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
        "Three steps: scores, weights, output. The first is `my_scores`, which you have written.",
        "Only the scores need a transposition, and it must exchange the last two axes alone.",
        "terms = np.exp(...) of shape (..., T_q, T_k); weights = terms / terms.sum(axis=..., keepdims=True)",
    ],
)

TURNS = [ALL_SCORES, BATCHED_ATTENTION]
