"""The graded tasks on similarity and the scale."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.scaling.tasks_formulas import QUERY_GRADIENT, SAMPLED_ROW, SCALE_SLOPE, VARIANCE
from attn_course.lessons.scaling.tasks_turns import TURNS
from attn_course.reference import cosine_scores, scaled_dot_scores, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _pairs(rng: np.random.Generator) -> list[Case]:
    return [
        Case("more keys than queries", query=rng.normal(size=(3, 7)), key=rng.normal(size=(11, 7))),
        Case("two batch axes", query=rng.normal(size=(2, 4, 3, 5)), key=rng.normal(size=(2, 4, 7, 5))),
        Case("long vectors", query=20.0 * rng.normal(size=(3, 13)), key=20.0 * rng.normal(size=(5, 13))),
        Case("one key", query=rng.normal(size=(3, 5)), key=rng.normal(size=(1, 5))),
        Case("a batch of one query each", query=rng.normal(size=(3, 1, 5)), key=rng.normal(size=(3, 7, 5))),
    ]


def _dot(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    return query @ key.swapaxes(-1, -2)


def _xavier(inputs: int, outputs: int, *, third: float = 3.0, terms: int = 0, rows: int = 0, matrices: int = 2) -> float:
    """The variance of a scaled score of two normalised tokens, or what it becomes with one of the known mistakes."""
    of_an_entry = 6 / (inputs + (rows or outputs)) / third
    return float(((terms or inputs) * of_an_entry) ** matrices)


START_VARIANCE = Task(
    id="start-score-variance",
    title="The scores of a fresh head",
    entry="my_variance",
    kind="predict",
    equation="score-variance-from-deviations",
    points=1,
    difficulty=2,
    minutes=7,
    trains="one rule for a variance, used for entries and then for scores",
    tolerance=1e-3,
    variants=every(inputs=(768, 384, 640), outputs=(64, 32, 48)),
    answer=_xavier,
    wrong=[
        Wrong(
            "the scale forgotten",
            lambda inputs, outputs: outputs * _xavier(inputs, outputs),
            "that is the variance of the plain dot product; the question divides it by the root of d_k",
        ),
        Wrong(
            "divided by d_k",
            lambda inputs, outputs: _xavier(inputs, outputs) / outputs,
            "you divided the score by d_k, not by its root",
        ),
        Wrong("b squared for the variance", partial(_xavier, third=1.0), "a uniform number between -b and b has the variance b^2 / 3"),
        Wrong(
            "one of the two matrices",
            partial(_xavier, matrices=1),
            "that is the variance of an entry of the query; a score multiplies it by that of an entry of the key",
        ),
        Wrong(
            "the entries of the matrices for those of the query",
            partial(_xavier, terms=1),
            "that multiplies the variances of two entries of the matrices; an entry of the query sums d of them, each times an entry of x",
        ),
        Wrong(
            "the sum over d_k entries",
            lambda inputs, outputs: _xavier(inputs, outputs, terms=outputs),
            "an entry of x W_Q is a sum over the entries of x, and there are d of those",
        ),
        Wrong(
            "a square matrix",
            lambda inputs, outputs: _xavier(inputs, outputs, rows=inputs),
            "the matrix of one head has d inputs and only d_k outputs: put both into b",
        ),
        Wrong(
            "three matrices packed into one",
            lambda inputs, outputs: _xavier(inputs, outputs, rows=3 * inputs),
            "that is what `nn.MultiheadAttention` does, for all heads at once; here the matrix of one head is started by itself",
        ),
    ],
    hints=[
        "First the query alone: entry j of x W_Q is a sum of d independent terms. What is the variance of one of them?",
        "Together these terms hold the sum of all x_i^2, which is d. The key has the same variance, with entries of y.",
        "Now you have the two deviations that {eq}`score-variance-from-deviations` asks for; the scale comes last.",
    ],
)


def _mean_points(rng: np.random.Generator) -> list[Case]:
    m_q, m_k = rng.uniform(-2.0, 2.0, size=(2, 16))
    v_q, v_k = rng.uniform(0.3, 3.0, size=(2, 16))
    return [Case("16 points", d_k=rng.uniform(2.0, 50.0, size=16), m_q=m_q, m_k=m_k, v_q=v_q, v_k=v_k)]


VARIANCE_WITH_MEANS = Task(
    id="uncentred-score-variance",
    title="Entries that are not centred",
    entry="my_expression",
    kind="derive",
    equation="score-variance-by-entries",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the general form of the variance",
    symbols=("d_k", "m_q", "m_k", "v_q", "v_k"),
    cases=_mean_points,
    answer=lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q),
    wrong=[
        Wrong(
            "the means forgotten",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * v_q * v_k,
            "two terms of {eq}`score-variance-by-entries` hold the means",
        ),
        Wrong(
            "each mean with its own variance",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q * v_k + m_q**2 * v_q + m_k**2 * v_k),
            "the mean of q goes with the covariances of k",
        ),
        Wrong(
            "the mean square",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q + m_q**2) * (v_k + m_k**2),
            "the squared mean of each term, (m_q m_k)^2, has to be subtracted",
        ),
        Wrong(
            "means not squared",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q * v_k + m_q * v_k + m_k * v_q),
            "each mean comes twice in a term of {eq}`score-variance-by-entries`, once with i and once with j: it is squared",
        ),
        Wrong(
            "variances squared",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q**2 * v_k**2 + m_q**2 * v_k**2 + m_k**2 * v_q**2),
            "v_q and v_k are variances already: only the means are squared",
        ),
        Wrong(
            "the means counted once",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * v_q * v_k + m_q**2 * v_k + m_k**2 * v_q,
            "the terms with i = j are d_k in number for each of the three sums, also for those with a mean",
        ),
        Wrong(
            "one entry only",
            lambda d_k, m_q, m_k, v_q, v_k: v_q * v_k + m_q**2 * v_k + m_k**2 * v_q,
            "variances of independent terms add: there are d_k of them",
        ),
    ],
    hints=[
        "What are (S_q)_ij and (S_k)_ij in {eq}`score-variance-by-entries` if i = j, and what if not?",
        "In each of the three sums only the terms with i = j are left. How many are they, and what is one of them?",
        "Each of the other two sums pairs a squared mean with a variance: of the same vector, or of the other one?",
    ],
)


SPLIT_FACTOR = Task(
    id="twin-with-split-factor",
    title="A twin that shares the factor",
    entry="my_step_size",
    kind="predict",
    equation="scale-as-reparametrisation",
    points=1,
    difficulty=3,
    minutes=5,
    trains="what a factor in the weights does to a step",
    tolerance=1e-3,
    variants=every(entries=(16, 256, 81), eta=(0.8, 1.2, 2.4)),
    answer=lambda entries, eta: eta / math.sqrt(entries),
    wrong=[
        Wrong(
            "the whole factor in one matrix",
            lambda entries, eta: eta / entries,
            "that is the step of the lesson's twin, whose query matrix takes the whole factor; here it takes only the root of it",
        ),
        Wrong(
            "the gradient or the movement, not both",
            lambda entries, eta: eta / entries**0.25,
            "the factor comes in twice: once in the gradient, and once because the product moves by as much less",
        ),
        Wrong("the same step", lambda entries, eta: float(eta), "with the same step the twin moves too far"),
        Wrong(
            "the wrong way",
            lambda entries, eta: eta * math.sqrt(entries),
            "the twin's weights are the smaller ones, and so must be its steps",
        ),
        Wrong(
            "the wrong way, with the whole factor",
            lambda entries, eta: float(eta * entries),
            "the twin's weights are the smaller ones, and so must be its steps; and each matrix takes only the root of the factor",
        ),
    ],
    hints=[
        "Hold the other matrix fixed. By which factor do the two query matrices differ?",
        "{eq}`scale-as-reparametrisation` holds for any factor that the loss sees only together with W.",
        "Put that factor in the place of c. How large is its square?",
    ],
)


def _norm(rows: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.linalg.norm(rows, axis=axis, keepdims=True)


def _divided(scores: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    return np.divide(scores, divisor, out=np.zeros_like(scores), where=divisor != 0.0)


def _with_zeros(rng: np.random.Generator) -> list[Case]:
    zero = rng.normal(size=(5, 7))
    zero[2] = 0.0
    no_query = rng.normal(size=(2, 3, 7))
    no_query[1, 2] = 0.0
    return [
        Case("more keys than queries", query=rng.normal(size=(3, 7)), key=rng.normal(size=(11, 7))),
        Case("two batch axes", query=rng.normal(size=(2, 4, 3, 5)), key=rng.normal(size=(2, 4, 7, 5))),
        Case(
            "keys of very different lengths",
            query=rng.normal(size=(3, 7)),
            key=rng.normal(size=(5, 7)) * np.geomspace(0.01, 100, 5)[:, None],
        ),
        Case("tiny lengths", query=1e-9 * rng.normal(size=(3, 7)), key=1e-9 * rng.normal(size=(5, 7))),
        Case("a key of zeros", query=rng.normal(size=(3, 7)), key=zero),
        Case("a query of zeros", query=no_query, key=rng.normal(size=(2, 5, 7))),
        Case("one query", query=rng.normal(size=(1, 5)), key=rng.normal(size=(7, 5))),
        Case("only queries of zeros", query=np.zeros((2, 7)), key=rng.normal(size=(3, 7))),
    ]


COSINE = Task(
    id="cosine-scores",
    title="Cosine scores",
    entry="my_cosine_scores",
    kind="write",
    equation="cosine-similarity",
    points=3,
    difficulty=2,
    minutes=10,
    trains="norms along the right axis, and vectors of length 0",
    answer=cosine_scores,
    forbid=(forbidden.COSINE,),
    cases=_with_zeros,
    wrong=[
        Wrong(
            "the scaled dot product",
            lambda query, key: _dot(query, key) / math.sqrt(query.shape[-1]),
            "sqrt(d_k) is a constant; a cosine divides by the length of each query and each key",
        ),
        Wrong(
            "only the keys normalised",
            lambda query, key: _divided(_dot(query, key), _norm(key).swapaxes(-1, -2)),
            "the query has a length too: divide by both",
        ),
        Wrong(
            "only the queries normalised",
            lambda query, key: _divided(_dot(query, key), _norm(query)),
            "the keys have lengths too: divide by both",
        ),
        Wrong(
            "squared lengths",
            lambda query, key: _divided(_dot(query, key), _norm(query) ** 2 * _norm(key).swapaxes(-1, -2) ** 2),
            "the length is the square root of the sum of squares",
        ),
        Wrong(
            "lengths of columns",
            lambda query, key: _dot(_divided(query, _norm(query, -2)), _divided(key, _norm(key, -2))),
            "the length of a query runs along its own entries, the last axis; yours runs over the positions",
        ),
        Wrong(
            "one length for the whole matrix",
            lambda query, key: _dot(query, key) / (np.linalg.norm(query) * np.linalg.norm(key)),
            "each row has a length of its own: `axis=-1`",
        ),
        Wrong(
            "0 / 0 for a row of zeros",
            lambda query, key: _dot(query, key) / (_norm(query) * _norm(key).swapaxes(-1, -2)),
            "a row of zeros has length 0, and 0 / 0 is NaN: divide by 1 there, for the dot product is 0 already",
        ),
    ],
    hints=[
        "Every query row and every key row has a length: `np.linalg.norm(..., axis=-1, keepdims=True)`.",
        "Divide the dot products by the lengths of queries (a column) and of keys (a row).",
        "Where a length is 0, the dot product is 0 already. So which divisors would do there?",
    ],
)


def _heads_broken(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Weights of each head: query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k)
    -> (n_heads, q_len, kv_len).
    """
    n_heads, _, d_k = query.shape
    d_model = n_heads * d_k
    scores = query @ key.swapaxes(-1, -2)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-2, keepdims=True) / np.sqrt(d_model)


def _scores_of_both_signs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows of scores near a thousand, near minus a thousand, and with both kinds, so that each needs its own maximum."""
    query, key = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 7, 5))
    query[..., :2] = [[100.0, 0.0], [0.0, -100.0], [0.0, 100.0]]
    key[..., 0], key[..., 1] = -22.0, 22.0 + 0.02 * key[..., 1]
    key[:, 1, 0] = 22.0
    return {"query": query, "key": key}


def _normalised(query: np.ndarray, key: np.ndarray, divisor: float, axis: int = -1) -> np.ndarray:
    """The broken function with some of its three places mended."""
    scores = _dot(query, key) / divisor
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _one_maximum(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    scores = scaled_dot_scores(query, key)
    unnormalised = np.exp(scores - scores.max())
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)


HEADS_REPAIR = Task(
    id="repair-head-weights",
    title="Repair the weights of several heads",
    entry="head_weights",
    kind="repair",
    equation="variance-under-wrong-scales",
    points=2,
    difficulty=3,
    minutes=10,
    trains="where the scale goes, and which one it is",
    answer=lambda query, key: softmax(scaled_dot_scores(query, key)),
    broken=_heads_broken,
    forbid=(forbidden.SOFTMAX,),
    cases=lambda rng: [
        Case("two heads", query=rng.normal(size=(2, 3, 7)), key=rng.normal(size=(2, 5, 7))),
        Case("five heads, long vectors", query=3.0 * rng.normal(size=(5, 2, 11)), key=3.0 * rng.normal(size=(5, 7, 11))),
        Case("scores from minus a thousand to a thousand", **_scores_of_both_signs(rng)),
        Case("one head", query=rng.normal(size=(1, 3, 5)), key=rng.normal(size=(1, 7, 5))),
        Case("one query", query=rng.normal(size=(2, 1, 5)), key=rng.normal(size=(2, 7, 5))),
    ],
    wrong=[
        Wrong("no scale", lambda query, key: softmax(_dot(query, key)), "the scores are not scaled before the softmax"),
        Wrong(
            "the scale after the softmax",
            lambda query, key: softmax(_dot(query, key)) / math.sqrt(query.shape[-1]),
            "weights must sum to 1: the scale divides the scores, before the softmax",
        ),
        Wrong(
            "sqrt(d_model)",
            lambda query, key: softmax(_dot(query, key) / math.sqrt(query.shape[0] * query.shape[-1])),
            "each score sums d_k products, not d_model: with sqrt(d_model) the variance is 1 / n_heads, {eq}`variance-under-wrong-scales`",
        ),
        Wrong(
            "divided by d_k",
            lambda query, key: softmax(_dot(query, key) / query.shape[-1]),
            "the root of d_k is missing: the variance would be 1 / d_k, {eq}`variance-under-wrong-scales`",
        ),
        Wrong(
            "softmax over the queries",
            lambda query, key: softmax(scaled_dot_scores(query, key), axis=-2),
            "the weights of one query sum to 1: normalise over the keys, the last axis",
        ),
        Wrong(
            "the sum still runs over the queries",
            lambda query, key: _normalised(query, key, math.sqrt(query.shape[-1]), axis=-2),
            "the maximum is taken over the keys, the sum over the queries: both belong to the keys of one query, axis -1",
        ),
        Wrong(
            "the scale still stands behind the softmax",
            lambda query, key: _normalised(query, key, 1.0) / math.sqrt(query.shape[0] * query.shape[-1]),
            "dividing weights makes rows that do not sum to 1: divide the scores, before their maximum is taken, and by sqrt(d_k)",
        ),
        Wrong(
            "one maximum for all queries",
            _one_maximum,
            "a row far below the largest score of all becomes 0 / 0: each query needs the maximum of its own row",
        ),
    ],
    hints=[
        "Three mistakes: which number is the scale, where does it stand, and over which axis does the sum run?",
        "The scale divides the scores before their maximum is taken.",
        "`d_model` is not needed at all. And look at the two reductions: do they run over the same axis?",
    ],
)


def _row_spread(query: np.ndarray, key: np.ndarray, axis: int | tuple[int, int] = -1) -> np.ndarray:
    """The variance of the dot products within a row, the mean over the rows, for each head."""
    variance = _dot(query, key).var(axis=axis)
    return np.asarray(variance.reshape(len(query), -1).mean(axis=1))


def _divisors(spread: np.ndarray, query: np.ndarray, least: float | None = None) -> np.ndarray:
    """The root of d_k for heads of which the spread is larger than this (without it: than that root), and 1 for the others."""
    root = math.sqrt(query.shape[-1])
    return np.where(spread > (root if least is None else least), root, 1.0)


def _nearer_as_difference(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    spread = _row_spread(query, key)
    return np.where(np.abs(spread / query.shape[-1] - 1) < np.abs(spread - 1), math.sqrt(query.shape[-1]), 1.0)


def _nearer_by_the_root(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    spread, root = _row_spread(query, key), math.sqrt(query.shape[-1])
    return np.where(np.abs(np.log(spread / root)) < np.abs(np.log(spread)), root, 1.0)


def _heads(rng: np.random.Generator, *, q_len: int, kv_len: int, d_k: int, spreads: Sequence[float], apart: float = 0.0) -> dict[str, Any]:
    """Heads whose mean variance within a row is exactly as given, in any order; `apart`: how far keys lie from 0 (shifts whole rows)."""
    query, key = rng.normal(size=(len(spreads), q_len, d_k)), rng.normal(size=(len(spreads), kv_len, d_k))
    now = _row_spread(query, key)
    key = key * np.sqrt(rng.permutation(spreads) / now)[:, None, None] + apart * np.sign(rng.normal(size=d_k))
    return {"query": query, "key": key}


def _cosines(rng: np.random.Generator) -> dict[str, Any]:
    query, key = rng.normal(size=(2, 5, 13)), rng.normal(size=(2, 7, 13))
    return {"query": query / _norm(query), "key": key / _norm(key)}


SCALE_HELPS = Task(
    id="where-the-scale-helps",
    title="Find the heads that the scale does not help",
    entry="my_divisors",
    kind="write",
    equation="spread-within-a-row",
    points=3,
    difficulty=3,
    minutes=12,
    trains="what softmax sees of a spread, and when to leave the scale out",
    answer=lambda query, key: _divisors(_row_spread(query, key), query),
    cases=lambda rng: [
        Case("fresh heads of independent entries", query=rng.normal(size=(2, 40, 31)), key=rng.normal(size=(2, 50, 31))),
        Case("queries and keys of length 1", **_cosines(rng)),
        Case("the factor is in the queries already", query=rng.normal(size=(3, 11, 17)) / math.sqrt(17), key=rng.normal(size=(3, 7, 17))),
        Case("keys with a large mean", **_heads(rng, q_len=5, kv_len=11, d_k=19, spreads=(0.5, 60.0), apart=3.0)),
        Case("small spreads and large ones", **_heads(rng, q_len=7, kv_len=5, d_k=64, spreads=(0.2, 1.7, 2.5, 5.0, 12.0, 40.0, 90.0))),
        Case("one head", **_heads(rng, q_len=3, kv_len=11, d_k=29, spreads=(3.0,))),
        Case("one query", **_heads(rng, q_len=1, kv_len=7, d_k=13, spreads=(2.0, 9.0))),
    ],
    wrong=[
        Wrong(
            "the scale always helps",
            lambda query, key: np.full(len(query), math.sqrt(query.shape[-1])),
            "the rule of thumb rests on assumptions, and not all of these heads keep them: measure each",
        ),
        Wrong(
            "the variance of all scores",
            lambda query, key: _divisors(_row_spread(query, key, (-2, -1)), query),
            "the variance of all scores of a head also holds how far its rows lie apart, which softmax does not see",
        ),
        Wrong(
            "down the columns",
            lambda query, key: _divisors(_row_spread(query, key, -2), query),
            "a row belongs to one query and runs over the keys: the variance within it is taken along the last axis",
        ),
        Wrong(
            "all heads together",
            lambda query, key: _divisors(np.full(len(query), _row_spread(query, key).mean()), query),
            "each head has a spread of its own: average over its rows, not over the heads",
        ),
        Wrong(
            "nearer as a difference",
            _nearer_as_difference,
            "nearer as a ratio: a variance of 1/4 is as far from 1 as 4 is, while its difference from 1 is a quarter as large",
        ),
        Wrong(
            "whatever lies above 1",
            lambda query, key: _divisors(_row_spread(query, key), query, 1.0),
            "a variance a little above 1 would become much smaller than 1: compare the two ratios",
        ),
        Wrong(
            "divided by the root of d_k",
            _nearer_by_the_root,
            "the scores are divided by the root of d_k, so their variance is divided by d_k",
        ),
        Wrong(
            "turned round",
            lambda query, key: math.sqrt(query.shape[-1]) / _divisors(_row_spread(query, key), query),
            "these are the two divisors exchanged: the root of d_k is for heads whose rows are wide",
        ),
        Wrong(
            "d_k for its root",
            lambda query, key: _divisors(_row_spread(query, key), query) ** 2,
            "the right heads are divided, but by d_k: the divisor of the scores is its root",
        ),
    ],
    hints=[
        "Softmax gets one row at a time. Which axis of the scores runs along a row, and over which axis do you average then?",
        "With and without the division you have two variances. As a ratio, x is as far from 1 as 1 / x: which function makes both alike?",
        "Compare `abs(log(...))` of the two variances; or work out on paper how large v must be.",
    ],
)


TASKS = [
    START_VARIANCE,
    SCALE_SLOPE,
    SAMPLED_ROW,
    HEADS_REPAIR,
    VARIANCE_WITH_MEANS,
    QUERY_GRADIENT,
    SPLIT_FACTOR,
    SCALE_HELPS,
    COSINE,
    VARIANCE,
    *TURNS,
]
