"""What the lesson on attention asks its reader before it shows its own."""

import numpy as np

from attn_course.reference import attention, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried


def _pairs(normal, q_len, kv_len, d_k, *leading):
    return {"query": normal(*leading, q_len, d_k), "key": normal(*leading, kv_len, d_k)}


PAIRS = """
no leading axis: 3 5 7
a batch of two: 7 3 5 2
two leading axes: 5 7 11 2 3
one query: 1 5 3 2
"""


@asked(
    "all-scores",
    "Scores for any batch",
    kind="write",
    equation="scaled-score",
    points=1,
    difficulty=1,
    minutes=4,
    trains="leading axes",
    your_turn=True,
    cases=tried(_pairs, PAIRS),
    slips="""
        no scale
            ` / np.sqrt(query.shape[-1])` ->
            the dot products are divided by the root of d_k
        divided by d_k
            np.sqrt(query.shape[-1]) -> query.shape[-1]
            a dot product of d_k terms spreads like the root of d_k; you divided by d_k itself
        axis 1 for the features
            query.shape[-1] -> query.shape[1]
            with leading axes in front, axis 1 is no longer that of the features: count from the end, `query.shape[-1]`
        the keys ask
            query @ key.swapaxes(-1, -2) -> key @ query.swapaxes(-1, -2)
            the first index asks: row i belongs to query i, and column j to key j
    """,
    hints="""
        Row i of the result belongs to query i, column j to key j.
        `@` takes matrix products over the last two axes; which two axes of the keys must be exchanged?
        Two operations: a product of two arrays, one of them with two axes exchanged, and a division by a root.
    """,
)
def my_scores(query, key):
    r"""All scores of queries and keys.

    Write `my_scores(query, key)`: all scores, divided by $\sqrt{d_k}$, for float64 queries $(\ldots, T_q, d_k)$ and keys
    $(\ldots, T_k, d_k)$ with the same leading axes: none, one or more.
    """
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


def _inputs(normal, q_len, kv_len, d_k, d_v, *leading):
    return {**_pairs(normal, q_len, kv_len, d_k, *leading), "value": normal(*leading, kv_len, d_v)}


INPUTS = """
no leading axis: 3 5 7 2
as many queries as keys: 5 5 3 2 7
a batch of two: 7 3 5 11 2
two leading axes: 5 7 11 3 2 13
one query: 1 5 3 2 7
one key: 5 1 3 2 7
"""


@asked(
    "attention-of-batches",
    "Batched attention",
    kind="write",
    equation="batched-attention",
    points=2,
    difficulty=2,
    minutes=5,
    trains="the whole formula, for any leading axes",
    judged_by=attention,
    your_turn=True,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=tried(_inputs, INPUTS),
    slips="""
        no scale
            ` / np.sqrt(query.shape[-1])` ->
            the scores are not divided by the root of d_k, {eq}`scaled-score`
        divided by d_k
            np.sqrt(query.shape[-1]) -> query.shape[-1]
            a dot product of d_k terms spreads like the root of d_k; you divided by d_k itself
        the root of d_v
            query.shape[-1] -> value.shape[-1]
            the scale belongs to the vectors that are compared: it is the number of entries of a query, not of a value
        the root of the number of keys
            query.shape[-1] -> key.shape[-2]
            the scale is the root of the number of features, the last axis of `query`; you took an axis of positions
        axis 1 for the features
            query.shape[-1] -> query.shape[1]
            with leading axes in front, axis 1 is no longer that of the features: count from the end, `query.shape[-1]`
        softmax over the queries
            axis=-1, keepdims -> axis=-2, keepdims
            the weights of one query sum to 1 over the keys, the last axis; yours sum to 1 over the queries
        softmax over the first axis
            axis=-1, keepdims -> axis=0, keepdims
            in a batch the first axis counts the examples: the softmax runs over the keys, the last axis of the scores
        scaled after the softmax
            ` / np.sqrt(query.shape[-1])` -> ;; @ value -> @ value / np.sqrt(query.shape[-1])
            the scale must act on the scores; behind the softmax the weights no longer sum to 1
    """,
    hints="""
        Three steps: scores, weights, output. `a @ b` takes matrix products over the last two axes and carries leading ones along.
        Only the scores need a transposition, and it must exchange the last two axes alone: `swapaxes(-1, -2)`.
        terms = np.exp(...) of shape (..., T_q, T_k); weights = terms / terms.sum(axis=..., keepdims=True)
    """,
)
def my_batched_attention(query, key, value):
    r"""The outputs of attention, with or without leading axes.

    Write `my_batched_attention(query, key, value)`: the outputs, $(\ldots, T_q, d_v)$, for queries and keys as before and float64 values
    $(\ldots, T_k, d_v)$. Write the softmax yourself; one of the course or of a library is not accepted. Scores stay below 40 in size,
    and $e^s$ overflows only above 709.
    """
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    terms = np.exp(scores)
    return terms / terms.sum(axis=-1, keepdims=True) @ value


def _values(rng, spread, kv_len, d_v):
    return {"weights": softmax(spread * rng.normal(size=kv_len)), "value": rng.normal(size=(kv_len, d_v))}


VALUES = """
five values of three numbers: 1 5 3
three values of seven numbers: 1 3 7
two values: 1 2 5
values of one number: 1 7 1
weights that differ much: 2 11 2
"""


@asked(
    "same-output-other-values",
    "Another context, the same output",
    kind="write",
    equation="output-of-a-query",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what one output cannot show",
    your_turn=True,
    cases=tried(_values, VALUES),
    slips="""
        the first value is added to the last
            weights[0] / weights[-1] * value[0] -> value[0]
            the last value counts with another weight than the first: what is added to it comes out with its own weight
        the first value with its weight
            weights[0] / weights[-1] * -> weights[0] *
            the output has lost weight times value, but what is added to the last value comes out with the weight of the last
        the ratio turned over
            weights[0] / weights[-1] -> weights[-1] / weights[0]
            a last value of small weight must change by much: its weight stands below the line
        the sign turned round
            += -> -=
            what the first value gave is missing now: the last one must add it
        nothing makes up for it
            other[-1] += weights[0] / weights[-1] * value[0] ->
            the output has lost what the first value gave: the last one must make up for it
        all others make up for it
            other[-1] += weights[0] / weights[-1] * value[0] -> other[1:] += weights[0] / (1 - weights[0]) * value[0]
            the output is the right one, but those between first and last must stay as they are
        all erased but the last
            other[0] = 0 -> other[:] = 0 ;; other[-1] += weights[0] / weights[-1] * value[0] -> other[-1] = weights @ value / weights[-1]
            the output is the right one, but only the first value is erased: those in between stay as they are
    """,
    hints="""
        By how much does the first value change, and what does that do to the output?
        Two terms of the sum of weight times change are not zero, and together they must be zero.
        Solve that for the change of the last value. Work on a copy: the input must stay as it is.
    """,
)
def my_values(weights, value):
    r"""Other values with the same output, of which the first is 0.

    Write `my_values(weights, value)` for the weights $(T_k,)$ of one query, which are positive and sum to 1, and values $(T_k, d_v)$ with
    $T_k \ge 2$. It returns other values with the same output: the first value is all 0, the last one makes up for that, and those in
    between stay as they are.
    """
    other = value.copy()
    other[0] = 0
    other[-1] += weights[0] / weights[-1] * value[0]
    return other
