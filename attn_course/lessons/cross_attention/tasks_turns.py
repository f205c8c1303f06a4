"""What the lesson on cross-attention asks its reader before it shows its own."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import row, rows, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked, asked_formula, tried
from attn_course.tasks.core import at_sizes


def _padded(normal, q_len, kv_len, d_x, d_y, d_k, d_v, *lengths):
    """Sources of these lengths in one batch; padding holds numbers as large as those of real pieces."""
    shapes = {"w_query": (d_x, d_k), "w_key": (d_y, d_k), "w_value": (d_y, d_v)}
    real = np.arange(kv_len) < np.array(lengths)[:, None]
    return {
        "x": normal(len(lengths), q_len, d_x),
        "y": normal(len(lengths), kv_len, d_y),
        **{name: normal(*shape) / math.sqrt(shape[0]) for name, shape in shapes.items()},
        "visible": real[:, None, :] * 1.0,
    }


PADDED = """
two sources of different lengths: 3 5 4 6 7 2 5 3
a target longer than its source: 7 3 6 4 2 5 1 3
one sign: 1 5 3 4 2 6 5 2
three sources: 2 7 5 3 3 4 4 7 2
as many queries as keys: 4 4 5 5 3 5 2 4
"""


@asked(
    "ask-the-source",
    "Ask the source",
    kind="write",
    equation="padding-on-both-sides",
    points=1,
    difficulty=2,
    minutes=8,
    trains="queries from one sequence, keys and values from another, and which keys are hidden",
    your_turn=True,
    cases=tried(_padded, PADDED),
    slips="""
        the padding not hidden
            ` * visible` ->
            padding takes part: where `visible` is 0, the term of the key must be 0, above and beneath
        hidden after the division
            ` * visible` -> ;; weights = terms / terms.sum(-1, keepdims=True) -> weights = terms / terms.sum(-1, keepdims=True) * visible
            the weights of the real keys no longer sum to 1: leave hidden keys out before you divide
        no scale
            ` / key.shape[-1] ** 0.5` ->
            the scores are not divided by the root of d_k
        divided by the root of the source's width
            key.shape[-1] ** 0.5 -> y.shape[-1] ** 0.5
            the scale is the root of d_k, the width of queries and keys, not the width of the source
        divided by the root of the target's width
            key.shape[-1] ** 0.5 -> x.shape[-1] ** 0.5
            the scale is the root of d_k, the width of queries and keys, not the width of the target
        softmax over the queries
            terms.sum(-1, -> terms.sum(-2,
            the weights of one query sum to 1 over the source, the last axis; yours sum over the target
        the weights alone
            return weights @ value, weights -> return weights, weights
            the output mixes the values with the weights
    """,
    hints="""
        One of the three projections is made from `x`, the other two from `y`.
        With a batch in front, `key.swapaxes(-1, -2)` exchanges the last two axes, so that `query @` it has a row for each query.
        `terms = np.e ** scores * visible`, divided by their sums over the last axis, are the weights.
    """,
)
def my_ask(x, y, w_query, w_key, w_value, visible):
    r"""Output and weights of cross-attention in a batch.

    Write `my_ask(x, y, w_query, w_key, w_value, visible)` for targets $(B, T_q, d_x)$, sources $(B, T_k, d_y)$ and three matrices, used as
    `x @ w`. `visible`, $(B, 1, T_k)$, is 1.0 for a key to be seen, else 0.0
    {case}`two sources of different lengths`. It returns the outputs $(B, T_q, d_v)$
    and the weights $(B, T_q, T_k)$. The check calls it with NumPy arrays, the translator below with PyTorch's. Both have `@`, `**`,
    `.swapaxes(-1, -2)`, `.sum(-1, keepdims=True)`, and `np.e ** scores`. Scores are below 30 in size.
    """
    query, key, value = x @ w_query, y @ w_key, y @ w_value
    terms = np.e ** (query @ key.swapaxes(-1, -2) / key.shape[-1] ** 0.5) * visible
    weights = terms / terms.sum(-1, keepdims=True)
    return weights @ value, weights


def _hidden(rng: np.random.Generator, T_k: int, d_v: int) -> dict[str, Any]:
    scores, value = rng.normal(size=T_k), rng.normal(size=(T_k, d_v))
    p, keys = softmax(scores), np.arange(T_k)
    hidden = [softmax(scores[keys != j]) @ value[keys != j] for j in keys]
    return {"z": row(p @ value), "p": vector(p), "v": rows(value), "h": rows(hidden)}


my_hidden = asked_formula(
    "output-without-a-key",
    "The output without one key",
    entry="my_hidden",
    asks=r"""
        A query has the weights $p$ and the output $z = \sum_l p_l v_l$. Then key $j$ is hidden, and the scores of the others stay. Write
        the new output in LaTeX, with $z$, $p_j$ and $v_j$ alone.
    """,
    equation="output-without-a-key",
    points=1,
    difficulty=2,
    minutes=4,
    trains="what a weight says of an output",
    answer=r"\frac{z - p_j v_j}{1 - p_j}",
    your_turn=True,
    symbols=("z", "p", "v"),
    left="h_j",
    cases=at_sizes("T_k d_v", _hidden),
    slips=r"""
        not scaled up
            \frac{z - p_j v_j}{1 - p_j} -> z - p_j v_j
            the weights that are left sum to 1 - p_j: they grow until they sum to 1 again
        divided by what was hidden
            {1 - p_j} -> {p_j}
            the weights that are left sum to 1 - p_j, so that is what they are divided by
        the value without its weight
            z - p_j v_j -> z - v_j
            the output held the value of key j with the weight p_j
        the value added
            z - p_j v_j -> z + p_j v_j
            the share of key j leaves the output
        one weight too many
            {1 - p_j} -> {1 + p_j}
            the weights that are left sum to 1 - p_j
        the value taken out after the others have grown
            \frac{z - p_j v_j}{1 - p_j} -> \frac{z}{1 - p_j} - p_j v_j
            first take out the share of key j, then divide all that is left
    """,
    hints=r"""
        What do the weights of the other keys sum to?
        They keep their ratios, so each is divided by that sum.
        A fraction: above it the output less one term, beneath it 1 less one weight.
    """,
    why=r"""
        The terms of the others, $\sum_{l \ne j} p_l v_l$, are $z - p_j v_j$. Their weights sum to $1 - p_j$, and hiding a key divides
        them by this sum.
    """,
)
