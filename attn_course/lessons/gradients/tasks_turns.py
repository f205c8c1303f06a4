"""What the lesson on gradients asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.core import Case, Task, Wrong


def _gradient(weights: np.ndarray, output: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> np.ndarray:
    return weights * (d_output @ value.T - (d_output * output).sum(axis=-1, keepdims=True))


def _pass(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_v: int) -> Case:
    """Weights, the output they give, and a gradient there."""
    unnormalised = np.exp(rng.normal(size=(q_len, kv_len)))
    weights, value = unnormalised / unnormalised.sum(axis=-1, keepdims=True), rng.normal(size=(kv_len, d_v))
    return Case(name, weights=weights, output=weights @ value, value=value, d_output=rng.normal(size=(q_len, d_v)))


GRADIENT_OF_SCORES = Task(
    id="gain-over-mixture",
    title="The gradient of the scores in one line",
    entry="my_d_scores",
    kind="write",
    equation="score-gradient-against-mixture",
    points=1,
    difficulty=2,
    minutes=6,
    trains="from indices to arrays",
    your_turn=True,
    answer=_gradient,
    cases=lambda rng: [
        _pass("fewer queries than keys", rng, 3, 5, 2),
        _pass("more queries than keys", rng, 7, 3, 5),
        _pass("one query", rng, 1, 5, 3),
        _pass("values with one entry", rng, 5, 3, 1),
    ],
    wrong=[
        Wrong(
            "nothing subtracted",
            lambda weights, output, value, d_output: weights * (d_output @ value.T),
            "what counts is what a value costs above the present mixture: subtract what the output costs",
        ),
        Wrong(
            "the weight forgotten",
            lambda weights, output, value, d_output: _gradient(np.ones_like(weights), output, value, d_output),
            "the cost above the mixture is multiplied by the weight that the key already has",
        ),
        Wrong(
            "the sign turned",
            lambda weights, output, value, d_output: -_gradient(weights, output, value, d_output),
            "it is the value minus the mixture, v_j - z_i, and not the other way round",
        ),
        Wrong(
            "the plain mean for the mixture",
            lambda weights, output, value, d_output: weights * (d_output @ (value - value.mean(axis=0)).T),
            "the mixture is the output z_i, the average under the weights of row i; you subtracted the plain mean of all values",
        ),
    ],
    hints=[
        "All dot products of a row of dZ with a value are one matrix product.",
        "What is subtracted is one number for each query: keep its axis, so that it broadcasts over the keys.",
        "Count the shapes: a matrix of pairs, less a column with a number for each query; and then the weights.",
    ],
)


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The output of attention."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value


def loss(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> float:
    """A loss whose gradient at the output of attention is d_output."""
    return (d_output * attention(query, key, value)).sum()


def _differences(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray, step: float, *, back: float = 1.0, divisor: float = 2.0
) -> np.ndarray:
    """Difference quotients of the loss, from `back` steps behind each entry to one ahead."""
    quotients = np.empty_like(key)
    for entry in np.ndindex(key.shape):
        ahead, behind = key.copy(), key.copy()
        ahead[entry] += step
        behind[entry] -= back * step
        rise = loss(query, ahead, value, d_output) - loss(query, behind, value, d_output)
        quotients[entry] = rise / (divisor * step)
    return quotients


def _all_at_once(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray, step: float) -> np.ndarray:
    rise = loss(query, key + step, value, d_output) - loss(query, key - step, value, d_output)
    return np.full_like(key, rise / (2 * step))


def _kept(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray, step: float) -> np.ndarray:
    """The entry is moved ahead, then back by one step: it is never behind, and the quotient is to one side."""
    return _differences(query, key, value, d_output, step, back=0.0)


def _steps(name: str, rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int, step: float) -> Case:
    shapes = {"query": (q_len, d_k), "key": (kv_len, d_k), "value": (kv_len, d_v), "d_output": (q_len, d_v)}
    return Case(name, **{role: rng.normal(size=shape) for role, shape in shapes.items()}, step=step)


DIFFERENCES = Task(
    id="key-gradient-by-differences",
    title="The gradient of the keys by differences",
    entry="my_differences",
    kind="write",
    equation="central-difference-error",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a check that shares no algebra with what it checks",
    your_turn=True,
    given=(attention, loss),
    answer=_differences,
    tolerance=1e-7,
    cases=lambda rng: [
        _steps("a step of 0.1", rng, 3, 5, 2, 7, 0.1),
        _steps("a step of 0.01, more queries than keys", rng, 7, 3, 5, 2, 0.01),
        _steps("a step of 0.5, one query", rng, 1, 5, 3, 2, 0.5),
        _steps("keys of one number", rng, 3, 7, 1, 2, 0.1),
    ],
    wrong=[
        Wrong(
            "a difference to one side",
            lambda *inputs: _differences(*inputs, back=0.0, divisor=1.0),
            "you went one step ahead and compared with where you were; a central difference goes one step ahead and one behind",
        ),
        Wrong(
            "divided by one step",
            lambda *inputs: _differences(*inputs, divisor=1.0),
            "from one step behind to one step ahead are two steps: divide by 2 h",
        ),
        Wrong(
            "half a difference to one side",
            _kept,
            "the second loss is that of the unchanged key: the entry was put back, not moved a step behind",
        ),
        Wrong(
            "all entries moved together",
            _all_at_once,
            "each entry has a derivative of its own: move one entry, leave all others where they are",
        ),
    ],
    hints=[
        "Two losses for each entry of `key`: one with the entry a step larger, one with it a step smaller.",
        "`np.ndindex(key.shape)` runs through all entries; work on a copy of `key`, so that nothing stays moved.",
        "The shape is that of `key`; each entry is the rise of the loss over the way between the two ends.",
    ],
)

TURNS = [GRADIENT_OF_SCORES, DIFFERENCES]
