"""The graded tasks on additive attention."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.additive.tasks_formulas import PROJECTION_GRADIENT, SATURATED_SCORE, WEIGHT_GRADIENT
from attn_course.reference import additive_scores, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every

Five = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _weights(rng: np.random.Generator, d_q: int, d_k: int, d_hidden: int) -> dict[str, np.ndarray]:
    """Return projections of variance 1 / size, and a score vector that makes the weights uneven."""
    return {
        "w_query": rng.normal(size=(d_q, d_hidden)) / math.sqrt(d_q),
        "w_key": rng.normal(size=(d_k, d_hidden)) / math.sqrt(d_k),
        "w_score": 2.0 * rng.normal(size=d_hidden),
    }


def _draw(rng: np.random.Generator, q_len: int, kv_len: int, sizes: tuple[int, int, int, int], *batch: int) -> dict[str, np.ndarray]:
    """Return queries, keys, values and weights; `sizes` is d_q, d_k, d_v, d_hidden."""
    d_q, d_k, d_v, d_hidden = sizes
    return {
        "query": rng.normal(size=(*batch, q_len, d_q)),
        "key": rng.normal(size=(*batch, kv_len, d_k)),
        "value": rng.normal(size=(*batch, kv_len, d_v)),
        **_weights(rng, d_q, d_k, d_hidden),
    }


def _near_a_thousand(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Unit 0 reads feature 0 of the query only and is saturated: it moves all scores of a query by a thousand, down for query 0.

    One maximum for all queries would let the row of query 0 vanish. The other units tell the keys apart.
    """
    inputs = _draw(rng, 3, 5, (7, 2, 4, 11))
    inputs["w_query"][0], inputs["w_query"][:, 0], inputs["w_query"][0, 0] = 0.0, 0.0, 2.0
    inputs["query"][:, 0], inputs["w_score"][0] = 50.0, 1000.0
    inputs["query"][0, 0] = -50.0
    return inputs


def _attend(scores: np.ndarray, value: np.ndarray, axis: int = -1) -> np.ndarray:
    return softmax(scores, axis) @ value


def _sums(query: np.ndarray, key: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    return (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]


def _right(query: Any, key: Any, value: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    return _attend(additive_scores(query, key, w_query, w_key, w_score), value)


def _outside(query: Any, key: Any, value: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    bent = np.tanh(query @ w_query)[..., :, None, :] + np.tanh(key @ w_key)[..., None, :, :]
    return _attend(bent @ w_score, value)


def _unshifted(query: Any, key: Any, value: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.exp(additive_scores(query, key, w_query, w_key, w_score))
        return terms / terms.sum(axis=-1, keepdims=True) @ value


def _one_maximum(query: Any, key: Any, value: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    scores = additive_scores(query, key, w_query, w_key, w_score)
    with np.errstate(invalid="ignore"):
        terms = np.exp(scores - scores.max())
        return terms / terms.sum(axis=-1, keepdims=True) @ value


ATTENTION = Task(
    id="additive-attention",
    title="Additive attention",
    entry="my_additive_attention",
    kind="write",
    equation="additive-score",
    points=3,
    difficulty=2,
    minutes=12,
    trains="a hidden layer for every pair by broadcasting",
    answer=_right,
    cases=lambda rng: [
        Case("fewer queries than keys", **_draw(rng, 3, 7, (5, 2, 11, 13))),
        Case("more queries than keys", **_draw(rng, 7, 5, (2, 3, 13, 11))),
        Case("a batch of two", **_draw(rng, 5, 7, (3, 11, 13, 17), 2)),
        Case("two leading axes", **_draw(rng, 1, 5, (7, 4, 11, 13), 2, 3)),
        Case("scores near minus and plus a thousand", **_near_a_thousand(rng)),
    ],
    wrong=[
        Wrong(
            "tanh outside the sum",
            _outside,
            "bend the sum of the projections, not each of them: as it is, the query cancels, {eq}`plain-sum-ignores-query`",
        ),
        Wrong(
            "no tanh",
            lambda query, key, value, w_query, w_key, w_score: _attend(_sums(query, key, w_query, w_key) @ w_score, value),
            "without tanh a score is a query part plus a key part, and the softmax does not see the query, {eq}`plain-sum-ignores-query`",
        ),
        Wrong(
            "no score vector",
            lambda query, key, value, w_query, w_key, w_score: _attend(np.tanh(_sums(query, key, w_query, w_key)).sum(axis=-1), value),
            "adding up the hidden units treats all alike: weigh them with w_score",
        ),
        Wrong(
            "the projections multiplied",
            lambda query, key, value, w_query, w_key, w_score: _attend(
                np.tanh((query @ w_query)[..., :, None, :] * (key @ w_key)[..., None, :, :]) @ w_score, value
            ),
            "additive: the two projections are added inside tanh, not multiplied",
        ),
        Wrong(
            "scaled like a dot product",
            lambda query, key, value, w_query, w_key, w_score: _attend(
                additive_scores(query, key, w_query, w_key, w_score) / math.sqrt(len(w_score)), value
            ),
            "additive scores are not divided by a root: tanh already keeps them bounded, {eq}`additive-score-bound`",
        ),
        Wrong(
            "softmax over the queries",
            lambda query, key, value, w_query, w_key, w_score: _attend(
                additive_scores(query, key, w_query, w_key, w_score), value, axis=-2
            ),
            "the weights of one query sum to 1 over the keys, the last axis of the scores",
        ),
        Wrong(
            "no maximum subtracted",
            _unshifted,
            "exp overflows for scores near a thousand, and all terms vanish near minus a thousand: subtract the largest score of each "
            "row first, {eq}`stable-softmax`",
        ),
        Wrong(
            "one maximum for all queries",
            _one_maximum,
            "a query whose scores lie far below those of another one is left with 0 / 0: take the maximum of each row, "
            "{eq}`stable-softmax`",
        ),
        Wrong(
            "a sigmoid for tanh",
            lambda query, key, value, w_query, w_key, w_score: _attend(
                (1 + np.tanh(_sums(query, key, w_query, w_key) / 2)) / 2 @ w_score, value
            ),
            "the hidden units are tanh, between -1 and 1, not sigmoids between 0 and 1",
        ),
        Wrong(
            "tanh after the score vector",
            lambda query, key, value, w_query, w_key, w_score: _attend(np.tanh(_sums(query, key, w_query, w_key) @ w_score), value),
            "bend each unit first and let w_score add afterwards: tanh(...) @ w_score, not tanh(... @ w_score)",
        ),
    ],
    hints=[
        "Which array has an entry for each query, each key and each hidden unit? Write its shape down first.",
        "Give the projected queries a key axis of length 1 and the projected keys a query axis of length 1; then the sum broadcasts.",
        "`np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score`, then a stable softmax, then `@ value`.",
    ],
)


def _ceiling(
    score_vector: Sequence[float], n: int, *, reach: Callable[..., float] = lambda v: np.abs(v).sum(), others: int = 1, gap: float = 2.0
) -> float:
    """The largest weight among n, if two scores differ by at most `gap` times what the score vector can reach."""
    return 1 / (1 + (n - others) * math.exp(-gap * reach(np.array(score_vector))))


BOUND = Task(
    id="largest-additive-weight",
    title="How sharp can it be?",
    entry="my_ceiling",
    kind="predict",
    equation="additive-weight-bound",
    points=1,
    difficulty=1,
    minutes=4,
    trains="the bound that the score vector sets",
    tolerance=1e-3,
    variants=every(score_vector=((0.5, -1, 1), (0.75, -0.5, 1), (0.5, -0.75, 1), (0.25, -1, 1)), n=(32, 24, 40)),
    answer=_ceiling,
    wrong=[
        Wrong(
            "the length of v",
            partial(_ceiling, reach=np.linalg.norm),
            "the bound has the sum of absolute values, not the root of squares",
        ),
        Wrong(
            "the plain sum of v",
            partial(_ceiling, reach=np.sum),
            "entries of both signs do not cancel: each unit can be at +1 or at -1, so absolute values count",
        ),
        Wrong(
            "only the largest score counted",
            partial(_ceiling, gap=1.0),
            "the best score can be as high as the sum and the others as low as minus the sum: the gap is twice as wide",
        ),
        Wrong(
            "the largest entry of v",
            partial(_ceiling, reach=np.max),
            "all units can work together: the bound adds the absolute values of all entries",
        ),
        Wrong("the winner counted among the others", partial(_ceiling, others=0), "there are n - 1 other keys"),
        Wrong("the sign of the gap", partial(_ceiling, gap=-2.0), "the others lie below the winner: the exponent is negative"),
        Wrong("no bound at all", lambda score_vector, n: 1.0, "the scores are bounded, so no weight can come arbitrarily close to 1"),
    ],
    hints=[
        "How large can the score of a key be at most? And how small that of the others?",
        "Two scores differ by at most twice the sum of the absolute values.",
        "One key at the top, all others at the bottom: one over one plus (n - 1) times the exponential of minus that difference.",
    ],
)


def _derivative_points(rng: np.random.Generator) -> list[Case]:
    t, (v, a, b) = rng.uniform(-0.9, 0.9, size=16), rng.normal(size=(3, 16))
    return [Case("16 points", v=v, t=t, a=a, b=b)]


INTERACTION = Task(
    id="query-key-interaction",
    title="Where query and key meet",
    entry="my_interaction",
    kind="derive",
    equation="additive-query-key-interaction",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the derivative of tanh, twice",
    symbols=("v", "t", "a", "b"),
    cases=_derivative_points,
    answer=lambda v, t, a, b: -2 * v * t * (1 - t**2) * a * b,
    wrong=[
        Wrong(
            "the first derivative",
            lambda v, t, a, b: v * a * (1 - t**2),
            "that is the derivative by the query; differentiate the result once more, by the key",
        ),
        Wrong(
            "the first derivative by the key",
            lambda v, t, a, b: v * b * (1 - t**2),
            "that is the derivative by the key; differentiate the result once more, by the query",
        ),
        Wrong(
            "the product of two first derivatives",
            lambda v, t, a, b: v * a * b * (1 - t**2) ** 2,
            "a second derivative is the derivative of the first one, not a product of two",
        ),
        Wrong(
            "twice by the query",
            lambda v, t, a, b: -2 * v * t * (1 - t**2) * a**2,
            "you differentiated by the query twice; the second derivative is by the key, whose factor is another one",
        ),
        Wrong(
            "the sign turned round", lambda v, t, a, b: 2 * v * t * (1 - t**2) * a * b, "1 - t squared falls when t grows: mind the sign"
        ),
        Wrong(
            "the inner derivative of the square forgotten",
            lambda v, t, a, b: -2 * v * t * a * b,
            "t depends on the key through tanh again, so a second factor 1 - t squared appears",
        ),
        Wrong(
            "the factor two forgotten",
            lambda v, t, a, b: -v * t * (1 - t**2) * a * b,
            "the derivative of t squared is 2 t times that of t",
        ),
        Wrong(
            "as for a dot product",
            lambda v, t, a, b: v * a * b,
            "that would be the product of the two; tanh leaves less, and nothing at t = 0",
        ),
    ],
    hints=[
        "By the query first: tanh has the derivative one minus tanh squared, and the chain rule adds a factor.",
        "Now differentiate v a (1 - t^2) by the key. Only t depends on it.",
        "The derivative of t by the key is (1 - t^2) b, and that of -t^2 is -2 t times it.",
    ],
)


def _concat(rng: np.random.Generator, q_len: int, kv_len: int, d_q: int, d_k: int, d_hidden: int) -> dict[str, np.ndarray]:
    return {
        "query": rng.normal(size=(q_len, d_q)),
        "key": rng.normal(size=(kv_len, d_k)),
        "weight": rng.normal(size=(d_hidden, d_q + d_k)) / math.sqrt(d_q + d_k),
        "bias": rng.normal(size=d_hidden),
        "w_score": rng.normal(size=d_hidden),
    }


def _concat_scores(query: Any, key: Any, weight: Any, bias: Any, w_score: Any) -> np.ndarray:
    d_q = query.shape[-1]
    return np.tanh((query @ weight[:, :d_q].T)[:, None] + (key @ weight[:, d_q:].T)[None] + bias) @ w_score


def _keys_first(query: Any, key: Any, weight: Any, bias: Any, w_score: Any) -> np.ndarray:
    d_k = key.shape[-1]
    return np.tanh((query @ weight[:, d_k:].T)[:, None] + (key @ weight[:, :d_k].T)[None] + bias) @ w_score


def _pairs_mixed_up(query: Any, key: Any, weight: Any, bias: Any, w_score: Any) -> np.ndarray:
    pairs = np.concatenate([np.tile(query, (len(key), 1)), np.repeat(key, len(query), axis=0)], axis=1)
    return (np.tanh(pairs @ weight.T + bias) @ w_score).reshape(len(query), len(key))


def _bias_outside(query: Any, key: Any, weight: Any, bias: Any, w_score: Any) -> np.ndarray:
    return _concat_scores(query, key, weight, 0.0 * bias, w_score) + bias @ w_score


CONCAT = Task(
    id="concatenated-scores",
    title="One matrix, two projections",
    entry="my_concat_scores",
    kind="write",
    equation="concatenation-adds-projections",
    points=2,
    difficulty=3,
    minutes=10,
    trains="reading a concatenation as a sum",
    answer=_concat_scores,
    cases=lambda rng: [
        Case("more query features", **_concat(rng, 3, 7, 5, 2, 11)),
        Case("more key features", **_concat(rng, 5, 3, 2, 7, 13)),
        Case("one query, equal features", **_concat(rng, 1, 5, 3, 3, 7)),
    ],
    wrong=[
        Wrong("keys first", _keys_first, "the pair is [query, key]: the first d_q columns of weight belong to the query"),
        Wrong(
            "a reshape in place of a transposition",
            lambda query, key, weight, bias, w_score: _concat_scores(query, key, weight.reshape(weight.shape[::-1]).T, bias, w_score),
            "reshape keeps the order of the numbers in memory; weight.T exchanges its axes",
        ),
        Wrong("the bias outside tanh", _bias_outside, "the bias belongs inside tanh: outside it would shift all scores alike and cancel"),
        Wrong(
            "the bias twice",
            lambda query, key, weight, bias, w_score: _concat_scores(query, key, weight, 2.0 * bias, w_score),
            "the bias is added once per pair: not to the query part and to the key part",
        ),
        Wrong(
            "the bias forgotten",
            lambda query, key, weight, bias, w_score: _concat_scores(query, key, weight, 0.0 * bias, w_score),
            "without the bias the score is odd, {eq}`additive-score-is-odd`: add it inside tanh",
        ),
        Wrong(
            "pairs in the wrong order",
            _pairs_mixed_up,
            "the right pairs stand in the wrong places: repeat each query for all keys, and run through the keys for each query",
        ),
        Wrong(
            "tanh outside the sum",
            lambda query, key, weight, bias, w_score: (
                (np.tanh(query @ weight[:, : query.shape[1]].T)[:, None] + np.tanh(key @ weight[:, query.shape[1] :].T + bias)) @ w_score
            ),
            "tanh takes the whole sum; bent apart, the parts only add, and a softmax would not see the query, "
            "{eq}`plain-sum-ignores-query`",
        ),
        Wrong(
            "keys in rows",
            lambda query, key, weight, bias, w_score: _concat_scores(query, key, weight, bias, w_score).T,
            "rows are queries, columns are keys",
        ),
        Wrong(
            "no score vector",
            lambda query, key, weight, bias, w_score: _concat_scores(query, key, weight, bias, np.ones_like(w_score)),
            "weigh the hidden units with w_score instead of adding them up",
        ),
    ],
    hints=[
        "The matrix times the pair is a sum of two products. Which columns meet the query?",
        "`weight[:, :d_q]` has the shape (d_hidden, d_q); rows of queries need its transpose.",
        "`np.tanh((query @ weight[:, :d_q].T)[:, None] + (key @ weight[:, d_q:].T)[None] + bias) @ w_score`.",
    ],
)


def _contexts_broken(
    state: np.ndarray,
    annotations: np.ndarray,
    lengths: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_score: np.ndarray,
) -> np.ndarray:
    """Average the annotations of each sentence under its aligner: (batch, d_q),
    (batch, length, d_k), (batch,) -> (batch, d_k).
    """
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    scores = scores * real
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", weights, annotations)


def _aligned(
    state: Any, annotations: Any, lengths: Any, w_query: Any, w_key: Any, w_score: Any, *, fill: float = -np.inf, real: Any = None
) -> np.ndarray:
    """Contexts with another score on padding, or another idea of what is real."""
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    seen = np.arange(annotations.shape[1]) < lengths[:, None] if real is None else real
    return np.einsum("bj,bja->ba", softmax(np.where(seen, scores, fill)), annotations)


def _cut_afterwards(state: Any, annotations: Any, lengths: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    weights = softmax(np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score)
    return np.einsum("bj,bja->ba", weights * (np.arange(annotations.shape[1]) < lengths[:, None]), annotations)


def _places(annotations: np.ndarray) -> np.ndarray:
    return np.arange(annotations.shape[1])


def _undefined(state: Any, annotations: Any, lengths: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    context = _aligned(state, annotations, lengths, w_query, w_key, w_score)
    return np.where((lengths == 0)[:, None], np.nan, context)


def _sentences(rng: np.random.Generator, lengths: list[int], width: int, d_q: int, d_k: int, d_hidden: int) -> dict[str, np.ndarray]:
    """Return a batch; padding holds numbers of its own."""
    batch = len(lengths)
    return {
        "state": rng.normal(size=(batch, d_q)),
        "annotations": rng.normal(size=(batch, width, d_k)),
        "lengths": np.array(lengths),
        **_weights(rng, d_q, d_k, d_hidden),
    }


def _large_padding(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A batch whose padding shows in the average with the smallest of weights."""
    inputs = _sentences(rng, [3, 5, 1], 5, 7, 2, 11)
    padding = _places(inputs["annotations"]) >= inputs["lengths"][:, None]
    inputs["annotations"][padding] *= 1e12
    return inputs


def _rows_set_to_zero(state: Any, annotations: Any, lengths: Any, w_query: Any, w_key: Any, w_score: Any) -> np.ndarray:
    zeroed = annotations * (_places(annotations) < lengths[:, None])[..., None]
    return _aligned(state, zeroed, lengths, w_query, w_key, w_score, real=np.ones(annotations.shape[:2], dtype=bool))


PADDING = Task(
    id="repair-aligner-padding",
    title="Repair an aligner that listens to padding",
    entry="contexts",
    kind="repair",
    equation="additive-attention",
    points=3,
    difficulty=3,
    minutes=10,
    trains="hiding keys before the softmax",
    answer=_aligned,
    broken=_contexts_broken,
    exact_zeros=True,
    cases=lambda rng: [
        Case("three sentences", **_sentences(rng, [7, 2, 5], 7, 4, 5, 11)),
        Case("every sentence shorter than the batch is wide", **_sentences(rng, [3, 1], 5, 3, 7, 2)),
        Case("an empty sentence", **_sentences(rng, [4, 0, 2, 3, 1], 6, 2, 11, 7)),
        Case("padding up to 1e12", **_large_padding(rng)),
        Case("one sentence", **_sentences(rng, [3], 5, 2, 7, 4)),
        Case("only empty sentences", **_sentences(rng, [0, 0], 3, 5, 4, 7)),
    ],
    wrong=[
        Wrong(
            "padding scored 0",
            lambda *inputs: _aligned(*inputs, fill=0.0),
            "a score of 0 is a score like any other: e to the 0 is 1, so padding keeps its weight. Its score must be minus infinity",
        ),
        Wrong(
            "weights cut after the softmax",
            _cut_afterwards,
            "the weights of the real words no longer sum to 1: hide padding before the softmax, or divide by what is left",
        ),
        Wrong(
            "rows of padding set to zero",
            _rows_set_to_zero,
            "a row of zeros adds nothing to the average, but its score is still a number and takes weight from the words",
        ),
        Wrong(
            "a large negative number for minus infinity",
            lambda *inputs: _aligned(*inputs, fill=-1e9),
            "an empty sentence has equal scores then, and averages its padding: use minus infinity and give it zeros",
        ),
        Wrong(
            "an empty sentence gets its first row",
            lambda state, annotations, lengths, *weights: _aligned(state, annotations, np.maximum(lengths, 1), *weights),
            "a sentence of length 0 has no word to look at: the question asks for zeros there",
        ),
        Wrong(
            "the state ignored",
            lambda state, *rest: _aligned(0.0 * state, *rest),
            "the state asks: its projection belongs inside tanh",
        ),
        Wrong(
            "no mask",
            lambda state, annotations, lengths, *weights: _aligned(
                state, annotations, lengths, *weights, real=np.ones(annotations.shape[:2], dtype=bool)
            ),
            "padding takes part: its rows get weight, and what they hold gets into the context",
        ),
        Wrong(
            "one row too many",
            lambda state, annotations, lengths, *weights: _aligned(
                state, annotations, lengths, *weights, real=_places(annotations) <= lengths[:, None]
            ),
            "places are counted from 0: a sentence of length 3 has the places 0, 1 and 2",
        ),
        Wrong(
            "padding taken from the left",
            lambda state, annotations, lengths, *weights: _aligned(
                state, annotations, lengths, *weights, real=_places(annotations) >= annotations.shape[1] - lengths[:, None]
            ),
            "the real words come first and padding follows; you kept the last places",
        ),
        Wrong(
            "an empty sentence gives NaN",
            _undefined,
            "with no word at all the softmax is 0 / 0: the question asks for zeros there",
        ),
    ],
    hints=[
        "What is e to the power of the score that padding gets? Give all annotations the value 1: does the context come out as 1?",
        "`np.where(real, scores, -np.inf)` hides a score; its exponential is exactly 0.",
        "For an empty sentence replace the maximum minus infinity by 0, and a sum of 0 by 1: then 0 / 1 is what is wanted.",
    ],
)


def _alignment_to_read() -> dict[str, Any]:
    weights = np.array(
        [
            [0.06, 0.10, 0.64, 0.08, 0.12],
            [0.55, 0.08, 0.07, 0.16, 0.14],
            [0.15, 0.45, 0.15, 0.13, 0.12],
            [0.30, 0.17, 0.13, 0.22, 0.18],
        ]
    )
    return {
        "matrix": weights,
        "rows": ["written 0", "written 1", "written 2", "end"],
        "columns": ["word 0", "word 1", "word 2", "pad 3", "pad 4"],
        "row_label": "target",
        "column_label": "source",
        "title": "Weights of an aligner that was not told what is padding",
        "alt": "Heatmap of weights; rows are three words written and the end, columns three source words and two rows of padding. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
    }


READ_ALIGNMENT = Task(
    id="read-padded-alignment",
    title="Read an alignment",
    entry="my_reading",
    kind="figure",
    equation="additive-attention",
    points=1,
    difficulty=2,
    minutes=5,
    trains="rows, columns and renormalising",
    answer=lambda: (1.0, 0.4, 0.6),
    tolerance=1e-3,
    figure_data=_alignment_to_read,
    wrong=[
        Wrong(
            "rows and columns exchanged, or counted from one",
            lambda: (2.0, 0.4, 0.6),
            "the first question goes down the column of source word 0 and names a row, counted from 0",
        ),
        Wrong(
            "one column of padding",
            lambda: (1.0, 0.22, 0.6),
            "two columns are padding: add both",
        ),
        Wrong(
            "padding in another row",
            lambda: (1.0, 0.25, 0.6),
            "the second question is about the last row, “end”",
        ),
        Wrong(
            "not renormalised",
            lambda: (1.0, 0.4, 0.45),
            "hiding padding before the softmax does not leave the other weights as they are: they share what padding had",
        ),
        Wrong(
            "padding's weight handed to the largest",
            lambda: (1.0, 0.4, 0.7),
            "what padding had is shared in proportion, not given to one word: divide by the sum of the real weights",
        ),
        Wrong(
            "shared equally",
            lambda: (1.0, 0.4, 0.45 + 0.25 / 3),
            "the softmax keeps the ratios of the real words: divide by their sum instead of adding equal parts",
        ),
    ],
    hints=[
        "A column belongs to a source word, a row to a step of the decoder.",
        "Second question: add the two padding columns of the last row.",
        "A softmax over fewer keys keeps the ratios of the others: divide the weight by the sum of the three real ones.",
    ],
)


def _megabytes(B: int, T_q: int, T_k: int, d_h: int, *, size: int = 4, mega: float = 1e6, together: bool = False) -> float:
    """The hidden layer of a batch, of numbers of this size: for each pair of positions, or `together` for each position."""
    return B * (T_q + T_k if together else T_q * T_k) * d_h * size / mega


MEMORY = Task(
    id="additive-training-memory",
    title="What a training step must hold",
    entry="my_megabytes",
    kind="predict",
    equation="additive-memory-overhead",
    points=1,
    difficulty=2,
    minutes=4,
    trains="counting numbers for pairs and units",
    tolerance=1e-3,
    variants=every(B=(64, 48), T_q=(30, 24), T_k=(50, 40, 60), d_h=(100, 80)),
    answer=_megabytes,
    wrong=[
        Wrong("numbers instead of bytes", partial(_megabytes, size=1), "a float32 number has 4 bytes"),
        Wrong(
            "one sentence only",
            lambda B, **sizes: _megabytes(1, **sizes),
            "the batch has many sentences, and each has a hidden layer of its own",
        ),
        Wrong(
            "the scores",
            lambda d_h, **sizes: _megabytes(d_h=1, **sizes),
            "that is one number per pair; the hidden layer has d_h for each pair",
        ),
        Wrong("counted in mebibytes", partial(_megabytes, mega=2**20), "a megabyte here is a million bytes, not 2 to the power of 20"),
        Wrong("double precision", partial(_megabytes, size=8), "float32 takes 4 bytes, not 8"),
        Wrong("units for positions, not pairs", partial(_megabytes, together=True), "tanh acts on each pair: the two lengths multiply"),
        Wrong("in bytes", partial(_megabytes, mega=1.0), "the question asks for millions of bytes"),
    ],
    hints=[
        "The hidden layer has an entry for each sentence, each pair and each unit.",
        "Sentences, target words times source words, units, and bytes of a number.",
        "Multiply the five numbers and divide by a million.",
    ],
)


def _backward(
    query: Any, key: Any, w_query: Any, w_key: Any, w_score: Any, d_scores: Any, *, slope: str = "right", score: str = "right"
) -> Five:
    """The gradients, or those of a mistake."""
    before = (query @ w_query)[:, None] + (key @ w_key)[None]
    hidden = np.tanh(before)
    slopes = {
        "right": 1 - hidden**2,
        "none": np.ones_like(hidden),
        "line": 1 - hidden,
        "before": 1 - before**2,
        "twice": 1 - np.tanh(hidden) ** 2,
    }
    arriving = d_scores[..., None] * (w_score if score != "forgotten" else 1.0)
    d_before = arriving * slopes[slope]
    d_w_score = np.einsum("ij,ijr->r", d_scores, before if score == "before" else hidden)
    by_query, by_key = d_before.sum(axis=1), d_before.sum(axis=0)
    return by_query @ w_query.T, by_key @ w_key.T, query.T @ by_query, key.T @ by_key, d_w_score


def _averaged(query: Any, key: Any, w_query: Any, w_key: Any, w_score: Any, d_scores: Any) -> Five:
    d_query, d_key, d_w_query, d_w_key, d_w_score = _backward(query, key, w_query, w_key, w_score, d_scores)
    q_len, kv_len = d_scores.shape
    return d_query / kv_len, d_key / q_len, d_w_query / kv_len, d_w_key / q_len, d_w_score / (q_len * kv_len)


def _backward_case(rng: np.random.Generator, q_len: int, kv_len: int, d_q: int, d_k: int, d_hidden: int) -> dict[str, np.ndarray]:
    return {
        "query": rng.normal(size=(q_len, d_q)),
        "key": rng.normal(size=(kv_len, d_k)),
        **_weights(rng, d_q, d_k, d_hidden),
        "d_scores": rng.normal(size=(q_len, kv_len)),
    }


BACKWARD = Task(
    id="additive-backward",
    title="The backward pass of additive scores",
    entry="my_additive_backward",
    kind="write",
    equation="additive-derivative-by-query",
    points=4,
    difficulty=4,
    minutes=20,
    trains="gradients through a broadcast sum",
    answer=_backward,
    forbid=(forbidden.AUTOGRAD,),
    cases=lambda rng: [
        Case("fewer queries than keys", **_backward_case(rng, 3, 7, 5, 2, 11)),
        Case("more queries than keys", **_backward_case(rng, 7, 5, 2, 3, 13)),
        Case("one query", **_backward_case(rng, 1, 5, 3, 7, 2)),
    ],
    wrong=[
        Wrong(
            "the derivative of tanh forgotten",
            lambda *inputs: _backward(*inputs, slope="none"),
            "tanh has the derivative 1 - t^2, {eq}`additive-derivative-by-query`: a saturated unit passes nothing on",
        ),
        Wrong(
            "1 - t instead of 1 - t squared",
            lambda *inputs: _backward(*inputs, slope="line"),
            "the derivative of tanh is 1 - t^2, with the square",
        ),
        Wrong(
            "the square of what goes into tanh",
            lambda *inputs: _backward(*inputs, slope="before"),
            "1 - t^2 takes the output of tanh, not its argument",
        ),
        Wrong(
            "tanh applied twice",
            lambda *inputs: _backward(*inputs, slope="twice"),
            "t is already tanh of the sum: the slope is 1 - t^2, without another tanh",
        ),
        Wrong(
            "ones for the gradient that arrives",
            lambda query, key, w_query, w_key, w_score, d_scores: _backward(query, key, w_query, w_key, w_score, np.ones_like(d_scores)),
            "every pair has its own d_scores, which multiplies all that flows back through it",
        ),
        Wrong(
            "averages instead of sums",
            _averaged,
            "what was broadcast forwards is summed backwards, not averaged",
        ),
        Wrong(
            "the score vector forgotten on the way back",
            lambda *inputs: _backward(*inputs, score="forgotten"),
            "unit r reaches the score with the factor v_r, so its gradient carries v_r",
        ),
        Wrong(
            "the score vector's gradient from the sums before tanh",
            lambda *inputs: _backward(*inputs, score="before"),
            "the score is v times the bent units: the gradient of v collects tanh of the sums",
        ),
    ],
    hints=[
        "Keep the hidden layer (q_len, kv_len, d_hidden). Its gradient is d_scores, spread over the units by w_score, times 1 - t^2.",
        "A projected query went into all pairs of its row: sum the hidden gradient over the keys; and for keys over the queries.",
        "With `d_before = d_scores[..., None] * w_score * (1 - hidden**2)`: `d_query = d_before.sum(axis=1) @ w_query.T`, and so on.",
    ],
)

TASKS = [
    ATTENTION,
    BOUND,
    INTERACTION,
    CONCAT,
    PADDING,
    READ_ALIGNMENT,
    MEMORY,
    BACKWARD,
    PROJECTION_GRADIENT,
    SATURATED_SCORE,
    WEIGHT_GRADIENT,
]
