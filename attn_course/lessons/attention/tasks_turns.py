"""What the lesson on attention asks its reader before it shows its own."""

import math

import numpy as np

from attn_course.tasks.core import Case, Task, Wrong


def _scores(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    return query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])


def _gradient(weights: np.ndarray, output: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> np.ndarray:
    return weights * (d_output @ value.T - (d_output * output).sum(axis=-1, keepdims=True))


def _pairs(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, *leading: int) -> Case:
    return Case(name, query=rng.normal(size=(*leading, q_len, d_k)), key=rng.normal(size=(*leading, kv_len, d_k)))


def _pass(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_v: int) -> Case:
    """Weights, the output they give, and a gradient there."""
    unnormalised = np.exp(rng.normal(size=(q_len, kv_len)))
    weights, value = unnormalised / unnormalised.sum(axis=-1, keepdims=True), rng.normal(size=(kv_len, d_v))
    return Case(name, weights=weights, output=weights @ value, value=value, d_output=rng.normal(size=(q_len, d_v)))


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

GRADIENT_OF_SCORES = Task(
    id="gain-over-mixture",
    title="The gradient of the scores in one line",
    entry="my_d_scores",
    kind="write",
    equation="score-gradient-against-mixture",
    points=1,
    difficulty=2,
    minutes=6,
    trains="from indices to arrays",
    your_turn=True,
    answer=_gradient,
    cases=lambda rng: [
        _pass("fewer queries than keys", rng, 3, 5, 2),
        _pass("more queries than keys", rng, 7, 3, 5),
        _pass("one query", rng, 1, 5, 3),
        _pass("values with one entry", rng, 5, 3, 1),
    ],
    wrong=[
        Wrong(
            "nothing subtracted",
            lambda weights, output, value, d_output: weights * (d_output @ value.T),
            "a score gains only by what its value is worth above the present mixture: subtract what the output is worth",
        ),
        Wrong(
            "the weight forgotten",
            lambda weights, output, value, d_output: _gradient(np.ones_like(weights), output, value, d_output),
            "the gain over the mixture is multiplied by the weight that the key already has",
        ),
        Wrong(
            "the sign turned",
            lambda weights, output, value, d_output: -_gradient(weights, output, value, d_output),
            "it is the value minus the mixture, v_j - z_i, and not the other way round",
        ),
        Wrong(
            "the plain mean for the mixture",
            lambda weights, output, value, d_output: weights * (d_output @ (value - value.mean(axis=0)).T),
            "the mixture is the output z_i, the average under the weights of row i; you subtracted the plain mean of all values",
        ),
    ],
    hints=[
        "All dot products of a row of dO with a value are one matrix product.",
        "What is subtracted is one number for each query: keep its axis, so that it broadcasts over the keys.",
        "weights * (d_output @ value.T - (...).sum(axis=1, keepdims=True))",
    ],
)

TURNS = [ALL_SCORES, GRADIENT_OF_SCORES]
