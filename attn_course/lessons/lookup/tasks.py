"""The tasks on attention as lookup; those that are answered in LaTeX are in tasks_formulas.py."""

from typing import Any

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import every


def _similarities(rng, size, n, m):
    return {"similarity": size * rng.uniform(0.1, 3.0, size=(n, m))}


def _some_similarities_are_0(rng):
    similarity = rng.uniform(0.1, 3.0, size=(3, 7))
    similarity[rng.permuted(np.tile(np.arange(7) < 3, (3, 1)), axis=1)] = 0.0
    return {"similarity": similarity}


def _one_query_with_no_similarity_at_all(rng):
    similarity = rng.uniform(0.1, 3.0, size=(5, 3))
    similarity[3] = 0.0
    return {"similarity": similarity}


def _no_similarity_anywhere(rng):
    return {"similarity": np.zeros((2, 5))}


SIMILARITIES = """
three queries, seven pairs: 1 3 7
more queries than pairs, tiny similarities: 1e-6 11 5
a square table: 1 5 5
one pair: 1 3 1
one query: 1 1 5
"""


@asked(
    "similarities-to-weights",
    "From similarities to weights",
    kind="write",
    equation="normalised-similarities",
    points=2,
    difficulty=1,
    minutes=6,
    trains="which sum belongs to a query",
    cases=[
        tried(_similarities, SIMILARITIES),
        *(_some_similarities_are_0, _one_query_with_no_similarity_at_all, _no_similarity_anywhere),
    ],
    slips="""
        normalised over the queries
            axis=1 -> axis=0
            the weights of one *query* sum to 1: add up its row, the last axis
        divided by the sum of all
            sum(axis=1, keepdims=True) -> sum() ;; np.where(total == 0, 1, total) -> total
            every query is a lookup of its own: each row has its own sum (keep that axis)
        divided by the number of pairs
            np.where(total == 0, 1, total) -> similarity.shape[1]
            the weights must sum to 1, whatever the size of the similarities: divide by their sum, not by their number
        the same letter twice
            similarity / np.where(total == 0, 1, total) -> np.full_like(similarity, 1 / similarity.shape[1])
            the sum runs over j while i stands still; as you wrote it, every weight is 1/m and the similarities do not matter
        divided by the largest
            similarity.sum -> similarity.max
            that makes the largest weight 1, not the sum
        exponentials of the similarities
            similarity.sum -> np.exp(similarity).sum ;; return similarity / -> return np.exp(similarity) /
            the similarities are never negative already; the exponential is for scores, which may be
        0 / 0 in a row without similarity
            np.where(total == 0, 1, total) -> total
            a row whose sum is 0 must give weights 0: replace that sum before you divide
    """,
    hints="""
        Row i holds the similarities of query i with every key. Which axis is summed?
        `keepdims=True` keeps the summed axis with length 1, so that the division broadcasts row by row.
        `total = similarity.sum(axis=1, keepdims=True)`, then divide by `np.where(total == 0, 1, total)`.
    """,
    why="""
        Each row is a lookup of its own, so each has its own sum. Where the sum is 0, all numerators are 0, and any
        positive divisor gives the zeros that were asked for. (Without that line NumPy warns and returns NaN.)
    """,
)
def my_weights(similarity):
    """(T_out, T_in) -> (T_out, T_in): rows in the ratios of the similarities that
    sum to 1, or rows of zeros.

    Write `my_weights(similarity)`: it takes a float64 array of shape `(T_out, T_in)`, the similarity of each query (row) with each
    key (column), and returns the weights of {eq}`normalised-similarities`, in the same shape. Similarities are never negative
    {every}`similarity.min() >= 0`. A row may consist of zeros only: give it weights of 0, not NaN.
    """
    total = similarity.sum(axis=1, keepdims=True)
    return similarity / np.where(total == 0, 1, total)


def _curve(rng, n, m, h):
    x = rng.uniform(0.0, 10.0, size=m)
    return {"query": rng.uniform(0.0, 10.0, size=n), "x": x, "y": 2.0 * np.sin(x) + rng.normal(size=m), "h": h}


def _queries_that_stand_on_points(rng):
    curve = _curve(rng, 3, 7, 2.0)
    return curve | {"query": rng.permutation(curve["x"])[:3]}


CURVES = """
seven queries, eleven points: 7 11 1.5
more queries than points: 13 5 2.5
a wide kernel: 3 7 40.0
one query: 1 5 2.0
one point: 5 1 3.0
"""


@asked(
    "kernel-regression",
    "Kernel regression",
    kind="write",
    equation="nadaraya-watson-regression",
    points=3,
    difficulty=2,
    minutes=10,
    trains="a whole soft lookup, many queries at once",
    cases=[tried(_curve, CURVES), _queries_that_stand_on_points],
    slips="""
        the 2 forgotten
            2 * h**2 -> h**2
            the exponent is the squared distance over 2 h^2: the 2 is missing
        the width not squared
            h**2 -> h
            the width enters as h^2, so that distance and width have the same unit
        distance not squared
            -((query[:, None] - x) ** 2) / (2 * h**2) -> -np.abs(query[:, None] - x) / h
            a Gaussian falls off with the *square* of the distance
        not normalised
            ` / similarity.sum(axis=1)` ->
            divide by the sum of the similarities of each query, {eq}`nadaraya-watson-regression`
        normalised over the queries
            similarity @ y / similarity.sum(axis=1) -> similarity / similarity.sum(axis=0) @ y
            each query has its own sum, over the points; yours runs over the queries
        compared with the values
            - x) -> - y)
            the query is compared with the keys x; the values y are only averaged
        the point under the query left out
            (2 * h**2)) -> (2 * h**2)) * (query[:, None] != x)
            only the test of a width leaves a point out; the estimate itself averages over all points
        the plain mean
            similarity @ y / similarity.sum(axis=1) -> np.full(len(query), y.mean())
            that is the limit of a very wide kernel; the weights must depend on the query
    """,
    hints="""
        Three steps: squared distances of every query to every point, similarities, weighted average.
        `query[:, None] - x[None, :]` has a row for each query and a column for each point.
        `s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))`, then `s @ y` over the row sums of `s`.
    """,
    why="""
        A column of queries against a row of keys gives all distances at once, one row per query. Dividing the output
        by the row sum is the same as dividing the weights.
    """,
)
def my_regression(query, x, y, h):
    """(n,), (m,), (m,), float -> (n,): Nadaraya-Watson, {eq}`nadaraya-watson-regression`.

    Write kernel regression: `my_regression(query, x, y, h)` takes float64 arrays: `query`, `(n,)`, where an estimate is wanted, and the
    points `x` and `y`, both `(m,)`, in any order
    {case}`seven queries, eleven points`; and a width `h > 0` (a float). It returns the estimates of
    {eq}`nadaraya-watson-regression`, `(n,)`, with the similarity $e^{-(q - x^{(i)})^2 / 2 h^2}$. All points take part, also one at which
    a query stands {case}`queries that stand on points`. No query is so far from all points that its similarities vanish.
    """
    similarity = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))
    return similarity @ y / similarity.sum(axis=1)


@asked(
    "duplicated-pair",
    "A pair noted twice",
    kind="predict",
    equation="duplicated-pair-counts-twice",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what a copy changes",
    variants=every(similarities=((1, 2, 3), (1, 4, 3), (2, 3, 1)), values=((0, 9, 8), (1, 8, 3), (2, 9, 4), (1, 9, 4))),
    digits=3,
    slips="""
        a set ignores copies
            (sums[0] + similarities[1] * values[1]) / (sums[1] + similarities[1]) -> sums[0] / sums[1]
            the copy is a pair of its own: it adds to both sums, {eq}`duplicated-pair-counts-twice`
        counted above only
            (sums[1] + similarities[1]) -> sums[1]
            the copy counts in the sum of the similarities as well
        counted below only
            (sums[0] + similarities[1] * values[1]) -> sums[0]
            the copy brings its value too, not only its similarity
        the plain average
            (sums[0] + similarities[1] * values[1]) / (sums[1] + similarities[1]) -> np.mean(values)
            the pairs count by their similarities
        the plain average with the copy
            sums[0] + similarities[1] * values[1] -> sum(values) + values[1] ;; sums[1] + similarities[1] -> len(values) + 1
            the pairs count by their similarities, also the two copies
        the first pair doubled
            similarities[1] * values[1] -> similarities[0] * values[0] ;; + similarities[1]) -> + similarities[0])
            it is the second pair that is noted twice, {eq}`duplicated-pair-counts-twice`
        two copies more
            all similarities[1] -> 2 * similarities[1]
            a pair that is noted twice counts twice: to what was there, it comes once more
        no parentheses around above and below
                (sums[0] + similarities[1] * values[1]) / (sums[1] + similarities[1])
                ->
                sums[0] + similarities[1] * values[1] / sums[1] + similarities[1]
            a division binds before a sum: put what stands above the line into parentheses, and what stands below
    """,
    hints="""
        Write down all four pairs with their similarities, the copy as a pair of its own.
        Numerator: similarity times value, added up over the four pairs. Denominator: the similarities added up.
        The copy adds its similarity times its value above, and its similarity below.
    """,
    why="""
        Both sums get one more term: here 60 over 8 instead of 42 over 6. The answer moves from 7 to 7.5, towards the
        value 9, and the weight of the pair from 2/6 to 4/8: not doubled.
    """,
)
def my_answer(similarities, values):
    """A query has three `similarities` with the keys of three pairs, and these have three `values`; the cell below prints yours. Now the
    *second* pair is noted a second time. What does attention answer, {eq}`duplicated-pair-counts-twice`? Work it out on paper, then
    write the number.
    """
    sums = np.dot(similarities, values), sum(similarities)
    return (sums[0] + similarities[1] * values[1]) / (sums[1] + similarities[1])


def _map_to_read() -> dict[str, Any]:
    weights = np.array([[0.10, 0.05, 0.05, 0.60, 0.20], [0.25, 0.10, 0.10, 0.15, 0.40], [0.05, 0.30, 0.30, 0.05, 0.30]])
    return {
        "matrix": weights,
        "title": "Weights of a soft lookup",
        "alt": "Heatmap of a matrix of weights P, queries in rows and pairs in columns, both counted from 0. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
        "column_label": "pairs",
    }


@asked(
    "read-lookup-weights",
    "Read a matrix of weights",
    kind="figure",
    equation="weights-times-values",
    points=1,
    difficulty=1,
    minutes=4,
    trains="rows that ask, columns that answer",
    figure="charts.heatmap",
    tolerance=1e-3,
    figure_data=_map_to_read,
    slips="""
        an output for each pair
            (3, -> (5,
            a column is a pair; outputs belong to queries, and each of these has a row
        counted from one
            4, 0.8 -> 5, 0.8
            queries and pairs are counted from 0, as the axes of the figure are
        the largest weight of all
            4, 0.8 -> 3, 0.8
            add up each column; the largest single weight is another question
        one row for another
            0.8 -> 0.55
            query 0 is the top row; you read the one below
        the plain average of the values
            0.8 -> 0.4
            the values count by the weights of the row of query 0
        one of the two values forgotten
            0.8 -> 0.6
            two values are 1, so two weights of row 0 count
    """,
    hints="""
        One output for each query. Which direction of the map are the queries?
        How much a pair is used altogether is the sum of its column.
        With values of 0 and 1, an output is the sum of the weights in its row at which the value is 1.
    """,
    why=r"""
        One output per query, so three. The columns add up to 0.40, 0.45, 0.45, 0.80 and 0.90: columns need not sum to 1.
        Output 0 is $0.60 \cdot 1 + 0.20 \cdot 1$.
    """,
)
def my_reading():
    """Run the cell below. It shows a matrix $P$ of weights, rows and columns counted from 0. Write three numbers as
    `my_reading = (a, b, c)`:

    - `a`: how many outputs does $Z = P V$ have?
    - `b`: which pair has the largest weight if the weights of all queries are added up?
    - `c`: the values of pairs 3 and 4 are the number 1, all others 0. What is output 0?
    """
    return (3, 4, 0.8)


def _tokens(normal, length, d, d_k, d_v, beta):
    roles = {name: normal(d, width) / np.sqrt(d) for name, width in (("w_query", d_k), ("w_key", d_k), ("w_value", d_v))}
    return {"x": normal(length, d), **roles, "beta": beta}


TEXTS = """
seven tokens: 7 11 5 3 1.5
three tokens: 3 13 2 5 0.5
values as long as keys: 5 7 3 3 2.0
one token: 1 5 2 3 1.5
"""


@asked(
    "repair-lookup-roles",
    "Repair a lookup with exchanged roles",
    kind="repair",
    equation="lookup-by-name",
    points=2,
    difficulty=3,
    minutes=10,
    trains="who asks, and over whom the weights are normalised",
    broken=["queries in columns"],
    forbid=(forbidden.ATTENTION,),
    cases=tried(_tokens, TEXTS),
    slips="""
        queries in columns
            query @ key.T -> key @ query.T ;; axis=1 -> axis=0
            row i of your weights belongs to the *key* i: it should hold the similarities of the query i, and sum to 1 over the keys
        the keys ask
            query @ key.T -> key @ query.T
            rows sum to 1, but row i compares the key of i with all queries: you repaired the axis only
        normalised over the queries
            axis=1 -> axis=0
            queries and keys are right; now the weights of each query, a row, must sum to 1
        beta without effect
            np.exp(query @ key.T) ** beta -> beta * np.exp(query @ key.T)
            your weights are those of beta = 1; a factor outside of the exponential cancels in the division, beta belongs to the scores
        the names answer in place of the values
            weights @ value -> weights @ key
            keys are only compared; what is averaged is the values, x @ w_value
        one sum for all
            sum(axis=1, keepdims=True) -> sum()
            each query is a lookup of its own: its row has its own sum
    """,
    hints="""
        Try three tokens by hand, of which one asks for another. Print the matrix of weights and read the row of the one that asks.
        Row i of a matrix product comes from its left factor. Whose row should row i be? And along which axis do its weights sum to 1?
        `similarity = np.exp(beta * query @ key.T)`, and the sums run along axis 1. (Or turn the weights, as they are, at the end.)
    """,
    why=r"""
        In `key @ query.T`, row $i$ holds what all queries think of key $i$: the keys ask. And `axis=0` makes columns
        sum to 1. (The power `** beta` was right: $(e^s)^\beta = e^{\beta s}$.) Together the two form the transpose of the right
        weights, which is why the result looks so harmless, and why `weights.T @ value` repairs it as well.
    """,
)
def ask_everybody(x, w_query, w_key, w_value, beta):
    r"""Each token asks with its query, and gets the values of the tokens whose keys
    fit.

    In the function below, each of $T$ tokens asks all tokens, as the last one does in the lesson's recall by hand: row $i$ of the result is
    the average of the values with weights in the ratios of $e^{\beta\, q_i \cdot k_j}$, where the sum runs over the keys $j$. `x` has
    shape `(T, d)`, `w_query` and `w_key` `(d, d_k)`, `w_value` `(d, d_v)`, all float64; `beta` is a positive float, the result has
    shape `(T, d_v)`. The function raises no error and its shapes are right, but each token gets something else. Repair it; there is
    more than one way. (All scores are moderate {every}`(np.abs(x @ w_query @ (x @ w_key).T) < 100).all()`, so that no exponential
    overflows. A library's softmax is welcome.)
    """
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(query @ key.T) ** beta
    weights = similarity / similarity.sum(axis=1, keepdims=True)
    return weights @ value


def _pairs(normal, n, m, d, d_v):
    return {"query": normal(n, d), "key": normal(m, d), "value": normal(m, d_v)}


def _lattice(rng, n, m, d, d_v):
    """Points with whole coordinates, so that ties are exact in any arithmetic."""
    query, key = (rng.integers(-4, 5, size=(count, d)).astype(float) for count in (n, m))
    return {"query": query, "key": key, "value": rng.normal(size=(m, d_v))}


def _ties_of_two_and_of_three(rng):
    key = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [1.0, 0.0], [4.0, 4.0]])
    query = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    return {"query": query, "key": key, "value": rng.normal(size=(5, 7))}


def _nearly_equal_distances(rng):
    """Two keys at 1 and 1.000002; two that the largest coordinate, and two that the sum of coordinates, puts in the wrong order."""
    key = np.array([[1.000002, 0.0], [0.0, 1.0], [23.0, 3.0], [20.0, 4.0], [2.0, 22.0], [3.0, 20.0], [9.0, 9.0]])
    query = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    return {"query": query, "key": key, "value": rng.normal(size=(7, 5))}


PAIRS = """
keys in general position: 7 11 3 2
one key: 3 1 2 5
one query: 1 7 3 2
"""
LATTICES = """
whole coordinates on a line: 11 5 1 3
whole coordinates in the plane: 13 7 2 5
"""


@asked(
    "hard-lookup",
    "The cold end of the dial",
    kind="write",
    equation="bandwidth-limits",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a limit, and its edge case",
    cases=[tried(_pairs, PAIRS), tried(_lattice, LATTICES), _ties_of_two_and_of_three, _nearly_equal_distances],
    slips="""
        the first of several nearest keys
            nearest @ value / nearest.sum(axis=1, keepdims=True) -> value[distance.argmin(axis=1)]
            keys at the same distance have the same weight in the limit: average
        the last of several nearest keys
            nearest @ value / nearest.sum(axis=1, keepdims=True) -> value[len(key) - 1 - distance[:, ::-1].argmin(axis=1)]
            a later tie does not overrule an earlier one: equally near keys share the weight
        tied values added
            ` / nearest.sum(axis=1, keepdims=True)` ->
            weights sum to 1: divide by the number of nearest keys
        the largest dot product
            ((query[:, None] - key[None]) ** 2).sum(axis=-1) -> -query @ key.T
            the similarity here falls off with the distance, and the key with the largest dot product need not be the nearest
        the nearest of all pairs
            distance.min(axis=1, keepdims=True) -> distance.min()
            each query has a nearest key of its own: take the minimum of each row
        differences added without their squares
            ((query[:, None] - key[None]) ** 2) -> np.abs(query[:, None] - key[None])
            the Euclidean distance squares the differences of the coordinates before it adds them
        nearly nearest keys averaged
            distance == distance.min(axis=1, keepdims=True) -> distance <= distance.min(axis=1, keepdims=True) + 0.1
            only keys at exactly the same distance share; of two that nearly tie, the nearer one wins in the limit
        the farthest key
            distance.min -> distance.max
            a small distance is a large similarity: the minimum, not the maximum
    """,
    hints="""
        Which weights remain in the limit h -> 0, if one key is nearest? And if two are exactly equally near?
        Squared distances: `((query[:, None] - key[None]) ** 2).sum(axis=-1)`, a row for each query. They tie where the distances do.
        `nearest = distance == distance.min(axis=1, keepdims=True)`; divide by the number in each row, then times `value`.
    """,
    why="""
        The ratio of two similarities tends to 0 or infinity if the distances differ, and is 1 at *every* $h$ if they do
        not. {eq}`bandwidth-limits` assumed one nearest key; with $n$ of them each gets $1/n$. `argmin` takes the first instead.
    """,
)
def my_hard_lookup(query, key, value):
    r"""(n, d), (m, d), (m, d_v) -> (n, d_v): values of the nearest keys, averaged
    over ties.

    Write the limit $h \to 0^+$ of a soft lookup: `my_hard_lookup(query, key, value)` takes float64 arrays of shape `(n, d)`,
    `(m, d)` and `(m, d_v)` and returns `(n, d_v)`: for each query the value of the nearest key (Euclidean distance). If several
    keys are exactly equally near {case}`ties of two and of three`, the limit gives them equal weights, and so should you. Ties
    occur only where all coordinates are small whole numbers, so that squared distances are exact. Elsewhere two distances may
    differ by only a millionth {case}`nearly equal distances`, and the nearer key still takes everything.
    """
    distance = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    nearest = distance == distance.min(axis=1, keepdims=True)
    return nearest @ value / nearest.sum(axis=1, keepdims=True)


def _sixteen_points(rng):
    s_1, s_2 = rng.uniform(0.2, 3.0, size=(2, 16))
    v_1, v_2 = rng.normal(size=(2, 16))
    return {"s_1": s_1, "s_2": s_2, "v_1": v_1, "v_2": v_2}


@asked(
    "derivative-by-similarity",
    "What a little more similarity does",
    kind="derive",
    equation="soft-lookup",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the gradient of a normalised average",
    cases=[_sixteen_points],
    slips="""
        the sum held fixed
            s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2 -> v_1 / (s_1 + s_2)
            s_1 stands in the denominator as well: more of it lowers the weight of v_2
        the average without its normalisation
            s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2 -> v_1
            that is the derivative of the numerator alone
        the wrong similarity in the numerator
            s_2 * (v -> s_1 * (v
            v_1 - z is proportional to the weight of the *other* pair: with s_2 = 0 nothing can change
        the sign turned round
            v_1 - v_2 -> v_2 - v_1
            more similarity of the first pair pulls z towards v_1
        the square forgotten
            ** 2 ->
            the quotient rule divides by the square of the denominator
        compared with zero instead of the mixture
            (v_1 - v_2) -> v_1
            the weight of v_2 shrinks while that of v_1 grows: its value counts too
    """,
    hints="""
        z is a quotient of two sums, and s_1 stands in both.
        The quotient rule gives v_1 / (s_1 + s_2) minus (s_1 v_1 + s_2 v_2) / (s_1 + s_2)^2.
        On one denominator, the terms with s_1 v_1 cancel: `s_2 * (...) / (s_1 + s_2) ** 2`.
    """,
    why="""
        It equals $(v_1 - z) / (s_1 + s_2)$: a value above the present answer pulls it up when its pair becomes more
        similar, one below pulls it down. If the first pair has all the weight ($s_2 = 0$), nothing moves any more.
    """,
)
def my_gain(s_1, s_2, v_1, v_2):
    r"""Two pairs have the similarities $s_1, s_2 > 0$ with a query, and values that are plain numbers, $v_1$ and $v_2$. The answer is
    $z = (s_1 v_1 + s_2 v_2) / (s_1 + s_2)$. Derive $\dfrac{\partial z}{\partial s_1}$ and write it with the symbols `s_1`, `s_2`,
    `v_1` and `v_2`. Sums, products and powers of them are all you need.
    """
    return s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2


def _mixer(normal, m, v, d_k, d_v):
    return {"x": normal(m, v), "w_query": normal(v, d_k), "w_key": normal(v, d_k), "w_value": normal(v, d_v)}


MIXERS = """
more positions than features: 11 5 3 2
fewer positions than features: 3 7 2 5
as many features of keys as of values: 5 3 7 7
one position: 1 5 2 3
one feature of values: 7 3 2 1
"""


@asked(
    "feature-mixing-matrix",
    "Move the brackets",
    kind="write",
    equation="linear-attention-two-readings",
    points=3,
    difficulty=4,
    minutes=12,
    trains="telling a mixture of features from one of positions",
    cases=tried(_mixer, MIXERS),
    slips="""
        the output instead of its weights
            w_query @ -> x @ w_query @
            that is Z; the question asks for the matrix W(X) by which X is multiplied from the right
        nothing of the data in it
            x.T @ x @ w_value -> w_value
            without X it is a fixed matrix; the sum over positions, X^T X, belongs inside
        averaged over the positions
            @ w_value -> @ w_value / len(x)
            nothing is normalised here: the sum over positions, not their mean
        queries and keys exchanged
            w_query @ w_key.T -> w_key @ w_query.T
            read {eq}`linear-attention-two-readings` from the left: after X comes the matrix of the *queries*, then that of the keys,
            transposed
        the positions centred
            x.T @ x -> (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))
            X^T X as it is, not the covariance of its features: nothing is subtracted from them
        weights over positions
            w_query @ w_key.T @ x.T @ x @ w_value -> x @ w_query @ w_key.T @ x.T
            that is P(X), which multiplies from the left and mixes positions; W(X) has a row for each feature of X
        without the values
            ` @ w_value` ->
            W(X) turns X into outputs, so it ends with w_value
    """,
    hints="""
        Write out Z = (x w_query)(x w_key)^T (x w_value) as one product of six matrices. Which is the first?
        (x w_key)^T is w_key^T x^T. Everything after the first x is W(X).
        `w_query @ w_key.T @ x.T @ x @ w_value`
    """,
    why=r"""
        $(X W_Q)(X W_K)^\top X W_V = X \cdot (W_Q W_K^\top X^\top X W_V)$. The middle, $X^\top X$, is a sum over positions: the
        context enters as a matrix whose size does not depend on its length. Lesson {lesson}`linear` lives on that.
    """,
)
def my_feature_weights(x, w_query, w_key, w_value):
    r"""(m, v), (v, d_k), (v, d_k), (v, d_v) -> (v, d_v): the matrix that mixes
    features, {eq}`linear-attention-two-readings`.

    Linear attention (no exponential, no normalisation) has the output $Z = Q K^\top V$ with $Q = X W_Q$, $K = X W_K$ and
    $V = X W_V$. Write `my_feature_weights(x, w_query, w_key, w_value)`, which returns the matrix $W(X)$ for which $Z = X\, W(X)$
    holds for every $X$, {eq}`linear-attention-two-readings`. `x` has shape `(m, v)`, `w_query` and `w_key` `(v, d_k)`, `w_value`
    `(v, d_v)`, all float64; the result has shape `(v, d_v)`. (Do not solve for it: with fewer positions than features there are
    other solutions.)
    """
    return w_query @ w_key.T @ x.T @ x @ w_value


ORDER = [
    note(
        "title",
        """
        Each stands on its own, so take them in any order.

        Answers are NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not
        change its inputs. Rows are queries, columns are pairs.
    """,
    ),
    "similarities-to-weights",
    "kernel-regression",
    "duplicated-pair",
    "read-lookup-weights",
    "repair-lookup-roles",
    "hard-lookup",
    "derivative-by-similarity",
    "feature-mixing-matrix",
    "leave-one-out-error",
    "answer-slope-by-query",
    "miss-of-a-width",
    "share-of-a-match",
]
