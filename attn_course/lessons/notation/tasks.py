"""The tasks of lesson notation: shapes, orientations, masks and stored matrices in another dialect."""

import math
from typing import Any

import numpy as np

from attn_course.tasks.core import Case, Task, Wrong, at_sizes, every


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Weights that sum to 1 along `axis`; a score of -inf gets the weight 0."""
    unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


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
    trains="turning the triangle of the mask and the axis of the softmax together",
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


STORED = Task(
    id="stored-by-linear",
    title="What a layer stores",
    entry="my_place",
    kind="predict",
    equation="projection-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="reading a stored matrix: which axis goes in, which comes out",
    variants=every(d_in=(7, 9), d_out=(5, 6), m=(6, 4), n=(3, 1)),
    answer=lambda d_in, d_out, m, n: (d_out, d_in, n, m),
    wrong=[
        Wrong(
            "our own matrix",
            lambda d_in, d_out, m, n: (d_in, d_out, m, n),
            "that is our W, with what goes in along its rows; the layer stores its transpose",
        ),
        Wrong(
            "only the shape turned",
            lambda d_in, d_out, m, n: (d_out, d_in, m, n),
            "your shape is right; but where the shape is turned, the two indices of an entry change places too",
        ),
        Wrong(
            "only the place turned",
            lambda d_in, d_out, m, n: (d_in, d_out, n, m),
            "your place is right; but it is a place in a matrix of the shape (out, in)",
        ),
        Wrong(
            "both places one too far",
            lambda d_in, d_out, m, n: (d_out, d_in, n + 1, m + 1),
            "all are counted from 0 here, as Python counts, so n and m are taken as they are",
        ),
    ],
    hints=[
        "The layer multiplies a row with the transpose of what it stores. Which shape must the stored matrix have?",
        "In our matrix each column makes one number that comes out. What makes it in the stored one?",
        "The stored matrix has one row for each number that comes out, and in this row one entry for each number that goes in.",
    ],
)

PACKED = Task(
    id="row-of-packed-weight",
    title="A key in the packed matrix",
    entry="my_row",
    kind="predict",
    equation="projection-in-columns",
    points=1,
    difficulty=2,
    minutes=4,
    trains="finding a head in weights that are packed and turned",
    variants=every(E=(24, 48), H=(4, 6), h=(2, 3), a=(3, 1)),
    answer=lambda E, H, h, a: E + h * (E // H) + a,
    wrong=[
        Wrong(
            "a query instead of a key",
            lambda E, H, h, a: h * (E // H) + a,
            "the first E rows make queries; those of the keys lie below them",
        ),
        Wrong(
            "a value instead of a key",
            lambda E, H, h, a: 2 * E + h * (E // H) + a,
            "you went too far down: the last E rows make the values",
        ),
        Wrong("the heads taken for the numbers", lambda E, H, h, a: E + a * H + h, "the rows of one head lie together, E / H of them"),
        Wrong("no rows of earlier heads", lambda E, H, h, a: E + a, "the rows of the heads before this one come first, E / H for each"),
        Wrong(
            "one head too many", lambda E, H, h, a: E + (h + 1) * (E // H) + a, "heads are counted from 0, so h heads lie before this one"
        ),
    ],
    hints=[
        "The matrix has 3 E rows: first those that make queries, then those that make keys, then those that make values.",
        "Inside the part of the keys, head 0 has the first E / H rows, head 1 the next ones.",
        "Add three numbers: the rows of all queries, the rows of the heads that come first, and the place inside this head.",
    ],
)


def _column_averages(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> dict[str, Any]:
    weights, value = softmax(rng.normal(size=(T_k, T_q)), 0), rng.normal(size=(d_v, T_k))
    output = np.array([np.average(value, axis=1, weights=column) for column in weights.T]).T
    return {"A": weights, "V": value, "O": output, "T_q": T_q, "T_k": T_k, "d_v": d_v}


OUTPUT = Task(
    id="output-in-columns",
    title="An output in columns",
    entry="my_column_output",
    kind="formula",
    equation="attention-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="indices where columns are positions",
    your_turn=True,
    symbols=("A", "V", "T_q", "T_k", "d_v"),
    left="O_{ai}",
    cases=at_sizes("T_q T_k d_v", _column_averages),
    answer=r"\sum_{j=1}^{T_k} V_{aj} A_{ji}",
    wrong=[
        Wrong("the weights left out", r"\sum_{j=1}^{T_k} V_{aj}", "each value counts with its weight, which stands in column i of A"),
        Wrong(
            "the values left out", r"\sum_{j=1}^{T_k} A_{ji}", "that is the sum of the weights, which is 1; each of them multiplies a value"
        ),
        Wrong(
            "a plain mean",
            r"\frac{1}{T_k} \sum_{j=1}^{T_k} V_{aj}",
            "that gives every value the same weight; the weights of query i stand in column i of A",
        ),
        Wrong(
            "divided by the number of keys",
            r"\frac{1}{T_k} \sum_{j=1}^{T_k} V_{aj} A_{ji}",
            "each column of A sums to 1 already, so the sum is an average as it stands: do not divide by T_k",
        ),
    ],
    hints=[
        "Each column of A belongs to one query. Which index of A is the query, then, and which one the key?",
        "A value is a column of V, so the feature a is the first index of V.",
        "It is a sum over the keys j, from 1 to T_k, of number a of value j times the weight in row j and column i.",
    ],
)

HIDDEN = Task(
    id="hidden-in-columns",
    title="Hidden cells, counted",
    entry="my_hidden",
    kind="predict",
    equation="causal-mask-in-columns",
    points=1,
    difficulty=1,
    minutes=2,
    trains="reading a causal mask whose columns ask",
    your_turn=True,
    answer=lambda: (4, 3, 1),
    wrong=[
        Wrong(
            "as if rows asked", lambda: (0, 1, 3), "you counted as if the rows were queries; here the columns ask, and the rows are keys"
        ),
        Wrong("the diagonal hidden too", lambda: (5, 4, 2), "a word may see itself: the diagonal is not hidden"),
        Wrong("what may be seen", lambda: (1, 2, 4), "these cells may be seen; the hidden ones are the rest of the five"),
    ],
    hints=[
        "The first column holds the scores of the first word with all five keys. Which of them may it see?",
        "Hidden is every key that comes after the query, and nothing else.",
        "The second row is one key, the second word. Which of the five words come before it, so that it is hidden from them?",
    ],
)

TASKS = [SHAPES, TRANSLATE, ORIENTATION, STORED, PACKED, OUTPUT, HIDDEN]
