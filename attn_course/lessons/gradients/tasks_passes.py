"""The whole backward pass: written for any batch, repaired where a symmetric input hid three mistakes, and what it keeps in memory."""

import math

import numpy as np

from attn_course.reference import attention_backward
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every

Gradients = tuple[np.ndarray, np.ndarray, np.ndarray]


def _turned(array: np.ndarray) -> np.ndarray:
    return array.swapaxes(-1, -2)


def _pass(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    d_output: np.ndarray,
    *,
    scale_of_query: float | None = None,
    scale_of_key: float | None = None,
    sums: tuple[int, ...] | None = (-1,),
    turned: bool = True,
) -> Gradients:
    """The backward pass with a step done differently, every gradient with all the axes of the queries."""
    root = math.sqrt(query.shape[-1])
    scores = query @ _turned(key) / root
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    d_weights = d_output @ _turned(value)
    delta = 0.0 if sums is None else (weights * d_weights).sum(axis=sums, keepdims=True)
    d_scores = weights * (d_weights - delta)
    d_query = d_scores @ key / (scale_of_query or root)
    d_key = (_turned(d_scores) if turned else d_scores) @ query / (scale_of_key or root)
    return d_query, d_key, _turned(weights) @ d_output


def _gathered(gradients: Gradients, key: np.ndarray, how: str = "sum") -> Gradients:
    """What keys and values that all examples share get from each, put together."""
    d_query, *others = gradients
    extra = tuple(range(d_query.ndim - key.ndim))
    first = (0,) * len(extra)
    together = {"sum": lambda a: a.sum(axis=extra), "mean": lambda a: a.mean(axis=extra), "first": lambda a: a[first]}[how]
    d_key, d_value = (together(gradient) if extra else gradient for gradient in others)
    return d_query, d_key, d_value


def _batch(name: str, rng: np.random.Generator, sizes: tuple[int, int, int, int], *leading: int, shared: bool = False) -> Case:
    q_len, kv_len, d_k, d_v = sizes
    own = () if shared else leading
    shapes = {"query": (*leading, q_len, d_k), "key": (*own, kv_len, d_k), "value": (*own, kv_len, d_v), "d_output": (*leading, q_len, d_v)}
    return Case(name, **{role: rng.normal(size=shape) for role, shape in shapes.items()})


BATCHED = Task(
    id="batched-backward",
    title="The backward pass of a batch",
    entry="my_batched_backward",
    kind="write",
    equation="query-and-key-gradients",
    points=4,
    difficulty=5,
    minutes=20,
    trains="leading axes in the backward pass, and what shared keys collect",
    answer=attention_backward,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=lambda rng: [
        _batch("no leading axis", rng, (3, 7, 5, 2)),
        _batch("a batch of two", rng, (7, 5, 3, 11), 2),
        _batch("two leading axes", rng, (5, 11, 7, 13), 2, 3),
        _batch("two examples share keys and values", rng, (5, 7, 3, 11), 2, shared=True),
        _batch("six examples on two axes share keys and values", rng, (7, 5, 11, 13), 2, 3, shared=True),
        _batch("one query", rng, (1, 5, 2, 3), 2),
    ],
    wrong=[
        Wrong(
            "what shared keys get is averaged",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output), key, "mean"),
            "a shared key touches the outputs of all examples, and contributions add up, {eq}`gradient-collects-all-outputs`: sum, no mean",
        ),
        Wrong(
            "shared keys learn from the first example only",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output), key, "first"),
            "keys and values that all examples share get something back from each of them, not from the first one alone",
        ),
        Wrong(
            "one delta for an example",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output, sums=(-2, -1)), key),
            "every query has a delta of its own: sum over the keys, axis -1, and keep that axis",
        ),
        Wrong(
            "delta summed over the queries",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output, sums=(-2,)), key),
            "delta_i belongs to a query: the sum runs over the keys, the last axis, {eq}`gradient-of-scores`",
        ),
        Wrong(
            "nothing subtracted from dP",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output, sums=None), key),
            "the weights of a row sum to 1, so raising one lowers the others: subtract delta_i from row i of dP, {eq}`gradient-of-scores`",
        ),
        Wrong(
            "no scale in the backward pass",
            lambda query, key, value, d_output: _gathered(_pass(query, key, value, d_output, scale_of_query=1.0, scale_of_key=1.0), key),
            "the scores are Q K^T / sqrt(d_k), so dQ and dK keep the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`",
        ),
    ],
    hints=[
        "First let the formulas of one example carry leading axes. Which two axes does each transposition exchange?",
        "With shared keys, NumPy carries the axes of the queries along: what shape do you get, and what shape has `key`?",
        "If `d_key` has more axes than `key`, sum over the surplus ones at the front; for `d_value` do the same.",
    ],
)


def _one_matrix(
    x: np.ndarray, value: np.ndarray, d_output: np.ndarray, *, means: str = "queries", sides: str = "both", scaled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The backward pass for queries and keys that are one matrix, with a step done differently."""
    root = math.sqrt(x.shape[1])
    scores = x @ x.T / root
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    d_weights = d_output @ value.T
    costs = weights * d_weights
    subtracted = {
        "queries": costs.sum(axis=1, keepdims=True),
        "keys": costs.sum(axis=0)[:, None],  # the mean of column i, subtracted from row i
        "columns": costs.sum(axis=0),
    }[means]
    d_scores = weights * (d_weights - subtracted)
    met = {"both": d_scores + d_scores.T, "twice": 2 * d_scores, "query": d_scores, "key": d_scores.T}[sides]
    return met @ x / (root if scaled else 1.0), weights.T @ d_output


def _hidden_broken(
    x: np.ndarray,
    value: np.ndarray,
    d_output: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The gradients (d_x, d_value) of attention whose queries and keys are both x."""
    root = np.sqrt(x.shape[1])
    scores = x @ x.T / root
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)

    d_value = weights.T @ d_output
    mean_costs = (value * d_value).sum(axis=1, keepdims=True)
    d_scores = weights * (d_output @ value.T - mean_costs)
    d_x = 2 * d_scores @ x
    return d_x, d_value


def _square(name: str, rng: np.random.Generator, n: int, d_k: int, d_v: int) -> Case:
    return Case(name, x=rng.normal(size=(n, d_k)), value=rng.normal(size=(n, d_v)), d_output=rng.normal(size=(n, d_v)))


HIDDEN = Task(
    id="repair-shared-backward",
    title="Repair what a symmetric test let through",
    entry="shared_backward",
    kind="repair",
    equation="gradient-collects-all-outputs",
    points=3,
    difficulty=3,
    minutes=15,
    trains="a matrix in two places of one formula, and an input on which a mistake can be seen",
    answer=_one_matrix,
    broken=_hidden_broken,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=lambda rng: [
        _square("seven positions", rng, 7, 5, 3),
        _square("three positions", rng, 3, 2, 11),
        _square("two positions", rng, 2, 3, 5),
        _square("one position", rng, 1, 5, 3),
    ],
    wrong=[
        Wrong(
            "the means of the keys",
            lambda x, value, d_output: _one_matrix(x, value, d_output, means="keys"),
            "a value times its own gradient sums the costs of a column; delta_i is the mean of a row, {eq}`gradient-of-scores`",
        ),
        Wrong(
            "the mean of each column",
            lambda x, value, d_output: _one_matrix(x, value, d_output, means="columns"),
            "the softmax runs over the keys, so from row i of dP the mean of row i is subtracted",
        ),
        Wrong(
            "twice the gradient of the queries",
            lambda x, value, d_output: _one_matrix(x, value, d_output, sides="twice"),
            "row i of x makes the scores of row i and those of column i, and dS is not symmetric: the two parts differ",
        ),
        Wrong(
            "as queries only",
            lambda x, value, d_output: _one_matrix(x, value, d_output, sides="query"),
            "that is what x gets back as queries; its rows are keys as well, and the two parts add up",
        ),
        Wrong(
            "as keys only",
            lambda x, value, d_output: _one_matrix(x, value, d_output, sides="key"),
            "that is what x gets back as keys; its rows are queries as well, and the two parts add up",
        ),
        Wrong(
            "no scale in d_x",
            lambda x, value, d_output: _one_matrix(x, value, d_output, scaled=False),
            "the scores are divided by the root of d_k, and that factor is missing in d_x",
        ),
        Wrong(
            "the means of the keys, and twice the gradient of the queries",
            lambda x, value, d_output: _one_matrix(x, value, d_output, means="keys", sides="twice"),
            "the factor of d_x is right now; ask of the mean costs over which index they sum, and of x which scores it touches",
        ),
        Wrong(
            "twice the gradient of the queries, and no scale",
            lambda x, value, d_output: _one_matrix(x, value, d_output, sides="twice", scaled=False),
            "dS is right now; ask which scores a row of x touches, and how fast",
        ),
        Wrong(
            "the means of the keys, and no scale",
            lambda x, value, d_output: _one_matrix(x, value, d_output, means="keys", scaled=False),
            "both parts of d_x are there now; look at the mean costs, and at the factor of d_x",
        ),
    ],
    hints=[
        "What is special about P, about dS and about d_k in that test? Compute them for the example.",
        "Ask the three questions of one entry of x. Which scores does it touch? Which of them does it touch twice?",
        "Two mistakes are about rows and columns, and one is about a factor.",
    ],
)


def _gigabytes(layers: int, heads: int, length: int, batch: int, *, number_bytes: int = 2) -> float:
    """What the weights of all layers take, kept for the backward pass."""
    return layers * heads * batch * length**2 * number_bytes / 1e9


KEPT = Task(
    id="memory-of-kept-weights",
    title="What the weights take",
    entry="my_gigabytes",
    kind="predict",
    equation="numbers-kept-for-gradients",
    points=1,
    difficulty=1,
    minutes=5,
    trains="counting what the backward pass needs",
    tolerance=5e-2,
    variants=every(layers=(24, 32), heads=(20, 12), length=(2048, 4096), batch=(4, 8)),
    answer=_gigabytes,
    wrong=[
        Wrong(
            "one layer",
            lambda layers, heads, length, batch: _gigabytes(1, heads, length, batch),
            "the backward pass begins when the last layer is done, so the weights of all layers are kept at the same time",
        ),
        Wrong(
            "one head",
            lambda layers, heads, length, batch: _gigabytes(layers, 1, length, batch),
            "every head has weights of its own",
        ),
        Wrong(
            "one sequence",
            lambda layers, heads, length, batch: _gigabytes(layers, heads, length, 1),
            "every sequence of the batch has weights of its own",
        ),
        Wrong(
            "four bytes a number",
            lambda layers, heads, length, batch: _gigabytes(layers, heads, length, batch, number_bytes=4),
            "a 16-bit number takes 2 bytes",
        ),
        Wrong(
            "bits for bytes",
            lambda layers, heads, length, batch: _gigabytes(layers, heads, length, batch, number_bytes=16),
            "you counted bits: a byte has 8 of them",
        ),
        Wrong(
            "one byte a number",
            lambda layers, heads, length, batch: _gigabytes(layers, heads, length, batch, number_bytes=1),
            "you counted numbers; each takes 2 bytes",
        ),
    ],
    hints=[
        "How many weights has one head, for one sequence? There is one for each pair of a query and a key.",
        "Which of your four numbers counts once, and which counts twice?",
        "A product of all of them and of the bytes of one number, in units of 10^9 bytes.",
    ],
)

PASSES = [HIDDEN, KEPT, BATCHED]
