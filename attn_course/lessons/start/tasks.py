"""The tasks of lesson start: scores and outputs, and what no query can reach; those about our sentence are in tasks_sentence.py."""

from typing import Any

import numpy as np

from attn_course.tasks.asked import asked, asked_formula, note, tried
from attn_course.tasks.core import at_sizes, every


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Weights that sum to 1 along `axis`; a score of -inf gets the weight 0."""
    unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _words(normal, length, d_model, d_k):
    return {"x": normal(d_model, length), "w_query": normal(d_model, d_k), "w_key": normal(d_model, d_k)}


WORDS = """
more words than features: 7 5 3
more features than words: 3 7 2
one word: 1 5 2
one number in a query: 5 3 1
one feature: 3 1 5
a square text: as many words as features: 5 5 3
"""


@asked(
    "scores-from-words",
    "Who asks whom",
    kind="write",
    equation="score-entry-by-entry",
    points=1,
    difficulty=1,
    minutes=4,
    trains="words in columns turned into rows, queries in the rows of the table",
    cases=tried(_words, WORDS),
    slips="""
        the keys ask
            (x.T @ w_query) @ (x.T @ w_key).T -> (x.T @ w_key) @ (x.T @ w_query).T
            your table is turned: row i, column j must hold query i times key j, so the queries stand on the left
        queries in the place of the keys
            x.T @ w_key -> x.T @ w_query
            you compare queries with queries, so that your table is symmetric: the second factor is made with `w_key`
        keys in the place of the queries
            x.T @ w_query -> x.T @ w_key
            you compare keys with keys, so that your table is symmetric: the first factor is made with `w_query`
        each word with itself alone
            (x.T @ w_query) @ (x.T @ w_key).T -> ((x.T @ w_query) * (x.T @ w_key)).sum(axis=1)
            every word asks every word, not only itself: the result is a table
        divided by the root of d_k
            w_key).T -> w_key).T / np.sqrt(w_query.shape[1])
            no scale is asked for here, only the plain dot products
        weights instead of scores
                return (x.T @ w_query) @ (x.T @ w_key).T
                ->
                terms = np.exp((x.T @ w_query) @ (x.T @ w_key).T)
                return terms / terms.sum(axis=1, keepdims=True)
            no softmax yet: scores are the numbers before it
    """,
    hints="""
        The two matrices are made for words in rows. So turn the text first.
        Then make the queries, one row for each word, and the keys in the same way: each has the shape (T, d_k).
        Two tables of shape (T, d_k) give one of shape (T, T): which of them must be turned with `.T`, so that row i belongs to query i?
    """,
    why=r"""
        Turned, the text has a word in each row, and its matrix stands on the right. Row $i$ of the left factor meets column $j$ of the
        right one, and column $j$ of $K^\top$ is row $j$ of $K$. The word that asks stands on the left, so its number is the row. If the
        text has as many words as features, `x @ w_query` does not fail, and is wrong. The two matrices may also meet first, `x.T @ (w_query
        @ w_key.T) @ x`: lesson {lesson}`absorption` lives on that.
    """,
)
def my_scores(x, w_query, w_key):
    """x (d_model, T), w_query and w_key (d_model, d_k) -> (T, T), rows ask.

    Here a word is a **column**: column $i$ of `x`, of shape `(d_model, T)`, is word $i$. The two matrices of shape `(d_model, d_k)` are
    made for rows, as in the lesson: a word as a row times `w_query` is its query, and times `w_key` its key. All are float64. Write
    `my_scores(x, w_query, w_key)`: it returns the table of shape `(T, T)` whose row $i$, column $j$ holds the dot product of query $i$
    with key $j$. No scale, no softmax.
    """
    return (x.T @ w_query) @ (x.T @ w_key).T


@asked(
    "scores-by-hand",
    "Three scores by hand",
    kind="predict",
    equation=None,
    points=1,
    difficulty=1,
    minutes=2,
    trains="the dot product of a query with a key",
    your_turn=True,
    slips="""
        signs forgotten
            8, -4, 0 -> 8, 4, 4
            two products are negative: the wish has −2 for “open”, and the fourth number of “tired” is −1
        a minus forgotten
            8, -4, 0 -> 8, -4, 4
            the fourth number of “tired” is −1, so its product with 2 is negative
        open not counted
            8, -4, 0 -> 8, 0, 0
            the third number of the wish is −2, and “it” is open by 2: their product counts
    """,
    hints="""
        Multiply the first number of the wish by the first of the key, the second by the second, and so on; then add the four products.
        A minus in the wish or in the key makes a product negative, or 0.
        With “sat”, whose key is (0, 2, 0, −2), it would be 2 · 0 + 0 · 2 + (−2) · 0 + 2 · (−2). Do the same with the three keys.
    """,
)
def my_three():
    """Calculate the scores of this wish, $(2, 0, -2, 2)$, with "cat", "it" and "tired". Their keys are now $(2, 0, 0, 2)$,
    $(0, 0, 2, 0)$ and $(1, 2, 0, -1)$.
    """
    return (8, -4, 0)


def _averages(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> dict[str, Any]:
    weights, value = softmax(rng.normal(size=(T_q, T_k)), -1), rng.normal(size=(T_k, d_v))
    output = np.array([np.average(value, axis=0, weights=row) for row in weights])
    return {"P": weights, "V": value, "Z": output, "T_q": T_q, "T_k": T_k, "d_v": d_v}


my_output = asked_formula(
    "output-as-formula",
    "An output as a formula",
    entry="my_output",
    asks=r"""
        Let $P_{ij}$ be the weight that query $i$ gives to key $j$, and $V_{ja}$ number $a$ of value $j$. With these, write number $a$ of
        the output of query $i$, called $Z_{ia}$, in LaTeX (only the right side, without $Z_{ia} =$). For example,
        `r"\sum_{n=1}^{N} x_{nm}"` is $\sum_{n=1}^{N} x_{nm}$.
    """,
    equation="output-entry-by-entry",
    points=1,
    difficulty=1,
    minutes=3,
    trains="which index a sum runs over",
    answer=r"\sum_{j=1}^{T_k} P_{ij} V_{ja}",
    symbols=("P", "V", "T_q", "T_k", "d_v"),
    left="Z_{ia}",
    cases=at_sizes("T_q T_k d_v", _averages),
    slips=r"""
        the weights left out
            P_{ij} ->
            each value counts with its weight, P_{ij}
        the values left out
            V_{ja} ->
            that is the sum of the weights, which is 1; each of them multiplies a value
        a plain mean
            \sum_{j=1}^{T_k} P_{ij} -> \frac{1}{T_k} \sum_{j=1}^{T_k}
            that gives every value the same weight; the weights are P_{ij}
        divided by the number of keys
            \sum -> \frac{1}{T_k} \sum
            the weights sum to 1 already, so the sum is an average as it stands: do not divide by T_k
    """,
    hints="""
        Whose weights are they, and over what do they sum to 1? The sum runs over that.
        The index i of the query stays on P, and the index a of the feature stays on V.
        It is a sum over j, from 1 to the number of keys, of a weight times a number of a value.
    """,
    why="""
        The sum runs over the words that are asked, and each value counts with its weight, {eq}`output-entry-by-entry`. The check evaluates
        what you write, so every equal form passes, with whatever letter under the sum. It also knows some mistakes by name: put
        `\\frac{1}{T_k}` in front, and see what it says.
    """,
)


@asked(
    "key-in-the-middle",
    "A key in the middle",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=7,
    trains="showing what no query can reach",
    variants=every(corners=(5, 6, 7), eggs=(2, 4)),
    digits=6,
    slips="""
        one egg only
            eggs -> 1
            there are more eggs than one; they have the same key, so they have the same weight, and all weights together are 1
        the eggs alone
            corners + eggs -> eggs
            no query makes all other weights small: the score of “egg” is the average of those of the long keys, so one is as large
        the long keys alone
            corners + eggs -> corners
            the weights of the eggs are a part of the sum as well
        all words
            eggs -> eggs + 3
            that is what a query of zeros gives; a better one makes the weights of the words with keys of zeros as small as you like
        as halfway between two
            corners + eggs -> 3
            a third is for one word whose key lies halfway between two others; here more words share
    """,
    hints="""
        What is the score of “egg”, written with the scores of the words with the long keys? And its power of $e$, written with theirs?
        The geometric mean of $n$ positive numbers, the $n$-th root of their product, is at most their average: equal if they are.
        Compare an egg with the long keys in this way; all weights sum to 1, and all eggs have the same. Which query comes near?
    """,
    why=r"""
        The key of "egg" is the average of the $n$ long keys. So its score is the average of theirs, and its power the $n$-th root of the
        product of their powers. After the division by the sum of all powers, $p_\text{egg} = (p_1 \cdots p_n)^{1/n}$. This geometric mean
        is at most the average, so $n\, p_\text{egg} \le p_1 + \dots + p_n$. All $m$ eggs have the same weight, and three other weights are
        positive, so the right side is less than $1 - m\, p_\text{egg}$. Together, $(n + m)\, p_\text{egg} < 1$. The query $(c, \dots, c)$
        with a large $c$ comes near: the eggs and the words with long keys have the score $n c$, the three others 0. With $n = 2$ and $m =
        1$ this is the third of the lesson.
    """,
)
def my_bound(corners, eggs):
    r"""A text has $n$ words with long keys: $(n, 0, \dots, 0)$, then $(0, n, 0, \dots, 0)$, and so on until $(0, \dots, 0, n)$. The word
    "egg" stands in it several times, always with the key $(1, 1, \dots, 1)$, and three more words have keys of zeros. Scores are
    divided by $\sqrt n$, and the softmax over all words makes weights of them. Whatever the query, the weight of a single egg stays
    below a certain number, and some queries bring it as near to that number as you like. Which number is it? The cell below prints
    $n$ as `corners`, and the number of eggs. Write `my_bound`.
    """
    return 1 / (corners + eggs)


def _one_query(normal, T_k, d_k, d_v):
    return {"query": normal(d_k), "key": normal(T_k, d_k), "value": normal(T_k, d_v)}


ONE_QUERY = """
more words than numbers: 7 3 2
as many words as numbers: 5 5 3
one word: 1 3 5
one number in a query: 3 1 7
one number in a value: 5 2 1
"""


@asked(
    "output-of-one-query",
    "One word asks",
    kind="write",
    equation=None,
    points=1,
    difficulty=1,
    minutes=8,
    trains="score, weight and average as three lines",
    your_turn=True,
    tolerance=3e-7,
    cases=tried(_one_query, ONE_QUERY),
    slips="""
        no scale
            ` / np.sqrt(len(query))` ->
            divide the scores by the root of the length of a query, before e is raised to them
        divided by 2
            np.sqrt(len(query)) -> 2
            2 was for the sentence; here the divisor is the root of the length of a query, whatever it is
        the root of the number of words
            len(query) -> len(key)
            the divisor is the root of the length of a query, however many words are asked
        divided by the length of a query
            np.sqrt(len(query)) -> len(query)
            the divisor is the root of the length of a query
        not divided by the sum
            powers @ value / powers.sum() -> powers @ value
            powers of e are weights only after the division by their sum
        the keys averaged
            powers @ value -> powers @ key
            keys are for comparing; what is averaged is the values
        the best word alone
            powers @ value / powers.sum() -> value[np.argmax(powers)]
            every word hands over its value, times its weight: it is an average, not a choice
        a plain mean
            powers @ value / powers.sum() -> value.mean(axis=0)
            each value counts with its own weight
    """,
    hints="""
        Three lines will do: scores, powers of e, and an average. You have seen each of them with the numbers of "it".
        `key @ query` makes all scores at once. By what are they divided here? `len(query)` is the number of numbers in a query.
        Weights are the powers divided by their sum, and `weights @ value` multiplies each value by its weight and adds up.
    """,
)
def my_answer(query, key, value):
    """query (d_k,), key (T_k, d_k), value (T_k, d_v) -> (d_v,).

    Write `my_answer(query, key, value)`: it returns what one word takes home. The shape of `query` is `(d_k,)`. Each row of `key`,
    `(T_k, d_k)`, and of `value`, `(T_k, d_v)`, belongs to one of the $T_k$ words that are asked, and $d_v$ is how many numbers a value
    has. $T_k$ can also be 1 {case}`one word`. All are float64 NumPy arrays, and the result has the shape `(d_v,)`. Divide the scores by
    $\\sqrt{d_k}$; the test also uses other $d_k$ than 4, and no score so large that a power of $e$ overflows
    {every}`(np.abs(key @ query) < 100).all()`.
    """
    powers = np.exp(key @ query / np.sqrt(len(query)))
    return powers @ value / powers.sum()


ORDER = [
    note(
        "title",
        """
        For most a pencil is enough. Each stands on its own.

        Answers are numbers, or NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must
        not change its inputs.
    """,
    ),
    "scores-from-words",
    "taken-home-by-hand",
    "what-cat-hands-over",
    "repair-taking-home",
    "share-for-sat",
    "weight-between-two",
    "key-in-the-middle",
    "output-as-formula",
    "scores-by-hand",
    "output-of-one-query",
]
