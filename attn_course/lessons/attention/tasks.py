"""The graded tasks on scaled dot-product attention."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.attention.tasks_function import CENTRED, COPIES, COST, SHARPEN, SLOPE
from attn_course.lessons.attention.tasks_layer import LAYER, STEP
from attn_course.lessons.attention.tasks_turns import TURNS
from attn_course.reference import attention, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _swap(array: np.ndarray) -> np.ndarray:
    return array.swapaxes(-1, -2)


def _draw(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int, *batch: int) -> dict[str, np.ndarray]:
    """Return queries, keys and values whose sizes differ wherever two could be mistaken for each other."""
    return {
        "query": rng.normal(size=(*batch, q_len, d_k)),
        "key": rng.normal(size=(*batch, kv_len, d_k)),
        "value": rng.normal(size=(*batch, kv_len, d_v)),
    }


def _both_signs(rng: np.random.Generator, q_len: int, kv_len: int) -> dict[str, np.ndarray]:
    """Row 0 of the scores holds one near a thousand, the rest near minus a thousand; row 1 only such; all others near a thousand."""
    inputs = _draw(rng, q_len, kv_len, 5, 2)
    inputs["query"][:, :2] = [0.0, 100.0]
    inputs["query"][:2, :2] = [[100.0, 0.0], [0.0, -100.0]]
    inputs["key"][:, 0], inputs["key"][:, 1] = -22.0, 22.0 + 0.02 * inputs["key"][:, 1]
    inputs["key"][1, 0] = 22.0
    return inputs


def _one_maximum(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ _swap(key) / math.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max())
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


def _attend_unshifted(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    unnormalised = np.exp(query @ _swap(key) / math.sqrt(query.shape[-1]))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


# --- a padded batch ----------------------------------------------------------------------------------


def _padded_draw(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int, *counts: int) -> dict[str, np.ndarray]:
    """Return a batch with as many real keys in each example as `counts` says, padding between them wherever chance puts it."""
    places = rng.permuted(np.tile(np.arange(kv_len), (len(counts), 1)), axis=1)
    return {**_draw(rng, q_len, kv_len, d_k, d_v, len(counts)), "is_real": places < np.array(counts)[:, None]}


def _equal_keys(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """All keys are the same vector, so every output is the plain mean of the values of its example."""
    inputs = _padded_draw(rng, 11, 7, 5, 3, 4, 7)
    inputs["key"][:] = inputs["key"][:1, :1]
    return inputs


def _near_a_thousand(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Scores near a thousand that differ by a few units only, as in the lesson on softmax."""
    inputs = _padded_draw(rng, 3, 5, 7, 2, 5, 2, 4, 1)
    inputs["query"][..., 0], inputs["key"][..., 0] = 100.0, 26.0 + 0.03 * inputs["key"][..., 0]
    return inputs


def _both_signs_padded(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Three examples with scores of both signs; in the second, what is far above all others in row 0 is padding."""
    examples = [_both_signs(rng, 4, 7) for _ in range(3)]
    is_real = np.ones((3, 7), dtype=bool)
    is_real[1, [1, 4]] = is_real[2, [0, 2, 3, 6]] = False
    return {**{name: np.stack([each[name] for each in examples]) for name in examples[0]}, "is_real": is_real}


def _hidden_scores(query: np.ndarray, key: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    return np.where(is_real[:, None], query @ _swap(key) / math.sqrt(query.shape[-1]), -np.inf)


def _padded(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    is_real: np.ndarray,
    *,
    divisor: float = 0.0,
    axis: int = -1,
    fill: float = -np.inf,
) -> np.ndarray:
    """Attention that gives padding the score `fill`; the divisor 0 stands for the right one."""
    scores = query @ _swap(key) / (divisor or math.sqrt(query.shape[-1]))
    return softmax(np.where(is_real[:, None], scores, fill), axis) @ value


def _unshifted_padded(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    unnormalised = np.exp(_hidden_scores(query, key, is_real))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


def _one_maximum_padded(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    scores = _hidden_scores(query, key, is_real)
    unnormalised = np.exp(scores - scores.max())
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


def _shuffled(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """Reshape where a transposition is meant: K^T gets the numbers of K in the wrong order."""
    scores = query @ key.reshape(len(key), key.shape[2], key.shape[1]) / math.sqrt(query.shape[-1])
    return softmax(np.where(is_real[:, None], scores, -np.inf)) @ value


def _hidden_after(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    return (softmax(query @ _swap(key) / math.sqrt(query.shape[-1])) * is_real[:, None]) @ value


def _hidden_queries(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    seen = np.arange(query.shape[1])[:, None] < is_real.sum(axis=1)[:, None, None]
    return softmax(np.where(seen, query @ _swap(key) / math.sqrt(query.shape[-1]), -np.inf)) @ value


def _flattened(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """All examples in one long sequence without padding, which comes back as a batch."""
    rows = query.reshape(-1, query.shape[-1])
    return attention(rows, key[is_real], value[is_real]).reshape(*query.shape[:-1], value.shape[-1])


def _in_front(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    return _padded(query, key, value, np.arange(key.shape[1]) < is_real.sum(axis=1)[:, None])


ATTENTION = Task(
    id="scaled-attention",
    title="Scaled dot-product attention",
    entry="my_attention",
    kind="write",
    equation="batched-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="padding, and a softmax that is stable row by row",
    answer=_padded,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=lambda rng: [
        Case("two examples, fewer queries than keys", **_padded_draw(rng, 5, 11, 7, 3, 11, 4)),
        Case("three examples, more queries than keys", **_padded_draw(rng, 11, 5, 7, 2, 2, 5, 1)),
        Case("as many queries as keys", **_padded_draw(rng, 7, 7, 5, 3, 6, 3)),
        Case("one example", **_padded_draw(rng, 5, 7, 3, 2, 4)),
        Case("one query", **_padded_draw(rng, 1, 5, 3, 7, 3, 5)),
        Case("one key", **_padded_draw(rng, 5, 1, 7, 2, 1, 1, 1)),
        Case("all keys equal", **_equal_keys(rng)),
        Case("scores near a thousand", **_near_a_thousand(rng)),
        Case("scores from minus a thousand to a thousand", **_both_signs_padded(rng)),
    ],
    wrong=[
        Wrong(
            "padding not hidden",
            lambda query, key, value, is_real: attention(query, key, value),
            "only the keys with `is_real[b, j]` are real in example b: the others must get no weight",
        ),
        Wrong(
            "the real keys taken to stand in front",
            _in_front,
            "real keys and padding may stand in any order: `is_real[b, j]` says it for each key, its number of `True` is not enough",
        ),
        Wrong(
            "the scores of padding set to 0",
            partial(_padded, fill=0.0),
            "a score of 0 has the share e^0 = 1: minus infinity hides a score",
        ),
        Wrong(
            "padding hidden after the softmax",
            _hidden_after,
            "padding has taken its share of the sum already, so the rows no longer sum to 1: hide the scores, not the weights",
        ),
        Wrong(
            "the queries hidden instead of the keys",
            _hidden_queries,
            "padding is a property of the keys: hide columns, from every query, not rows",
        ),
        Wrong(
            "no scale",
            partial(_padded, divisor=1.0),
            "the scores are not divided by sqrt(d_k), {eq}`scaled-score`",
        ),
        Wrong(
            "divided by d_k",
            lambda query, key, value, is_real: _padded(query, key, value, is_real, divisor=query.shape[-1]),
            "a dot product of d_k terms spreads like sqrt(d_k), {eq}`variance-of-a-score`; you divided by d_k itself",
        ),
        Wrong(
            "divided by the root of d_v",
            lambda query, key, value, is_real: _padded(query, key, value, is_real, divisor=math.sqrt(value.shape[-1])),
            "the scale belongs to the vectors that are compared: it is the number of entries of a query, not of a value",
        ),
        Wrong(
            "divided by the root of the number of keys",
            lambda query, key, value, is_real: _padded(query, key, value, is_real, divisor=math.sqrt(key.shape[-2])),
            "the scale is the root of the number of features, the last axis of `query`; you took an axis of positions",
        ),
        Wrong(
            "softmax over the queries",
            partial(_padded, axis=-2),
            "each query's weights must sum to 1 over the keys, the last axis of the scores; yours sum to 1 over the queries",
        ),
        Wrong(
            "scaled after the softmax",
            lambda query, key, value, is_real: _padded(query, key, value, is_real, divisor=1.0) / math.sqrt(query.shape[-1]),
            "the scale must act on the scores; after the softmax the weights no longer sum to 1",
        ),
        Wrong(
            "no maximum subtracted",
            _unshifted_padded,
            "exp overflows for scores near a thousand: subtract the largest score of each row first, {eq}`stable-softmax`",
        ),
        Wrong(
            "one maximum for all queries",
            _one_maximum_padded,
            "a row far below the largest score of all becomes 0 / 0: each query needs the maximum of its own row",
        ),
        Wrong(
            "a reshape in place of a transposition",
            _shuffled,
            "reshape keeps the order of the numbers in memory; exchanging two axes changes it: use swapaxes(-1, -2)",
        ),
        Wrong(
            "a flattened batch",
            _flattened,
            "with the examples joined into one sequence, every query attends to the keys of all examples: `@` carries the batch axis along",
        ),
    ],
    hints=[
        "Write the shape of the scores. Which of its axes counts the keys, and for which entries must the score be hidden?",
        "The scores have three axes and `is_real` has two: which axis is missing, and where does it belong?",
        "Hide the scores first. Then each maximum and each sum runs over the last axis, and keeps it.",
    ],
)


def _weighted_sums_broken(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Output i is the average of the values under the weights of query i."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max())
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ia->ja", weights, value)


def _mix(query: np.ndarray, key: np.ndarray, value: np.ndarray, axis: int, path: str) -> np.ndarray:
    weights = softmax(query @ key.T / math.sqrt(query.shape[1]), axis)
    return np.einsum(path, weights, value)


TRANSPOSED = Task(
    id="repair-transposed-weights",
    title="Repair weights that point the wrong way",
    entry="weighted_sums",
    kind="repair",
    equation="output-of-a-query",
    points=2,
    difficulty=2,
    minutes=8,
    trains="which index of a weight asks and which answers",
    answer=attention,
    broken=_weighted_sums_broken,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("seven positions", **_draw(rng, 7, 7, 5, 3)),
        Case("three positions", **_draw(rng, 3, 3, 2, 7)),
        Case("scores from minus a thousand to a thousand", **_both_signs(rng, 7, 7)),
        Case("one position", **_draw(rng, 1, 1, 5, 3)),
    ],
    wrong=[
        Wrong(
            "the weight of input i in output j",
            lambda query, key, value: _mix(query, key, value, -1, "ij,ia->ja"),
            "p_ij is the weight of input j in output i: the sum runs over the second index, that of the keys, {eq}`output-of-a-query`",
        ),
        Wrong(
            "queries and keys in exchanged roles",
            lambda query, key, value: _mix(query, key, value, 0, "ij,ia->ja"),
            "rows that sum to 1 prove little: now every key asks and the queries answer. Normalise over the keys and sum over the keys",
        ),
        Wrong(
            "normalised over the queries",
            lambda query, key, value: _mix(query, key, value, 0, "ij,ja->ia"),
            "the sum is right, but the weights of one query must sum to 1 over the keys, axis 1",
        ),
        Wrong(
            "the maximum of all queries",
            _one_maximum,
            "a query whose scores lie far below the largest of all becomes 0 / 0: each row needs its own maximum",
        ),
        Wrong(
            "no maximum subtracted",
            _attend_unshifted,
            "without a maximum exp overflows for scores near a thousand, and a row far below zero becomes 0 / 0",
        ),
    ],
    hints=[
        "Give all values the same constant. What must come out, whatever the weights are? What does the function return?",
        "In `einsum`, the index that is summed over stands on the left only. Which one belongs to the keys?",
        "The result has one row for each query. And the maximum, like the sum, belongs to one row: axis and keepdims.",
    ],
)


# --- a packed batch ----------------------------------------------------------------------------------


def _batched_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """Attention inside each example of a packed batch: the result has shape (n, d_v)."""
    n, d_k = query.shape
    example = np.arange(n) // (n // len(counts))
    together = example[:, None] == example
    scores = query @ key.T / np.sqrt(d_k)
    scores = np.where(together, scores, 0.0)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


def _packed_draw(rng: np.random.Generator, d_k: int, d_v: int, *counts: int) -> dict[str, np.ndarray]:
    return {**_draw(rng, sum(counts), sum(counts), d_k, d_v), "counts": np.array(counts)}


def _own(counts: np.ndarray) -> np.ndarray:
    """Which tokens belong to one example."""
    example = np.repeat(np.arange(len(counts)), counts)
    return np.asarray(example[:, None] == example)


def _packed(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    counts: np.ndarray,
    *,
    own: Callable[[np.ndarray], np.ndarray] = _own,
    fill: float = -np.inf,
    axis: int = -1,
) -> np.ndarray:
    """Attention that gives tokens of other examples the score `fill`; `own` says which are of one example."""
    return softmax(np.where(own(counts), query @ key.T / math.sqrt(query.shape[1]), fill), axis) @ value


def _equally_long(counts: np.ndarray) -> np.ndarray:
    n = int(counts.sum())
    example = np.arange(n) // (n // len(counts))
    return np.asarray(example[:, None] == example)


def _packed_after(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return (softmax(query @ key.T / math.sqrt(query.shape[1])) * _own(counts)) @ value


FLATTENED = Task(
    id="repair-mixed-batch",
    title="Repair a batch whose examples see each other",
    entry="batched_attention",
    kind="repair",
    equation="batched-attention",
    points=2,
    difficulty=3,
    minutes=10,
    trains="keeping examples apart that stand in one long sequence",
    answer=_packed,
    broken=_batched_broken,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("two examples", **_packed_draw(rng, 5, 3, 4, 3)),
        Case("two examples of one length", **_packed_draw(rng, 5, 2, 3, 3)),
        Case("three examples, one of a single token", **_packed_draw(rng, 3, 7, 6, 1, 4)),
        Case("five examples of one token each", **_packed_draw(rng, 2, 3, 1, 1, 1, 1, 1)),
        Case("a single token", **_packed_draw(rng, 3, 2, 1)),
        Case("scores from minus a thousand to a thousand", **_both_signs(rng, 7, 7), counts=np.array([3, 4])),
    ],
    wrong=[
        Wrong(
            "all examples in one sequence",
            lambda query, key, value, counts: attention(query, key, value),
            "every query attends to the tokens of all examples: change a token of another one, and the output must not move",
        ),
        Wrong(
            "all examples equally long",
            partial(_packed, own=_equally_long),
            "the examples have different lengths: `counts` says how many tokens each of them has",
        ),
        Wrong(
            "the scores of other examples set to 0",
            partial(_packed, fill=0.0),
            "a score of 0 has the share e^0 = 1, so every query still sees the other examples: minus infinity hides a score",
        ),
        Wrong(
            "other examples hidden after the softmax",
            _packed_after,
            "the other examples have taken their share of the sum already, and the rows no longer sum to 1: hide the scores instead",
        ),
        Wrong(
            "softmax over the queries",
            partial(_packed, axis=0),
            "the weights of one query sum to 1 over the keys of its own example: the last axis",
        ),
    ],
    hints=[
        "Print `together` for examples of four and three tokens. Which tokens should see each other?",
        "The first mistake is about `counts`: `np.repeat` can write down for each token to which example it belongs.",
        "The second mistake: which weight does a score of 0 get, and which score gets the weight 0?",
    ],
)


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


def _reading(queries: Sequence[int], keys: Sequence[int], change: Callable[..., Sequence[float]] | None = None) -> tuple[float, ...]:
    """The asker of key 0, the answerer of output 0, and output 0 without value 3; `change` makes a mistake of these and the weights."""
    weights = READ_FROM[np.ix_(queries, keys)]
    right = int(weights[:, 0].argmax()), int(weights[0].argmax()), 1 - weights[0, 3]
    return tuple(float(entry) for entry in (change(*right, weights) if change else right))


READ_WEIGHTS = Task(
    id="read-attention-map",
    title="Read a map of weights",
    entry="my_reading",
    kind="figure",
    equation="output-of-a-query",
    points=1,
    difficulty=1,
    minutes=4,
    trains="rows that ask, columns that answer",
    variants=every(queries=((0, 1, 2, 3), (3, 1, 0, 2), (3, 2, 1, 0)), keys=((0, 1, 2, 3, 4), (1, 0, 3, 2, 4))),
    answer=_reading,
    tolerance=1e-3,
    figure_data=_weights_to_read,
    wrong=[
        Wrong(
            "rows and columns exchanged",
            partial(_reading, change=lambda a, b, c, p: (b, a, p[:, 0].sum() - p[3, 0])),
            "rows are queries and outputs, columns are keys and values: you read the map along the other direction",
        ),
        Wrong(
            "rows and columns exchanged in the first two answers",
            partial(_reading, change=lambda a, b, c, p: (b, a, c)),
            "your weight is that of the right row; in the first two answers, too, rows are queries and outputs, columns keys and values",
        ),
        Wrong(
            "counted from one",
            partial(_reading, change=lambda a, b, c, p: (a + 1, b + 1, c)),
            "queries and keys are counted from 0, as the axes of the figure are",
        ),
        Wrong(
            "the weight that is lost",
            partial(_reading, change=lambda a, b, c, p: (a, b, 1 - c)),
            "that is what the output loses; the question asks for what is left",
        ),
        Wrong(
            "the indices of one weight exchanged",
            partial(_reading, change=lambda a, b, c, p: (a, b, 1 - p[3, 0])),
            "you took away the weight of another value in another output: the first index of a weight is the query",
        ),
        Wrong(
            "the weights computed again",
            partial(_reading, change=lambda a, b, c, p: (a, b, 1)),
            "only the value is set to zero: its key stays, and keeps its weight",
        ),
    ],
    hints=[
        "An output belongs to a row: the values of all columns are mixed with the weights of that row.",
        "First question: look down the column of the key. Second: look along the row of the query.",
        "Third question: if every value were the number one, what would an output be? And what does one value add to it?",
    ],
)


def _own_weight(key_1: Sequence[float], key_2: Sequence[float], *, root: float = 0.5) -> float:
    """The weight of the query key_1 on its own key beside key_2, if the scores are divided by this power of their width."""
    return 1 / (1 + math.exp((np.dot(key_1, key_2) - np.dot(key_1, key_1)) / len(key_1) ** root))


PREDICT_WEIGHT = Task(
    id="query-on-its-key",
    title="A query on top of its key",
    entry="my_weight",
    kind="predict",
    equation="query-misses-own-key",
    points=1,
    difficulty=2,
    minutes=5,
    trains="telling a dot product from a distance",
    tolerance=1e-3,
    variants=every(key_1=((1, 1, 0, 0), (0, 1, 1, 0)), key_2=((3, 1, 2, 5), (2, 1, 3, 1), (3, 2, 3, 0), (1, 4, 1, 2))),
    answer=_own_weight,
    wrong=[
        Wrong("no scale", partial(_own_weight, root=0.0), "the difference of the dot products is divided by sqrt(d_k) before the softmax"),
        Wrong("divided by d_k", partial(_own_weight, root=1.0), "the divisor is the root of d_k"),
        Wrong(
            "the query finds its key",
            lambda key_1, key_2: 1.0,
            "a dot product is no distance: compare the two scores, the other key is longer",
        ),
        Wrong("both keys alike", lambda key_1, key_2: 0.5, "the two scores differ, so the weights do"),
        Wrong(
            "the weight of the other key",
            lambda key_1, key_2: 1 - _own_weight(key_1, key_2),
            "that is the weight of the second key; the question asks for the first",
        ),
    ],
    hints=[
        "Two dot products decide: the query with itself, and the query with the other key.",
        "Divide both by the root of d_k, and count the numbers of a key for that. The softmax sees the difference only.",
        "With two keys the first weight is one over one plus the exponential of (second score minus first score).",
    ],
)


TASKS = [
    READ_WEIGHTS,
    ATTENTION,
    COPIES,
    TRANSPOSED,
    FLATTENED,
    PREDICT_WEIGHT,
    SLOPE,
    CENTRED,
    SHARPEN,
    COST,
    LAYER,
    STEP,
    *TURNS,
]
