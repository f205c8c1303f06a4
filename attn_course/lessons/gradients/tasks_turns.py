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
            "a score gains only by what its value is worth above the present mixture: subtract what the output is worth",
        ),
        Wrong(
            "the weight forgotten",
            lambda weights, output, value, d_output: _gradient(np.ones_like(weights), output, value, d_output),
            "the gain over the mixture is multiplied by the weight that the key already has",
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
        "weights * (d_output @ value.T - (...).sum(axis=1, keepdims=True))",
    ],
)

TURNS = [GRADIENT_OF_SCORES]
