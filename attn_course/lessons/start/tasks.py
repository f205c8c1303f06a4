"""The tasks of lesson start: scores and outputs by hand, and what no query can reach."""

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
    return np.asarray((x.T @ w_query) @ (x.T @ w_key).T)


def _words(rng: np.random.Generator, length: int, d_model: int, d_k: int) -> dict[str, np.ndarray]:
    return {
        "x": rng.normal(size=(d_model, length)),
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
    trains="words in columns turned into rows, queries in the rows of the table",
    answer=_score_table,
    cases=lambda rng: [
        Case("more words than features", **_words(rng, 7, 5, 3)),
        Case("more features than words", **_words(rng, 3, 7, 2)),
        Case("one word", **_words(rng, 1, 5, 2)),
        Case("one number in a query", **_words(rng, 5, 3, 1)),
        Case("one feature", **_words(rng, 3, 1, 5)),
        Case("a square text: as many words as features", **_words(rng, 5, 5, 3)),
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
            lambda x, w_query, w_key: ((x.T @ w_query) * (x.T @ w_key)).sum(axis=1),
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
        "The two matrices are made for words in rows. So turn the text first.",
        "Then make the queries, one row for each word, and the keys in the same way: each has the shape (T, d_k).",
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
    equation=None,
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
    equation=None,
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


def _most(corners: int, eggs: int) -> float:
    return 1 / (corners + eggs)


MIDDLE = Task(
    id="key-in-the-middle",
    title="A key in the middle",
    entry="my_bound",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=7,
    trains="showing what no query can reach",
    tolerance=1e-6,
    variants=every(corners=(5, 6, 7), eggs=(2, 4)),
    answer=_most,
    wrong=[
        Wrong(
            "one egg only",
            lambda corners, eggs: 1 / (corners + 1),
            "there are more eggs than one; they have the same key, so they have the same weight, and all weights together are 1",
        ),
        Wrong(
            "the eggs alone",
            lambda corners, eggs: 1 / eggs,
            "no query makes all other weights small: the score of “egg” is the average of those of the long keys, so one is as large",
        ),
        Wrong(
            "the long keys alone",
            lambda corners, eggs: 1 / corners,
            "the weights of the eggs are a part of the sum as well",
        ),
        Wrong(
            "all words",
            lambda corners, eggs: 1 / (corners + eggs + 3),
            "that is what a query of zeros gives; a better one makes the weights of the words with keys of zeros as small as you like",
        ),
        Wrong(
            "as halfway between two",
            lambda corners, eggs: 1 / 3,
            "a third is for one word whose key lies halfway between two others; here more words share",
        ),
    ],
    hints=[
        "What is the score of “egg”, written with the scores of the words with the long keys? And its power of $e$, written with theirs?",
        "The geometric mean of $n$ positive numbers, the $n$-th root of their product, is at most their average: equal if they are.",
        "Compare an egg with the long keys in this way; all weights sum to 1, and all eggs have the same. Which query comes near?",
    ],
)

TASKS = [SCORES, BY_HAND, OUTPUT, *SENTENCE, MIDDLE]
