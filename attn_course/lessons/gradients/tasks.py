"""The tasks on the gradients of attention; LaTeX is in tasks_formulas.py, the whole pass in tasks_passes.py."""

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried


def _sixteen_points(rng):
    v_j, z, t = rng.normal(size=(3, 16))
    return {"p_j": rng.uniform(0.05, 0.95, size=16), "v_j": v_j, "z": z, "t": t}


@asked(
    "score-gradient",
    "The gradient of one score",
    kind="derive",
    equation="score-gradient-against-mixture",
    points=1,
    difficulty=2,
    minutes=6,
    trains="the backward pass of one row",
    cases=[_sixteen_points],
    slips="""
        compared with zero instead of the mixture
            (v_j - z) -> v_j
            raising one score lowers all other weights: what counts is v_j minus the present mixture z
        the softmax treated entry by entry
            p_j * (z - t) * (v_j - z) -> p_j * (1 - p_j) * (z - t) * v_j
            p (1 - p) is only the diagonal of the softmax Jacobian; the other weights move as well, {eq}`softmax-derivative`
        the sign turned round
            v_j - z -> z - v_j
            dL/dz is z - t, and dz / ds_j has the sign of v_j - z, for a larger score moves z towards v_j: one of them is turned round
        the derivative of the output alone
            `(z - t) * ` ->
            that is dz / ds_j; the loss changes with z at the rate z - t, which is missing
        the weight forgotten
            p_j * (z -> (z
            a score moves its own weight in proportion to that weight, {eq}`softmax-derivative`: the factor p_j is missing
        the loss without its factor one half
            p_j * -> 2 * p_j *
            the loss is half of the square, so its derivative by z is z - t
    """,
    hints="""
        The chain rule has two factors: how the loss changes with z, and how z changes with the score.
        dL/dz = z - t. For the other factor put {eq}`softmax-derivative` into z = sum of p_l v_l; two terms remain.
        In the second factor the weight of key j stands before a bracket. Which sum in the bracket is the output z?
    """,
    why="""
        The gradient at the output is $dZ = z - t$, and {eq}`score-gradient-against-mixture` does the rest. A step of the scores *against*
        their gradient raises $s_j$ if $v_j$ lies on the same side of $z$ as the target: the scores of helpful values grow.
    """,
)
def my_score_gradient(p_j, v_j, z, t):
    r"""One query with weights $p_1, \ldots, p_n$ (the softmax of scores $s_1, \ldots, s_n$) and values that are plain numbers
    gives the output $z = \sum_l p_l v_l$. The loss is $L = \frac12 (z - t)^2$ with a target $t$. Derive
    $\dfrac{\partial L}{\partial s_j}$ and write it with the symbols `p_j`, `v_j`, `z` and `t`. Sums, products and powers of
    them are all you need.
    """
    return p_j * (z - t) * (v_j - z)


def _inputs(normal, q_len, kv_len, d_k, d_v):
    """Queries, keys and values whose sizes differ wherever two could be mistaken for each other, and a gradient at the output."""
    return {"query": normal(q_len, d_k), "key": normal(kv_len, d_k), "value": normal(kv_len, d_v), "d_output": normal(q_len, d_v)}


INPUTS = """
fewer queries than keys: 3 7 5 2
more queries than keys: 7 5 3 11
one key: 5 1 2 3
"""


@asked(
    "attention-backward",
    "The backward pass where queries compete",
    kind="write",
    equation="score-gradient-over-row",
    points=3,
    difficulty=3,
    minutes=15,
    trains="asking anew which weights a score touches",
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=tried(_inputs, INPUTS),
    slips="""
        the softmax of the lesson, over the keys
            all axis=0 -> axis=1, keepdims=True
            that is the backward pass of the lesson, where each row of weights sums to 1; here each column does
        the mean of a row subtracted
            (weights * d_weights).sum(axis=0) -> (weights * d_weights).sum(axis=1, keepdims=True)
            a score shares its normaliser with the scores of its column, so it touches the weights of that column: collect over these
        the mean of a column, of weights that sum to 1 along a row
            scores.max(axis=0) -> scores.max(axis=1, keepdims=True) ;; unnormalised.sum(axis=0) -> unnormalised.sum(axis=1, keepdims=True)
            the weights themselves are still those of a softmax over the keys; here the queries share out the weight of each key
        the scale forgotten in the backward pass
            key * scale, d_scores.T @ query * scale -> key, d_scores.T @ query
            the scores are Q K^T / sqrt(d_k), so their derivative by Q or K keeps the factor 1 / sqrt(d_k),
            {eq}`query-and-key-gradients`
        the scale applied twice in the backward pass
            key * scale, d_scores.T @ query * scale -> key * scale**2, d_scores.T @ query * scale**2
            dQ and dK hold one factor 1 / sqrt(d_k), not two
        the scale forgotten in the scores
            key.T * scale -> key.T
            dQ and dK have their factor 1 / sqrt(d_k), but the weights are those of Q K^T without it
        no scale in either pass
            1 / np.sqrt(query.shape[-1]) -> 1.0
            the scale is missing in both passes: the weights are those of Q K^T / sqrt(d_k), and dQ and dK keep that factor
        nothing subtracted from dP
            d_weights - mean -> d_weights
            dS = P * dP leaves out that the weights of a column sum to 1: a mean must be subtracted from dP first
        the softmax treated entry by entry
            (weights * d_weights).sum(axis=0) -> weights * d_weights
            p (1 - p) dP is the derivative of separate logistic functions; the weights of a column depend on each other
        one mean for all keys
            (weights * d_weights).sum(axis=0) -> (weights * d_weights).sum()
            every key has a mean of its own: sum P * dP over the queries, and over nothing else
        the plain mean subtracted
            (weights * d_weights).sum(axis=0) -> d_weights.mean(axis=0)
            what is subtracted is the mean of a column of dP under the weights p_ij, not the plain mean
        the maximum of a row
            scores.max(axis=0) -> scores.max(axis=1, keepdims=True)
            here the weights of a key sum to 1 over the queries, so what is subtracted must be one number for a whole column, its largest
    """,
    hints="""
        Which of the five gradients does the softmax enter, and for which does it not matter how the weights were made?
        Ask the three questions of one score, as {eq}`score-gradient-over-row` does. Over which index does the sum run now?
        What is subtracted from dP is one number for each key. It is no longer a dot product of dZ and the output.
    """,
    why=r"""
        How the weights were made does not matter for $dV$ and $dP$, and how the scores reach the weights does not matter for $dQ$ and
        $dK$: four products stay as they are. But now $s_{ij}$ touches the weights $p_{lj}$ of its *column*, at the rate
        $p_{lj} ([l = i] - p_{ij})$, so $dS_{ij} = \sum_l dP_{lj}\, p_{lj} ([l = i] - p_{ij}) = p_{ij} \bigl( dP_{ij} - \sum_l p_{lj}\,
        dP_{lj} \bigr)$. Every column of $dS$ sums to 0. (Slot attention, [arXiv:2006.15055](https://arxiv.org/abs/2006.15055), lets queries
        compete in this way.)
    """,
)
def my_attention_backward(query, key, value, d_output):
    r"""Gradients (d_query, d_key, d_value) from d_output (T_q, d_v).

    Let the **queries compete**: the scores are $S = Q K^\top / \sqrt{d_k}$ as always, but the softmax runs down each *column*, over the
    queries. The output is $Z = P V$.

    Write the backward pass: `my_attention_backward(query, key, value, d_output)` takes $(T_q, d_k)$, $(T_k, d_k)$, $(T_k, d_v)$ and the
    gradient at the output, $(T_q, d_v)$. It returns `(d_query, d_key, d_value)`, each of the shape of what it belongs to. Scores are
    small enough for `np.exp`. Before you run the check, test `d_key` with central differences of `(d_output * Z).sum()`.
    """
    scale = 1 / np.sqrt(query.shape[-1])
    scores = query @ key.T * scale
    unnormalised = np.exp(scores - scores.max(axis=0))
    weights = unnormalised / unnormalised.sum(axis=0)

    d_value = weights.T @ d_output
    d_weights = d_output @ value.T
    mean = (weights * d_weights).sum(axis=0)
    d_scores = weights * (d_weights - mean)
    return d_scores @ key * scale, d_scores.T @ query * scale, d_value


ORDER = [
    note(
        "title",
        """
        Each stands on its own.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
        Rows are positions: queries $(T_q, d_k)$, keys $(T_k, d_k)$, values $(T_k, d_v)$.
    """,
    ),
    "score-gradient",
    note(
        "formulas",
        """
        Four tasks want formulas in LaTeX. With `from attn_course import read`, `read("delta-without-weights", my_total)` shows how a
        formula is understood. What cannot be read is no attempt.
    """,
    ),
    "delta-without-weights",
    "gradient-through-the-softmax",
    "gradient-of-one-key",
    "from-jacobian-to-output",
    "key-gradient-by-differences",
    "attention-backward",
    "repair-shared-backward",
    "memory-of-kept-weights",
    "batched-backward",
    "gain-over-mixture",
    "gradient-of-all-keys",
]
