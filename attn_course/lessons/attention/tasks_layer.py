"""The milestones behind the lesson: a whole causal layer around the call of attention, and one step of it behind kept keys and values.

Both take the arrays of a layer of GPT-2 as its checkpoints hold them: `w_in` is c_attn.weight, (d_model, 3 d_model), with the columns of
queries, keys and values side by side, and `b_in`, `w_out`, `b_out` are c_attn.bias, c_proj.weight and c_proj.bias.
"""

import math
from typing import Any

import numpy as np

from attn_course.reference import multi_head_attention
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried


def _reference(x, w_in, b_in, w_out, b_out, n_heads):
    weights: dict[str, Any] = dict(zip(("w_query", "w_key", "w_value"), np.split(w_in, 3, axis=1), strict=True))
    biases: dict[str, Any] = dict(zip(("b_query", "b_key", "b_value"), np.split(b_in, 3), strict=True))
    return multi_head_attention(x, x, **weights, w_output=w_out, n_heads=n_heads, is_causal=True, **biases, b_output=b_out)


def _weights(normal, d_model):
    """The arrays of a layer, with scores of a moderate size."""
    w_in = normal(d_model, 3 * d_model)
    w_in[:, :d_model] /= math.sqrt(d_model)
    return {"w_in": w_in, "b_in": normal(3 * d_model), "w_out": normal(d_model, d_model), "b_out": normal(d_model)}


def _layer(normal, batch, length, d_model, n_heads):
    """A layer whose axes all differ."""
    return {"x": normal(batch, length, d_model), **_weights(normal, d_model), "n_heads": n_heads}


def _scores_far_below_0(rng):
    """One head whose scores all lie near -80: a finite number in the place of minus infinity hides nothing."""
    axes = np.linalg.qr(rng.normal(size=(7, 3)))[0]
    seen = axes @ axes.T  # queries and keys see three directions, values the others too
    noise = rng.normal(size=(2, 5, 7))
    arrays = _weights(lambda *shape: rng.normal(size=shape), 7)
    arrays["w_in"][:, :14] = np.hstack([seen, -80 * math.sqrt(7) * seen])
    arrays["b_in"][:14] = 0.0
    return {"x": axes.sum(axis=1) / math.sqrt(3) + noise - 0.97 * noise @ seen, **arrays, "n_heads": 1}


LAYERS = """
two heads: 3 5 14 2
three heads: 2 7 15 3
one head: 5 3 7 1
five heads, a longer text: 2 11 15 5
one position: 3 1 14 2
one sentence: 1 7 6 2
"""


AROUND = """
no output projection
    ` @ w_out + b_out` ->
    the merged heads are still to be multiplied by `w_out`, and `b_out` to be added
b_in is missing
    x @ w_in + b_in -> x @ w_in
    `b_in` is missing: it is added to `x @ w_in`, before queries, keys and values are cut apart
b_out is missing
    ` + b_out` ->
    `b_out` is missing: it is added to every row of the result
no scale
    ` / np.sqrt(d_model / n_heads)` ->
    the scores are to be divided by the root of d_k, {eq}`scaled-score`, the width of one head
divided by the root of d_model
    d_model / n_heads -> d_model
    a score is a dot product of d_k terms: the scale is the root of the width of one head, not of the model
keys before queries
    query, key, value = -> key, query, value =
    queries and keys are exchanged: the first third of the columns are the queries, and row i of the scores belongs to query i
the input added
    return heads -> return x + heads
    the layer returns what attention makes; the sum with its input, the residual, stands outside of it
b_out added once a head
    + b_out -> + n_heads * b_out
    `b_out` belongs to the sum over the heads: it is added once, behind the output projection
"""  # what may go wrong around attention, in the whole layer as in a step


@asked(
    "layer-around-attention",
    "A whole causal layer",
    kind="write",
    equation="batched-attention",
    points=4,
    difficulty=3,
    minutes=25,
    trains="building a layer of a Transformer around attention",
    judged_by=_reference,
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_layer, LAYERS), _scores_far_below_0],
    then=note(
        "layer-example",
        """
        Head 0 has the first $d_k$ = `d_model / n_heads` columns of each third, head 1 the next ones. `w_in` is `(d_model, 3 *
        d_model)`, `b_in` `(3 * d_model,)`, `w_out` `(d_model, d_model)` and `b_out` `(d_model,)`, all NumPy arrays. It must work
        for one head and one position. `torch.softmax` is welcome. In GPT-2's files the four arrays are called `c_attn.weight`,
        `c_attn.bias`, `c_proj.weight` and `c_proj.bias`.

        An example with one head: if `x` is `[[[1.0], [2.0]]]`, `w_in` is `[[1.0, 1.0, 1.0]]`, `w_out` is `[[1.0]]` and the biases
        are 0, the result is `[[[1.0], [1.881]]]`. The first position sees only itself, and the second has the scores 2 and 4.
        """,
    ),
    slips=[
        AROUND,
        """
        no mask
            scores = np.where(position <= position[:, None], scores, -np.inf) ->
            every position sees the whole sentence here, and so the words that are still to come: their scores must be minus infinity
        the mask on the other side
            position <= -> position >=
            rows are queries and columns keys; you hid what came before each position, and left what comes after it
        an inverted mask
            position <= -> position >
            True and False are exchanged: you hid what each position may see, itself too, and the last one sees nothing
        one position too many
            position <= position[:, None] -> position <= position[:, None] + 1
            position i may see itself and what came before; yours also sees the next one, which a model that writes has yet to guess
        a position does not see itself
            position <= -> position <
            position i sees what came before and itself; yours hides itself too, so that the first one sees nothing, and 0 / 0 is NaN
        hidden with the score 0
            -np.inf -> 0.0
            a score of 0 still gets a weight, for e^0 = 1: what is hidden must get the score minus infinity
        hidden after the softmax
                scores = np.where(position <= position[:, None], scores, -np.inf) ->
                ;;
                keepdims=True) @ value -> keepdims=True) * (position <= position[:, None]) @ value
            the weights of later positions are 0, but the others no longer sum to 1: hide the scores, before the softmax
        heads split without swapping axes
            .reshape(batch, length, n_heads, -1).swapaxes(1, 2) -> .reshape(batch, n_heads, length, -1)
            reshaped to (batch, n_heads, T, ...) at once, heads are stretches of the sentence: cut the last axis, then swap two
        every n-th column
            part.reshape(batch, length, n_heads, -1).swapaxes(1, 2) -> np.moveaxis(part.reshape(batch, length, -1, n_heads), -1, 1)
            a head has neighbouring columns: cut the last axis into (n_heads, width), in this order; yours takes every n_heads-th column
        split and merged without swapping axes
                .reshape(batch, length, n_heads, -1).swapaxes(1, 2) -> .reshape(batch, n_heads, length, -1)
                ;;
                heads.swapaxes(1, 2).reshape -> heads.reshape
            the second reshape undoes the first, and so the shapes fit; but in between heads are stretches of the sentence. Swap the
            axes
        merged without swapping axes
            heads.swapaxes(1, 2).reshape -> heads.reshape
            before you flatten, bring the heads back behind the positions: a row must hold all the heads of one position
        merged feature by feature
            heads.swapaxes(1, 2).reshape -> np.moveaxis(heads, 1, -1).reshape
            a row holds all features of head 0, then all of head 1, and so on; yours holds feature 0 of all heads, then feature 1
        packed head by head
                part.reshape(batch, length, n_heads, -1) -> part
                ;;
                np.split(x @ w_in + b_in, 3, axis=-1) -> np.moveaxis((x @ w_in + b_in).reshape(batch, length, n_heads, 3, -1), 3, 0)
            the columns of `w_in` are first all queries, then all keys, then all values; some other models pack them head by head
        values before keys
            query, key, value = -> query, value, key =
            keys and values are exchanged: the second third of the columns are the keys, the last third the values
        softmax over the queries
            all axis=-1, keepdims -> axis=-2, keepdims
            the weights of a query sum to 1 over the keys, the last axis of the scores
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        split and merged feature by feature
                length, n_heads, -1).swapaxes(1, 2)  # -> length, -1, n_heads).transpose(0, 3, 1, 2)  #
                ;;
                heads.swapaxes(1, 2).reshape -> heads.transpose(0, 2, 3, 1).reshape
            a head is a block of neighbouring columns, both where heads are split and where they are put side by side; yours alternate
        """,
    ],
    hints="""
        Write the shape after each step: (batch, T, 3 d_model), (batch, T, d_model), (batch, H, T, d_k), (batch, H, T, T), and back.
        Cut the last axis in two, then bring the heads in front of the positions. On the way back the same two steps come in reverse.
        Compare `np.arange(T)` as a row, for the keys, with `np.arange(T)` as a column, for the queries, and use `np.where`.
    """,
    why="""
        Heads and examples are only leading axes of {eq}`batched-attention`, so one call serves them all, and one mask of shape (T, T)
        serves every head of every example. Nothing overflows and no row is empty, since each position sees at least itself. Two reshapes
        without the swaps would give the right shapes, and heads made of stretches of the text.
    """,
)
def my_layer(x, w_in, b_in, w_out, b_out, n_heads):
    """Causal self-attention of x (batch, T, d_model) in n_heads heads -> (batch, T, d_model).

    Write the attention layer of GPT-2: `my_layer(x, w_in, b_in, w_out, b_out, n_heads)` takes `x`, `(batch, T, d_model)`, and returns an
    array of the same shape. The columns of `x @ w_in + b_in` are first the queries, then the keys, then the values, one third each.

    In each head the scores of **later** positions become minus infinity, after the division by the root of $d_k$. The outputs of the
    heads, side by side in their order, are multiplied by `w_out`, and `b_out` is added. Scores are moderate {lowest}`-100`.
    """
    batch, length, d_model = x.shape
    query, key, value = (
        part.reshape(batch, length, n_heads, -1).swapaxes(1, 2)  # (batch, T, n_heads, d_k), then swap
        for part in np.split(x @ w_in + b_in, 3, axis=-1)
    )
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(d_model / n_heads)
    position = np.arange(length)
    scores = np.where(position <= position[:, None], scores, -np.inf)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = terms / terms.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(1, 2).reshape(x.shape) @ w_out + b_out


def _past(normal, batch, length, d_model, n_heads):
    """A layer, one token for each text, and the keys and values of `length` tokens before it."""
    kept = {name: normal(batch, n_heads, length, d_model // n_heads) for name in ("keys", "values")}
    return {"x": normal(batch, 1, d_model), **kept, **_weights(normal, d_model), "n_heads": n_heads}


PASTS = """
two heads: 3 5 14 2
three heads, a longer past: 2 11 15 3
one head: 2 3 7 1
one text: 1 7 15 5
one token kept: 3 1 14 2
"""


@asked(
    "step-with-kept-keys",
    "One more token",
    kind="write",
    equation="attention-of-one-query",
    points=3,
    difficulty=3,
    minutes=15,
    trains="writing with a cache, one query at a time",
    forbid=(forbidden.ATTENTION,),
    cases=tried(_past, PASTS),
    then=note(
        "step-returns",
        """
        The rest is as there: the columns of `x @ w_in + b_in` are query, key and value, one third each; head 0 has the first $d_k$
        = `d_model / n_heads` columns of each third; and the outputs of the heads, side by side, are multiplied by `w_out`, and
        `b_out` is added.

        Return three arrays: the output of the layer for the new token, `(batch, 1, d_model)`, and all keys and all values for the
        next step, `(batch, n_heads, n + 1, d_k)`, in the order of the text.
        """,
    ),
    slips=[
        AROUND,
        """
        the token does not see itself
            @ keys.swapaxes -> @ keys[:, :, :-1].swapaxes ;; @ values -> @ values[:, :, :-1]
            the new token attends to itself too: append its key and its value before you attend
        only the token itself
            @ keys.swapaxes -> @ keys[:, :, -1:].swapaxes ;; @ values -> @ values[:, :, -1:]
            the query must also meet the keys that were kept, not only the one of its own token
        a causal mask from position 0
            @ keys.swapaxes -> @ keys[:, :, :1].swapaxes ;; @ values -> @ values[:, :, :1]
            one query behind n kept keys stands at position n, not 0, and sees them all: a step needs no mask
        nothing kept
            b_out, keys, values -> b_out, keys[:, :, :-1], values[:, :, :-1]
            the output is right, but the returned keys and values lack those of the new token, which the next step needs
        kept in front
            [keys, key] -> [key, keys] ;; [values, value] -> [value, values]
            the output is the same in any order, but a cache is kept in the order of the text: the new key and value go behind the
            others
        key and value exchanged
            [keys, key] -> [keys, value] ;; [values, value] -> [values, key]
            the new key went to the values, and the new value to the keys
        packed head by head
            np.split(x @ w_in + b_in, 3, axis=-1) -> np.moveaxis((x @ w_in + b_in).reshape(batch, n_heads, 3, -1), 2, 0)
            the columns of `w_in` are first all queries, then all keys, then all values; some other models pack them head by head
        every n-th column
            part.reshape(batch, n_heads, 1, -1) -> part.reshape(batch, 1, -1, n_heads).transpose(0, 3, 1, 2)
            head h is a block of neighbouring columns: yours takes every n_heads-th column
        merged feature by feature
            heads.reshape -> heads.transpose(0, 2, 3, 1).reshape
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
        """,
    ],
    hints="""
        First make query, key and value of the new token, each of shape (batch, H, 1, d_k). What is needed to attend, and what to
            return?
        `np.concatenate` along the axis of positions puts the new key behind the kept ones; do it before you attend.
        No mask is needed, since all kept tokens come before the new one. The weights have the shape (batch, H, 1, n + 1).
    """,
    why="""
        The query of {eq}`attention-of-one-query` stands behind everything that was kept, so the causal mask would hide nothing. The keys
        and values of earlier tokens depend on these tokens and on what came before them, which the mask of the whole layer made sure of, so
        they can be kept. One step costs as many operations as there are tokens so far, instead of their square.
    """,
)
def my_step(x, keys, values, w_in, b_in, w_out, b_out, n_heads):
    r"""One token behind kept keys and values -> its output, all keys, all values.

    To write one more token, a model runs the layer of {task}`layer-around-attention` on that token alone. Write `my_step(x, keys, values,
    w_in, b_in, w_out, b_out, n_heads)`. Here `x` is the new token of each text, `(batch, 1, d_model)`, and `keys` and `values` are those
    of the $n \ge 1$ tokens before it, cut into heads, `(batch, n_heads, n, d_k)`. Scores are moderate.
    """
    batch, _, d_model = x.shape
    query, key, value = (
        part.reshape(batch, n_heads, 1, -1)  # one token, so there is nothing to swap
        for part in np.split(x @ w_in + b_in, 3, axis=-1)
    )
    keys = np.concatenate([keys, key], axis=2)
    values = np.concatenate([values, value], axis=2)
    scores = query @ keys.swapaxes(-1, -2) / np.sqrt(d_model / n_heads)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = terms / terms.sum(axis=-1, keepdims=True) @ values
    return heads.reshape(x.shape) @ w_out + b_out, keys, values
