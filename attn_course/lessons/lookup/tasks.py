"""The graded tasks on attention as lookup."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.lookup.tasks_formulas import LEFT_OUT, QUERY_SLOPE
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _normalised(similarity: np.ndarray, axis: int = -1) -> np.ndarray:
    total = similarity.sum(axis=axis, keepdims=True)
    return similarity / np.where(total == 0.0, 1.0, total)


def _softmax(scores: np.ndarray) -> np.ndarray:
    return _normalised(np.exp(scores))


def _not_a_number(similarity: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray(similarity / similarity.sum(axis=1, keepdims=True))


def _with_an_empty_row(rng: np.random.Generator) -> np.ndarray:
    similarity = rng.uniform(0.1, 3.0, size=(5, 3))
    similarity[3] = 0.0
    return similarity


def _with_zeros(rng: np.random.Generator) -> np.ndarray:
    similarity = rng.uniform(0.1, 3.0, size=(3, 7))
    similarity[rng.permuted(np.tile(np.arange(7) < 3, (3, 1)), axis=1)] = 0.0
    return similarity


WEIGHTS = Task(
    id="similarities-to-weights",
    title="From similarities to weights",
    entry="my_weights",
    kind="write",
    equation="normalised-similarities",
    points=2,
    difficulty=1,
    minutes=6,
    trains="which sum belongs to a query",
    answer=_normalised,
    cases=lambda rng: [
        Case("three queries, seven pairs", similarity=rng.uniform(0.1, 3.0, size=(3, 7))),
        Case("more queries than pairs, tiny similarities", similarity=1e-6 * rng.uniform(0.1, 3.0, size=(11, 5))),
        Case("a square table", similarity=rng.uniform(0.1, 3.0, size=(5, 5))),
        Case("some similarities are 0", similarity=_with_zeros(rng)),
        Case("one query with no similarity at all", similarity=_with_an_empty_row(rng)),
        Case("no similarity anywhere", similarity=np.zeros((2, 5))),
        Case("one pair", similarity=rng.uniform(0.1, 3.0, size=(3, 1))),
        Case("one query", similarity=rng.uniform(0.1, 3.0, size=(1, 5))),
    ],
    wrong=[
        Wrong(
            "normalised over the queries",
            lambda similarity: _normalised(similarity, axis=0),
            "the weights of one *query* sum to 1: add up its row, the last axis",
        ),
        Wrong(
            "divided by the sum of all",
            lambda similarity: similarity / similarity.sum(),
            "every query is a lookup of its own: each row has its own sum (keep that axis)",
        ),
        Wrong(
            "divided by the number of pairs",
            lambda similarity: similarity / similarity.shape[1],
            "the weights must sum to 1, whatever the size of the similarities: divide by their sum, not by their number",
        ),
        Wrong(
            "the same letter twice",
            lambda similarity: np.full_like(similarity, 1.0 / similarity.shape[1]),
            "the sum runs over j while i stands still; as you wrote it, every weight is 1/m and the similarities do not matter",
        ),
        Wrong(
            "divided by the largest",
            lambda similarity: similarity / np.maximum(similarity.max(axis=1, keepdims=True), 1e-300),
            "that makes the largest weight 1, not the sum",
        ),
        Wrong(
            "exponentials of the similarities",
            _softmax,
            "the similarities are never negative already; the exponential is for scores, which may be",
        ),
        Wrong(
            "0 / 0 in a row without similarity",
            _not_a_number,
            "a row whose sum is 0 must give weights 0: replace that sum before you divide",
        ),
    ],
    hints=[
        "Row i holds the similarities of query i with every key. Which axis is summed?",
        "`keepdims=True` keeps the summed axis with length 1, so that the division broadcasts row by row.",
        "`total = similarity.sum(axis=1, keepdims=True)`, then divide by `np.where(total == 0, 1, total)`.",
    ],
)


def _regress(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float, power: float = 2.0, halves: float = 2.0) -> np.ndarray:
    distance = np.abs(query[:, None] - x[None, :])
    return _normalised(np.exp(-(distance**power) / (halves * h**power))) @ y


def _by_columns(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    similarity = np.exp(-((query[:, None] - x[None, :]) ** 2) / (2 * h**2))
    return similarity / similarity.sum(axis=0) @ y


def _not_normalised(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    return np.asarray(np.exp(-((query[:, None] - x[None, :]) ** 2) / (2 * h**2)) @ y)


def _width_not_squared(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    return _normalised(np.exp(-((query[:, None] - x[None, :]) ** 2) / (2 * h))) @ y


def _compared_with_values(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    return _normalised(np.exp(-((query[:, None] - y[None, :]) ** 2) / (2 * h**2)) + 1e-300) @ y


def _elsewhere(query: np.ndarray, x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    apart = query[:, None] - x[None, :]
    return _normalised(np.exp(-(apart**2) / (2 * h**2)) * (apart != 0)) @ y


def _on_points(rng: np.random.Generator, n: int, m: int, h: float) -> dict[str, Any]:
    curve = _curve(rng, n, m, h)
    return curve | {"query": rng.permutation(curve["x"])[:n]}


def _curve(rng: np.random.Generator, n: int, m: int, h: float) -> dict[str, Any]:
    x = rng.uniform(0.0, 10.0, size=m)
    return {"query": rng.uniform(0.0, 10.0, size=n), "x": x, "y": 2.0 * np.sin(x) + rng.normal(size=m), "h": h}


REGRESSION = Task(
    id="kernel-regression",
    title="Kernel regression",
    entry="my_regression",
    kind="write",
    equation="nadaraya-watson-regression",
    points=3,
    difficulty=2,
    minutes=10,
    trains="a whole soft lookup, many queries at once",
    answer=_regress,
    cases=lambda rng: [
        Case("seven queries, eleven points", **_curve(rng, 7, 11, 1.5)),
        Case("more queries than points", **_curve(rng, 13, 5, 2.5)),
        Case("a wide kernel", **_curve(rng, 3, 7, 40.0)),
        Case("one query", **_curve(rng, 1, 5, 2.0)),
        Case("queries that stand on points", **_on_points(rng, 3, 7, 2.0)),
        Case("one point", **_curve(rng, 5, 1, 3.0)),
    ],
    wrong=[
        Wrong(
            "the 2 forgotten",
            lambda query, x, y, h: _regress(query, x, y, h, halves=1.0),
            "the exponent is the squared distance over 2 h^2: the 2 is missing",
        ),
        Wrong("the width not squared", _width_not_squared, "the width enters as h^2, so that distance and width have the same unit"),
        Wrong(
            "distance not squared",
            lambda query, x, y, h: _regress(query, x, y, h, power=1.0, halves=1.0),
            "a Gaussian falls off with the *square* of the distance",
        ),
        Wrong("not normalised", _not_normalised, "divide by the sum of the similarities of each query, {eq}`nadaraya-watson-regression`"),
        Wrong("normalised over the queries", _by_columns, "each query has its own sum, over the points; yours runs over the queries"),
        Wrong(
            "compared with the values",
            _compared_with_values,
            "the query is compared with the keys x; the values y are only averaged",
        ),
        Wrong(
            "the point under the query left out",
            _elsewhere,
            "only the test of a width leaves a point out; the estimate itself averages over all points",
        ),
        Wrong(
            "the plain mean",
            lambda query, x, y, h: np.full(len(query), y.mean()),
            "that is the limit of a very wide kernel; the weights must depend on the query",
        ),
    ],
    hints=[
        "Three steps: squared distances of every query to every point, similarities, weighted average.",
        "`query[:, None] - x[None, :]` has a row for each query and a column for each point.",
        "`s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))`, then `s @ y` over the row sums of `s`.",
    ],
)


def _noted_twice(
    similarities: Sequence[float],
    values: Sequence[float],
    *,
    copied: int | None = 1,
    above: bool = True,
    below: bool = True,
    alike: bool = False,
) -> float:
    """The answer where one pair is noted a second time, in the sum of the values and in that of the similarities."""
    weights = np.ones(len(values)) if alike else np.array(similarities, dtype=float)
    twice = np.arange(len(values)) == copied
    return float((weights + above * twice * weights) @ values / (weights + below * twice * weights).sum())


PREDICT_COPY = Task(
    id="duplicated-pair",
    title="A pair noted twice",
    entry="my_answer",
    kind="predict",
    equation="duplicated-pair-counts-twice",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what a copy changes",
    tolerance=1e-3,
    variants=every(similarities=((1, 2, 3), (1, 4, 3), (2, 3, 1)), values=((0, 9, 8), (1, 8, 3), (2, 9, 4), (1, 9, 4))),
    answer=_noted_twice,
    wrong=[
        Wrong(
            "a set ignores copies",
            partial(_noted_twice, copied=None),
            "the copy is a pair of its own: it adds to both sums, {eq}`duplicated-pair-counts-twice`",
        ),
        Wrong("counted above only", partial(_noted_twice, below=False), "the copy counts in the sum of the similarities as well"),
        Wrong("counted below only", partial(_noted_twice, above=False), "the copy brings its value too, not only its similarity"),
        Wrong("the plain average", partial(_noted_twice, copied=None, alike=True), "the pairs count by their similarities"),
        Wrong(
            "the plain average with the copy",
            partial(_noted_twice, alike=True),
            "the pairs count by their similarities, also the two copies",
        ),
        Wrong(
            "the first pair doubled",
            partial(_noted_twice, copied=0),
            "it is the second pair that is noted twice, {eq}`duplicated-pair-counts-twice`",
        ),
    ],
    hints=[
        "Write down all four pairs with their similarities, the copy as a pair of its own.",
        "Numerator: similarity times value, added up over the four pairs. Denominator: the similarities added up.",
        "The copy adds its similarity times its value above, and its similarity below.",
    ],
)


def _map_to_read() -> dict[str, Any]:
    weights = np.array([[0.10, 0.05, 0.05, 0.60, 0.20], [0.25, 0.10, 0.10, 0.15, 0.40], [0.05, 0.30, 0.30, 0.05, 0.30]])
    return {
        "matrix": weights,
        "title": "Weights of a soft lookup",
        "alt": "Heatmap of a matrix of weights P, queries in rows and pairs in columns, both counted from 0. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
        "column_label": "pairs",
    }


READ_WEIGHTS = Task(
    id="read-lookup-weights",
    title="Read a matrix of weights",
    entry="my_reading",
    kind="figure",
    equation="weights-times-values",
    points=1,
    difficulty=1,
    minutes=4,
    trains="rows that ask, columns that answer",
    tolerance=1e-3,
    answer=lambda: (3.0, 4.0, 0.8),
    figure_data=_map_to_read,
    wrong=[
        Wrong(
            "an output for each pair",
            lambda: (5.0, 4.0, 0.8),
            "a column is a pair; outputs belong to queries, and each of these has a row",
        ),
        Wrong("counted from one", lambda: (3.0, 5.0, 0.8), "queries and pairs are counted from 0, as the axes of the figure are"),
        Wrong(
            "the largest weight of all",
            lambda: (3.0, 3.0, 0.8),
            "add up each column; the largest single weight is another question",
        ),
        Wrong("one row for another", lambda: (3.0, 4.0, 0.55), "query 0 is the top row; you read the one below"),
        Wrong("the plain average of the values", lambda: (3.0, 4.0, 0.4), "the values count by the weights of the row of query 0"),
        Wrong(
            "one of the two values forgotten",
            lambda: (3.0, 4.0, 0.6),
            "two values are 1, so two weights of row 0 count",
        ),
    ],
    hints=[
        "One output for each query. Which direction of the map are the queries?",
        "How much a pair is used altogether is the sum of its column.",
        "With values of 0 and 1, an output is the sum of the weights in its row at which the value is 1.",
    ],
)


def _roles_broken(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    beta: float,
) -> np.ndarray:
    """Each token asks with its query, and gets the values of the tokens whose keys
    fit.
    """
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(key @ query.T) ** beta
    weights = similarity / similarity.sum(axis=0, keepdims=True)
    output: np.ndarray = weights @ value
    return output


def _roles(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    beta: float,
    *,
    swapped: bool = False,
    axis: int = 1,
    outside: bool = False,
) -> np.ndarray:
    query, key = x @ w_query, x @ w_key
    scores = key @ query.T if swapped else query @ key.T
    similarity = beta * np.exp(scores) if outside else np.exp(beta * scores)
    return np.asarray(similarity / similarity.sum(axis=axis, keepdims=True) @ (x @ w_value))


def _one_sum(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, beta: float) -> np.ndarray:
    similarity = np.exp(beta * (x @ w_query) @ (x @ w_key).T)
    return np.asarray(similarity / similarity.sum() @ (x @ w_value))


def _tokens(rng: np.random.Generator, length: int, d: int, d_k: int, d_v: int, beta: float) -> dict[str, Any]:
    w_query, w_key, w_value = (rng.normal(size=shape) / np.sqrt(d) for shape in ((d, d_k), (d, d_k), (d, d_v)))
    return {"x": rng.normal(size=(length, d)), "w_query": w_query, "w_key": w_key, "w_value": w_value, "beta": beta}


ROLES = Task(
    id="repair-lookup-roles",
    title="Repair a lookup with exchanged roles",
    entry="ask_everybody",
    kind="repair",
    equation="lookup-by-name",
    points=2,
    difficulty=3,
    minutes=10,
    trains="who asks, and over whom the weights are normalised",
    answer=_roles,
    broken=_roles_broken,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("seven tokens", **_tokens(rng, 7, 11, 5, 3, 1.5)),
        Case("three tokens", **_tokens(rng, 3, 13, 2, 5, 0.5)),
        Case("values as long as keys", **_tokens(rng, 5, 7, 3, 3, 2.0)),
        Case("one token", **_tokens(rng, 1, 5, 2, 3, 1.5)),
    ],
    wrong=[
        Wrong(
            "queries in columns",
            lambda *given: _roles(*given, swapped=True, axis=0),
            "row i of your weights belongs to the *key* i: it should hold the similarities of the query i, and sum to 1 over the keys",
        ),
        Wrong(
            "the keys ask",
            lambda *given: _roles(*given, swapped=True),
            "rows sum to 1, but row i compares the key of i with all queries: you repaired the axis only",
        ),
        Wrong(
            "normalised over the queries",
            lambda *given: _roles(*given, axis=0),
            "queries and keys are right; now the weights of each query, a row, must sum to 1",
        ),
        Wrong(
            "beta without effect",
            lambda *given: _roles(*given, outside=True),
            "your weights are those of beta = 1; a factor outside of the exponential cancels in the division, beta belongs to the scores",
        ),
        Wrong(
            "the names answer in place of the values",
            lambda x, w_query, w_key, w_value, beta: _roles(x, w_query, w_key, w_key, beta),
            "keys are only compared; what is averaged is the values, x @ w_value",
        ),
        Wrong(
            "one sum for all",
            _one_sum,
            "each query is a lookup of its own: its row has its own sum",
        ),
    ],
    hints=[
        "Use the four people of the lesson: what does Ann get? Print the matrix of weights and read the row of Ann.",
        "Row i of a matrix product comes from its left factor. Whose row should row i be? And along which axis do its weights sum to 1?",
        "`similarity = np.exp(beta * query @ key.T)`, and the sums run along axis 1. (Or turn the weights, as they are, at the end.)",
    ],
)


def _squared_distances(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    return np.asarray(((query[:, None, :] - key[None, :, :]) ** 2).sum(axis=-1))


def _nearest(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = _squared_distances(query, key)
    return _normalised((distance == distance.min(axis=1, keepdims=True)).astype(float)) @ value


def _first_nearest(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, last: bool = False) -> np.ndarray:
    distance = _squared_distances(query, key)
    return np.asarray(value[len(key) - 1 - distance[:, ::-1].argmin(axis=1)] if last else value[distance.argmin(axis=1)])


def _summed_nearest(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = _squared_distances(query, key)
    return np.asarray((distance == distance.min(axis=1, keepdims=True)).astype(float) @ value)


def _largest_product(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key.T
    return _normalised((scores == scores.max(axis=1, keepdims=True)).astype(float)) @ value


def _nearest_of_all(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = _squared_distances(query, key)
    return _normalised((distance == distance.min()).astype(float)) @ value


def _farthest(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = _squared_distances(query, key)
    return _normalised((distance == distance.max(axis=1, keepdims=True)).astype(float)) @ value


def _lattice(rng: np.random.Generator, n: int, m: int, d: int, d_v: int) -> dict[str, np.ndarray]:
    """Points with whole coordinates, so that ties are exact in any arithmetic."""
    query, key = (rng.integers(-4, 5, size=(count, d)).astype(float) for count in (n, m))
    return {"query": query, "key": key, "value": rng.normal(size=(m, d_v))}


def _with_ties(rng: np.random.Generator) -> dict[str, np.ndarray]:
    key = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [1.0, 0.0], [4.0, 4.0]])
    query = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    return {"query": query, "key": key, "value": rng.normal(size=(5, 7))}


def _nearly_tied(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two keys at 1 and 1.000002; two that the largest coordinate, and two that the sum of coordinates, puts in the wrong order."""
    key = np.array([[1.000002, 0.0], [0.0, 1.0], [23.0, 3.0], [20.0, 4.0], [2.0, 22.0], [3.0, 20.0], [9.0, 9.0]])
    query = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    return {"query": query, "key": key, "value": rng.normal(size=(7, 5))}


def _city_blocks(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = np.abs(query[:, None, :] - key[None, :, :]).sum(axis=-1)
    return _normalised((distance == distance.min(axis=1, keepdims=True)).astype(float)) @ value


def _rough_ties(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    distance = _squared_distances(query, key)
    return _normalised((distance <= distance.min(axis=1, keepdims=True) + 0.1).astype(float)) @ value


HARD_LOOKUP = Task(
    id="hard-lookup",
    title="The cold end of the dial",
    entry="my_hard_lookup",
    kind="write",
    equation="bandwidth-limits",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a limit, and its edge case",
    answer=_nearest,
    cases=lambda rng: [
        Case("keys in general position", query=rng.normal(size=(7, 3)), key=rng.normal(size=(11, 3)), value=rng.normal(size=(11, 2))),
        Case("ties of two and of three", **_with_ties(rng)),
        Case("nearly equal distances", **_nearly_tied(rng)),
        Case("whole coordinates on a line", **_lattice(rng, 11, 5, 1, 3)),
        Case("whole coordinates in the plane", **_lattice(rng, 13, 7, 2, 5)),
        Case("one key", query=rng.normal(size=(3, 2)), key=rng.normal(size=(1, 2)), value=rng.normal(size=(1, 5))),
        Case("one query", query=rng.normal(size=(1, 3)), key=rng.normal(size=(7, 3)), value=rng.normal(size=(7, 2))),
    ],
    wrong=[
        Wrong("the first of several nearest keys", _first_nearest, "keys at the same distance have the same weight in the limit: average"),
        Wrong(
            "the last of several nearest keys",
            lambda query, key, value: _first_nearest(query, key, value, last=True),
            "a later tie does not overrule an earlier one: equally near keys share the weight",
        ),
        Wrong("tied values added", _summed_nearest, "weights sum to 1: divide by the number of nearest keys"),
        Wrong(
            "the largest dot product",
            _largest_product,
            "the similarity here falls off with the distance, and the key with the largest dot product need not be the nearest",
        ),
        Wrong("the nearest of all pairs", _nearest_of_all, "each query has a nearest key of its own: take the minimum of each row"),
        Wrong(
            "differences added without their squares",
            _city_blocks,
            "the Euclidean distance squares the differences of the coordinates before it adds them",
        ),
        Wrong(
            "nearly nearest keys averaged",
            _rough_ties,
            "only keys at exactly the same distance share; of two that nearly tie, the nearer one wins in the limit",
        ),
        Wrong("the farthest key", _farthest, "a small distance is a large similarity: the minimum, not the maximum"),
    ],
    hints=[
        "Which weights remain in the limit h -> 0, if one key is nearest? And if two are exactly equally near?",
        "Squared distances: `((query[:, None] - key[None]) ** 2).sum(axis=-1)`, a row for each query. They tie where the distances do.",
        "`nearest = distance == distance.min(axis=1, keepdims=True)`; divide by the number in each row, then times `value`.",
    ],
)


def _gain_points(rng: np.random.Generator) -> list[Case]:
    s_1, s_2 = rng.uniform(0.2, 3.0, size=(2, 16))
    v_1, v_2 = rng.normal(size=(2, 16))
    return [Case("16 points", s_1=s_1, s_2=s_2, v_1=v_1, v_2=v_2)]


GAIN = Task(
    id="derivative-by-similarity",
    title="What a little more similarity does",
    entry="my_gain",
    kind="derive",
    equation="soft-lookup",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the gradient of a normalised average",
    symbols=("s_1", "s_2", "v_1", "v_2"),
    cases=_gain_points,
    answer=lambda s_1, s_2, v_1, v_2: s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2,
    wrong=[
        Wrong(
            "the sum held fixed",
            lambda s_1, s_2, v_1, v_2: v_1 / (s_1 + s_2),
            "s_1 stands in the denominator as well: more of it lowers the weight of v_2",
        ),
        Wrong(
            "the average without its normalisation",
            lambda s_1, s_2, v_1, v_2: v_1,
            "that is the derivative of the numerator alone",
        ),
        Wrong(
            "the wrong similarity in the numerator",
            lambda s_1, s_2, v_1, v_2: s_1 * (v_1 - v_2) / (s_1 + s_2) ** 2,
            "v_1 - z is proportional to the weight of the *other* pair: with s_2 = 0 nothing can change",
        ),
        Wrong(
            "the sign turned round",
            lambda s_1, s_2, v_1, v_2: s_2 * (v_2 - v_1) / (s_1 + s_2) ** 2,
            "more similarity of the first pair pulls z towards v_1",
        ),
        Wrong(
            "the square forgotten",
            lambda s_1, s_2, v_1, v_2: s_2 * (v_1 - v_2) / (s_1 + s_2),
            "the quotient rule divides by the square of the denominator",
        ),
        Wrong(
            "compared with zero instead of the mixture",
            lambda s_1, s_2, v_1, v_2: s_2 * v_1 / (s_1 + s_2) ** 2,
            "the weight of v_2 shrinks while that of v_1 grows: its value counts too",
        ),
    ],
    hints=[
        "z is a quotient of two sums, and s_1 stands in both.",
        "The quotient rule gives v_1 / (s_1 + s_2) minus (s_1 v_1 + s_2 v_2) / (s_1 + s_2)^2.",
        "On one denominator, the terms with s_1 v_1 cancel: `s_2 * (...) / (s_1 + s_2) ** 2`.",
    ],
)


def _feature_weights(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray) -> np.ndarray:
    return np.asarray(w_query @ w_key.T @ x.T @ x @ w_value)


def _mixer(rng: np.random.Generator, m: int, v: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    shapes = {"x": (m, v), "w_query": (v, d_k), "w_key": (v, d_k), "w_value": (v, d_v)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


FEATURES = Task(
    id="feature-mixing-matrix",
    title="Move the brackets",
    entry="my_feature_weights",
    kind="write",
    equation="linear-attention-two-readings",
    points=3,
    difficulty=4,
    minutes=12,
    trains="telling a mixture of features from one of positions",
    answer=_feature_weights,
    cases=lambda rng: [
        Case("more positions than features", **_mixer(rng, 11, 5, 3, 2)),
        Case("fewer positions than features", **_mixer(rng, 3, 7, 2, 5)),
        Case("as many features of keys as of values", **_mixer(rng, 5, 3, 7, 7)),
        Case("one position", **_mixer(rng, 1, 5, 2, 3)),
        Case("one feature of values", **_mixer(rng, 7, 3, 2, 1)),
    ],
    wrong=[
        Wrong(
            "the output instead of its weights",
            lambda x, w_query, w_key, w_value: x @ _feature_weights(x, w_query, w_key, w_value),
            "that is Z; the question asks for the matrix W(X) by which X is multiplied from the right",
        ),
        Wrong(
            "nothing of the data in it",
            lambda x, w_query, w_key, w_value: w_query @ w_key.T @ w_value,
            "without X it is a fixed matrix; the sum over positions, X^T X, belongs inside",
        ),
        Wrong(
            "averaged over the positions",
            lambda x, w_query, w_key, w_value: _feature_weights(x, w_query, w_key, w_value) / len(x),
            "nothing is normalised here: the sum over positions, not their mean",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda x, w_query, w_key, w_value: _feature_weights(x, w_key, w_query, w_value),
            "read {eq}`linear-attention-two-readings` from the left: after X comes the matrix of the *queries*, then that of the keys, "
            "transposed",
        ),
        Wrong(
            "the positions centred",
            lambda x, w_query, w_key, w_value: _feature_weights(x - x.mean(axis=0), w_query, w_key, w_value),
            "X^T X as it is, not the covariance of its features: nothing is subtracted from them",
        ),
        Wrong(
            "weights over positions",
            lambda x, w_query, w_key, w_value: x @ w_query @ w_key.T @ x.T,
            "that is P(X), which multiplies from the left and mixes positions; W(X) has a row for each feature of X",
        ),
        Wrong(
            "without the values",
            lambda x, w_query, w_key, w_value: w_query @ w_key.T @ x.T @ x,
            "W(X) turns X into outputs, so it ends with w_value",
        ),
    ],
    hints=[
        "Write out Z = (x w_query)(x w_key)^T (x w_value) as one product of six matrices. Which is the first?",
        "(x w_key)^T is w_key^T x^T. Everything after the first x is W(X).",
        "`w_query @ w_key.T @ x.T @ x @ w_value`",
    ],
)

TASKS = [WEIGHTS, REGRESSION, PREDICT_COPY, READ_WEIGHTS, ROLES, HARD_LOOKUP, GAIN, FEATURES, LEFT_OUT, QUERY_SLOPE]
