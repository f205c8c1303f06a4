"""The tasks on self-attention; those answered in LaTeX are in tasks_formulas.py, the turns in tasks_turns.py."""

import math
from typing import Any

import numpy as np
from sympy import log

from attn_course.reference import attention, rope
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import every


def _reference(x, w_query, w_key, w_value):
    return attention(x @ w_query, x @ w_key, x @ w_value)


def _draw(normal, length, d_model, d_k, d_v, *leading):
    """Tokens and projections whose sizes differ wherever two could be mistaken for each other."""
    x = normal(*leading, length, d_model)
    return {"x": x, "w_query": normal(d_model, d_k), "w_key": normal(d_model, d_k), "w_value": normal(d_model, d_v)}


def _scores_beyond_a_thousand(rng):
    """Two loud tokens: rows that lie a thousand apart, and in each row one key that clearly wins."""
    while True:
        inputs = _draw(lambda *shape: rng.normal(size=shape), 5, 7, 3, 2)
        inputs["x"][:2] *= 30.0
        scores = inputs["x"] @ inputs["w_query"] @ (inputs["x"] @ inputs["w_key"]).T / math.sqrt(3)
        second, first = np.sort(scores, axis=1)[:, -2:].T
        if (first - second).min() > 25.0 and first.max() > 1000.0 + max(0.0, first.min()):
            return inputs


def _scores_below_minus_a_thousand(rng):
    """All of them, by a feature that is the same in all tokens."""
    inputs = _draw(lambda *shape: rng.normal(size=shape), 5, 7, 3, 2)
    inputs["x"][:, 0], inputs["w_query"][:, 0], inputs["w_key"][:, 0] = 21.0, 0.0, 0.0
    inputs["w_query"][0], inputs["w_key"][0] = [1.0, 0.0, 0.0], [-2.5 * math.sqrt(3.0), 0.0, 0.0]
    return inputs


SENTENCES = """
one sentence: 5 7 3 2
d_k larger than d_model: 7 3 11 5
square projections: 5 7 7 7
a batch of two: 5 11 3 7 2
two leading axes: 5 7 13 11 2 3
one token: 1 5 3 2
"""


@asked(
    "self-attention",
    "Self-attention with projections",
    kind="write",
    equation="self-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="three views of one sequence",
    judged_by=_reference,
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_draw, SENTENCES), _scores_beyond_a_thousand, _scores_below_minus_a_thousand],
    slips="""
        no scale
            ` / np.sqrt(query.shape[-1])` ->
            the scores are not divided by the root of d_k, {eq}`bilinear-score`
        scaled by the length of a token
            np.sqrt(query.shape[-1]) -> np.sqrt(x.shape[-1])
            queries and keys are compared, and they have d_k entries; the root of d_model is the scale of the form without projections
        the value inside the softmax
                scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
                ->
                scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]) @ value
                ;;
                return weights @ value -> return weights
            the softmax closes before the values: as written, each row of the output sums to 1
        the tokens averaged, not the values
            weights @ value -> weights @ x
            the weights average the values X W_V; you averaged the tokens themselves
        keys from the projection of the queries
            x @ w_key -> x @ w_query
            keys are X W_K: what a token answers to is not what it asks
        softmax over the queries
            all axis=-1 -> axis=-2
            the weights of one query sum to 1 over the keys, the last axis of the scores
        all other tokens, not the token itself
                unnormalised = np.exp(scores
                ->
                scores = np.where(np.eye(x.shape[-2]) > 0, -np.inf, scores)
                unnormalised = np.exp(scores
            the token itself is one of the keys: nothing is hidden, the diagonal included
        queries and keys exchanged
            query, key, value = -> key, query, value =
            rows of the scores are queries, X W_Q, and columns keys, X W_K; you have it the other way round
        a flattened batch
                query, key, value = x @ w_query, x @ w_key, x @ w_value
                ->
                tokens = x.reshape(-1, x.shape[-1])
                query, key, value = tokens @ w_query, tokens @ w_key, tokens @ w_value
                ;;
                weights @ value -> (weights @ value).reshape(*x.shape[:-1], -1)
            with the leading axes joined to that of the tokens, the sentences see each other: `@` carries leading axes along
        no maximum subtracted
            scores - scores.max(axis=-1, keepdims=True) -> scores
            exp overflows for scores beyond 709: subtract the largest score of each row first, {eq}`stable-softmax`
        one maximum for all queries
            scores.max(axis=-1, keepdims=True) -> scores.max()
            a row far below the largest score of all becomes 0 / 0: each query needs the maximum of its own row
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        a maximum that is never below 0
            scores.max(axis=-1, keepdims=True) -> np.maximum(scores.max(axis=-1, keepdims=True), 0.0)
            where all scores of a row are far below 0, every term underflows and the row is 0 / 0: subtract the largest score, whatever
            its sign
        a causal mask
                unnormalised = np.exp(scores
                ->
                scores = np.where(np.tri(scores.shape[-1]) > 0, scores, -np.inf)
                unnormalised = np.exp(scores
            nothing is hidden here: every token attends to all tokens, later ones too
        divided by the root of d_v
            np.sqrt(query.shape[-1]) -> np.sqrt(value.shape[-1])
            a score is a sum of d_k products: the scale is the root of the width of a query, not of a value
    """,
    hints="""
        Three products first: queries, keys and values, each from the same `x`. Then it is lesson {lesson}`attention`.
        The scale is the root of `w_query.shape[-1]`; `swapaxes(-1, -2)` leaves leading axes alone.
        `scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(...)`, softmax over axis -1, then `@ (x @ w_value)`.
    """,
    why="""
        One input, three views. Everything after the first line is lesson {lesson}`attention`; the number of tokens appears nowhere in
        the parameters.
    """,
)
def my_self_attention(x, w_query, w_key, w_value):
    r"""(..., T, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v) ->
    (..., T, d_v), {eq}`self-attention`.

    Write self-attention: `my_self_attention(x, w_query, w_key, w_value)` takes tokens `x` of shape `(..., T, d_model)` and the
    projections `(d_model, d_k)`, `(d_model, d_k)` and `(d_model, d_v)`, all float64, and returns the outputs,
    `(..., T, d_v)`: softmax over the keys, scale $1/\sqrt{d_k}$, nothing masked.

    There may be none, one or several leading axes {case}`two leading axes`; they are separate sentences. Scores may lie beyond a
    thousand on either side {case}`scores below minus a thousand`, so use a stable softmax; torch's is welcome.
    """
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value


def _sixteen_points(rng):
    return {"p": rng.uniform(0.3, 0.95, size=16), "n": rng.integers(5, 60, size=16).astype(float)}


@asked(
    "features-for-self-weight",
    "How many features make a token see itself",
    kind="derive",
    equation="heavy-diagonal-of-scores",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the heavy diagonal",
    functions=("log",),
    cases=[_sixteen_points],
    slips="""
        the other tokens forgotten
            (n - 1) * p -> p
            there are n - 1 other tokens, with a term of 1 each
        the token counted among the others
            n - 1 -> n
            one of the n tokens is the query's own
        the odds, or the number of others, turned over
            (n - 1) * p / (1 - p) -> p / ((n - 1) * (1 - p))
            e^s is p / (1 - p) times the sum of the other terms, and that sum is n - 1: p and n - 1 stand above the line
        the score itself
            ` ** 2` ->
            that is the score on the diagonal; it is the root of v
        the weight in place of its ratio to the rest
            p / (1 - p) -> p
            p is e^s / (e^s + n - 1): solve for e^s; the rest has the weight 1 - p
        doubled in place of squared
            ** 2 -> * 2
            v = s^2, not 2 s: the score is the root of v
        no parentheses around 1 - p
            / (1 - p) -> / 1 - p
            the weight is divided by what the others have together: put 1 - p into parentheses
    """,
    hints="""
        What is the weight on the diagonal for n terms, one of them e^s and all others 1?
        Solve p = e^s / (e^s + n - 1) for s, as in {eq}`margin-grows-with-context`.
        s is the root of v: square `log((n - 1) * ... / ...)`.
    """,
    why=r"""
        $p = e^s / (e^s + n - 1)$ with $s = \sqrt v$, so $e^s = (n - 1)\, p / (1 - p)$. For 32 tokens a weight of one half
        is reached at $v = (\ln 31)^2 \approx 12$. (Random tokens need about 16: their other scores are not exactly 0.)
    """,
)
def my_features(p, n):
    r"""Self-attention **without** projections over $n$ tokens with $v$ features each. Suppose that every token has the squared
    length $v$, and that different tokens are orthogonal. Then a token's score with itself is $\sqrt{v}$, all others are 0,
    and the weight on itself is some $p$ that grows with $v$.

    Derive the $v$ at which a given weight $p$ is reached ($1/n < p < 1$), and write it with the symbols `p` and `n`, with
    arithmetic and `log`, the natural logarithm.
    """
    return log((n - 1) * p / (1 - p)) ** 2


def _balance_to_read() -> dict[str, Any]:
    weights = np.array([[0.48, 0.08, 0.34, 0.10], [0.16, 0.39, 0.40, 0.05], [0.17, 0.10, 0.53, 0.20], [0.04, 0.01, 0.16, 0.79]])
    return {
        "matrix": weights,
        "row_label": "queries",
        "column_label": "keys",
        "title": "Self-attention without projections: weights of four tokens",
        "alt": "Heatmap of weights of four tokens, queries in rows and keys in columns, both counted from 0. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
    }


@asked(
    "read-balance-of-weights",
    "Read who looks at whom",
    kind="figure",
    equation="detailed-balance-of-weights",
    points=2,
    difficulty=2,
    minutes=6,
    trains="rows, columns and their balance",
    figure="charts.heatmap",
    tolerance=1e-3,
    figure_data=_balance_to_read,
    slips="""
        the ratio upside down
            0.10 / 0.04 -> 0.04 / 0.10
            p_03 Z_0 = p_30 Z_3: token 3 gives little to token 0 as its row has a large sum
        symmetric weights
            0.10 / 0.04 -> 1.0
            scores are symmetric here, weights are not: each row has its own normaliser
        the row of the value
            0.16 -> 0.2
            output 3 belongs to row 3; the value that counts belongs to column 2
        the largest cell, or counted from one
            (2, -> (3,
            token 3 has the largest single weight, but that is its own; add up each column (and count from 0, as the axes do)
        rows in place of columns
            (2, -> (0,
            every row sums to 1; what a token collects is the sum of its column
    """,
    hints="""
        Who collects? Go down the columns. Who asks? Go along the rows.
        For the second question use {eq}`detailed-balance-of-weights` with i = 0 and j = 3.
        Z_3 / Z_0 = p_03 / p_30; the third answer is one cell of row 3.
    """,
    why="""
        Column 2 sums to 1.43, more than any other, although token 3 has the largest single weight: that is its own.
        $p_{03} Z_0 = p_{30} Z_3$ gives the ratio $0.10 / 0.04 = 2.5$. Output 3 averages with row 3, and only token 2 counts there.
    """,
)
def my_reading():
    """Run the cell below. It shows the weights of self-attention **without** projections for four tokens, rows and columns
    counted from 0; the numbers in the cells are exact. Write three numbers as `my_reading = (a, b, c)`:

    - `a`: which token collects the most weight in total, summed over all queries?
    - `b`: how many times as large as $Z_0$ is $Z_3$? ($Z_i$ is the normaliser of row $i$, {eq}`detailed-balance-of-weights`.)
    - `c`: suppose the values were replaced by numbers: 1 for token 2, and 0 for all others, with the weights as they are.
      What would output 3 be?
    """
    return (2, 0.10 / 0.04, 0.16)


def _stack(normal, n_layers, length, d_model, d_k):
    maps = {name: normal(n_layers, d_model, d_k) / math.sqrt(d_model) for name in ("w_query", "w_key")}
    return {"x": normal(length, d_model), **maps}


STACKS = """
one layer: 1 5 7 3
two layers: 2 7 5 3
three layers: 3 5 7 11
one token: 2 1 5 3
"""


@asked(
    "repair-residual-stack",
    "Repair a stack of layers",
    kind="repair",
    equation="residual-stream",
    points=2,
    difficulty=2,
    minutes=8,
    trains="residuals, and who reads what",
    broken="""
        state @ query_map, state @ key_map -> x @ query_map, x @ key_map ;; state + weights @ state -> weights @ x
    """,
    forbid=(forbidden.ATTENTION,),
    cases=tried(_stack, STACKS),
    slips="""
        every layer reads the input
            state @ query_map, state @ key_map -> x @ query_map, x @ key_map ;; weights @ state -> weights @ x
            each layer must read the state that the layer below left, not the input `x`
        the state replaced, not updated
            state + weights @ state -> weights @ state
            an update is a sum: the state plus what the layer read
        the input added to every layer
            state + weights @ state -> x + weights @ state
            add the output to the state that the layer read; you added it to the input, and lost the layers between
        the last layer without its residual
                query, key = state @ query_map
                ->
                before = state
                    query, key = state @ query_map
                ;;
                return state -> return weights @ before
            every layer adds what it read to its state, the last one too
        the input added once at the end
            state + weights @ state -> weights @ state ;; return state -> return x + state
            every layer has a residual of its own, also those in the middle
        only the outputs added up
            return state -> return state - x
            the input itself belongs to the sum, {eq}`residual-stream`
        the values of the input
            weights @ state -> weights @ x
            the values are the rows of the state as well; you still average the rows of `x`
        the first layer again and again
            state @ query_map, state @ key_map -> state @ w_query[0], state @ w_key[0]
            layer n has projections of its own, `w_query[n]` and `w_key[n]`
    """,
    hints="""
        Write down for two layers what each of them reads, and what it leaves.
        Inside the loop, `x` should not appear; and what was in `state` must not be lost.
        `query, key = state @ query_map, state @ key_map`, and at the end of the loop `state = state + weights @ ...`.
    """,
    why="""
        Every layer read `x`, so all layers but the last did nothing at all; and the last one replaced the state. (`state += ...`
        would change the caller's `x` in the first round.)
    """,
)
def stacked(x, w_query, w_key):
    """Layers of self-attention one upon the other, each added to what it read.

    The function below should run several layers of self-attention, each added to the state it read, {eq}`residual-stream`, and return
    the last state, `(T, d_model)`. Layer `n` has the projections `w_query[n]` and `w_key[n]`, each `(d_model, d_k)`; its
    values are the rows of the state that it reads, without a projection. `x` is `(T, d_model)`; all arrays are float64. It
    raises no error, and two things are wrong: what the layers read, and what they leave. Repair it.
    """
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, state @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = state + weights @ state
    return state


def _places(normal, d_k, *positions):
    return {"x": normal(len(positions), d_k), "positions": np.array(positions)}


PLACES = """
five places in a row: 6 7 8 9 10 11
places in any order: 10 40 3 3 17 0 250 8
one pair: 2 2 0 5
one row: 6 4
places before 0, and far away: 8 -3 99991 -250 1 -100000 40000 0
"""


@asked(
    "rotary-positions",
    "Rotary positions",
    kind="write",
    equation="rotations-compose",
    points=3,
    difficulty=3,
    minutes=15,
    trains="pairs, frequencies and angles",
    judged_by=lambda x, positions: rope(x, positions, layout="interleaved"),
    cases=tried(_places, PLACES),
    slips="""
        the positions ignored
            positions[:, None] -> np.arange(len(x))[:, None]
            row i stands at positions[i], which need not be i: a text may be a part of a longer one
        pairs of halves
                x[:, 0::2], x[:, 1::2] -> x[:, : d_k // 2], x[:, d_k // 2 :]
                ;;
                turned[:, 0::2] -> turned[:, : d_k // 2] ;; turned[:, 1::2] -> turned[:, d_k // 2 :]
            the pairs are neighbours here, features 2m and 2m + 1; you paired m with m + d_k / 2
        turned the other way
            positions[:, None] -> -positions[:, None]
            the first of a pair becomes a cos - b sin, the second a sin + b cos; your sines have the other sign
        frequencies that fall too slowly
            -2 * np.arange -> -np.arange
            the frequency of pair m is 10000 ** (-2m / d_k); yours falls half as fast: is the 2 left out?
        pairs counted from one
            np.arange(d_k // 2) -> (np.arange(d_k // 2) + 1)
            pair 0 has the frequency 1: m runs from 0 to d_k / 2 - 1
        one frequency for all pairs
            10000.0 ** (-2 * np.arange(d_k // 2) / d_k) -> np.ones(d_k // 2)
            every pair has a clock of its own: only pair 0 has the frequency 1
        positions counted from one
            positions[:, None] -> (positions[:, None] + 1)
            position 0 is not turned at all: the angle is the frequency times the position as given
        the first feature overwritten
            np.empty_like(x) -> x.copy() ;; first * np.sin(angles) + second -> turned[:, 0::2] * np.sin(angles) + second
            both lines need the features as they came: you made the second from the first after its turn
        turned features not put back
            turned[:, 0::2] = -> turned[:, : d_k // 2] = ;; turned[:, 1::2] = -> turned[:, d_k // 2 :] =
            the angles are right; but feature 2m goes back to column 2m and its neighbour to 2m + 1, not into two halves
    """,
    hints="""
        One angle for each row and each pair: an array (T, d_k / 2). What are its rows, what its columns?
        `frequencies = 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)`, `angles = positions[:, None] * frequencies`.
        `first, second = x[:, 0::2], x[:, 1::2]`; write the two turned halves back to the same columns of a new array.
    """,
    why="""
        One angle for each row and each pair. Other code, the `rope` of the course included, pairs feature $m$ with
        $m + d_k / 2$: the same pairs under other column numbers.
    """,
)
def my_rope(x, positions):
    r"""(T, d_k), (T,) -> (T, d_k): neighbouring features turned by their position,
    {eq}`rotations-compose`.

    Write RoPE: `my_rope(x, positions)` takes queries or keys `x`, float64 of shape `(T, d_k)` with `d_k` even, and integer
    `positions` of shape `(T,)`, in any order
    {case}`places in any order`, and returns the turned array, `(T, d_k)`. A position may be negative, and up to
    100 000 in size {case}`places before 0, and far away`: compute angles in float64, even for a float32 result.

    Pair $m = 0, 1, \ldots$ consists of the **neighbours** $a$ = feature $2m$ and $b$ = feature $2m + 1$. A row at position
    $t$ has it turned by the angle $\omega_m t$ with $\omega_m = 10000^{-2m/d_k}$: feature $2m$ becomes
    $a \cos \omega_m t - b \sin \omega_m t$, feature $2m + 1$ becomes $a \sin \omega_m t + b \cos \omega_m t$.
    """
    d_k = x.shape[1]
    frequencies = 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)
    angles = positions[:, None] * frequencies
    first, second = x[:, 0::2], x[:, 1::2]
    turned = np.empty_like(x)
    turned[:, 0::2] = first * np.cos(angles) - second * np.sin(angles)
    turned[:, 1::2] = first * np.sin(angles) + second * np.cos(angles)
    return turned


def _gradients(normal, length, d_model, d_k, d_v):
    gradients = {f"d_{name}": normal(length, width) for name, width in (("query", d_k), ("key", d_k), ("value", d_v))}
    return {**_draw(normal, length, d_model, d_k, d_v), **gradients}


GRADIENTS = """
five tokens: 5 7 3 2
more tokens than features: 11 5 7 3
one token: 1 3 5 2
"""


@asked(
    "projection-gradients",
    "Gradients of three projections",
    kind="write",
    equation="gradients-through-projections",
    points=4,
    difficulty=3,
    minutes=10,
    trains="three paths that meet in one input",
    partial=True,
    forbid=(forbidden.AUTOGRAD,),
    cases=tried(_gradients, GRADIENTS),
    slips="""
        only the path through the values
            `d_query @ w_query.T + d_key @ w_key.T + ` ->
            a token also asks and is found: dX has three parts, one through each projection
        the path through the keys forgotten
            ` + d_key @ w_key.T` ->
            dX lacks the part that comes back through the keys
        the mean of the three paths
            d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T -> (d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T) / 3
            gradients of several paths add up; nothing divides them by three
        the mean over the tokens
            x.T @ d_query, x.T @ d_key, x.T @ d_value -> x.T @ d_query / len(x), x.T @ d_key / len(x), x.T @ d_value / len(x)
            every token adds its part to dW: a sum over the tokens, not their mean
        gradients of the transposed matrices
            x.T @ d_query, x.T @ d_key, x.T @ d_value -> d_query.T @ x, d_key.T @ x, d_value.T @ x
            a gradient has the shape of its matrix: (d_model, d_k) for W_Q
        queries and keys exchanged on the way to X
            d_query @ w_query.T + d_key @ w_key.T -> d_query @ w_key.T + d_key @ w_query.T
            dQ goes back through W_Q and dK through W_K; in dX you have them the other way round
        the scale once more
            x.T @ d_query, x.T @ d_key -> x.T @ d_query / np.sqrt(w_query.shape[1]), x.T @ d_key / np.sqrt(w_query.shape[1])
            the scale of the scores is in dQ and dK already
    """,
    hints="""
        For one linear map Y = X W: dW = X^T dY, and dX = dY W^T. Check the shapes.
        `x` feeds three maps. What happens to the gradients that come back from them?
        `d_x = d_query @ w_query.T + ...`, one term for each projection, and `d_w_query = x.T @ d_query`.
    """,
    why="""
        Each projection is one linear map. The matrices collect over the tokens, and the token collects over the three
        roles it plays.
    """,
)
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    """Gradients (d_w_query, d_w_key, d_w_value, d_x), {eq}`gradients-through-projections`.

    The gradients `d_query`, `d_key` `(T, d_k)` and `d_value` `(T, d_v)` of a loss with respect to $Q = X W_Q$, $K = X W_K$ and
    $V = X W_V$ are known. Write `my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value)`, which
    returns the tuple `(d_w_query, d_w_key, d_w_value, d_x)` of gradients, each of the shape of what it belongs to: `x` is
    `(T, d_model)`, the matrices are `(d_model, d_k)`, `(d_model, d_k)` and `(d_model, d_v)`, all float64. In class marks each
    of the four gradients that is right in every case counts a quarter of the points.
    """
    d_x = d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_x


@asked(
    "attention-and-rnn-counts",
    "Count before you run",
    kind="predict",
    equation="attention-and-rnn-flops",
    points=2,
    difficulty=2,
    minutes=6,
    trains="operations and waiting",
    variants=every(T=(80, 50, 120), d=(64, 32, 48)),
    slips="""
        a multiplication with its addition counted as one
            6 * T * d**2 + 4 * T**2 * d, 4 * T -> 3 * T * d**2 + 2 * T**2 * d, 2 * T
            a multiplication and its addition are 2 FLOPs
        the projections alone
            ` + 4 * T**2 * d` ->
            scores and output cost as well, and that part grows with the square of T
        no projections
            `6 * T * d**2 + ` ->
            the layer has three projections of every token
        one matrix in the RNN
            4 * T * d**2 -> 2 * T * d**2
            a step of the RNN multiplies the input by one matrix and the state by another
        the three projections one after the other
            3, T) -> 5, T)
            the three projections need nothing of one another: they count as one step
        an RNN that waits for nothing
            3, T) -> 3, 1)
            a state needs the state before it: T products in a row
        an output projection
            6 * T -> 8 * T ;; 3, T) -> 4, T)
            this layer has no output projection: three projections, scores, output
        the products of the input in the chain
            3, T) -> 3, 2 * T)
            the product of an input with its matrix waits for no state; only the other product of a step does
        scores without output
            4 * T**2 * d -> 2 * T**2 * d
            scores and output are two products of the same size
    """,
    hints="""
        List the matrix products of the layer with their shapes; an (a, b) by (b, c) product costs 2 a b c.
        Attention: three of (T, d) by (d, d), then (T, d) by (d, T), then (T, T) by (T, d).
        {eq}`attention-and-rnn-flops` for the first two numbers, {eq}`attention-and-rnn-depth` for the last two.
    """,
    why="""
        Here 3 604 480 against 1 310 720 FLOPs: nearly three times the work, with 3 products in a row in place of 80.
    """,
)
def my_counts(T, d):
    r"""A sentence of $T$ tokens; all widths ($d_{\text{model}}$, $d_k$, $d_v$, hidden size) are $d$, as printed below. Count only
    matrix products, a multiplication with its addition as 2. Self-attention has three projections, scores and output; the
    RNN multiplies input and state by a matrix each, every step. Write `my_counts = (a, b, c, d)`:

    - `a`: FLOPs of self-attention; `b`: of the RNN;
    - `c`: products in the longest chain of self-attention, each in need of the one before;
    - `d`: the same for the RNN, one for each step.
    """
    return (6 * T * d**2 + 4 * T**2 * d, 4 * T * d**2, 3, T)


def _features(normal, m, n):
    return {"table": normal(m, n)}


def _eleven_individuals_five_features(rng):
    return {"table": rng.normal(size=(11, 5)) @ rng.normal(size=(5, 5))}


def _features_with_means_and_sizes_of_their_own(rng):
    return {"table": 4.0 + 3.0 * rng.normal(size=(13, 7)) * np.arange(1, 8)}


def _two_opposite_features(rng):
    return {"table": rng.normal(size=(5, 2)) @ np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 1.0]])}


TABLES = """
seven individuals, thirteen features: 7 13
one feature: 7 1
"""


@asked(
    "attention-between-features",
    "Features as tokens",
    kind="write",
    equation="feature-weights-from-correlations",
    points=3,
    difficulty=4,
    minutes=15,
    trains="saying what a row is",
    forbid=(forbidden.ATTENTION,),
    cases=[
        *(_eleven_individuals_five_features, _features_with_means_and_sizes_of_their_own, _two_opposite_features),
        tried(_features, TABLES),
    ],
    slips="""
        individuals as tokens
            table.std(axis=0)).T -> table.std(axis=0))
            your map relates individuals, the rows of the table; for features the tokens are its columns
        features not centred
            (table - table.mean(axis=0)) / table.std(axis=0) -> table / np.sqrt((table**2).mean(axis=0))
            subtract from each feature its mean over the individuals; otherwise large means look like likeness
        features not of equal size
            ` / table.std(axis=0)` ->
            divide each feature by the root of its mean square; otherwise the one with the large unit wins
        the sample standard deviation
            table.std(axis=0) -> table.std(axis=0, ddof=1)
            the mean square is a sum divided by m; you divided by m - 1
        scaled by the number of features
            tokens.shape[1] -> len(tokens)
            tokens are as long as there are individuals: the scale is the root of m
        softmax of the correlations
            np.sqrt(tokens.shape[1]) -> tokens.shape[1]
            divided by m the scores are the correlations themselves; attention divides by the root of m
        correlations
            -> return np.atleast_2d(np.corrcoef(table, rowvar=False))
            correlations have signs and no sum; the weights are the softmax of the root of m times them
        columns that sum to 1
            return unnormalised / -> return (unnormalised / ;; sum(axis=1, keepdims=True) -> sum(axis=1, keepdims=True)).T
            each row is one feature that asks, and sums to 1: the softmax goes along the last axis
        the feature itself left out
            max(axis=1, keepdims=True)) -> max(axis=1, keepdims=True)) * (1 - np.eye(len(tokens)))
            a feature is one of its own keys: nothing is hidden, the diagonal included
    """,
    hints="""
        What is one token here, and how many entries has it?
        Standardise along axis 0, then transpose: the rows are features.
        `tokens @ tokens.T / np.sqrt(m)`, then a softmax over each row.
    """,
    why=r"""
        A token is a column, so it has $m$ entries, and $\sqrt m$ is the scale. In the last case two features are exactly opposite:
        each knows everything about the other, and their weight is next to nothing.
    """,
)
def my_feature_weights(table):
    r"""(m, n) -> (n, n): softmax of the scaled products of standardised features,
    {eq}`feature-weights-from-correlations`.

    Write `my_feature_weights(table)`: `table` is float64 of shape `(m, n)`, a row for each of $m$ individuals, a column
    for each of $n \ge 1$ features, none constant. Return the weights `(n, n)` of self-attention **without** projections, with the
    **features** as tokens. Each feature is shifted to mean 0 and scaled to mean square 1 over the individuals (a mean
    divides by $m$). Scores are divided by the root of the number of entries of a token; row $a$ sums to 1 over all features,
    $a$ included. Torch's softmax is welcome.
    """
    tokens = ((table - table.mean(axis=0)) / table.std(axis=0)).T
    scores = tokens @ tokens.T / np.sqrt(tokens.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True)


ORDER = [
    note(
        "title",
        """
        Each stands for itself, so take them in any order.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs, nor use
        the course's own functions (`attn_course.reference`). Rows are tokens.
    """,
    ),
    "self-attention",
    "features-for-self-weight",
    "read-balance-of-weights",
    "repair-residual-stack",
    "rotary-positions",
    "projection-gradients",
    "attention-and-rnn-counts",
    "attention-between-features",
    note(
        "answers-in-latex",
        r"""
        ## Answers in LaTeX
        The last three answers are LaTeX, between `r"` and `"`: the right side of a formula. Any form counts that has the right value
        in every case. To see how yours is understood, `from attn_course import read` and call
        `read("asymmetry-of-two-scores", my_asymmetry)`; what cannot be read is no attempt. A sum ends at the next plus or minus, so
        put parentheses around several terms, `\sum_m (a_m + b_m)`; a transpose is written `^\top`.
    """,
    ),
    "asymmetry-of-two-scores",
    "rotary-score-by-offset",
    "gradient-of-self-score",
    "scores-of-shuffled-words",
    "turn-of-a-pair",
]
