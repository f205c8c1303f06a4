"""The tasks on multi-head attention; those on sharing, caches and packed weights are in tasks_sharing.py, the real model's in
tasks_real.py, LaTeX in tasks_formulas.py."""

import math
from typing import Any

import numpy as np

from attn_course.reference import multi_head_attention, split_heads
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried


def _positions(normal, n_heads, *shape):
    return {"x": normal(*shape), "n_heads": n_heads}


POSITIONS = """
two heads: 2 5 6
three heads: 3 7 6
a batch of two, five heads: 5 2 3 35
one head: 1 5 3
two leading axes: 5 3 2 7 10
one position: 2 1 6
"""


@asked(
    "split-heads",
    "Split into heads",
    kind="write",
    equation="heads-are-column-blocks",
    retired=True,
    points=1,
    difficulty=1,
    minutes=6,
    trains="cutting features without mixing positions",
    judged_by=split_heads,
    cases=tried(_positions, POSITIONS),
    slips="""
        reshaped at once
            length, n_heads, width // n_heads).swapaxes(-2, -3) -> n_heads, length, -1)
            memory runs along the rows: reshaped at once, a head gets all features of a few positions. Split the last axis, then swap
        every n-th column
            n_heads, width // n_heads) -> -1, n_heads).swapaxes(-1, -2)
            head h is a block of neighbouring columns, {eq}`heads-are-column-blocks`; yours takes every n_heads-th column
        the head axis left behind the positions
            .swapaxes(-2, -3) ->
            the features are split well, but attention needs the head axis in front of the positions: swap the two
        the first two axes swapped
            .swapaxes(-2, -3) -> .swapaxes(0, 1)
            count the axes from the end: with a batch in front, axes 0 and 1 are not positions and heads
        positions and features swapped
            .swapaxes(-2, -3) -> .swapaxes(-2, -3).swapaxes(-1, -2)
            the last axis must stay the features of one head; you put the positions there
    """,
    hints="""
        Two steps: cut the last axis in two, then move one axis. Which of the new axes comes first in memory?
        `reshape(..., n_heads, d_head)` cuts the last axis into blocks of neighbouring columns.
        `x.reshape(*x.shape[:-1], n_heads, -1)` and then `.swapaxes(-2, -3)`.
    """,
    why="""
        The last axis is cut first, so each position keeps its own numbers; only then does the head axis move forward.
        Axes counted from the end leave every leading axis alone.
    """,
)
def my_split(x, n_heads):
    """(..., T, n_heads * d_k) -> (..., n_heads, T, d_k), {eq}`heads-are-column-blocks`.

    Write `my_split(x, n_heads)`. It takes projected queries of shape `(..., T, n_heads * d_k)`, with none, one or several
    leading axes
    {case}`two leading axes`, and an integer that divides the last axis. It returns shape `(..., n_heads, T, d_k)`; head $h$ holds the
    $h$-th block of $d_k$ neighbouring columns, {eq}`heads-are-column-blocks`.
    """
    *leading, length, width = x.shape
    return x.reshape(*leading, length, n_heads, width // n_heads).swapaxes(-2, -3)


def _layer(normal, T, d, H, d_k, d_v):
    """One layer whose axes all differ; scores of a moderate size."""
    projections = {"w_query": normal(d, H * d_k) / math.sqrt(d), "w_key": normal(d, H * d_k), "w_value": normal(d, H * d_v)}
    return {"x": normal(T, d), **projections, "w_output": normal(H * d_v, d), "n_heads": H}


LAYER = """
two heads: 5 7 2 3 2
three heads, wide values: 7 5 3 2 11
one head: 3 7 1 2 5
five heads: 11 3 5 2 7
one position: 1 5 3 2 7
"""


@asked(
    "multi-head-attention",
    "Multi-head attention",
    kind="write",
    equation="multi-head-attention",
    points=3,
    difficulty=2,
    minutes=15,
    trains="split, attend, concatenate, project",
    judged_by=lambda x, w_query, w_key, w_value, w_output, n_heads: multi_head_attention(
        x, x, w_query, w_key, w_value, w_output, n_heads=n_heads
    ),
    forbid=(forbidden.ATTENTION,),
    cases=tried(_layer, LAYER),
    slips="""
        divided by the root of d_model
            query.shape[2] -> x.shape[1]
            a score is a dot product of d_k terms: the scale is the root of the width of one head, not of the model
        divided by the root of d_model / n_heads
            query.shape[2] -> x.shape[1] / n_heads
            the width of a head need not be d / H: take the columns of `w_query`, divided by n_heads
        no scale
            ` / np.sqrt(query.shape[2])` ->
            divide the scores by the root of d_k, the width of one head
        divided by the root of all columns
            query.shape[2] -> w_query.shape[1]
            the scale is the root of the width of one head, columns of `w_query` divided by n_heads; you took all columns
        split by a bare reshape
            .reshape(len(x), n_heads, -1).swapaxes(0, 1) -> .reshape(n_heads, len(x), -1)
            reshaped to (n_heads, T, ...) at once, heads are stretches of the sequence: split the columns, then swap the axes
        queries and keys exchanged
            query, key, value = -> key, query, value =
            scores have queries in rows: `query @ key^T`; yours are transposed
        merged by a bare reshape
            heads.swapaxes(0, 1).reshape -> heads.reshape
            before you flatten, move the head axis back behind the positions: each row must hold the heads of one position
        split and merged by bare reshapes
            .reshape(len(x), n_heads, -1).swapaxes(0, 1) -> .reshape(n_heads, len(x), -1) ;; heads.swapaxes(0, 1).reshape -> heads.reshape
            the second reshape undoes the first, and so shapes fit; but between them heads are stretches of the sequence. Swap the axes
        heads averaged
            heads.swapaxes(0, 1).reshape(len(x), -1) @ w_output -> heads.mean(axis=0) @ w_output[: heads.shape[-1]]
            the outputs of the heads are concatenated, not averaged: each meets its own rows of `w_output`,
            {eq}`output-projection-sums-heads`
        no output projection
            ` @ w_output` ->
            the concatenated heads are still to be multiplied by `w_output`
        one map for all heads
            n_heads, -1 -> 1, -1
            there is one softmax for each head, over the scores of its own columns; yours mixes all columns into one map
        softmax over the queries
            all axis=-1 -> axis=-2
            the weights of a query sum to 1 over the keys, the last axis of the scores
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        the input added
            return heads -> return x + heads
            the layer returns what attention makes; the sum with its input, the residual, stands outside of it
        every n-th column
            n_heads, -1).swapaxes(0, 1)  # -> -1, n_heads).transpose(2, 0, 1)  #
            head h is a block of neighbouring columns, {eq}`heads-are-column-blocks`; yours takes every n_heads-th column
        merged feature by feature
            heads.swapaxes(0, 1).reshape -> heads.transpose(1, 2, 0).reshape
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
        split and merged feature by feature
                n_heads, -1).swapaxes(0, 1)  # -> -1, n_heads).transpose(2, 0, 1)  #
                ;;
                heads.swapaxes(0, 1).reshape -> heads.transpose(1, 2, 0).reshape
            a head is a block of neighbouring columns, both where heads are split and where they are put side by side; yours alternate
        a causal mask
                unnormalised = np.exp(scores
                ->
                scores = np.where(np.tri(len(x)) > 0, scores, -np.inf)
                unnormalised = np.exp(scores
            there is no mask here: every position attends to all positions, later ones too
        the mean of the heads' parts
            reshape(len(x), -1) @ w_output -> reshape(len(x), -1) @ w_output / n_heads
            what the heads add through their own rows of `w_output` is summed, {eq}`output-projection-sums-heads`, not averaged
    """,
    hints="""
        Four steps. Write the shape after each: (T, H d_k), (H, T, d_k), (H, T, d_v), (T, H d_v), (T, d).
        A loop over heads is fine: head h uses the columns `h * d_k : (h + 1) * d_k` of `x @ w_query`.
        Collect `softmax(q @ k.T / np.sqrt(d_k)) @ v` for all heads, then `np.hstack(heads) @ w_output`.
    """,
    why="""
        The heads are a leading axis, so scores, softmax and output are written as for one head. Before the heads are
        flattened into one row, their axis must stand next to their features again.
    """,
)
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    r"""Self-attention of x (T, d) in n_heads heads -> (T, d), {eq}`multi-head-attention`.

    Write self-attention with several heads: `my_multi_head(x, w_query, w_key, w_value, w_output, n_heads)` takes one example,
    `x` of shape `(T, d)`, with `w_query` and `w_key` of shape `(d, n_heads * d_k)`, `w_value` of shape `(d, n_heads * d_v)` and
    `w_output` of shape `(n_heads * d_v, d)`. It returns {eq}`multi-head-attention`, shape `(T, d)`: no mask, no biases, the scale
    $1/\sqrt{d_k}$ with the width $d_k$ of one head. The width need not be $d / H$
    {case}`three heads, wide values`. A library's softmax is welcome.
    """
    query, key, value = (
        (x @ w).reshape(len(x), n_heads, -1).swapaxes(0, 1)  # (T, n_heads, width), then swap
        for w in (w_query, w_key, w_value)
    )
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(len(x), -1) @ w_output


def _merging(normal, H, T, d_v, d):
    return {"heads": normal(H, T, d_v), "w_output": normal(H * d_v, d), "d_output": normal(T, d)}


MERGING = """
two heads: 2 5 3 7
three heads: 3 2 5 11
one head: 1 7 2 3
one position: 2 1 3 5
"""


@asked(
    "output-projection-backward",
    "Back through the output projection",
    kind="write",
    equation="output-projection-sums-heads",
    points=3,
    difficulty=3,
    minutes=12,
    trains="gradients of a sum over heads",
    forbid=(forbidden.AUTOGRAD,),
    cases=tried(_merging, MERGING),
    slips="""
        split by a bare reshape
            d_merged.reshape(length, n_heads, d_v).swapaxes(0, 1) -> d_merged.reshape(heads.shape)
            the gradient of the concatenation is (T, H d_v): split its columns and swap axes; a bare reshape mixes positions
        merged by a bare reshape
            heads.swapaxes(0, 1).reshape -> heads.reshape
            d_w_output needs the concatenation as it went forward: move the head axis behind the positions before you flatten
        the first rows of W_O for every head
            d_merged.reshape(length, n_heads, d_v).swapaxes(0, 1) -> np.stack([d_merged[:, :d_v]] * n_heads)
            head h meets its own rows of `w_output`, h d_v to (h + 1) d_v, on the way back as on the way forward
        the gradient shared out
            w_output.T -> w_output.T / n_heads
            the heads are added, not averaged: each gets the whole gradient, without a factor 1 / H
        every n-th column
            d_merged.reshape(length, n_heads, d_v).swapaxes(0, 1) -> np.moveaxis(d_merged.reshape(length, d_v, n_heads), -1, 0)
            head h is a block of neighbouring columns of the concatenation, not every H-th column
        merged feature by feature
            heads.swapaxes(0, 1).reshape -> heads.transpose(1, 2, 0).reshape
            for d_w_output the heads stand side by side as they went forward, each as a block: yours alternate
    """,
    hints="""
        For C = A B the gradients are dA = dC B^T and dB = A^T dC. Here A is the concatenation.
        The gradient of the concatenation has H d_v columns; head h owns a block of d_v of them.
        `d_merged = d_output @ w_output.T`, split it as in {eq}`heads-are-column-blocks`; `d_w_output = merged.T @ d_output`.
    """,
    why="""
        Merging only moves numbers, so its backward pass is the split. Since the output is a sum over heads, each head gets
        the gradient through its own rows of $W_O$, undivided.
    """,
)
def my_merge_backward(heads, w_output, d_output):
    """Gradients (d_heads, d_w_output) from d_output (T, d).

    The forward pass was `output = merge(heads) @ w_output`: `heads` has shape `(H, T, d_v)`, `merge` puts the heads side by side
    into `(T, H * d_v)`, and `w_output` has shape `(H * d_v, d)`, {eq}`output-projection-sums-heads`. Write the backward pass
    `my_merge_backward(heads, w_output, d_output)`: from the gradient of a loss with respect to the output, `(T, d)`, it returns the tuple
    `(d_heads, d_w_output)`, each of the shape of what it belongs to.
    """
    n_heads, length, d_v = heads.shape
    merged = heads.swapaxes(0, 1).reshape(length, n_heads * d_v)
    d_merged = d_output @ w_output.T
    return d_merged.reshape(length, n_heads, d_v).swapaxes(0, 1), merged.T @ d_output


def _maps_to_read() -> dict[str, Any]:
    maps = np.array(
        [
            [
                [0.10, 0.05, 0.15, 0.60, 0.10],
                [0.70, 0.05, 0.05, 0.15, 0.05],
                [0.15, 0.20, 0.05, 0.10, 0.50],
                [0.25, 0.30, 0.20, 0.15, 0.10],
            ],
            [
                [0.20, 0.10, 0.05, 0.25, 0.40],
                [0.05, 0.15, 0.65, 0.05, 0.10],
                [0.10, 0.55, 0.10, 0.20, 0.05],
                [0.05, 0.10, 0.30, 0.15, 0.40],
            ],
        ]
    )
    rows = [f"Head {h}, row {i}: {', '.join(f'{p:.2f}' for p in row)}." for h, each in enumerate(maps) for i, row in enumerate(each)]
    return {
        "maps": maps,
        "title": "Weights of two heads: four queries over five keys",
        "alt": "Two heatmaps of weights, queries in rows and keys in columns, both counted from 0. " + " ".join(rows),
    }


@asked(
    "read-two-heads",
    "Read two heads",
    kind="figure",
    equation="sum-of-head-maps",
    retired=True,
    points=2,
    difficulty=2,
    minutes=6,
    trains="a sum over heads, one row at a time",
    figure="figures.head_maps",
    tolerance=1e-3,
    figure_data=_maps_to_read,
    slips="""
        the other head
            (4, -> (1,
            the first question is about head 0, the map on the left
        rows and columns exchanged
            (4, 1, -> (0, 0,
            rows are queries, columns are keys: you read the maps along the other direction
        the sum of all weights
            0.5 -> 1.0
            2 - 1 = 1 would be right if all values were 1; value 1 is zero and takes its weights away
        keys numbered one too high
            (4, -> (5,
            keys are counted from 0, as the axis says
        keys counted from 1
            (4, 1, 0.5) -> (5, 1, 0.55)
            keys are counted from 0, as the axis says: key 1 is the second column
        the other factor
            0.5 -> 1.1
            the factor 2 belongs to head 0 and the factor -1 to head 1, not the other way
        the weights added
            0.5 -> 2.3
            head 1 enters with the factor -1, not +1
        the factors forgotten
            0.5 -> -0.2
            each head has a factor of its own: 2 for head 0 and -1 for head 1
        only the part of value 1
            0.5 -> 0.4
            a value of zero passes nothing on; what counts is the weight of the four others
    """,
    hints="""
        A row belongs to a query; each head has a row for it.
        Third question: what does each head pass on, if a value is 1 for four keys and 0 for one? Then apply the factors.
        Head 0 passes on 1 - 0.30, head 1 passes on 1 - 0.10: twice the first minus the second.
    """,
    why=r"""
        Head 0, row 2 is largest in column 4 (0.50). Row 1, column 2 holds 0.05 in head 0 and 0.65 in head 1. Without value 1,
        the heads give query 3 the outputs $1 - 0.30$ and $1 - 0.10$, and $2 \cdot 0.70 - 0.90 = 0.50$. If all values were 1,
        it would be $2 - 1 = 1$, for the weights of each head sum to 1.
    """,
)
def my_reading():
    """The cell below shows the weights of two heads, counted from 0; the numbers are exact. Write
    `my_reading = (a, b, c)`:

    - `a`: to which key does query 2 give the largest weight in head 0?
    - `b`: which head (0 or 1) gives key 2 more weight for query 1?
    - `c`: in both heads the value of key 1 is 0, all others are 1. The layer returns 2 times head 0 minus head 1. What is it
      for query 3?
    """
    return (4, 1, 0.5)


ORDER = [
    note(
        "conventions",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
        positions, and a projection is `x @ w` unless the task says otherwise. Heads stand side by side in the columns of
        `w_query`, `w_key` and `w_value`, and in the rows of `w_output`. All scores are moderate. The last answer is LaTeX.
        """,
    ),
    "multi-head-attention",
    "decoding-step-flops",
    "repair-grouped-heads",
    "output-projection-backward",
    "previous-token-head",
    "scores-of-real-head",
    "same-word-from-cache",
    note(
        "latex",
        r"""
        **The last answer is LaTeX**: the right side of a formula, typed as text with an `r` in front, such as `r"\sum_j P_j X"`.
        Every form that is equal counts. To see how yours is understood, `from attn_course import read` and call
        `read("layer-without-concatenation", my_layer)`; what cannot be read is no attempt.
        """,
    ),
    "layer-without-concatenation",
    "columns-to-heads",
    "layer-without-a-head",
    "split-heads",
    "heads-by-loop",
    "cache-capacity-in-tokens",
    "repair-torch-layer",
    "read-two-heads",
    "cached-decoding-step",
    "row-of-grouped-head",
]
