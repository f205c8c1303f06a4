"""The graded tasks of lesson start: shapes and orientations."""

import math

import numpy as np

from attn_course.tasks.core import Case, Task, Wrong, every


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Positive weights of the shape of `scores` that sum to 1 along `axis`; a score of -inf gets the weight 0."""
    unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _rows(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int) -> dict[str, np.ndarray]:
    return {"query": rng.normal(size=(q_len, d_k)), "key": rng.normal(size=(kv_len, d_k))}


SCORES = Task(
    id="dot-product-table",
    title="A table of dot products",
    entry="my_scores",
    kind="write",
    equation="scores-in-columns",
    points=1,
    difficulty=1,
    minutes=2,
    trains="which side carries the transpose when rows are positions",
    answer=lambda query, key: query @ key.T,
    cases=lambda rng: [
        Case("fewer queries than keys", **_rows(rng, 3, 5, 2)),
        Case("more queries than keys", **_rows(rng, 7, 2, 3)),
        Case("as many queries as keys", **_rows(rng, 5, 5, 3)),
        Case("one query", **_rows(rng, 1, 5, 2)),
        Case("one key", **_rows(rng, 3, 1, 5)),
    ],
    wrong=[
        Wrong(
            "rows are keys",
            lambda query, key: key @ query.T,
            "your table is turned: row i, column j must hold query i times key j, so the queries come first",
        ),
        Wrong(
            "only pairs of the same number",
            lambda query, key: np.array([q @ k for q, k in zip(query, key, strict=False)]),
            "every query meets every key, not only the one of its own number: the result is a table",
        ),
        Wrong(
            "divided by the root of d_k",
            lambda query, key: query @ key.T / math.sqrt(query.shape[1]),
            "no scale is asked for here, only the plain dot products",
        ),
        Wrong(
            "weights instead of scores",
            lambda query, key: softmax(query @ key.T, -1),
            "no softmax yet: scores are the numbers before it",
        ),
        Wrong(
            "cosines",
            lambda query, key: query @ key.T / np.outer(np.linalg.norm(query, axis=1), np.linalg.norm(key, axis=1)),
            "do not divide by the lengths of the vectors: a dot product keeps them",
        ),
    ],
    hints=[
        "A matrix product multiplies rows of the left factor by columns of the right one.",
        "The rows of `key` must become columns: that is what `.T` does.",
        "`return query @ ...`, with the transposed keys.",
    ],
)

SHAPES = Task(
    id="shapes-in-columns",
    title="Shapes when columns are positions",
    entry="my_shapes",
    kind="predict",
    equation="attention-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="reading shapes off a formula in another dialect",
    variants=every(T_q=(5, 4), T_k=(11, 9, 13), d_k=(7,), d_v=(6, 3, 8)),
    answer=lambda T_q, T_k, d_k, d_v: (T_k, T_q, d_v, T_q),
    wrong=[
        Wrong(
            "as if rows were positions",
            lambda T_q, T_k, d_k, d_v: (T_q, T_k, T_q, d_v),
            "this text puts positions in columns: Q is features by queries, and everything else is turned too",
        ),
        Wrong(
            "the scores not turned",
            lambda T_q, T_k, d_k, d_v: (T_q, T_k, d_v, T_q),
            "K^T stands on the left, so the rows of the scores are keys; your output is right",
        ),
        Wrong(
            "the output not turned",
            lambda T_q, T_k, d_k, d_v: (T_k, T_q, T_q, d_v),
            "V stands on the left, so the rows of the output are the features of a value; your scores are right",
        ),
        Wrong(
            "one output for each key",
            lambda T_q, T_k, d_k, d_v: (T_k, T_q, d_v, T_k),
            "the inner lengths of V times the weights are the keys, and they vanish: what is left is one column per query",
        ),
        Wrong(
            "an output as long as a key",
            lambda T_q, T_k, d_k, d_v: (T_k, T_q, d_k, T_q),
            "an output is an average of values, so it is as long as a value",
        ),
    ],
    hints=[
        "Write the shape under each letter: Q is d_k by queries, K is d_k by keys, V is d_v by keys.",
        "Transposing exchanges the two numbers; in a product the inner two must agree, and vanish.",
        "(keys × d_k)(d_k × queries), and then (d_v × keys)(keys × queries).",
    ],
)


def _attend_columns(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, axis: int = 0, divisor: float | None = None) -> np.ndarray:
    scores = key.T @ query / (math.sqrt(query.shape[0]) if divisor is None else divisor)
    return np.asarray(value @ softmax(scores, axis))


def _columns(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    return {"query": rng.normal(size=(d_k, q_len)), "key": rng.normal(size=(d_k, kv_len)), "value": rng.normal(size=(d_v, kv_len))}


TRANSLATE = Task(
    id="columns-to-rows",
    title="Translate columns into rows",
    entry="my_rows",
    kind="write",
    equation="attention-in-columns",
    points=2,
    difficulty=2,
    minutes=6,
    trains="turning inputs, softmax axis, scale and output together",
    tolerance=3e-7,  # a root taken in float32 is no mistake of orientation
    answer=lambda query, key, value: _attend_columns(query, key, value).T,
    given=(softmax,),
    cases=lambda rng: [
        Case("fewer queries than keys", **_columns(rng, 3, 7, 5, 2)),
        Case("more queries than keys", **_columns(rng, 11, 5, 2, 3)),
        Case("one feature", **_columns(rng, 2, 5, 1, 3)),
        Case("one query", **_columns(rng, 1, 5, 2, 3)),
        Case("one key", **_columns(rng, 3, 1, 2, 5)),
        Case("one value feature", **_columns(rng, 3, 5, 2, 1)),
    ],
    wrong=[
        Wrong(
            "the output not turned",
            _attend_columns,
            "the numbers are right, but positions are still columns: the output is asked for with one row per query",
        ),
        Wrong(
            "softmax over the queries",
            lambda query, key, value: _attend_columns(query, key, value, axis=1).T,
            "weights sum to 1 over the keys; in `key.T @ query` these run down a column, axis 0",
        ),
        Wrong(
            "divided by the root of the number of queries",
            lambda query, key, value: _attend_columns(query, key, value, divisor=math.sqrt(query.shape[1])).T,
            "the last axis holds positions here: d_k is the number of rows, `query.shape[0]`",
        ),
        Wrong(
            "divided by the root of the number of keys",
            lambda query, key, value: _attend_columns(query, key, value, divisor=math.sqrt(key.shape[1])).T,
            "the scale is the root of d_k, the number of rows of `key`; you took its positions",
        ),
        Wrong(
            "no scale",
            lambda query, key, value: _attend_columns(query, key, value, divisor=1.0).T,
            "the scores are not divided by the root of d_k",
        ),
    ],
    hints=[
        "Turn what comes in: `query.T` has one row per query. From there on it is the row form of {eq}`attention-in-columns`.",
        "With rows, the softmax runs along the last axis, and the values stand on the right.",
        "`query, key, value = query.T, key.T, value.T`, then scores, softmax over axis -1, and `@ value`.",
    ],
)


def _column_weights_broken(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Causal weights, columns are positions: query and key (d_k, length) -> (length, length), each column a query."""
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.triu(np.ones((length, length), dtype=bool), k=1)
    return softmax(np.where(hidden, -np.inf, scores), axis=-1)


def _causal_columns(query: np.ndarray, key: np.ndarray, *, upper: bool = False, axis: int = 0, k: int = 1) -> np.ndarray:
    length = query.shape[1]
    ones = np.ones((length, length), dtype=bool)
    hidden = np.triu(ones, k) if upper else np.tril(ones, -k)
    return softmax(np.where(hidden, -np.inf, key.T @ query / math.sqrt(query.shape[0])), axis)


def _masked_late(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    weights = softmax(key.T @ query / math.sqrt(query.shape[0]), 0)
    return np.asarray(np.triu(weights))


def _positions(rng: np.random.Generator, length: int, d_k: int) -> dict[str, np.ndarray]:
    return {"query": rng.normal(size=(d_k, length)), "key": rng.normal(size=(d_k, length))}


def _at_one_score(rng: np.random.Generator, length: int, score: float) -> dict[str, np.ndarray]:
    """Positions whose scores are all this one, a power of two, or its negative, by turns from query to query; exact in any precision."""
    arrays = _positions(rng, length, 4)
    arrays["query"][...] = 0.0
    arrays["query"][0] = np.where(np.arange(length) % 2, 2.0**20, -(2.0**20))
    arrays["key"][0] = 2.0 * score / 2.0**20
    return arrays


ORIENTATION = Task(
    id="repair-column-mask",
    title="Repair a mask copied from another dialect",
    entry="column_weights",
    kind="repair",
    equation="causal-mask-in-columns",
    points=2,
    difficulty=2,
    minutes=6,
    trains="the triangle of the mask and the axis of the softmax go together",
    answer=_causal_columns,
    broken=_column_weights_broken,
    given=(softmax,),
    exact_zeros=True,
    cases=lambda rng: [
        Case("three positions", **_positions(rng, 3, 2)),
        Case("seven positions", **_positions(rng, 7, 5)),
        Case("one position", **_positions(rng, 1, 5)),
        Case("all scores of a query -2^40 or 2^40", **_at_one_score(rng, 5, 2.0**40)),
    ],
    wrong=[
        Wrong(
            "triangle and axis of the row form",
            lambda query, key: _causal_columns(query, key, upper=True, axis=-1),
            "both lines are those of a table whose rows are queries; in `key.T @ query` the columns are queries",
        ),
        Wrong(
            "the triangle of the row form",
            lambda query, key: _causal_columns(query, key, upper=True),
            "the axis is right, but you hide the past: a hidden pair has a key (row) after its query (column), and that lies below",
        ),
        Wrong(
            "the axis of the row form",
            lambda query, key: _causal_columns(query, key, axis=-1),
            "the triangle is right, but your weights sum to 1 over the queries; each column must sum to 1",
        ),
        Wrong(
            "the diagonal hidden too",
            lambda query, key: _causal_columns(query, key, k=0),
            "a position may see itself; with the diagonal hidden, the first query is left with nothing",
        ),
        Wrong(
            "masked after the softmax",
            _masked_late,
            "hidden scores become minus infinity before the softmax; zeros put in afterwards leave columns that do not sum to 1",
        ),
        Wrong(
            "turned into the row form",
            lambda query, key: _causal_columns(query, key).T,
            "the numbers are right, but the result must keep the dialect of its inputs: columns are queries",
        ),
    ],
    hints=[
        "Name the axes of `key.T @ query`: which one is the key, which one the query?",
        "Hidden is key j > query i, that is row > column. On which side of the diagonal is that? And what sums to 1?",
        "`np.tril(..., k=-1)` marks the cells below the diagonal; the softmax runs over `axis=0`.",
    ],
)

TASKS = [SCORES, SHAPES, TRANSLATE, ORIENTATION]
