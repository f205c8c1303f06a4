"""What the lesson on attention asks its reader before it shows its own."""

import math

import numpy as np

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
        "query @ key.swapaxes(..., ...) / np.sqrt(query.shape[...])",
    ],
)

TURNS = [ALL_SCORES]
