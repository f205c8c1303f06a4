"""The graded tasks on multi-head attention; those on sharing, caches and packed weights are in tasks_sharing.py."""

import math
from typing import Any

import numpy as np

from attn_course.lessons.heads.tasks_formulas import GROUPED_ROW, SUM_OVER_HEADS
from attn_course.lessons.heads.tasks_sharing import CACHE, GROUPS, PACKED, STEP, STEP_FLOPS
from attn_course.reference import merge_heads, multi_head_attention, softmax, split_heads
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong

SPLIT = Task(
    id="split-heads",
    title="Split into heads",
    entry="my_split",
    kind="write",
    equation="heads-are-column-blocks",
    points=1,
    difficulty=1,
    minutes=6,
    trains="cutting features without mixing positions",
    answer=split_heads,
    cases=lambda rng: [
        Case("two heads", x=rng.normal(size=(5, 6)), n_heads=2),
        Case("three heads", x=rng.normal(size=(7, 6)), n_heads=3),
        Case("a batch of two, five heads", x=rng.normal(size=(2, 3, 35)), n_heads=5),
        Case("one head", x=rng.normal(size=(5, 3)), n_heads=1),
        Case("two leading axes", x=rng.normal(size=(3, 2, 7, 10)), n_heads=5),
        Case("one position", x=rng.normal(size=(1, 6)), n_heads=2),
    ],
    wrong=[
        Wrong(
            "reshaped at once",
            lambda x, n_heads: x.reshape(*x.shape[:-2], n_heads, x.shape[-2], -1),
            "memory runs along the rows: reshaped at once, a head gets all features of a few positions. Split the last axis, then swap",
        ),
        Wrong(
            "every n-th column",
            lambda x, n_heads: np.moveaxis(x.reshape(*x.shape[:-1], -1, n_heads), -1, -3),
            "head h is a block of neighbouring columns, {eq}`heads-are-column-blocks`; yours takes every n_heads-th column",
        ),
        Wrong(
            "the head axis left behind the positions",
            lambda x, n_heads: x.reshape(*x.shape[:-1], n_heads, -1),
            "the features are split well, but attention needs the head axis in front of the positions: swap the two",
        ),
        Wrong(
            "the first two axes swapped",
            lambda x, n_heads: x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(0, 1),
            "count the axes from the end: with a batch in front, axes 0 and 1 are not positions and heads",
        ),
        Wrong(
            "positions and features swapped",
            lambda x, n_heads: x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-2, -3).swapaxes(-1, -2),
            "the last axis must stay the features of one head; you put the positions there",
        ),
    ],
    hints=[
        "Two steps: cut the last axis in two, then move one axis. Which of the new axes comes first in memory?",
        "`reshape(..., n_heads, d_head)` cuts the last axis into blocks of neighbouring columns.",
        "`x.reshape(*x.shape[:-1], n_heads, -1)` and then `.swapaxes(-2, -3)`.",
    ],
)


def _layer(rng: np.random.Generator, length: int, d_model: int, n_heads: int, d_k: int, d_v: int) -> dict[str, Any]:
    """One layer whose axes all differ; scores of a moderate size."""
    return {
        "x": rng.normal(size=(length, d_model)),
        "w_query": rng.normal(size=(d_model, n_heads * d_k)) / math.sqrt(d_model),
        "w_key": rng.normal(size=(d_model, n_heads * d_k)),
        "w_value": rng.normal(size=(d_model, n_heads * d_v)),
        "w_output": rng.normal(size=(n_heads * d_v, d_model)),
        "n_heads": n_heads,
    }


def _multi_head(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    w_output: np.ndarray,
    n_heads: int,
    *,
    divisor: float | None = None,
    axis: int = -1,
    merge: str = "heads",
    split: str = "columns",
) -> np.ndarray:
    """Multi-head attention with one step done differently."""

    def cut(w: np.ndarray) -> np.ndarray:
        rows = x @ w
        return rows.reshape(n_heads, len(x), -1) if split == "at once" else split_heads(rows, n_heads)

    query, key, value = cut(w_query), cut(w_key), cut(w_value)
    heads = softmax(query @ key.swapaxes(-1, -2) / (divisor or math.sqrt(query.shape[-1])), axis) @ value
    if merge == "mean":
        return heads.mean(axis=0) @ w_output[: heads.shape[-1]]
    merged = heads.reshape(len(x), -1) if merge == "at once" else merge_heads(heads)
    return merged if merge == "no projection" else merged @ w_output


def _one_map(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, w_output: np.ndarray, n_heads: int) -> np.ndarray:
    scores = x @ w_query @ (x @ w_key).T / math.sqrt(w_query.shape[1])
    return softmax(scores) @ (x @ w_value) @ w_output


MULTI_HEAD = Task(
    id="multi-head-attention",
    title="Multi-head attention",
    entry="my_multi_head",
    kind="write",
    equation="multi-head-attention",
    points=3,
    difficulty=2,
    minutes=15,
    trains="split, attend, concatenate, project",
    answer=lambda x, w_query, w_key, w_value, w_output, n_heads: multi_head_attention(
        x, x, w_query, w_key, w_value, w_output, n_heads=n_heads
    ),
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("two heads", **_layer(rng, 5, 7, 2, 3, 2)),
        Case("three heads, wide values", **_layer(rng, 7, 5, 3, 2, 11)),
        Case("one head", **_layer(rng, 3, 7, 1, 2, 5)),
        Case("five heads", **_layer(rng, 11, 3, 5, 2, 7)),
        Case("one position", **_layer(rng, 1, 5, 3, 2, 7)),
    ],
    wrong=[
        Wrong(
            "divided by the root of d_model",
            lambda x, *rest: _multi_head(x, *rest, divisor=math.sqrt(x.shape[1])),
            "a score is a dot product of d_k terms: the scale is the root of the width of one head, not of the model",
        ),
        Wrong(
            "divided by the root of d_model / n_heads",
            lambda x, *rest: _multi_head(x, *rest, divisor=math.sqrt(x.shape[1] / rest[-1])),
            "the width of a head need not be d / H: take the columns of `w_query`, divided by n_heads",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _multi_head(*inputs, divisor=1.0),
            "divide the scores by the root of d_k, the width of one head",
        ),
        Wrong(
            "divided by the root of all columns",
            lambda x, w_query, *rest: _multi_head(x, w_query, *rest, divisor=math.sqrt(w_query.shape[1])),
            "the scale is the root of the width of one head, columns of `w_query` divided by n_heads; you took all columns",
        ),
        Wrong(
            "split by a bare reshape",
            lambda *inputs: _multi_head(*inputs, split="at once"),
            "reshaped to (n_heads, T, ...) at once, heads are stretches of the sequence: split the columns, then swap the axes",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda x, w_query, w_key, *rest: _multi_head(x, w_key, w_query, *rest),
            "scores have queries in rows: `query @ key^T`; yours are transposed",
        ),
        Wrong(
            "merged by a bare reshape",
            lambda *inputs: _multi_head(*inputs, merge="at once"),
            "before you flatten, move the head axis back behind the positions: each row must hold the heads of one position",
        ),
        Wrong(
            "split and merged by bare reshapes",
            lambda *inputs: _multi_head(*inputs, split="at once", merge="at once"),
            "the second reshape undoes the first, and so shapes fit; but between them heads are stretches of the sequence. Swap the axes",
        ),
        Wrong(
            "heads averaged",
            lambda *inputs: _multi_head(*inputs, merge="mean"),
            "the outputs of the heads are concatenated, not averaged: each meets its own rows of `w_output`, "
            "{eq}`output-projection-sums-heads`",
        ),
        Wrong(
            "no output projection",
            lambda *inputs: _multi_head(*inputs, merge="no projection"),
            "the concatenated heads are still to be multiplied by `w_output`",
        ),
        Wrong(
            "one map for all heads",
            _one_map,
            "there is one softmax for each head, over the scores of its own columns; yours mixes all columns into one map",
        ),
        Wrong(
            "softmax over the queries",
            lambda *inputs: _multi_head(*inputs, axis=-2),
            "the weights of a query sum to 1 over the keys, the last axis of the scores",
        ),
    ],
    hints=[
        "Four steps. Write the shape after each: (T, H d_k), (H, T, d_k), (H, T, d_v), (T, H d_v), (T, d).",
        "A loop over heads is fine: head h uses the columns `h * d_k : (h + 1) * d_k` of `x @ w_query`.",
        "Collect `softmax(q @ k.T / np.sqrt(d_k)) @ v` for all heads, then `np.hstack(heads) @ w_output`.",
    ],
)

Gradients = tuple[np.ndarray, np.ndarray]


def _merge_backward(heads: np.ndarray, w_output: np.ndarray, d_output: np.ndarray) -> Gradients:
    return split_heads(d_output @ w_output.T, len(heads)), merge_heads(heads).T @ d_output


def _first_block(heads: np.ndarray, w_output: np.ndarray, d_output: np.ndarray) -> Gradients:
    one = d_output @ w_output[: heads.shape[-1]].T
    return np.stack([one] * len(heads)), merge_heads(heads).T @ d_output


def _merge_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_heads, length, d_v, d_model in (
        ("two heads", 2, 5, 3, 7),
        ("three heads", 3, 2, 5, 11),
        ("one head", 1, 7, 2, 3),
        ("one position", 2, 1, 3, 5),
    ):
        arrays = {"heads": (n_heads, length, d_v), "w_output": (n_heads * d_v, d_model), "d_output": (length, d_model)}
        cases.append(Case(name, **{key: rng.normal(size=shape) for key, shape in arrays.items()}))
    return cases


MERGE_BACKWARD = Task(
    id="output-projection-backward",
    title="Back through the output projection",
    entry="my_merge_backward",
    kind="write",
    equation="output-projection-sums-heads",
    points=3,
    difficulty=3,
    minutes=12,
    trains="gradients of a sum over heads",
    answer=_merge_backward,
    forbid=(forbidden.AUTOGRAD,),
    cases=_merge_cases,
    wrong=[
        Wrong(
            "split by a bare reshape",
            lambda heads, w_output, d_output: ((d_output @ w_output.T).reshape(heads.shape), merge_heads(heads).T @ d_output),
            "the gradient of the concatenation is (T, H d_v): split its columns and swap axes; a bare reshape mixes positions",
        ),
        Wrong(
            "merged by a bare reshape",
            lambda heads, w_output, d_output: (
                split_heads(d_output @ w_output.T, len(heads)),
                heads.reshape(len(d_output), -1).T @ d_output,
            ),
            "d_w_output needs the concatenation as it went forward: move the head axis behind the positions before you flatten",
        ),
        Wrong(
            "the first rows of W_O for every head",
            _first_block,
            "head h meets its own rows of `w_output`, h d_v to (h + 1) d_v, on the way back as on the way forward",
        ),
        Wrong(
            "the gradient shared out",
            lambda heads, w_output, d_output: (
                split_heads(d_output @ w_output.T, len(heads)) / len(heads),
                merge_heads(heads).T @ d_output,
            ),
            "the heads are added, not averaged: each gets the whole gradient, without a factor 1 / H",
        ),
        Wrong(
            "every n-th column",
            lambda heads, w_output, d_output: (
                np.moveaxis((d_output @ w_output.T).reshape(len(d_output), -1, len(heads)), -1, 0),
                merge_heads(heads).T @ d_output,
            ),
            "head h is a block of neighbouring columns of the concatenation, not every H-th column",
        ),
    ],
    hints=[
        "For C = A B the gradients are dA = dC B^T and dB = A^T dC. Here A is the concatenation.",
        "The gradient of the concatenation has H d_v columns; head h owns a block of d_v of them.",
        "`d_merged = d_output @ w_output.T`, split it as in {eq}`heads-are-column-blocks`; `d_w_output = merged.T @ d_output`.",
    ],
)


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


READ_HEADS = Task(
    id="read-two-heads",
    title="Read two heads",
    entry="my_reading",
    kind="figure",
    equation="signed-mixture-row-sums",
    points=2,
    difficulty=2,
    minutes=6,
    trains="a sum over heads, one row at a time",
    answer=lambda: (4.0, 1.0, 0.5),
    tolerance=1e-3,
    figure_data=_maps_to_read,
    wrong=[
        Wrong("the other head", lambda: (1.0, 1.0, 0.5), "the first question is about head 0, the map on the left"),
        Wrong(
            "rows and columns exchanged",
            lambda: (0.0, 0.0, 0.5),
            "rows are queries, columns are keys: you read the maps along the other direction",
        ),
        Wrong(
            "the sum of all weights",
            lambda: (4.0, 1.0, 1.0),
            "2 - 1 = 1 would be right if all values were 1, {eq}`signed-mixture-row-sums`; value 1 is zero and takes its weights away",
        ),
        Wrong("keys numbered one too high", lambda: (5.0, 1.0, 0.5), "keys are counted from 0, as the axis says"),
        Wrong("keys counted from 1", lambda: (5.0, 1.0, 0.55), "keys are counted from 0, as the axis says: key 1 is the second column"),
        Wrong("the other factor", lambda: (4.0, 1.0, 1.1), "the factor 2 belongs to head 0 and the factor -1 to head 1, not the other way"),
        Wrong("the weights added", lambda: (4.0, 1.0, 2.3), "head 1 enters with the factor -1, not +1"),
        Wrong(
            "the factors forgotten",
            lambda: (4.0, 1.0, -0.2),
            "each head has a factor of its own: 2 for head 0 and -1 for head 1",
        ),
        Wrong(
            "only the part of value 1",
            lambda: (4.0, 1.0, 0.4),
            "a value of zero passes nothing on; what counts is the weight of the four others",
        ),
    ],
    hints=[
        "A row belongs to a query; each head has a row for it.",
        "Third question: what does each head pass on, if a value is 1 for four keys and 0 for one? Then apply the factors.",
        "Head 0 passes on 1 - 0.30, head 1 passes on 1 - 0.10: twice the first minus the second.",
    ],
)

TASKS = [SPLIT, MULTI_HEAD, STEP_FLOPS, CACHE, GROUPS, PACKED, MERGE_BACKWARD, READ_HEADS, STEP, SUM_OVER_HEADS, GROUPED_ROW]
