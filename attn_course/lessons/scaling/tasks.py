"""The graded tasks on similarity and the scale."""

import math

import numpy as np

from attn_course.lessons.scaling.tasks_formulas import QUERY_GRADIENT, ROW_SPREAD, SCALE_SLOPE, VARIANCE
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


SCALED_SCORES = Task(
    id="scaled-scores",
    title="Scaled scores",
    entry="my_scaled_scores",
    kind="write",
    equation="scaled-score-variance",
    points=2,
    difficulty=1,
    minutes=6,
    trains="the factor and the axis it belongs to",
    answer=scaled_dot_scores,
    cases=_pairs,
    wrong=[
        Wrong("no scale", _dot, "the scores are not divided by sqrt(d_k), {eq}`scaled-score-variance`"),
        Wrong(
            "divided by d_k",
            lambda query, key: _dot(query, key) / query.shape[-1],
            "a score spreads like sqrt(d_k), {eq}`variance-of-a-score`; you divided by its square",
        ),
        Wrong(
            "multiplied by sqrt(d_k)",
            lambda query, key: _dot(query, key) * math.sqrt(query.shape[-1]),
            "the scale makes large scores smaller: divide",
        ),
        Wrong(
            "the number of keys in place of d_k",
            lambda query, key: _dot(query, key) / math.sqrt(key.shape[-2]),
            "d_k counts the entries of one key, the last axis; you took the number of keys",
        ),
        Wrong(
            "the number of queries in place of d_k",
            lambda query, key: _dot(query, key) / math.sqrt(query.shape[-2]),
            "d_k counts the entries of one query, the last axis; you took the number of queries",
        ),
        Wrong(
            "a reshape in place of a transposition",
            lambda query, key: query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]) / math.sqrt(query.shape[-1]),
            "reshape keeps the order of the numbers in memory; exchanging two axes changes it: use swapaxes(-1, -2)",
        ),
    ],
    hints=[
        "Which axis of `query` and `key` is summed over? Its length is d_k.",
        "`key.swapaxes(-1, -2)` turns the last two axes and leaves the batch axes alone.",
        "`query @ ...`, and then one division: which array has the shape (..., d_k, kv_len)?",
    ],
)

PREDICT_VARIANCE = Task(
    id="score-variance-by-hand",
    title="Predict a variance",
    entry="my_variance",
    kind="predict",
    equation="score-variance-from-deviations",
    points=1,
    difficulty=2,
    minutes=5,
    trains="how deviations enter a score",
    tolerance=1e-3,
    variants=every(sigma_q=(2, 4), sigma_k=(3, 5), d=(50, 30, 80)),
    answer=lambda sigma_q, sigma_k, d: sigma_q**2 * sigma_k**2,
    wrong=[
        Wrong(
            "deviations not squared",
            lambda sigma_q, sigma_k, d: sigma_q * sigma_k,
            "each deviation enters with its square, {eq}`score-variance-from-deviations`",
        ),
        Wrong(
            "variances added",
            lambda sigma_q, sigma_k, d: sigma_q**2 + sigma_k**2,
            "the variance of a product of independent entries is the product of their variances",
        ),
        Wrong(
            "the scale forgotten",
            lambda sigma_q, sigma_k, d: d * sigma_q**2 * sigma_k**2,
            "that is the variance of the plain dot product; the question divides by the root of d_k",
        ),
        Wrong("divided by d_k", lambda sigma_q, sigma_k, d: sigma_q**2 * sigma_k**2 / d, "you divided the score by d_k, not by its root"),
        Wrong("unit variance assumed", lambda sigma_q, sigma_k, d: 1.0, "that holds for entries of variance 1 only"),
    ],
    hints=[
        "Start with {eq}`score-variance-from-deviations`.",
        "A factor c of the score multiplies its variance by c squared.",
        "Put c = 1 / sqrt(d_k) into that, and multiply.",
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
    equation="score-variance-from-covariances",
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
            "two terms of {eq}`score-variance-from-covariances` hold the means",
        ),
        Wrong(
            "each mean with its own variance",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q * v_k + m_q**2 * v_q + m_k**2 * v_k),
            "the mean of q goes with the covariance of k: m_q^T S_k m_q",
        ),
        Wrong(
            "the mean square",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q + m_q**2) * (v_k + m_k**2),
            "the squared mean of each term, (m_q m_k)^2, has to be subtracted",
        ),
        Wrong(
            "means not squared",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q * v_k + m_q * v_k + m_k * v_q),
            "m_q stands on both sides of S_k in {eq}`score-variance-from-covariances`: it is squared",
        ),
        Wrong(
            "variances squared",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * (v_q**2 * v_k**2 + m_q**2 * v_k**2 + m_k**2 * v_q**2),
            "v_q and v_k are variances already: only the means are squared",
        ),
        Wrong(
            "the means counted once",
            lambda d_k, m_q, m_k, v_q, v_k: d_k * v_q * v_k + m_q**2 * v_k + m_k**2 * v_q,
            "m_q^T m_q sums d_k squares, and so does m_k^T m_k: each of the three terms has the factor d_k",
        ),
        Wrong(
            "one entry only",
            lambda d_k, m_q, m_k, v_q, v_k: v_q * v_k + m_q**2 * v_k + m_k**2 * v_q,
            "variances of independent terms add: there are d_k of them",
        ),
    ],
    hints=[
        "Put S_q = v_q I and S_k = v_k I into {eq}`score-variance-from-covariances`.",
        "The trace of v_q v_k I is d_k v_q v_k; a vector of d_k entries m_q has squared length d_k m_q^2.",
        "`d_k * (v_q * v_k + ...)` with two more terms, one for each mean.",
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
        "Where the product of lengths is 0, divide by 1 instead: the dot product is 0 there already.",
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


def _spreads(scores: np.ndarray) -> np.ndarray:
    return np.stack([scores.var(axis=-1).mean(axis=-1), scores.var(axis=(-2, -1))], axis=-1)


def _scores_with_row_means(rng: np.random.Generator, *shape: int, apart: float = 1.0) -> np.ndarray:
    return np.asarray(rng.normal(size=shape) + apart * rng.normal(size=(*shape[:-1], 1)))


SPREADS = Task(
    id="row-and-total-spread",
    title="What softmax sees of a spread",
    entry="my_spreads",
    kind="write",
    equation="spread-within-a-row",
    points=2,
    difficulty=2,
    minutes=8,
    trains="a variance over the right axes",
    answer=_spreads,
    cases=lambda rng: [
        Case("more keys than queries", scores=_scores_with_row_means(rng, 3, 11)),
        Case("rows far apart", scores=_scores_with_row_means(rng, 7, 5, apart=30.0)),
        Case("two leading axes", scores=_scores_with_row_means(rng, 2, 5, 3, 7)),
        Case("a batch of one example", scores=_scores_with_row_means(rng, 1, 5, 3)),
        Case("one query", scores=_scores_with_row_means(rng, 2, 1, 7)),
        Case("one key: rows without spread", scores=_scores_with_row_means(rng, 5, 1)),
        Case("rows of very different spread", scores=np.geomspace(0.01, 100, 3)[:, None] * rng.normal(size=(3, 5))),
    ],
    wrong=[
        Wrong(
            "the variance down the columns",
            lambda scores: np.stack([scores.var(axis=-2).mean(axis=-1), scores.var(axis=(-2, -1))], axis=-1),
            "a row belongs to one query and runs over the keys: the variance within it is taken along the last axis",
        ),
        Wrong(
            "the two exchanged",
            lambda scores: _spreads(scores)[..., ::-1],
            "these are the two numbers in the other order: first within the rows, then of all scores",
        ),
        Wrong(
            "deviations for variances",
            lambda scores: np.stack([scores.std(axis=-1).mean(axis=-1), scores.std(axis=(-2, -1))], axis=-1),
            "these are standard deviations; a variance is the square, and the mean of squares is not the square of the mean",
        ),
        Wrong(
            "the spread of the row means",
            lambda scores: np.stack([scores.mean(axis=-1).var(axis=-1), scores.var(axis=(-2, -1))], axis=-1),
            "that is how far the rows lie apart, which softmax does not see; take the variance in each row, then the mean of these",
        ),
        Wrong(
            "examples of a batch thrown together",
            lambda scores: np.stack([scores.var(axis=-1).mean(axis=-1), np.full(scores.shape[:-2], scores.var())], axis=-1),
            "each example of a batch has a variance of its own: `var` takes several axes, `axis=(-2, -1)`",
        ),
        Wrong(
            "all scores twice",
            lambda scores: np.stack([scores.var(axis=(-2, -1))] * 2, axis=-1),
            "both numbers are the variance of all scores; the first must be taken row by row",
        ),
    ],
    hints=[
        "Softmax gets one row at a time. Which axis runs along a row?",
        "`var` takes an axis, or several. Along a row it leaves one number for each query, and of these the mean is wanted.",
        "`np.stack([scores.var(axis=...).mean(axis=...), ...], axis=-1)`",
    ],
)

TASKS = [
    SCALED_SCORES,
    PREDICT_VARIANCE,
    VARIANCE_WITH_MEANS,
    COSINE,
    HEADS_REPAIR,
    SPREADS,
    VARIANCE,
    SCALE_SLOPE,
    ROW_SPREAD,
    QUERY_GRADIENT,
    *TURNS,
]
