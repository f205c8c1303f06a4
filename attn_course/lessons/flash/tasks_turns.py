"""What the lesson on FlashAttention asks its reader before it shows its own."""

import numpy as np

from attn_course.reference import softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked
from attn_course.tasks.core import Case


def _block(rng, name, q_len, seen, new, d_v, spread=1.0, offset=0.0):
    """The state of the first keys of a row, by definition, and a block of scores and values that come after them."""
    scores, values = spread * rng.normal(size=(q_len, seen + new)) + offset, rng.normal(size=(seen + new, d_v))
    row_max = scores[:, :seen].max(axis=1, keepdims=True, initial=-np.inf)
    shares = np.exp(scores[:, :seen] - row_max)
    state = {"row_max": row_max, "row_sum": shares.sum(axis=1, keepdims=True), "acc": shares @ values[:seen]}
    return Case(name, **state, scores=scores[:, seen:].copy(), value=values[seen:].copy())


@asked(
    "fold-in-a-block",
    "One turn of the loop",
    kind="write",
    equation="tiled-attention-update",
    points=1,
    difficulty=2,
    minutes=6,
    trains="the state of the keys so far",
    your_turn=True,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=lambda rng: [
        _block(rng, "three keys after four", 5, 4, 3, 2),
        _block(rng, "the first block", 3, 0, 5, 7),
        _block(rng, "a block of one key", 7, 5, 1, 3),
        _block(rng, "scores of several hundred", 5, 7, 3, 2, 300.0),
        _block(rng, "scores near -900", 3, 2, 5, 1, 1.0, -900.0),
    ],
    slips="""
        the accumulator not rescaled
            factor * acc -> acc
            maximum and sum are right; the accumulator is measured from the same maximum as the sum and needs the same factor
        the sum not rescaled
            factor * row_sum -> row_sum
            maximum and accumulator are right; the old sum is still measured from the old maximum
        nothing rescaled
            factor * row_sum -> row_sum ;; factor * acc -> acc
            the maximum is right; the old sum and the old accumulator are measured from the old one and need the factor e^(m - m')
        outputs accumulated instead of values
            p @ value -> p / p.sum(axis=1, keepdims=True) @ value
            add the values times e^(s - m'), not the finished output of the block: the division comes once, after the last block
        the maximum of the block alone
            np.maximum(row_max, scores.max(axis=1, keepdims=True)) -> scores.max(axis=1, keepdims=True)
            the maximum must not fall: take the larger one of the old maximum and that of the block
        one maximum for all queries
            scores.max(axis=1, keepdims=True)) -> scores.max())
            each query has a maximum of its own
        divided by the sum
                return new_max, factor * row_sum + p.sum(axis=1, keepdims=True), factor * acc + p @ value
                ->
                total = factor * row_sum + p.sum(axis=1, keepdims=True)
                return new_max, total, (factor * acc + p @ value) / total
            the state is not divided yet: the division comes once, after the last block
    """,
    hints="""
        Three things come in and the same three go out. Which of them can be written down first?
        The new maximum, then the factor `np.exp(row_max - new_max)` and the block's terms `np.exp(scores - new_max)`.
        The sum and the accumulator follow the same rule: factor times the old one, plus a sum over the block, for one of them with values.
    """,
    why=r"""
        At the start the maximum is $-\infty$, so the factor is $e^{-\infty} = 0$, and the first block needs no rule of its own.
    """,
)
def my_step(row_max, row_sum, acc, scores, value):
    r"""The state of the keys so far, and a block of new ones: the state of all of them.

    Write {eq}`tiled-attention-update` as `my_step(row_max, row_sum, acc, scores, value)`, which returns the new `(row_max, row_sum, acc)`.
    For $B_q$ queries, `row_max` and `row_sum` have shape $(B_q, 1)$, `acc` $(B_q, d_v)$, `scores` $(B_q, n)$ and `value` $(n, d_v)$. In the
    first block `row_max` is $-\infty$ and the other two are 0 {case}`the first block`.
    """
    new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
    factor, p = np.exp(row_max - new_max), np.exp(scores - new_max)
    return new_max, factor * row_sum + p.sum(axis=1, keepdims=True), factor * acc + p @ value


def _tile(rng, name, q_len, kv_len, d_v, start, stop, offset=0.0):
    """Some keys of rows of scores, with what the forward pass kept of the whole rows."""
    scores, values = rng.normal(size=(q_len, kv_len)) + offset, rng.normal(size=(kv_len, d_v))
    tile = slice(start, stop)
    kept = {"output": softmax(scores) @ values, "lse": np.logaddexp.reduce(scores, axis=1, keepdims=True)}
    given = {"scores": scores[:, tile].copy(), "value": values[tile].copy(), "d_output": rng.normal(size=(q_len, d_v))}
    return Case(name, **given, **kept)


@asked(
    "gradient-of-a-tile",
    "The gradient of a tile of scores",
    kind="write",
    equation="weights-from-lse",
    points=1,
    difficulty=2,
    minutes=5,
    trains="weights from the log-sum-exp, and the mean cost from the output",
    your_turn=True,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.AUTOGRAD),
    cases=lambda rng: [
        _tile(rng, "the first 3 of 7 keys", 5, 7, 2, 0, 3),
        _tile(rng, "2 keys in the middle of 11", 3, 11, 5, 4, 6),
        _tile(rng, "one key of 5", 7, 5, 3, 4, 5),
        _tile(rng, "scores near -900", 3, 7, 2, 2, 7, -900.0),
    ],
    slips="""
        the mean cost of the tile alone
            (d_output * output).sum(axis=1, keepdims=True) -> (p * (d_output @ value.T)).sum(axis=1, keepdims=True)
            the mean cost is a sum over all keys of the row, and the tile has only some: take it from the output
        weights normalised in the tile
                p = np.exp(scores - lse)
                ->
                p = np.exp(scores - scores.max(axis=1, keepdims=True))
                p = p / p.sum(axis=1, keepdims=True)
            the weights of a tile sum to less than 1: use the L of the whole row
        nothing subtracted
            (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True)) -> (d_output @ value.T)
            what counts is what a value costs above the present mixture: subtract what the output costs
        the weight forgotten
            return p * ( -> return (
            the cost above the mixture is multiplied by the weight
        the maximum instead of L
            np.exp(scores - lse) -> np.exp(scores - scores.max(axis=1, keepdims=True))
            e^(s - m) is no weight yet: subtract L
        the plain mean for the mixture
            (d_output * output).sum(axis=1, keepdims=True) -> (d_output @ value.T).mean(axis=1, keepdims=True)
            the mixture is the output, the average under the weights; you subtracted the plain mean over the keys of the tile
    """,
    hints="""
        First the weights of this tile. They do not sum to 1, because the other keys have weight, too.
        Then your line of lesson {lesson}`gradients`, {eq}`score-gradient-against-mixture`. Which of its arrays belong to the tile, and
            which to whole rows?
        `np.exp(scores - lse)`, times a matrix of pairs less a column of one number for each query.
    """,
    why=r"""
        `lse` turns scores into weights without the rest of the row, and $dZ_i \cdot z_i$ is the sum over all keys that the tile lacks.
    """,
)
def my_d_scores(scores, value, d_output, output, lse):
    r"""The gradient of the scores of one tile.

    Write `my_d_scores(scores, value, d_output, output, lse)`: $dS_{ij}$ for $B_q$ queries and $B_k$ of their keys. `scores` $(B_q, B_k)$,
    already divided by $\sqrt{d_k}$, and `value` $(B_k, d_v)$ belong to the tile. `d_output` and `output` $(B_q, d_v)$, and `lse`
    $(B_q, 1)$, belong to the **whole** rows, over all keys.
    """
    p = np.exp(scores - lse)
    return p * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))
