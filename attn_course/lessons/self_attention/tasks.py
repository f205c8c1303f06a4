"""The graded tasks on self-attention."""

import math
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.self_attention.tasks_formulas import ROTARY_SCORE, SCORE_ASYMMETRY, SELF_SCORE_GRADIENT
from attn_course.reference import attention, rope, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every

Gradients = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _draw(rng: np.random.Generator, length: int, d_model: int, d_k: int, d_v: int, *batch: int) -> dict[str, np.ndarray]:
    """Return tokens and projections whose sizes differ wherever two could be mistaken for each other."""
    return {
        "x": rng.normal(size=(*batch, length, d_model)),
        "w_query": rng.normal(size=(d_model, d_k)),
        "w_key": rng.normal(size=(d_model, d_k)),
        "w_value": rng.normal(size=(d_model, d_v)),
    }


def _self_attention(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray) -> np.ndarray:
    return attention(x @ w_query, x @ w_key, x @ w_value)


def _scores(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    return np.asarray(x @ w_query @ (x @ w_key).swapaxes(-1, -2) / math.sqrt(w_query.shape[-1]))


def _thousands(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two loud tokens: scores beyond a thousand, rows that lie a thousand apart, and in each row one key that clearly wins."""
    while True:
        inputs = _draw(rng, 5, 7, 3, 2)
        inputs["x"][:2] *= 30.0
        second, first = np.sort(_scores(inputs["x"], inputs["w_query"], inputs["w_key"]), axis=1)[:, -2:].T
        if (first - second).min() > 25.0 and first.max() > 1000.0 + max(0.0, first.min()):
            return inputs


def _far_below(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Scores that all lie somewhat below minus a thousand, by a feature that is the same in all tokens."""
    inputs = _draw(rng, 5, 7, 3, 2)
    inputs["x"][:, 0], inputs["w_query"][:, 0], inputs["w_key"][:, 0] = 21.0, 0.0, 0.0
    inputs["w_query"][0], inputs["w_key"][0] = [1.0, 0.0, 0.0], [-2.5 * math.sqrt(3.0), 0.0, 0.0]
    return inputs


def _unshifted(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, *, shift: bool = False) -> np.ndarray:
    scores = _scores(x, w_query, w_key)
    terms = np.exp(scores - scores.max() if shift else scores)
    return np.asarray(terms / terms.sum(axis=-1, keepdims=True) @ x @ w_value)


def _joined(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray) -> np.ndarray:
    """All sentences as one long one, which comes back as a batch."""
    return _self_attention(x.reshape(-1, x.shape[-1]), w_query, w_key, w_value).reshape(*x.shape[:-1], -1)


SELF_ATTENTION = Task(
    id="self-attention",
    title="Self-attention with projections",
    entry="my_self_attention",
    kind="write",
    equation="self-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="three views of one sequence",
    answer=_self_attention,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("one sentence", **_draw(rng, 5, 7, 3, 2)),
        Case("d_k larger than d_model", **_draw(rng, 7, 3, 11, 5)),
        Case("square projections", **_draw(rng, 5, 7, 7, 7)),
        Case("a batch of two", **_draw(rng, 5, 11, 3, 7, 2)),
        Case("two leading axes", **_draw(rng, 5, 7, 13, 11, 2, 3)),
        Case("one token", **_draw(rng, 1, 5, 3, 2)),
        Case("scores beyond a thousand", **_thousands(rng)),
        Case("scores below minus a thousand", **_far_below(rng)),
    ],
    wrong=[
        Wrong(
            "no scale",
            lambda x, w_query, w_key, w_value: softmax(_scores(x, w_query, w_key) * math.sqrt(w_query.shape[1])) @ x @ w_value,
            "the scores are not divided by the root of d_k, {eq}`bilinear-score`",
        ),
        Wrong(
            "scaled by the length of a token",
            lambda x, w_query, w_key, w_value: (
                softmax(_scores(x, w_query, w_key) * math.sqrt(w_query.shape[1] / w_query.shape[0])) @ x @ w_value
            ),
            "queries and keys are compared, and they have d_k entries; the root of d_model is the scale of the form without projections",
        ),
        Wrong(
            "the value inside the softmax",
            lambda x, w_query, w_key, w_value: softmax(_scores(x, w_query, w_key) @ x @ w_value),
            "the softmax closes before the values: as written, each row of the output sums to 1",
        ),
        Wrong(
            "the tokens averaged, not the values",
            lambda x, w_query, w_key, w_value: softmax(_scores(x, w_query, w_key)) @ x,
            "the weights average the values X W_V; you averaged the tokens themselves",
        ),
        Wrong(
            "keys from the projection of the queries",
            lambda x, w_query, w_key, w_value: softmax(_scores(x, w_query, w_query)) @ x @ w_value,
            "keys are X W_K: what a token answers to is not what it asks",
        ),
        Wrong(
            "softmax over the queries",
            lambda x, w_query, w_key, w_value: softmax(_scores(x, w_query, w_key), axis=-2) @ x @ w_value,
            "the weights of one query sum to 1 over the keys, the last axis of the scores",
        ),
        Wrong(
            "all other tokens, not the token itself",
            lambda x, w_query, w_key, w_value: attention(x @ w_query, x @ w_key, x @ w_value, mask=~np.eye(x.shape[-2], dtype=bool)),
            "the token itself is one of the keys: nothing is hidden, the diagonal included",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda x, w_query, w_key, w_value: _self_attention(x, w_key, w_query, w_value),
            "rows of the scores are queries, X W_Q, and columns keys, X W_K; you have it the other way round",
        ),
        Wrong(
            "a flattened batch",
            _joined,
            "with the leading axes joined to that of the tokens, the sentences see each other: `@` carries leading axes along",
        ),
        Wrong(
            "no maximum subtracted",
            _unshifted,
            "exp overflows for scores beyond 709: subtract the largest score of each row first, {eq}`stable-softmax`",
        ),
        Wrong(
            "one maximum for all queries",
            lambda x, w_query, w_key, w_value: _unshifted(x, w_query, w_key, w_value, shift=True),
            "a row far below the largest score of all becomes 0 / 0: each query needs the maximum of its own row",
        ),
    ],
    hints=[
        "Three products first: queries, keys and values, each from the same `x`. Then it is lesson {lesson}`attention`.",
        "The scale is the root of `w_query.shape[-1]`; `swapaxes(-1, -2)` leaves leading axes alone.",
        "`scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(...)`, softmax over axis -1, then `@ (x @ w_value)`.",
    ],
)


def _log(value: Any) -> Any:
    import sympy

    return sympy.log(value)


def _self_weight_points(rng: np.random.Generator) -> list[Case]:
    return [Case("16 points", p=rng.uniform(0.3, 0.95, size=16), n=rng.integers(5, 60, size=16).astype(float))]


FEATURES_FOR_SELF_WEIGHT = Task(
    id="features-for-self-weight",
    title="How many features make a token see itself",
    entry="my_features",
    kind="derive",
    equation="heavy-diagonal-of-scores",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the heavy diagonal",
    symbols=("p", "n"),
    functions=("log",),
    cases=_self_weight_points,
    answer=lambda p, n: _log((n - 1) * p / (1 - p)) ** 2,
    wrong=[
        Wrong("the other tokens forgotten", lambda p, n: _log(p / (1 - p)) ** 2, "there are n - 1 other tokens, with a term of 1 each"),
        Wrong("the token counted among the others", lambda p, n: _log(n * p / (1 - p)) ** 2, "one of the n tokens is the query's own"),
        Wrong(
            "the odds, or the number of others, turned over",
            lambda p, n: _log(p / ((n - 1) * (1 - p))) ** 2,
            "e^s is p / (1 - p) times the sum of the other terms, and that sum is n - 1: p and n - 1 stand above the line",
        ),
        Wrong("the score itself", lambda p, n: _log((n - 1) * p / (1 - p)), "that is the score on the diagonal; it is the root of v"),
        Wrong(
            "the weight in place of its ratio to the rest",
            lambda p, n: _log((n - 1) * p) ** 2,
            "p is e^s / (e^s + n - 1): solve for e^s; the rest has the weight 1 - p",
        ),
        Wrong("doubled in place of squared", lambda p, n: _log((n - 1) * p / (1 - p)) * 2, "v = s^2, not 2 s: the score is the root of v"),
    ],
    hints=[
        "What is the weight on the diagonal for n terms, one of them e^s and all others 1?",
        "Solve p = e^s / (e^s + n - 1) for s, as in {eq}`margin-grows-with-context`.",
        "s is the root of v: square `log((n - 1) * ... / ...)`.",
    ],
)


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


READ_BALANCE = Task(
    id="read-balance-of-weights",
    title="Read who looks at whom",
    entry="my_reading",
    kind="figure",
    equation="detailed-balance-of-weights",
    points=2,
    difficulty=2,
    minutes=6,
    trains="rows, columns and their balance",
    tolerance=1e-3,
    figure_data=_balance_to_read,
    answer=lambda: (2.0, 2.5, 0.16),
    wrong=[
        Wrong(
            "the ratio upside down",
            lambda: (2.0, 0.4, 0.16),
            "p_03 Z_0 = p_30 Z_3: token 3 gives little to token 0 as its row has a large sum",
        ),
        Wrong("symmetric weights", lambda: (2.0, 1.0, 0.16), "scores are symmetric here, weights are not: each row has its own normaliser"),
        Wrong("the row of the value", lambda: (2.0, 2.5, 0.2), "output 3 belongs to row 3; the value that counts belongs to column 2"),
        Wrong(
            "the largest cell, or counted from one",
            lambda: (3.0, 2.5, 0.16),
            "token 3 has the largest single weight, but that is its own; add up each column (and count from 0, as the axes do)",
        ),
        Wrong("rows in place of columns", lambda: (0.0, 2.5, 0.16), "every row sums to 1; what a token collects is the sum of its column"),
    ],
    hints=[
        "Who collects? Go down the columns. Who asks? Go along the rows.",
        "For the second question use {eq}`detailed-balance-of-weights` with i = 0 and j = 3.",
        "Z_3 / Z_0 = p_03 / p_30; the third answer is one cell of row 3.",
    ],
)


def _layer(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    """Self-attention whose values are the tokens as they are."""
    return attention(x @ w_query, x @ w_key, x)


def _stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    for layer in zip(w_query, w_key, strict=True):
        x = x + _layer(x, *layer)
    return x


def _stacked_broken(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    """Layers of self-attention one upon the other, each added to what it read."""
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = x @ query_map, x @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = weights @ x
    return state


def _replacing(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    for layer in zip(w_query, w_key, strict=True):
        x = _layer(x, *layer)
    return x


def _side_by_side(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    return np.asarray(x + sum(_layer(x, *layer) for layer in zip(w_query, w_key, strict=True)))


def _input_added(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for layer in zip(w_query, w_key, strict=True):
        state = x + _layer(state, *layer)
    return state


def _values_of_the_input(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        state = state + attention(state @ query_map, state @ key_map, x)
    return state


def _added_once(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    return x + _replacing(x, w_query, w_key)


def _draw_stack(rng: np.random.Generator, n_layers: int, length: int, d_model: int, d_k: int) -> dict[str, np.ndarray]:
    return {
        "x": rng.normal(size=(length, d_model)),
        "w_query": rng.normal(size=(n_layers, d_model, d_k)) / math.sqrt(d_model),
        "w_key": rng.normal(size=(n_layers, d_model, d_k)) / math.sqrt(d_model),
    }


STACK = Task(
    id="repair-residual-stack",
    title="Repair a stack of layers",
    entry="stacked",
    kind="repair",
    equation="residual-stream",
    points=2,
    difficulty=2,
    minutes=8,
    trains="residuals, and who reads what",
    answer=_stacked,
    broken=_stacked_broken,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("one layer", **_draw_stack(rng, 1, 5, 7, 3)),
        Case("two layers", **_draw_stack(rng, 2, 7, 5, 3)),
        Case("three layers", **_draw_stack(rng, 3, 5, 7, 11)),
        Case("one token", **_draw_stack(rng, 2, 1, 5, 3)),
    ],
    wrong=[
        Wrong(
            "every layer reads the input",
            _side_by_side,
            "each layer must read the state that the layer below left, not the input `x`",
        ),
        Wrong("the state replaced, not updated", _replacing, "an update is a sum: the state plus what the layer read"),
        Wrong(
            "the input added to every layer",
            _input_added,
            "add the output to the state that the layer read; you added it to the input, and lost the layers between",
        ),
        Wrong(
            "the last layer without its residual",
            lambda x, w_query, w_key: _layer(_stacked(x, w_query[:-1], w_key[:-1]), w_query[-1], w_key[-1]),
            "every layer adds what it read to its state, the last one too",
        ),
        Wrong("the input added once at the end", _added_once, "every layer has a residual of its own, also those in the middle"),
        Wrong(
            "only the outputs added up",
            lambda x, w_query, w_key: _stacked(x, w_query, w_key) - x,
            "the input itself belongs to the sum, {eq}`residual-stream`",
        ),
        Wrong(
            "the values of the input",
            _values_of_the_input,
            "the values are the rows of the state as well; you still average the rows of `x`",
        ),
        Wrong(
            "the first layer again and again",
            lambda x, w_query, w_key: _stacked(x, w_query[[0] * len(w_query)], w_key[[0] * len(w_key)]),
            "layer n has projections of its own, `w_query[n]` and `w_key[n]`",
        ),
    ],
    hints=[
        "Write down for two layers what each of them reads, and what it leaves.",
        "Inside the loop, `x` should not appear; and what was in `state` must not be lost.",
        "`query, key = state @ query_map, state @ key_map`, and at the end of the loop `state = state + weights @ ...`.",
    ],
)


def _turned(x: np.ndarray, positions: np.ndarray, *, power: float = 2.0, sign: float = 1.0, equal: bool = False) -> np.ndarray:
    """Turn neighbouring features, with one thing done differently."""
    n_pairs = x.shape[1] // 2
    frequencies = np.ones(n_pairs) if equal else 10_000.0 ** (-power * np.arange(n_pairs) / x.shape[1])
    angles = sign * positions[:, None] * frequencies
    first, second = x[:, 0::2], x[:, 1::2]
    turned = np.stack([first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)], axis=-1)
    return turned.reshape(x.shape)


def _overwritten(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The second of each pair is made from the first after its turn."""
    angles = positions[:, None] * 10_000.0 ** (-2.0 * np.arange(x.shape[1] // 2) / x.shape[1])
    turned = x.copy()
    turned[:, 0::2] = turned[:, 0::2] * np.cos(angles) - turned[:, 1::2] * np.sin(angles)
    turned[:, 1::2] = turned[:, 0::2] * np.sin(angles) + turned[:, 1::2] * np.cos(angles)
    return turned


def _rope_case(rng: np.random.Generator, name: str, positions: list[int], d_k: int) -> Case:
    return Case(name, x=rng.normal(size=(len(positions), d_k)), positions=np.array(positions))


ROTATE = Task(
    id="rotary-positions",
    title="Rotary positions",
    entry="my_rope",
    kind="write",
    equation="rotations-compose",
    points=3,
    difficulty=3,
    minutes=15,
    trains="pairs, frequencies and angles",
    answer=lambda x, positions: rope(x, positions, layout="interleaved"),
    cases=lambda rng: [
        _rope_case(rng, "five places in a row", [7, 8, 9, 10, 11], 6),
        _rope_case(rng, "places in any order", [40, 3, 3, 17, 0, 250, 8], 10),
        _rope_case(rng, "one pair", [2, 0, 5], 2),
        _rope_case(rng, "one row", [4], 6),
        _rope_case(rng, "places before 0, and far away", [-3, 99_991, -250, 1, -100_000, 40_000, 0], 8),
    ],
    wrong=[
        Wrong(
            "the positions ignored",
            lambda x, positions: _turned(x, np.arange(len(x))),
            "row i stands at positions[i], which need not be i: a text may be a part of a longer one",
        ),
        Wrong(
            "pairs of halves",
            rope,
            "the pairs are neighbours here, features 2m and 2m + 1; you paired m with m + d_k / 2",
        ),
        Wrong(
            "turned the other way",
            lambda x, positions: _turned(x, positions, sign=-1.0),
            "the first of a pair becomes a cos - b sin, the second a sin + b cos; your sines have the other sign",
        ),
        Wrong(
            "frequencies that fall too slowly",
            lambda x, positions: _turned(x, positions, power=1.0),
            "the frequency of pair m is 10000 ** (-2m / d_k); yours falls half as fast: is the 2 left out?",
        ),
        Wrong(
            "pairs counted from one",
            lambda x, positions: _turned(x, positions * 10_000.0 ** (-2.0 / x.shape[1])),
            "pair 0 has the frequency 1: m runs from 0 to d_k / 2 - 1",
        ),
        Wrong(
            "one frequency for all pairs",
            lambda x, positions: _turned(x, positions, equal=True),
            "every pair has a clock of its own: only pair 0 has the frequency 1",
        ),
        Wrong(
            "positions counted from one",
            lambda x, positions: _turned(x, positions + 1),
            "position 0 is not turned at all: the angle is the frequency times the position as given",
        ),
        Wrong(
            "the first feature overwritten",
            _overwritten,
            "both lines need the features as they came: you made the second from the first after its turn",
        ),
        Wrong(
            "turned features not put back",
            lambda x, positions: np.concatenate([_turned(x, positions)[:, 0::2], _turned(x, positions)[:, 1::2]], axis=1),
            "the angles are right; but feature 2m goes back to column 2m and its neighbour to 2m + 1, not into two halves",
        ),
    ],
    hints=[
        "One angle for each row and each pair: an array (T, d_k / 2). What are its rows, what its columns?",
        "`frequencies = 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)`, `angles = positions[:, None] * frequencies`.",
        "`first, second = x[:, 0::2], x[:, 1::2]`; write the two turned halves back to the same columns of a new array.",
    ],
)


def _projection_gradients(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    d_query: np.ndarray,
    d_key: np.ndarray,
    d_value: np.ndarray,
    *,
    paths: tuple[float, float, float] = (1.0, 1.0, 1.0),
    factor: float = 1.0,
) -> Gradients:
    """Eq. gradients-through-projections; `paths` weighs the three parts of dX, `factor` the gradients of W_Q and W_K."""
    d_x = paths[0] * d_query @ w_query.T + paths[1] * d_key @ w_key.T + paths[2] * d_value @ w_value.T
    return factor * x.T @ d_query, factor * x.T @ d_key, x.T @ d_value, d_x


def _gradient_case(rng: np.random.Generator, name: str, length: int, d_model: int, d_k: int, d_v: int) -> Case:
    inputs = _draw(rng, length, d_model, d_k, d_v)
    inputs |= {f"d_{name_}": rng.normal(size=(length, width)) for name_, width in (("query", d_k), ("key", d_k), ("value", d_v))}
    return Case(name, **inputs)


def _token_means(*inputs: np.ndarray) -> Gradients:
    d_w_query, d_w_key, d_w_value, d_x = _projection_gradients(*inputs)
    return d_w_query / len(inputs[0]), d_w_key / len(inputs[0]), d_w_value / len(inputs[0]), d_x


def _transposed_gradients(*inputs: np.ndarray) -> Gradients:
    d_w_query, d_w_key, d_w_value, d_x = _projection_gradients(*inputs)
    return d_w_query.T, d_w_key.T, d_w_value.T, d_x


PATHS = Task(
    id="projection-gradients",
    title="Gradients of three projections",
    entry="my_projection_gradients",
    kind="write",
    equation="gradients-through-projections",
    points=4,
    partial=True,
    difficulty=3,
    minutes=10,
    trains="three paths that meet in one input",
    answer=_projection_gradients,
    forbid=(forbidden.AUTOGRAD,),
    cases=lambda rng: [
        _gradient_case(rng, "five tokens", 5, 7, 3, 2),
        _gradient_case(rng, "more tokens than features", 11, 5, 7, 3),
        _gradient_case(rng, "one token", 1, 3, 5, 2),
    ],
    wrong=[
        Wrong(
            "only the path through the values",
            lambda *inputs: _projection_gradients(*inputs, paths=(0.0, 0.0, 1.0)),
            "a token also asks and is found: dX has three parts, one through each projection",
        ),
        Wrong(
            "the path through the keys forgotten",
            lambda *inputs: _projection_gradients(*inputs, paths=(1.0, 0.0, 1.0)),
            "dX lacks the part that comes back through the keys",
        ),
        Wrong(
            "the mean of the three paths",
            lambda *inputs: _projection_gradients(*inputs, paths=(1 / 3, 1 / 3, 1 / 3)),
            "gradients of several paths add up; nothing divides them by three",
        ),
        Wrong("the mean over the tokens", _token_means, "every token adds its part to dW: a sum over the tokens, not their mean"),
        Wrong(
            "gradients of the transposed matrices", _transposed_gradients, "a gradient has the shape of its matrix: (d_model, d_k) for W_Q"
        ),
        Wrong(
            "queries and keys exchanged on the way to X",
            lambda *inputs: (*_projection_gradients(*inputs)[:3], _projection_gradients(inputs[0], inputs[2], inputs[1], *inputs[3:])[3]),
            "dQ goes back through W_Q and dK through W_K; in dX you have them the other way round",
        ),
        Wrong(
            "the scale once more",
            lambda *inputs: _projection_gradients(*inputs, factor=1 / math.sqrt(inputs[1].shape[1])),
            "the scale of the scores is in dQ and dK already",
        ),
    ],
    hints=[
        "For one linear map Y = X W: dW = X^T dY, and dX = dY W^T. Check the shapes.",
        "`x` feeds three maps. What happens to the gradients that come back from them?",
        "`d_x = d_query @ w_query.T + ...`, one term for each projection, and `d_w_query = x.T @ d_query`.",
    ],
)


def _counts(
    T: int, d: int, *, flops: int = 2, projections: int = 3, pairs: int = 2, of_state: int = 2, chain: int = 3, waits: float = 1
) -> tuple[float, ...]:
    """Operations of self-attention and of an RNN, then the products that wait for one another in each."""
    return (flops * (projections * T * d**2 + pairs * T**2 * d), flops * of_state * T * d**2, chain, waits * T)


COUNTS = Task(
    id="attention-and-rnn-counts",
    title="Count before you run",
    entry="my_counts",
    kind="predict",
    equation="attention-and-rnn-flops",
    points=2,
    difficulty=2,
    minutes=6,
    trains="operations and waiting",
    variants=every(T=(80, 50, 120), d=(64, 32, 48)),
    answer=_counts,
    wrong=[
        Wrong(
            "a multiplication with its addition counted as one",
            partial(_counts, flops=1),
            "a multiplication and its addition are 2 FLOPs",
        ),
        Wrong(
            "the projections alone",
            partial(_counts, pairs=0),
            "scores and output cost as well, and that part grows with the square of T",
        ),
        Wrong("no projections", partial(_counts, projections=0), "the layer has three projections of every token"),
        Wrong(
            "one matrix in the RNN",
            partial(_counts, of_state=1),
            "a step of the RNN multiplies the input by one matrix and the state by another",
        ),
        Wrong(
            "the three projections one after the other",
            partial(_counts, chain=5),
            "the three projections need nothing of one another: they count as one step",
        ),
        Wrong(
            "an RNN that waits for nothing",
            lambda T, d: (*_counts(T, d)[:3], 1),
            "a state needs the state before it: T products in a row",
        ),
        Wrong(
            "an output projection",
            partial(_counts, projections=4, chain=4),
            "this layer has no output projection: three projections, scores, output",
        ),
        Wrong(
            "the products of the input in the chain",
            partial(_counts, waits=2),
            "the product of an input with its matrix waits for no state; only the other product of a step does",
        ),
    ],
    hints=[
        "List the matrix products of the layer with their shapes; an (a, b) by (b, c) product costs 2 a b c.",
        "Attention: three of (T, d) by (d, d), then (T, d) by (d, T), then (T, T) by (T, d).",
        "{eq}`attention-and-rnn-flops` for the first two numbers, {eq}`attention-and-rnn-depth` for the last two.",
    ],
)


def _feature_weights(
    table: np.ndarray, *, centred: bool = True, ddof: int = 0, equal: bool = True, divisor: str = "root of m"
) -> np.ndarray:
    columns = table - table.mean(axis=0) if centred else table
    size = np.sqrt((columns**2).sum(axis=0) / (len(table) - ddof)) if equal else 1.0
    tokens = (columns / size).T
    root = {"root of m": math.sqrt(len(table)), "root of n": math.sqrt(table.shape[1]), "m": len(table)}[divisor]
    return softmax(tokens @ tokens.T / root)


def _without_itself(table: np.ndarray) -> np.ndarray:
    weights = _feature_weights(table) * (1.0 - np.eye(table.shape[1]))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


FEATURES = Task(
    id="attention-between-features",
    title="Features as tokens",
    entry="my_feature_weights",
    kind="write",
    equation="feature-weights-from-correlations",
    points=3,
    difficulty=4,
    minutes=15,
    trains="saying what a row is",
    answer=_feature_weights,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("eleven individuals, five features", table=rng.normal(size=(11, 5)) @ rng.normal(size=(5, 5))),
        Case("seven individuals, thirteen features", table=rng.normal(size=(7, 13))),
        Case("features with means and sizes of their own", table=4.0 + 3.0 * rng.normal(size=(13, 7)) * np.arange(1, 8)),
        Case("one feature", table=rng.normal(size=(7, 1))),
        Case(
            "two opposite features",
            table=rng.normal(size=(5, 2)) @ np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 1.0]]),
        ),
    ],
    wrong=[
        Wrong(
            "individuals as tokens",
            lambda table: softmax(
                ((table - table.mean(0)) / table.std(0)) @ ((table - table.mean(0)) / table.std(0)).T / table.shape[1] ** 0.5
            ),
            "your map relates individuals, the rows of the table; for features the tokens are its columns",
        ),
        Wrong(
            "features not centred",
            lambda table: _feature_weights(table, centred=False),
            "subtract from each feature its mean over the individuals; otherwise large means look like likeness",
        ),
        Wrong(
            "features not of equal size",
            lambda table: _feature_weights(table, equal=False),
            "divide each feature by the root of its mean square; otherwise the one with the large unit wins",
        ),
        Wrong(
            "the sample standard deviation",
            lambda table: _feature_weights(table, ddof=1),
            "the mean square is a sum divided by m; you divided by m - 1",
        ),
        Wrong(
            "scaled by the number of features",
            lambda table: _feature_weights(table, divisor="root of n"),
            "tokens are as long as there are individuals: the scale is the root of m",
        ),
        Wrong(
            "softmax of the correlations",
            lambda table: _feature_weights(table, divisor="m"),
            "divided by m the scores are the correlations themselves; attention divides by the root of m",
        ),
        Wrong(
            "correlations",
            lambda table: np.atleast_2d(np.corrcoef(table, rowvar=False)),
            "correlations have signs and no sum; the weights are the softmax of the root of m times them",
        ),
        Wrong(
            "columns that sum to 1",
            lambda table: _feature_weights(table).T,
            "each row is one feature that asks, and sums to 1: the softmax goes along the last axis",
        ),
        Wrong(
            "the feature itself left out",
            _without_itself,
            "a feature is one of its own keys: nothing is hidden, the diagonal included",
        ),
    ],
    hints=[
        "What is one token here, and how many entries has it?",
        "Standardise along axis 0, then transpose: the rows are features.",
        "`tokens @ tokens.T / np.sqrt(m)`, then a softmax over each row.",
    ],
)

TASKS = [
    SELF_ATTENTION,
    FEATURES_FOR_SELF_WEIGHT,
    READ_BALANCE,
    STACK,
    ROTATE,
    PATHS,
    COUNTS,
    FEATURES,
    SCORE_ASYMMETRY,
    ROTARY_SCORE,
    SELF_SCORE_GRADIENT,
]
