"""The tasks on scaled dot-product attention: a map to read, the function, and two of its programs to repair."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attn_course.reference import attention
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.changed import slips
from attn_course.tasks.core import every


def _draw(normal, q_len, kv_len, d_k, d_v, *leading):
    """Queries, keys and values whose sizes differ wherever two could be mistaken for each other."""
    return {"query": normal(*leading, q_len, d_k), "key": normal(*leading, kv_len, d_k), "value": normal(*leading, kv_len, d_v)}


def _padded(rng, q_len, kv_len, d_k, d_v, *counts):
    """A batch with as many real keys in each example as `counts` says, padding between them wherever chance puts it."""
    places = rng.permuted(np.tile(np.arange(kv_len), (len(counts), 1)), axis=1)
    inputs = _draw(lambda *shape: rng.normal(size=shape), q_len, kv_len, d_k, d_v, len(counts))
    return {**inputs, "is_real": places < np.array(counts)[:, None]}


def _both_signs(rng, q_len, kv_len):
    """Row 0 of the scores holds one near a thousand, the rest near minus a thousand; row 1 only such; all others near a thousand."""
    inputs = _draw(lambda *shape: rng.normal(size=shape), q_len, kv_len, 5, 2)
    inputs["query"][:, :2] = [0.0, 100.0]
    inputs["query"][:2, :2] = [[100.0, 0.0], [0.0, -100.0]]
    inputs["key"][:, 0], inputs["key"][:, 1] = -22.22, 22.22 + 0.02 * inputs["key"][:, 1]
    inputs["key"][1, 0] = 22.22
    return inputs


def _all_keys_equal(rng):
    """All keys are the same vector, so every output is the plain mean of the values of its example."""
    inputs = _padded(rng, 11, 7, 5, 3, 4, 7)
    inputs["key"][:] = inputs["key"][:1, :1]
    return inputs


def _scores_near_a_thousand(rng):
    """Scores that differ by a few units only, as in the lesson on softmax."""
    inputs = _padded(rng, 3, 5, 7, 2, 5, 2, 4, 1)
    inputs["query"][..., 0], inputs["key"][..., 0] = 100.0, 26.0 + 0.03 * inputs["key"][..., 0]
    return inputs


def _scores_from_minus_a_thousand_to_a_thousand(rng):
    """Three examples with scores of both signs; in the second, what is far above all others in row 0 is padding."""
    examples = [_both_signs(rng, 4, 7) for _ in range(3)]
    is_real = np.ones((3, 7), dtype=bool)
    is_real[1, [1, 4]] = is_real[2, [0, 2, 3, 6]] = False
    return {**{name: np.stack([each[name] for each in examples]) for name in examples[0]}, "is_real": is_real}


PADDED = """
two examples, fewer queries than keys: 5 11 7 3 11 4
three examples, more queries than keys: 11 5 7 2 2 5 1
as many queries as keys: 7 7 5 3 6 3
one example: 5 7 3 2 4
one query: 1 5 3 7 3 5
one key: 5 1 7 2 1 1 1
"""


@asked(
    "scaled-attention",
    "Scaled dot-product attention",
    kind="write",
    equation="batched-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="padding, and a softmax that is stable row by row",
    judged_by=lambda query, key, value, is_real: attention(query, key, value, mask=is_real[:, None]),
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=[tried(_padded, PADDED), _all_keys_equal, _scores_near_a_thousand, _scores_from_minus_a_thousand_to_a_thousand],
    slips="""
        padding not hidden
            scores = np.where(is_real[:, None, :], scores, -np.inf) ->
            only the keys with `is_real[b, j]` are real in example b: the others must get no weight
        the real keys taken to stand in front
            is_real[:, None, :] -> (np.arange(key.shape[1]) < is_real.sum(axis=1)[:, None])[:, None]
            real keys and padding may stand in any order: `is_real[b, j]` says it for each key, its number of `True` is not enough
        the scores of padding set to 0
            -np.inf -> 0.0
            a score of 0 has the share e^0 = 1: minus infinity hides a score
        padding hidden after the softmax
            scores = np.where(is_real[:, None, :], scores, -np.inf) -> ;; weights @ value -> weights * is_real[:, None, :] @ value
            padding has taken its share of the sum already, so the rows no longer sum to 1: hide the scores, not the weights
        the queries hidden instead of the keys
            is_real[:, None, :] -> np.arange(query.shape[1])[:, None] < is_real.sum(axis=1)[:, None, None]
            padding is a property of the keys: hide columns, from every query, not rows
        no scale
            ` / np.sqrt(query.shape[-1])` ->
            the scores are not divided by sqrt(d_k), {eq}`scaled-score`
        divided by d_k
            np.sqrt(query.shape[-1]) -> query.shape[-1]
            a dot product of d_k terms spreads like sqrt(d_k), {eq}`variance-of-a-score`; you divided by d_k itself
        divided by the root of d_v
            query.shape[-1] -> value.shape[-1]
            the scale belongs to the vectors that are compared: it is the number of entries of a query, not of a value
        divided by the root of the number of keys
            query.shape[-1] -> key.shape[-2]
            the scale is the root of the number of features, the last axis of `query`; you took an axis of positions
        softmax over the queries
            all axis=-1 -> axis=-2
            each query's weights must sum to 1 over the keys, the last axis of the scores; yours sum to 1 over the queries
        scaled after the softmax
            ` / np.sqrt(query.shape[-1])` -> ;; weights @ value -> weights @ value / np.sqrt(query.shape[-1])
            the scale must act on the scores; after the softmax the weights no longer sum to 1
        no maximum subtracted
            scores - scores.max(axis=-1, keepdims=True) -> scores
            exp overflows for scores near a thousand: subtract the largest score of each row first, {eq}`stable-softmax`
        a maximum that is not the row's own
            scores.max(axis=-1, keepdims=True) -> scores.max()
            a row far below what is subtracted becomes 0 / 0: each query needs the largest score of its own row, whatever its sign
        a reshape in place of a transposition
            key.swapaxes(-1, -2) -> key.reshape(len(key), key.shape[2], key.shape[1])
            reshape keeps the order of the numbers in memory; exchanging two axes changes it: use swapaxes(-1, -2)
        a flattened batch
                key.swapaxes(-1, -2) -> key[is_real].T
                ;;
                scores = np.where(is_real[:, None, :], scores, -np.inf) ->
                ;;
                weights @ value -> weights @ value[is_real]
            with the examples joined into one sequence, every query attends to the keys of all examples: `@` carries the batch axis
            along
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        an inverted mask
            is_real[:, None, :], scores, -np.inf -> is_real[:, None, :], -np.inf, scores
            `is_real` is True for the keys that count: keep their scores, and hide the others
    """,
    hints="""
        Write the shape of the scores. Which of its axes counts the keys, and for which entries must the score be hidden?
        The scores have three axes and `is_real` has two: which axis is missing, and where does it belong?
        Hide the scores first. Then each maximum and each sum runs over the last axis, and keeps it.
    """,
    why="""
        `is_real[:, None, :]` has the shape (batch, 1, kv_len), so all queries of an example share its row. Without the new axis the rows
        would be matched with the queries. The maximum is taken after hiding, because a padded key far above the real ones would turn the
        row into 0 / 0. It and the sum run over the keys, so each query has its own.
    """,
)
def my_attention(query, key, value, is_real):
    """Return the outputs, of shape (batch, q_len, d_v), {eq}`batched-attention`, without the padding.

    The milestone with padding: `my_attention(query, key, value, is_real)` takes float64 arrays of shape `(batch, q_len, d_k)`,
    `(batch, kv_len, d_k)` and `(batch, kv_len, d_v)`, and a Boolean array `is_real` of shape `(batch, kv_len)`. It returns outputs,
    `(batch, q_len, d_v)`.

    Key $j$ of example $b$ is real if `is_real[b, j]` is `True`. The others are padding, finite numbers without meaning, and get no
    weight. They stand anywhere, but no example is all padding. Scores may lie between -1000 and 1000
    {case}`scores from minus a thousand to a thousand` {lowest}`-1000`, so write a softmax that is stable,
    row by row.
    """
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(is_real[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value


def _from_minus_a_thousand_to_a_thousand(rng):
    return _both_signs(rng, 7, 7)


SQUARE = """
seven positions: 7 7 5 3
three positions: 3 3 2 7
one position: 1 1 5 3
"""


@asked(
    "repair-transposed-weights",
    "Repair weights that point the wrong way",
    kind="repair",
    equation="output-of-a-query",
    points=2,
    difficulty=2,
    minutes=8,
    trains="which index of a weight asks and which answers",
    judged_by=attention,
    broken=["the weight of input i in output j", "a maximum that is not the row's own"],
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_draw, SQUARE), _from_minus_a_thousand_to_a_thousand],
    slips="""
        the weight of input i in output j
            ij,ja->ia -> ij,ia->ja
            p_ij is the weight of input j in output i: the sum runs over the second index, that of the keys, {eq}`output-of-a-query`
        queries and keys in exchanged roles
            all axis=1 -> axis=0 ;; ij,ja->ia -> ij,ia->ja
            rows that sum to 1 prove little: now every key asks and the queries answer. Normalise over the keys and sum over the keys
        normalised over the queries
            all axis=1 -> axis=0
            the sum is right, but the weights of one query must sum to 1 over the keys, axis 1
        a maximum that is not the row's own
            scores.max(axis=1, keepdims=True) -> scores.max()
            a query whose scores lie far below what is subtracted becomes 0 / 0: each row needs its own maximum, whatever its sign
        no maximum subtracted
            scores - scores.max(axis=1, keepdims=True) -> scores
            without a maximum exp overflows for scores near a thousand, and a row far below zero becomes 0 / 0
        the maximum of a column
            scores.max(axis=1 -> scores.max(axis=0
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
    """,
    hints="""
        Give all values the same constant. What must come out, whatever the weights are? What does the function return?
        In `einsum`, the index that is summed over stands on the left only. Which one belongs to the keys?
        The result has one row for each query. And the maximum, like the sum, belongs to one row: axis and keepdims.
    """,
    why="""
        (1) The einsum summed over $i$, the queries: output $j$ collected what *other* queries thought of key $j$. With
        all values equal to 1 the outputs were column sums, not 1. (2) One maximum for all rows turns a row far below it
        into 0 / 0. With as many queries as keys, no shape gives the first mistake away.
    """,
)
def weighted_sums(query, key, value):
    """Output i is the average of the values under the weights of query i.

    The function below should average the values for each query, {eq}`attention`, where there are as many queries as
    keys: `query` and `key` have shape `(n, d_k)`, `value` has shape `(n, d_v)`, and the result `(n, d_v)`. It raises
    no error, and it is wrong in two places. Repair it. Scores may lie anywhere between -1000
    and 1000, those of one query far below those of another {case}`from minus a thousand to a thousand`.
    """
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", weights, value)


def _packed(normal, d_k, d_v, *counts):
    return {**_draw(normal, sum(counts), sum(counts), d_k, d_v), "counts": np.array(counts)}


def _two_examples_from_minus_a_thousand_to_a_thousand(rng):
    return {**_both_signs(rng, 7, 7), "counts": np.array([3, 4])}


PACKED = """
two examples: 5 3 4 3
two examples of one length: 5 2 3 3
three examples, one of a single token: 3 7 6 1 4
five examples of one token each: 2 3 1 1 1 1 1
a single token: 3 2 1
"""


@asked(
    "repair-mixed-batch",
    "Repair a batch whose examples see each other",
    kind="repair",
    equation="batched-attention",
    retired=True,
    points=2,
    difficulty=3,
    minutes=10,
    trains="keeping examples apart that stand in one long sequence",
    broken="""
        example = np.repeat(np.arange(len(counts)), counts)
        ->
        n, d_k = query.shape
        example = np.arange(n) // (n // len(counts))
        ;;
        np.sqrt(query.shape[1]) -> np.sqrt(d_k)
        ;;
        -np.inf -> 0.0
    """,
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_packed, PACKED), _two_examples_from_minus_a_thousand_to_a_thousand],
    slips="""
        all examples in one sequence
            scores = np.where(together, scores, -np.inf) ->
            every query attends to the tokens of all examples: change a token of another one, and the output must not move
        all examples equally long
            np.repeat(np.arange(len(counts)), counts) -> np.arange(len(query)) // (len(query) // len(counts))
            the examples have different lengths: `counts` says how many tokens each of them has
        the scores of other examples set to 0
            -np.inf -> 0.0
            a score of 0 has the share e^0 = 1, so every query still sees the other examples: minus infinity hides a score
        other examples hidden after the softmax
            scores = np.where(together, scores, -np.inf) -> ;; keepdims=True) @ value -> keepdims=True) * together @ value
            the other examples have taken their share of the sum already, and the rows no longer sum to 1: hide the scores instead
        softmax over the queries
            all axis=-1 -> axis=0
            the weights of one query sum to 1 over the keys of its own example: the last axis
        a maximum that is never below 0
            scores.max(axis=-1, keepdims=True) -> np.maximum(scores.max(axis=-1, keepdims=True), 0.0)
            where all scores of a row are far below 0, every term underflows and the row is 0 / 0: subtract the largest score, whatever
            its sign
        an inverted mask
            together, scores, -np.inf -> together, -np.inf, scores
            the pairs of one example are to be kept; yours keeps those of different examples
    """,
    hints="""
        Print `together` for examples of four and three tokens. Which tokens should see each other?
        The first mistake is about `counts`: `np.repeat` can write down for each token to which example it belongs.
        The second mistake: which weight does a score of 0 get, and which score gets the weight 0?
    """,
    why="""
        (1) The index of the example was counted as if all examples had the same length. (2) A score of 0 is not hidden: it has the share
        $e^0 = 1$ before the maximum is subtracted, and in a row of negative scores even the largest one. Packing saves the work on padding,
        but this table still computes the pairs of different examples, and hides them. Kernels for packed batches skip them.
    """,
)
def batched_attention(query, key, value, counts):
    """Attention inside each example of a packed batch: the result has shape (n, d_v).

    A batch needs no padding if its examples are **packed**, one after the other, into one long sequence. `query` and `key` have shape
    `(n, d_k)`, `value` has shape `(n, d_v)`, and the integers `counts` say how many tokens each example has, in this order. No example is
    empty.

    The function below should run attention inside each example and return `(n, d_v)`. It is wrong in two places, and the examples see
    each other. Repair it. Scores may lie anywhere between -1000 and 1000 {case}`two examples from minus a thousand to a thousand`
    {lowest}`-1000`.
    """
    example = np.repeat(np.arange(len(counts)), counts)
    together = example[:, None] == example
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores = np.where(together, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


READ_FROM = np.array(
    [
        [0.08, 0.15, 0.62, 0.05, 0.10],
        [0.46, 0.14, 0.12, 0.08, 0.20],
        [0.09, 0.55, 0.06, 0.25, 0.05],
        [0.21, 0.07, 0.25, 0.13, 0.34],
    ]
)


def _weights_to_read(queries: Sequence[int], keys: Sequence[int]) -> dict[str, Any]:
    weights = READ_FROM[np.ix_(queries, keys)]
    return {
        "matrix": weights,
        "title": "Weights of four queries over five keys",
        "alt": "Heatmap of attention weights, queries in rows and keys in columns, both counted from 0. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
    }


def _reading(queries, keys):
    """The asker of key 0, the answerer of output 0, and output 0 without value 3."""
    p = READ_FROM[np.ix_(queries, keys)]
    a, b, c = p[:, 0].argmax(), p[0].argmax(), 1 - p[0, 3]
    return float(a), float(b), c


@asked(
    "read-attention-map",
    "Read a map of weights",
    kind="figure",
    equation="output-of-a-query",
    retired=True,
    points=1,
    difficulty=1,
    minutes=4,
    trains="rows that ask, columns that answer",
    judged_by=_reading,
    figure="charts.heatmap",
    variants=every(queries=((0, 1, 2, 3), (3, 1, 0, 2), (3, 2, 1, 0)), keys=((0, 1, 2, 3, 4), (1, 0, 3, 2, 4))),
    tolerance=1e-3,
    figure_data=_weights_to_read,
    slips=[
        slips(
            """
            rows and columns exchanged
                float(a), float(b), c -> float(b), float(a), p[:, 0].sum() - p[3, 0]
                rows are queries and outputs, columns are keys and values: you read the map along the other direction
            rows and columns exchanged in the first two answers
                float(a), float(b) -> float(b), float(a)
                your weight is that of the right row; in the first two answers, too, rows are queries and outputs, columns keys and values
            counted from one
                float(a), float(b) -> a + 1.0, b + 1.0
                queries and keys are counted from 0, as the axes of the figure are
            the weight that is lost
                1 - p[0, 3] -> p[0, 3]
                that is what the output loses; the question asks for what is left
            the indices of one weight exchanged
                p[0, 3] -> p[3, 0]
                you took away the weight of another value in another output: the first index of a weight is the query
            the weights computed again
                1 - p[0, 3] -> 1.0
                only the value is set to zero: its key stays, and keeps its weight
        """,
            of=_reading,
        ),
    ],
    hints="""
        An output belongs to a row: the values of all columns are mixed with the weights of that row.
        First question: look down the column of the key. Second: look along the row of the query.
        Third question: if every value were the number one, what would an output be? And what does one value add to it?
    """,
    why="""
        In the map drawn here column 0 is largest in row 1 (0.46), and row 0 is largest in column 2 (0.62). Output 0 is the sum of row 0
        without the weight 0.05 of value 3. Rows sum to 1; columns need not.
    """,
)
def my_reading(queries, keys):
    """Run the cell below. It shows the weights of four queries over five keys, rows and columns counted from 0. Write three
    numbers as `my_reading = (a, b, c)`:

    - `a`: which query gives key 0 the largest weight?
    - `b`: which value has the largest weight in output 0?
    - `c`: every value is the number 1, except value 3, which is 0. The keys and the weights stay as they are. What is
      output 0?
    """
    return (1, 2, 0.95)


@asked(
    "query-on-its-key",
    "A query on top of its key",
    kind="predict",
    equation="query-misses-own-key",
    retired=True,
    points=1,
    difficulty=2,
    minutes=5,
    trains="telling a dot product from a distance",
    variants=every(key_1=((1, 1, 0, 0), (0, 1, 1, 0)), key_2=((3, 1, 2, 5), (2, 1, 3, 1), (3, 2, 3, 0), (1, 4, 1, 2))),
    digits=3,
    slips="""
        no scale
            ` / 2` ->
            the difference of the dot products is divided by sqrt(d_k) before the softmax
        divided by d_k
            / 2 -> / 4
            the divisor is the root of d_k
        the query finds its key
            np.exp((np.dot(key_1, key_2) - np.dot(key_1, key_1)) / 2) -> 0.0
            a dot product is no distance: compare the two scores, the other key is longer
        both keys alike
            np.exp((np.dot(key_1, key_2) - np.dot(key_1, key_1)) / 2) -> 1.0
            the two scores differ, so the weights do
        the weight of the other key
            np.dot(key_1, key_2) - np.dot(key_1, key_1) -> np.dot(key_1, key_1) - np.dot(key_1, key_2)
            that is the weight of the second key; the question asks for the first
        no parentheses below the line
            1 / (1 + np.exp -> (1 / 1 + np.exp
            1 is divided by the whole sum of the terms: put it into parentheses. A weight is never above 1
        only one of the two scores scaled
            (np.dot(key_1, key_2) - np.dot(key_1, key_1)) / 2 -> np.dot(key_1, key_2) - np.dot(key_1, key_1) / 2
            both scores are divided by the root of d_k, and so is their difference: put it into parentheses
    """,
    hints="""
        Two dot products decide: the query with itself, and the query with the other key.
        Divide both by the root of d_k, and count the numbers of a key for that. The softmax sees the difference only.
        With two keys the first weight is one over one plus the exponential of (second score minus first score).
    """,
    why=r"""
        With $k_1 = (1, 1, 0, 0)$ and $k_2 = (3, 1, 2, 5)$ the dot products are $q \cdot k_1 = 2$ and $q \cdot k_2 = 4$; divided by
        $\sqrt{4} = 2$ they differ by 1. The query sits on the first key, at distance 0, and yet the longer key gets about 73 % of the
        weight.
    """,
)
def my_weight(key_1, key_2):
    """A query lies exactly on its own key: $q = k_1$. There is one other key, $k_2$; the cell below prints yours as `key_1` and `key_2`.
    Which weight does attention, {eq}`attention-of-one-query`, give to $k_1$? Work it out on paper, then write the number, or an
    expression with `np.exp`.
    """
    return 1 / (1 + np.exp((np.dot(key_1, key_2) - np.dot(key_1, key_1)) / 2))


ORDER = [
    note(
        "title",
        """
        Each stands on its own.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
        Rows are positions: queries $(T_q, d_k)$, keys $(T_k, d_k)$, values $(T_k, d_v)$.
    """,
    ),
    "scaled-attention",
    "copies-beside-another",
    "repair-transposed-weights",
    "attention-slope",
    "length-of-a-query",
    "cost-of-new-tokens",
    "layer-around-attention",
    "step-with-kept-keys",
    "all-scores",
    "attention-of-batches",
    "same-output-other-values",
    "read-attention-map",
    "repair-mixed-batch",
    "query-on-its-key",
    "centre-the-values",
]
