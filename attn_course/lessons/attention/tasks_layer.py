"""The milestones behind the lesson: a whole causal layer around the call of attention, and one step of it behind kept keys and values.

Both take the arrays of a layer of GPT-2 as its checkpoints hold them: `w_in` is c_attn.weight, (d_model, 3 d_model), with the columns of
queries, keys and values side by side, and `b_in`, `w_out`, `b_out` are c_attn.bias, c_proj.weight and c_proj.bias.
"""

import math
from typing import Any

import numpy as np

from attn_course.reference import attention, merge_heads, multi_head_attention, softmax, split_heads
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong


def _answer(x: np.ndarray, w_in: np.ndarray, b_in: np.ndarray, w_out: np.ndarray, b_out: np.ndarray, n_heads: int) -> np.ndarray:
    w_query, w_key, w_value = np.split(w_in, 3, axis=1)
    b_query, b_key, b_value = np.split(b_in, 3)
    biases: dict[str, Any] = {"b_query": b_query, "b_key": b_key, "b_value": b_value, "b_output": b_out}
    return multi_head_attention(x, x, w_query, w_key, w_value, w_out, n_heads=n_heads, is_causal=True, **biases)


def _visible(length: int, mask: str) -> np.ndarray:
    """Which pairs of query and key a mask leaves: the causal one, or one that is a mistake."""
    i, j = np.arange(length)[:, None], np.arange(length)
    kinds = {
        "causal": j <= i,
        "other side": j >= i,
        "inverted": j > i,
        "one too many": j <= i + 1,
        "one too few": j < i,
        "none": j + i >= 0,
    }
    return kinds[mask]


def _cut(projected: np.ndarray, n_heads: int, packed: str, split: str) -> list[np.ndarray]:
    """Cut (batch, T, 3 d_model) into queries, keys and values of (batch, n_heads, T, d_k), as it should be or by mistake."""
    batch, length, _ = projected.shape
    if packed == "heads":
        return list(projected.reshape(batch, length, n_heads, 3, -1).transpose(3, 0, 2, 1, 4))
    thirds = np.split(projected, 3, axis=-1)
    if split == "at once":
        return [third.reshape(batch, n_heads, length, -1) for third in thirds]
    if split == "every n-th":
        return [np.moveaxis(third.reshape(batch, length, -1, n_heads), -1, 1) for third in thirds]
    return [split_heads(third, n_heads) for third in thirds]


def _layer(
    x: np.ndarray,
    w_in: np.ndarray,
    b_in: np.ndarray,
    w_out: np.ndarray,
    b_out: np.ndarray,
    n_heads: int,
    *,
    mask: str = "causal",
    hidden: float = -np.inf,
    late: bool = False,
    divisor: float | None = None,
    axis: int = -1,
    packed: str = "roles",
    order: tuple[int, int, int] = (0, 1, 2),
    split: str = "columns",
    merge: str = "heads",
    biased: tuple[bool, bool] = (True, True),
) -> np.ndarray:
    """The layer with one step done differently; `late`: weights are hidden, not scores."""
    batch, length, _ = x.shape
    parts = _cut(x @ w_in + b_in * biased[0], n_heads, packed, split)
    query, key, value = (parts[place] for place in order)
    scores = query @ key.swapaxes(-1, -2) / (divisor or math.sqrt(query.shape[-1]))
    visible = _visible(length, mask)
    weights = softmax(scores, axis) * visible if late else softmax(np.where(visible, scores, hidden), axis)
    weights[..., ~visible.any(axis=1), :] = np.nan  # 0 / 0
    heads = weights @ value
    if merge == "at once":
        merged = heads.reshape(batch, length, -1)
    elif merge == "features first":
        merged = np.moveaxis(heads, 1, -1).reshape(batch, length, -1)
    else:
        merged = merge_heads(heads)
    return merged if merge == "no projection" else merged @ w_out + b_out * biased[1]


def _weights(rng: np.random.Generator, d_model: int) -> dict[str, np.ndarray]:
    """The arrays of a layer, with scores of a moderate size."""
    w_in = rng.normal(size=(d_model, 3 * d_model))
    w_in[:, :d_model] /= math.sqrt(d_model)
    return {
        "w_in": w_in,
        "b_in": rng.normal(size=3 * d_model),
        "w_out": rng.normal(size=(d_model, d_model)),
        "b_out": rng.normal(size=d_model),
    }


def _inputs(name: str, rng: np.random.Generator, batch: int, length: int, d_model: int, n_heads: int) -> Case:
    """A layer whose axes all differ."""
    return Case(name, x=rng.normal(size=(batch, length, d_model)), **_weights(rng, d_model), n_heads=n_heads)


def _far_down(name: str, rng: np.random.Generator) -> Case:
    """One head whose scores all lie near -80: a finite number in the place of minus infinity hides nothing."""
    axes = np.linalg.qr(rng.normal(size=(7, 3)))[0]
    seen = axes @ axes.T  # queries and keys see three directions, values the others too
    noise = rng.normal(size=(2, 5, 7))
    arrays: dict[str, Any] = _weights(rng, 7)
    arrays["w_in"][:, :14] = np.hstack([seen, -80 * math.sqrt(7) * seen])
    arrays["b_in"][:14] = 0.0
    return Case(name, x=axes.sum(axis=1) / math.sqrt(3) + noise - 0.97 * noise @ seen, **arrays, n_heads=1)


LAYER = Task(
    id="layer-around-attention",
    title="A whole causal layer",
    entry="my_layer",
    kind="write",
    equation="batched-attention",
    points=4,
    difficulty=3,
    minutes=25,
    trains="building a layer of a Transformer around attention",
    answer=_answer,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        _inputs("two heads", rng, 3, 5, 14, 2),
        _inputs("three heads", rng, 2, 7, 15, 3),
        _inputs("one head", rng, 5, 3, 7, 1),
        _inputs("five heads, a longer text", rng, 2, 11, 15, 5),
        _inputs("one position", rng, 3, 1, 14, 2),
        _inputs("one sentence", rng, 1, 7, 6, 2),
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
            "an inverted mask",
            lambda *inputs: _layer(*inputs, mask="inverted"),
            "True and False are exchanged: you hid what each position may see, itself too, and the last one sees nothing",
        ),
        Wrong(
            "one position too many",
            lambda *inputs: _layer(*inputs, mask="one too many"),
            "position i may see itself and what came before; yours also sees the next one, which a model that writes has yet to guess",
        ),
        Wrong(
            "a position does not see itself",
            lambda *inputs: _layer(*inputs, mask="one too few"),
            "position i sees what came before and itself; yours hides itself too, so that the first one sees nothing, and 0 / 0 is NaN",
        ),
        Wrong(
            "hidden with the score 0",
            lambda *inputs: _layer(*inputs, hidden=0.0),
            "a score of 0 still gets a weight, for e^0 = 1: what is hidden must get the score minus infinity",
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
            "the merged heads are still to be multiplied by `w_out`, and `b_out` to be added",
        ),
        Wrong(
            "b_in is missing",
            lambda *inputs: _layer(*inputs, biased=(False, True)),
            "`b_in` is missing: it is added to `x @ w_in`, before queries, keys and values are cut apart",
        ),
        Wrong(
            "b_out is missing",
            lambda *inputs: _layer(*inputs, biased=(True, False)),
            "`b_out` is missing: it is added to every row of the result",
        ),
        Wrong(
            "packed head by head",
            lambda *inputs: _layer(*inputs, packed="heads"),
            "the columns of `w_in` are first all queries, then all keys, then all values; some other models pack them head by head",
        ),
        Wrong(
            "keys before queries",
            lambda *inputs: _layer(*inputs, order=(1, 0, 2)),
            "queries and keys are exchanged: the first third of the columns are the queries, and row i of the scores belongs to query i",
        ),
        Wrong(
            "values before keys",
            lambda *inputs: _layer(*inputs, order=(0, 2, 1)),
            "keys and values are exchanged: the second third of the columns are the keys, the last third the values",
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
            "softmax over the queries",
            lambda *inputs: _layer(*inputs, axis=-2),
            "the weights of a query sum to 1 over the keys, the last axis of the scores",
        ),
    ],
    hints=[
        "Write the shape after each step: (batch, T, 3 d_model), (batch, T, d_model), (batch, H, T, d_k), (batch, H, T, T), and back.",
        "Cut the last axis in two, then bring the heads in front of the positions. On the way back the same two steps come in reverse.",
        "Compare `np.arange(T)` as a row, for the keys, with `np.arange(T)` as a column, for the queries, and use `np.where`.",
    ],
)

Step = tuple[np.ndarray, np.ndarray, np.ndarray]


def _step(
    x: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    w_in: np.ndarray,
    b_in: np.ndarray,
    w_out: np.ndarray,
    b_out: np.ndarray,
    n_heads: int,
    *,
    kept: str = "behind",
    sees: str = "all",
    scale: float | None = None,
    packed: str = "roles",
    order: tuple[int, int, int] = (0, 1, 2),
    project: bool = True,
    biased: tuple[bool, bool] = (True, True),
) -> Step:
    """Read one more token. `kept`: where its key and value go. `sees`: which keys its query meets."""
    parts = _cut(x @ w_in + b_in * biased[0], n_heads, packed, "columns")
    query, key, value = (parts[place] for place in order)
    if kept == "exchanged":
        key, value = value, key
    where = 0 if kept == "in front" else keys.shape[2]
    all_keys, all_values = (np.insert(old, [where], new, axis=2) for old, new in ((keys, key), (values, value)))
    met = {"all": slice(None), "past": slice(-1), "itself": slice(-1, None), "first": slice(1)}[sees]
    merged = merge_heads(attention(query, all_keys[:, :, met], all_values[:, :, met], scale=scale))
    output = merged @ w_out + b_out * biased[1] if project else merged
    return (output, keys, values) if kept == "nowhere" else (output, all_keys, all_values)


def _past(name: str, rng: np.random.Generator, batch: int, length: int, d_model: int, n_heads: int) -> Case:
    """A layer, one token for each text, and the keys and values of `length` tokens before it."""
    kept = rng.normal(size=(2, batch, n_heads, length, d_model // n_heads))
    x = rng.normal(size=(batch, 1, d_model))
    return Case(name, x=x, keys=kept[0], values=kept[1], **_weights(rng, d_model), n_heads=n_heads)


STEP = Task(
    id="step-with-kept-keys",
    title="One more token",
    entry="my_step",
    kind="write",
    equation="attention-of-one-query",
    points=3,
    difficulty=3,
    minutes=15,
    trains="writing with a cache, one query at a time",
    answer=_step,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        _past("two heads", rng, 3, 5, 14, 2),
        _past("three heads, a longer past", rng, 2, 11, 15, 3),
        _past("one head", rng, 2, 3, 7, 1),
        _past("one text", rng, 1, 7, 15, 5),
        _past("one token kept", rng, 3, 1, 14, 2),
    ],
    wrong=[
        Wrong(
            "the token does not see itself",
            lambda *inputs: _step(*inputs, sees="past"),
            "the new token attends to itself too: append its key and its value before you attend",
        ),
        Wrong(
            "only the token itself",
            lambda *inputs: _step(*inputs, sees="itself"),
            "the query must also meet the keys that were kept, not only the one of its own token",
        ),
        Wrong(
            "a causal mask from position 0",
            lambda *inputs: _step(*inputs, sees="first"),
            "one query behind n kept keys stands at position n, not 0, and sees them all: a step needs no mask",
        ),
        Wrong(
            "nothing kept",
            lambda *inputs: _step(*inputs, kept="nowhere"),
            "the output is right, but the returned keys and values lack those of the new token, which the next step needs",
        ),
        Wrong(
            "kept in front",
            lambda *inputs: _step(*inputs, kept="in front"),
            "the output is the same in any order, but a cache is kept in the order of the text: the new key and value go behind the others",
        ),
        Wrong(
            "key and value exchanged",
            lambda *inputs: _step(*inputs, kept="exchanged"),
            "the new key went to the values, and the new value to the keys",
        ),
        Wrong(
            "b_in is missing",
            lambda *inputs: _step(*inputs, biased=(False, True)),
            "`b_in` is missing: it is added to `x @ w_in`, before query, key and value are cut apart",
        ),
        Wrong(
            "b_out is missing",
            lambda *inputs: _step(*inputs, biased=(True, False)),
            "`b_out` is missing from the output",
        ),
        Wrong(
            "no output projection",
            lambda *inputs: _step(*inputs, project=False),
            "the merged heads are still to be multiplied by `w_out`, and `b_out` to be added",
        ),
        Wrong(
            "packed head by head",
            lambda *inputs: _step(*inputs, packed="heads"),
            "the columns of `w_in` are first all queries, then all keys, then all values; some other models pack them head by head",
        ),
        Wrong(
            "keys before queries",
            lambda *inputs: _step(*inputs, order=(1, 0, 2)),
            "query and key are exchanged: the first third of the columns is the query, the second the key",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _step(*inputs, scale=1.0),
            "the scores are to be divided by the root of d_k, {eq}`scaled-score`, the width of one head",
        ),
        Wrong(
            "divided by the root of d_model",
            lambda x, *rest: _step(x, *rest, scale=1 / math.sqrt(x.shape[-1])),
            "a score is a dot product of d_k terms: the scale is the root of the width of one head, not of the model",
        ),
    ],
    hints=[
        "First make query, key and value of the new token, each of shape (batch, H, 1, d_k). What is needed to attend, and what to return?",
        "`np.concatenate` along the axis of positions puts the new key behind the kept ones; do it before you attend.",
        "No mask is needed, since all kept tokens come before the new one. The weights have the shape (batch, H, 1, n + 1).",
    ],
)
