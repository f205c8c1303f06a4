"""The tasks of lesson start: scores and outputs by hand, shapes and orientations."""

import math
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.start.tasks_sentence import SENTENCE
from attn_course.sentence import KEY, QUERY, TOKENS
from attn_course.tasks.core import Case, Task, Wrong, at_sizes, every


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Weights that sum to 1 along `axis`; a score of -inf gets the weight 0."""
    unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _score_table(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    return np.asarray((x @ w_query) @ (x @ w_key).T)


def _words(rng: np.random.Generator, length: int, d_model: int, d_k: int) -> dict[str, np.ndarray]:
    return {
        "x": rng.normal(size=(length, d_model)),
        "w_query": rng.normal(size=(d_model, d_k)),
        "w_key": rng.normal(size=(d_model, d_k)),
    }


SCORES = Task(
    id="scores-from-words",
    title="Who asks whom",
    entry="my_scores",
    kind="write",
    equation="score-entry-by-entry",
    points=1,
    difficulty=1,
    minutes=4,
    trains="matrices on the right of the words, queries in the rows",
    answer=_score_table,
    cases=lambda rng: [
        Case("more words than features", **_words(rng, 7, 5, 3)),
        Case("more features than words", **_words(rng, 3, 7, 2)),
        Case("one word", **_words(rng, 1, 5, 2)),
        Case("one number in a query", **_words(rng, 5, 3, 1)),
        Case("one feature", **_words(rng, 3, 1, 5)),
    ],
    wrong=[
        Wrong(
            "the keys ask",
            lambda x, w_query, w_key: _score_table(x, w_query, w_key).T,
            "your table is turned: row i, column j must hold query i times key j, so the queries stand on the left",
        ),
        Wrong(
            "queries in the place of the keys",
            lambda x, w_query, w_key: _score_table(x, w_query, w_query),
            "you compare queries with queries, so that your table is symmetric: the second factor is made with `w_key`",
        ),
        Wrong(
            "keys in the place of the queries",
            lambda x, w_query, w_key: _score_table(x, w_key, w_key),
            "you compare keys with keys, so that your table is symmetric: the first factor is made with `w_query`",
        ),
        Wrong(
            "each word with itself alone",
            lambda x, w_query, w_key: ((x @ w_query) * (x @ w_key)).sum(axis=1),
            "every word asks every word, not only itself: the result is a table",
        ),
        Wrong(
            "divided by the root of d_k",
            lambda x, w_query, w_key: _score_table(x, w_query, w_key) / math.sqrt(w_query.shape[1]),
            "no scale is asked for here, only the plain dot products",
        ),
        Wrong(
            "weights instead of scores",
            lambda x, w_query, w_key: softmax(_score_table(x, w_query, w_key), -1),
            "no softmax yet: scores are the numbers before it",
        ),
    ],
    hints=[
        "Make the queries first, one row for each word; then the keys, in the same way.",
        "A word is a row, so its matrix stands on the right: `x @ w_query` has one query in each row.",
        "Two tables of shape (T, d_k) give one of shape (T, T): which of them must be turned with `.T`, so that row i belongs to query i?",
    ],
)


def _by_hand(*, query: str = "tired", sign: int = 1) -> tuple[float, ...]:
    """The scores of a word with cat, sat and tired; with sign 0 as they come out without any minus."""
    asked, keys = QUERY[0, TOKENS.index(query)], KEY[0, [TOKENS.index(word) for word in ("cat", "sat", "tired")]]
    return tuple((keys @ asked if sign else abs(keys) @ abs(asked)).tolist())


BY_HAND = Task(
    id="scores-by-hand",
    title="Three scores by hand",
    entry="my_three",
    kind="predict",
    equation="score-entry-by-entry",
    points=1,
    difficulty=1,
    minutes=2,
    trains="the dot product of a query with a key",
    your_turn=True,
    answer=_by_hand,
    wrong=[
        Wrong("signs forgotten", partial(_by_hand, sign=0), "some entries of the keys are negative: their products are subtracted"),
        Wrong("the query of it", partial(_by_hand, query="it"), "these are the scores of “it”; the query of “tired” is (2, 1, 0, 2)"),
        Wrong(
            "the key of tired for its query",
            lambda: tuple((KEY[0, [1, 2, 6]] @ KEY[0, 6]).tolist()),
            "you multiplied with the key of “tired”, which says by what it can be found; what it looks for is its query, (2, 1, 0, 2)",
        ),
    ],
    hints=[
        "Multiply the first number of the query by the first of the key, the second by the second, and so on; then add the four products.",
        "A minus in the key makes its product negative.",
        "With “it”, whose key is (0, 0, 2, 0), it would be 2 · 0 + 1 · 0 + 0 · 2 + 2 · 0. Do the same with the other three keys.",
    ],
)


def _averages(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> dict[str, Any]:
    weights, value = softmax(rng.normal(size=(T_q, T_k)), -1), rng.normal(size=(T_k, d_v))
    output = np.array([np.average(value, axis=0, weights=row) for row in weights])
    return {"P": weights, "V": value, "Z": output, "T_q": T_q, "T_k": T_k, "d_v": d_v}


OUTPUT = Task(
    id="output-as-formula",
    title="An output as a formula",
    entry="my_output",
    kind="formula",
    equation="score-entry-by-entry",
    points=1,
    difficulty=1,
    minutes=3,
    trains="which index a sum runs over",
    your_turn=True,
    symbols=("P", "V", "T_q", "T_k", "d_v"),
    left="Z_{ia}",
    cases=at_sizes("T_q T_k d_v", _averages),
    answer=r"\sum_{j=1}^{T_k} P_{ij} V_{ja}",
    wrong=[
        Wrong("the weights left out", r"\sum_{j=1}^{T_k} V_{ja}", "each value counts with its weight, P_{ij}"),
        Wrong(
            "the values left out", r"\sum_{j=1}^{T_k} P_{ij}", "that is the sum of the weights, which is 1; each of them multiplies a value"
        ),
        Wrong("a plain mean", r"\frac{1}{T_k} \sum_{j=1}^{T_k} V_{ja}", "that gives every value the same weight; the weights are P_{ij}"),
        Wrong(
            "divided by the number of keys",
            r"\frac{1}{T_k} \sum_{j=1}^{T_k} P_{ij} V_{ja}",
            "the weights sum to 1 already, so the sum is an average as it stands: do not divide by T_k",
        ),
    ],
    hints=[
        "Whose weights are they, and over what do they sum to 1? The sum runs over that.",
        "The index i of the query stays on P, and the index a of the feature stays on V.",
        "It is a sum over j, from 1 to the number of keys, of a weight times a number of a value.",
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
        "The first product is (keys × d_k)(d_k × queries), and the second begins with (d_v × keys): which lengths are left of each?",
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
        "In rows, the scores are (q_len, kv_len) and the output is (q_len, d_v); d_k is then the last axis of the turned query.",
    ],
)


def _column_weights_broken(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """query and key (d_k, length) -> causal weights (length, length), in columns."""
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
        "Two lines change: the triangle, and the axis. Write a table for three words: which three of its nine cells are hidden?",
    ],
)

TASKS = [SCORES, BY_HAND, OUTPUT, *SENTENCE, SHAPES, TRANSLATE, ORIENTATION]
