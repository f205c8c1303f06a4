"""What the lesson on heads asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _sides(normal, q_len, n_heads, d_k, d_v):
    return {
        "query": normal(q_len, n_heads * d_k),
        "key": normal(q_len, n_heads * d_k),
        "value": normal(q_len, n_heads * d_v),
        "n_heads": n_heads,
    }


SIDES = """
three heads: 5 3 2 4
two heads: 4 2 3 5
values narrower than keys: 7 2 5 2
one head: 3 1 4 2
one token: 1 3 2 4
"""


@asked(
    "heads-by-loop",
    "A loop over heads",
    kind="write",
    equation="attention-of-one-head",
    points=1,
    difficulty=1,
    minutes=6,
    trains="a head as a block of columns",
    retired=True,
    cases=tried(_sides, SIDES),
    slips="""
        the scale of all heads together
            np.sqrt(q.shape[-1]) -> np.sqrt(query.shape[-1])
            the scale belongs to one dot product, and that has as many terms as one head has columns
        no scale
            ` / np.sqrt(q.shape[-1])` ->
            the scores are not divided by the root of the width of a head
        softmax over the queries
            axis=-1, keepdims -> axis=0, keepdims
            the weights of one query sum to 1 over the keys, the last axis of the scores
        heads below each other
            np.concatenate(outputs, axis=-1) -> np.concatenate(outputs, axis=0)
            the outputs of the heads stand side by side, in the columns that the heads were cut from
        the mean of the heads
            np.concatenate(outputs, axis=-1) -> np.mean(outputs, axis=0)
            each head keeps its output; nothing is averaged over heads
        the keys ask
            q @ k.T -> k @ q.T
            the first index asks: row i of the scores belongs to query i
    """,
    hints="""
        `np.split(query, n_heads, axis=-1)` cuts the columns into blocks of equal width.
        Each head is attention as you know it, on its own blocks of queries, keys and values.
        A loop over the blocks of all three at once, a list of outputs, and `np.concatenate(..., axis=-1)` in the end.
    """,
)
def my_heads(query, key, value, n_heads):
    r"""The outputs of all heads, side by side.

    Write `my_heads(query, key, value, n_heads)` for float64 arrays of the shapes $(T, H d_k)$, $(T, H d_k)$ and $(T, H d_v)$, in which the
    $H$ heads stand side by side. It returns their outputs side by side, $(T, H d_v)$. There is no mask.
    """
    outputs = []
    for q, k, v in zip(*(np.split(side, n_heads, axis=-1) for side in (query, key, value)), strict=True):
        terms = np.exp(q @ k.T / np.sqrt(q.shape[-1]))
        outputs.append(terms / terms.sum(axis=-1, keepdims=True) @ v)
    return np.concatenate(outputs, axis=-1)


def _side(normal, batch, length, n_heads, d_k):
    return {"side": normal(batch, length, n_heads * d_k), "n_heads": n_heads}


BATCHES = """
two heads: 3 5 2 4
three heads: 2 7 3 5
as many heads as places: 5 3 3 2
one head: 2 3 1 5
heads of one column: 3 4 5 1
one place: 2 1 3 4
"""


@asked(
    "columns-to-heads",
    "From columns to heads",
    kind="write",
    equation="heads-are-column-blocks",
    points=1,
    difficulty=1,
    minutes=4,
    trains="cutting columns without mixing places",
    your_turn=True,
    cases=tried(_side, BATCHES),
    slips="""
        reshaped at once
            side.reshape(*side.shape[:2], n_heads, -1).swapaxes(1, 2) -> side.reshape(side.shape[0], n_heads, side.shape[1], -1)
            the numbers keep their order, so a head gets all columns of a few places; cut only the last axis, then swap two axes
        every n-th column
            n_heads, -1).swapaxes(1, 2) -> -1, n_heads).swapaxes(2, 3).swapaxes(1, 2)
            a head has neighbouring columns; yours has every n_heads-th
        heads behind the places
            .swapaxes(1, 2) ->
            the columns are cut well, but `attend` works on the last two axes, so the heads must stand in front of the places
        places and columns swapped
            .swapaxes(1, 2) -> .swapaxes(1, 2).swapaxes(2, 3)
            the last axis must hold the columns of one head; yours holds the places
    """,
    hints="""
        Two steps: cut the last axis in two, then swap two axes.
        `side.reshape(*side.shape[:2], n_heads, -1)` has the shape $(B, T, H, d_k)$.
        Then `.swapaxes(1, 2)` brings the heads in front of the places.
    """,
)
def my_by_head(side, n_heads):
    r"""One side, queries, keys or values, head by head.

    Write `my_by_head(side, n_heads)` for queries, keys or values of the shape $(B, T, H d_k)$. It returns them in the shape
    $(B, H, T, d_k)$. Use `.reshape` and `.swapaxes`, which tensors have, too.
    """
    return side.reshape(*side.shape[:2], n_heads, -1).swapaxes(1, 2)


def _outputs(rng, n_heads, length, d_v, d_model, silent):
    return {"heads": rng.normal(size=(n_heads, length, d_v)), "w_output": rng.normal(size=(n_heads * d_v, d_model)), "silent": silent}


OUTPUTS = """
the first of three: 3 4 2 5 0
the last of three: 3 4 2 5 2
one of two: 2 5 3 4 1
one in the middle of four: 4 2 3 5 2
one token: 3 1 2 4 1
"""


@asked(
    "layer-without-a-head",
    "Silence a head",
    kind="write",
    equation="output-projection-sums-heads",
    points=1,
    difficulty=2,
    minutes=6,
    trains="the output projection as a sum over heads",
    your_turn=True,
    cases=tried(_outputs, OUTPUTS),
    slips="""
        the silent head alone
            if h != silent -> if h == silent
            this is what the head adds; wanted is what the others add
        no head is silent
            ` if h != silent` ->
            this is the output of the whole layer
        rows of W_O dealt out one by one
            w_output.reshape(len(heads), heads.shape[-1], -1) -> w_output.reshape(heads.shape[-1], len(heads), -1).swapaxes(0, 1)
            head h owns d_v neighbouring rows of W_O, the h-th block; yours takes every H-th row
        the mean of the others
            ` for h in range(len(heads)) if h != silent)` -> ` / (len(heads) - 1) for h in range(len(heads)) if h != silent)`
            the layer adds what its heads write; nothing is divided by their number
    """,
    hints="""
        The layer's output is a sum with one term for each head.
        `w_output.reshape(H, d_v, -1)` gives the rows of $W_O$ in blocks, one for each head.
        Add `heads[h] @ rows[h]` for each head but one.
    """,
)
def my_layer_without(heads, w_output, silent):
    r"""The output of the layer when one head is silent.

    Write `my_layer_without(heads, w_output, silent)` for the outputs of two or more heads, $(H, T, d_v)$, and $W_O$, $(H d_v, d)$. It
    returns the output of the layer, $(T, d)$, to which the head with the number `silent`, counted from 0, adds nothing.
    """
    rows = w_output.reshape(len(heads), heads.shape[-1], -1)
    return sum(heads[h] @ rows[h] for h in range(len(heads)) if h != silent)
