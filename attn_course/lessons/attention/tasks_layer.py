"""The milestone behind the lesson: a whole causal layer around the call of attention."""

import math
from typing import Any

import numpy as np

from attn_course.reference import causal_mask, merge_heads, multi_head_attention, softmax, split_heads
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong


def _answer(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, w_output: np.ndarray, n_heads: int) -> np.ndarray:
    mask = causal_mask(x.shape[1], x.shape[1])
    return multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=n_heads, mask=mask)


def _visible(length: int, mask: str) -> np.ndarray:
    """Which pairs of query and key a mask leaves: the causal one, or one that is a mistake."""
    i, j = np.arange(length)[:, None], np.arange(length)
    return {"causal": j <= i, "other side": j >= i, "one too many": j <= i + 1, "none": j >= 0}[mask]


def _layer(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    w_output: np.ndarray,
    n_heads: int,
    *,
    mask: str = "causal",
    hidden: float = -np.inf,
    late: bool = False,
    divisor: float | None = None,
    axis: int = -1,
    split: str = "columns",
    merge: str = "heads",
) -> np.ndarray:
    """The layer with one step done differently; `late`: weights are hidden, not scores."""
    batch, length, _ = x.shape

    def cut(w: np.ndarray) -> np.ndarray:
        if split == "at once":
            return (x @ w).reshape(batch, n_heads, length, -1)
        if split == "every n-th":
            return np.moveaxis((x @ w).reshape(batch, length, -1, n_heads), -1, 1)
        return split_heads(x @ w, n_heads)

    query, key, value = cut(w_query), cut(w_key), cut(w_value)
    scores = query @ key.swapaxes(-1, -2) / (divisor or math.sqrt(query.shape[-1]))
    visible = _visible(length, mask)
    weights = softmax(scores, axis) * visible if late else softmax(np.where(visible, scores, hidden), axis)
    heads = weights @ value
    if merge == "at once":
        merged = heads.reshape(batch, length, -1)
    elif merge == "features first":
        merged = np.moveaxis(heads, 1, -1).reshape(batch, length, -1)
    else:
        merged = merge_heads(heads)
    return merged if merge == "no projection" else merged @ w_output


def _inputs(name: str, rng: np.random.Generator, batch: int, length: int, d_model: int, n_heads: int, d_k: int, d_v: int) -> Case:
    """A layer whose axes all differ, with scores of a moderate size."""
    arrays: dict[str, Any] = {
        "x": rng.normal(size=(batch, length, d_model)),
        "w_query": rng.normal(size=(d_model, n_heads * d_k)) / math.sqrt(d_model),
        "w_key": rng.normal(size=(d_model, n_heads * d_k)),
        "w_value": rng.normal(size=(d_model, n_heads * d_v)),
        "w_output": rng.normal(size=(n_heads * d_v, d_model)),
    }
    return Case(name, **arrays, n_heads=n_heads)


def _far_down(name: str, rng: np.random.Generator) -> Case:
    """One head whose scores all lie near -80: a finite number in the place of minus infinity hides nothing."""
    w_query = np.linalg.qr(rng.normal(size=(7, 3)))[0]
    noise = rng.normal(size=(2, 5, 7))
    seen = noise @ w_query @ w_query.T  # the part that reaches queries and keys
    arrays: dict[str, Any] = {
        "x": w_query.sum(axis=1) / math.sqrt(3) + noise - 0.97 * seen,
        "w_query": w_query,
        "w_key": -80 * math.sqrt(3) * w_query,
        "w_value": rng.normal(size=(7, 2)),
        "w_output": rng.normal(size=(2, 7)),
    }
    return Case(name, **arrays, n_heads=1)


LAYER = Task(
    id="layer-around-attention",
    title="A whole causal layer",
    entry="my_layer",
    kind="write",
    equation="batched-attention",
    points=4,
    difficulty=3,
    minutes=25,
    trains="what a Transformer puts around the call of attention",
    answer=_answer,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        _inputs("two heads", rng, 3, 5, 7, 2, 3, 2),
        _inputs("three heads, wide values", rng, 2, 7, 5, 3, 2, 11),
        _inputs("one head", rng, 5, 3, 7, 1, 2, 5),
        _inputs("five heads, a longer text", rng, 2, 11, 3, 5, 2, 7),
        _inputs("one position", rng, 3, 1, 5, 3, 2, 7),
        _inputs("one sentence", rng, 1, 7, 5, 2, 3, 11),
        _far_down("scores far below 0", rng),
    ],
    wrong=[
        Wrong(
            "no mask",
            lambda *inputs: _layer(*inputs, mask="none"),
            "every position sees the whole sentence here, and so the words that are still to come: their scores must be minus infinity",
        ),
        Wrong(
            "the mask on the other side",
            lambda *inputs: _layer(*inputs, mask="other side"),
            "rows are queries and columns keys; you hid what came before each position, and left what comes after it",
        ),
        Wrong(
            "one position too many",
            lambda *inputs: _layer(*inputs, mask="one too many"),
            "position i may see itself and what came before; yours also sees the next one, which a model that writes has yet to guess",
        ),
        Wrong(
            "hidden with the score 0",
            lambda *inputs: _layer(*inputs, hidden=0.0),
            "a score of 0 has the share e^0 = 1 of the weight: what is hidden must get the score minus infinity",
        ),
        Wrong(
            "hidden after the softmax",
            lambda *inputs: _layer(*inputs, late=True),
            "the weights of later positions are 0, but the others no longer sum to 1: hide the scores, before the softmax",
        ),
        Wrong(
            "heads split without swapping axes",
            lambda *inputs: _layer(*inputs, split="at once"),
            "reshaped to (batch, n_heads, T, ...) at once, heads are stretches of the sentence: cut the last axis, then swap two",
        ),
        Wrong(
            "every n-th column",
            lambda *inputs: _layer(*inputs, split="every n-th"),
            "a head has neighbouring columns: cut the last axis into (n_heads, width), in this order; yours takes every n_heads-th column",
        ),
        Wrong(
            "split and merged without swapping axes",
            lambda *inputs: _layer(*inputs, split="at once", merge="at once"),
            "the second reshape undoes the first, and so the shapes fit; but in between heads are stretches of the sentence. Swap the axes",
        ),
        Wrong(
            "merged without swapping axes",
            lambda *inputs: _layer(*inputs, merge="at once"),
            "before you flatten, bring the heads back behind the positions: a row must hold all the heads of one position",
        ),
        Wrong(
            "merged feature by feature",
            lambda *inputs: _layer(*inputs, merge="features first"),
            "a row holds all features of head 0, then all of head 1, and so on; yours holds feature 0 of all heads, then feature 1",
        ),
        Wrong(
            "no output projection",
            lambda *inputs: _layer(*inputs, merge="no projection"),
            "the merged heads are still to be multiplied by `w_output`",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _layer(*inputs, divisor=1.0),
            "the scores are to be divided by the root of d_k, {eq}`scaled-score`, the width of one head",
        ),
        Wrong(
            "divided by the root of d_model",
            lambda x, *rest: _layer(x, *rest, divisor=math.sqrt(x.shape[-1])),
            "a score is a dot product of d_k terms: the scale is the root of the width of one head, not of the model",
        ),
        Wrong(
            "divided by the root of all columns",
            lambda x, w_query, *rest: _layer(x, w_query, *rest, divisor=math.sqrt(w_query.shape[1])),
            "the scale is the root of the width of one head, the columns of `w_query` divided by n_heads; you took all columns",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda x, w_query, w_key, *rest: _layer(x, w_key, w_query, *rest),
            "the first index of a score asks: row i belongs to query i, and column j to key j",
        ),
        Wrong(
            "softmax over the queries",
            lambda *inputs: _layer(*inputs, axis=-2),
            "the weights of a query sum to 1 over the keys, the last axis of the scores",
        ),
    ],
    hints=[
        "Write the shape after each step: (batch, T, H d_k), (batch, H, T, d_k), (batch, H, T, T), (batch, H, T, d_v), (batch, T, H d_v).",
        "Cut the last axis in two, then bring the heads in front of the positions. On the way back the same two steps come in reverse.",
        "`np.arange(T)` as a column beside `np.arange(T)` as a row compares the positions of queries and keys; then comes `np.where`.",
    ],
)
