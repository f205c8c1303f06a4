"""Tasks on gradients, split keys and a first kernel."""

import numpy as np

from attn_course.reference import logsumexp, merge_partial_attention, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked
from attn_course.tasks.core import Case


def _tile_case(rng: np.random.Generator, name: str, sizes: tuple[int, int, int, int, int], spread: float, offset: float = 0.0) -> Case:
    """A tile (rows, columns) out of rows of kv_len scores, with what the forward pass kept of the whole rows."""
    rows, columns, kv_len, d_v, start = sizes
    whole, values = spread * rng.normal(size=(rows, kv_len)) + offset, rng.normal(size=(kv_len, d_v))
    inputs = {
        "scores": whole[:, start : start + columns].copy(),
        "value": values[start : start + columns].copy(),
        "d_output": rng.normal(size=(rows, d_v)),
        "output": softmax(whole) @ values,
        "lse": logsumexp(whole),
        "d_lse": rng.normal(size=rows),
    }
    return Case(name, **inputs)


@asked(
    "tile-score-gradient",
    "The gradient of a tile",
    kind="write",
    equation="score-gradient-with-lse",
    points=3,
    difficulty=4,
    minutes=12,
    trains="the delta trick",
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=lambda rng: [
        _tile_case(rng, "the first 3 of 7 keys", (5, 3, 7, 2, 0), 1.0),
        _tile_case(rng, "2 keys in the middle of 11", (3, 2, 11, 5, 4), 2.0),
        _tile_case(rng, "scores near -900", (7, 5, 11, 3, 6), 1.0, -900.0),
        _tile_case(rng, "one column", (5, 1, 3, 2, 2), 1.0),
    ],
    slips="""
        delta summed over the tile
            (d_output * output).sum -> (p * (d_output @ value.T)).sum
            delta sums over all keys, and your tile has few: use dO . O
        no delta
            (d_output * output).sum(axis=1) - d_lse -> -d_lse
            delta is missing: raising one score takes weight from all others
        delta from d_output alone
            (d_output * output).sum -> d_output.sum
            delta_i is the dot product of dO_i with O_i, {eq}`score-gradient-against-mixture`
        d_lse added
            - d_lse -> + d_lse
            the bracket holds dP - (delta - dL): your sign of dL is the other one
        d_lse left out
            ` - d_lse` ->
            the loss reads L as well: use delta - dL for delta
        weights normalised in the tile
                lse[:, None] -> scores.max(axis=1, keepdims=True)
                ;;
                delta =
                ->
                p = p / p.sum(axis=1, keepdims=True)
                delta =
            weights are exp(S - L), with the L of the whole row
        the maximum instead of L
            lse[:, None] -> scores.max(axis=1, keepdims=True)
            exp(S - max) is not yet a weight: subtract L instead
        not multiplied by the weights
            p * (d_output -> (d_output
            the bracket is still to be multiplied by the weights P
    """,
    hints="""
        Three steps: weights from scores and lse, the gradient of the weights from d_output and value, delta from d_output and output.
        delta = (d_output * output).sum(axis=1); the gradient of the log-sum-exp is subtracted from it.
        np.exp(scores - lse[:, None]) * (d_output @ value.T - (delta - d_lse)[:, None])
    """,
    why=r"""
        `lse` turns scores into weights without the rest of the row; $dO \cdot O$ is the sum over all keys that the
        tile lacks; and the gradient of $L$ needs the same weights, so it joins $\delta$.
    """,
)
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    """The gradient of a tile of scores (n, c), {eq}`score-gradient-with-lse`.

    The backward pass sees one tile: $n$ queries and $c$ **of their keys**. Write `my_score_gradient(scores, value,
    d_output, output, lse, d_lse)`:

    - `scores` `(n, c)` and `value` `(c, d_v)` belong to the tile, the scores scaled already;
    - `output` `(n, d_v)` and `lse` `(n,)` are what the forward pass kept of the **whole** rows, over all keys;
    - `d_output` `(n, d_v)` and `d_lse` `(n,)` are the gradients of the loss with respect to these two.

    Return the gradient of the loss with respect to the scores of the tile, `(n, c)`, {eq}`score-gradient-with-lse`. Scores may be near
    $-900$ {case}`scores near -900`.
    """
    p = np.exp(scores - lse[:, None])
    delta = (d_output * output).sum(axis=1) - d_lse
    return p * (d_output @ value.T - delta[:, None])


def _split_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_splits, q_len, d_v, spread, empty in (
        ("three splits", 3, 5, 2, 1.0, ()),
        ("log-sum-exps far apart", 4, 3, 7, 900.0, ()),
        ("splits without a visible key", 3, 5, 2, 1.0, ((0, 1), (2, 1), (1, 3), (0, 4), (1, 4), (2, 4))),
        ("one split", 1, 2, 3, 1.0, ()),
        ("one query", 3, 1, 5, 1.0, ()),
        ("no visible key at all", 2, 3, 5, 1.0, tuple((split, row) for split in range(2) for row in range(3))),
    ):
        outputs, lses = rng.normal(size=(n_splits, q_len, d_v)), spread * rng.normal(size=(n_splits, q_len))
        if spread > 1.0:  # e^950 overflows, whatever was drawn; query 1 lies far below query 0
            lses[:, 0] = 900.0 + rng.normal(size=n_splits)
            lses[:, 1] = -900.0 + rng.normal(size=n_splits)
        for split, row in empty:
            outputs[split, row], lses[split, row] = 0.0, -np.inf
        cases.append(Case(name, outputs=outputs, lses=lses))
    return cases


@asked(
    "merge-decoding-splits",
    "Decoding in splits",
    kind="write",
    equation="merge-of-finished-outputs",
    points=2,
    difficulty=3,
    minutes=12,
    trains="merging finished outputs by their log-sum-exp",
    judged_by=lambda outputs, lses: merge_partial_attention(list(outputs), list(lses)),
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=_split_cases,
    slips="""
        the mean
            (weights[..., None] * outputs).sum(axis=0) -> outputs.mean(axis=0)
            splits count by exp(L), not all the same
        the sum of outputs
            (weights[..., None] * outputs).sum(axis=0) -> outputs.sum(axis=0)
            each output is already an average: the weights of the splits must sum to 1
        shares that are not normalised
            shares / np.where(total == 0.0, 1.0, total) -> shares
            exp(L_c - max) are shares of the largest split; divide by their sum, or subtract L instead of the maximum
        the largest split only
            outputs).sum(axis=0), lse -> outputs).sum(axis=0), top
            the output is right; L of all keys is the log-sum-exp of the L_c, not their maximum
        the log-sum-exps added
            outputs).sum(axis=0), lse -> outputs).sum(axis=0), lses.sum(axis=0)
            the output is right; sums of exponentials are added, not their logarithms
        no maximum subtracted
            np.where(np.isneginf(top), 0.0, top) -> 0.0
            exp(L) overflows near 710: subtract the largest L of each query first
        one maximum for all queries
            lses.max(axis=0) -> lses.max() ;; np.where(np.isneginf(top), 0.0, top) -> top
            subtract the largest L of EACH query: far below the largest of all, every exponential of a query becomes 0
        no care for queries without keys
            np.where(np.isneginf(top), 0.0, top) -> top ;; np.where(total == 0.0, 1.0, total) -> total
            -inf - (-inf) is NaN: such a query has output 0 and L = -inf
        normalised over the queries
                weights = shares / np.where(total == 0.0, 1.0, total)
                ->
                weights = np.exp(lses - lses.max(axis=1, keepdims=True))
                weights = weights / weights.sum(axis=1, keepdims=True)
            the weights compare splits for one query: normalise over axis 0
        a maximum that is never below 0
            lses.max(axis=0) -> np.maximum(lses.max(axis=0), 0.0)
            a query whose log-sum-exps are all far below 0 loses every split by underflow: subtract the largest, whatever its sign
    """,
    hints="""
        A split with log-sum-exp L stands for e^L of unnormalised weight. What share of the whole is that?
        Subtract the largest L of each query before you take exponentials; what if all are -inf?
        shares = np.exp(lses - shift); output = (shares[..., None] * outputs).sum(0) / shares.sum(0)[:, None], with 0 / 0 read as 0.
    """,
    why="""
        A split counts with its share $e^{L^{(c)} - L}$ of the whole sum of exponentials: a softmax over splits.
    """,
)
def my_gather(outputs, lses):
    r"""Outputs (n_splits, n, d_v) and log-sum-exps (n_splits, n) -> those of all
    keys, {eq}`merge-of-finished-outputs`.

    Several programs share the keys of the same queries. Split $c$ returns its finished output and its log-sum-exp:
    `outputs` has shape `(n_splits, n, d_v)`, `lses` `(n_splits, n)`. Write `my_gather(outputs, lses)`. It returns the
    tuple `(output, lse)` for all keys, shapes `(n, d_v)` and `(n,)`, {eq}`merge-of-finished-outputs`.

    Log-sum-exps may be near 1000
    {case}`log-sum-exps far apart`. A split that held no visible key for a query has output 0 and $L = -\infty$ there; if
    that is so in all splits, the result is output 0 and $L = -\infty$, without NaN.
    """
    top = lses.max(axis=0)
    shift = np.where(np.isneginf(top), 0.0, top)
    shares = np.exp(lses - shift)
    total = shares.sum(axis=0)
    weights = shares / np.where(total == 0.0, 1.0, total)
    with np.errstate(divide="ignore"):
        lse = shift + np.log(total)
    return (weights[..., None] * outputs).sum(axis=0), lse
