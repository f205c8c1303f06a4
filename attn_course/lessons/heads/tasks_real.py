"""The tasks on the heads of a real model: which of 270 maps looks one token back, the scores of one head, a step that writes a word.

smollm2_slices.npz holds what they need of SmolLM2's weights and states; tests/language/with_the_model.py makes it.
"""

from functools import cache
from pathlib import Path

import numpy as np

from attn_course.language.stored import stored
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import Case

SENTENCE = "The cat sat because it was tired."


def _maps(normal, n_layers, n_heads, length):
    """Causal maps, drawn."""
    weights = np.tril(np.exp(1.5 * normal(n_layers, n_heads, length, length)))
    return {"maps": weights / weights.sum(axis=-1, keepdims=True)}


MAPS = """
square maps, two layers of three heads: 2 3 5
square maps, five layers of two heads: 5 2 7
square maps, one layer: 1 4 6
square maps, one head a layer: 6 1 3
square maps, two tokens: 3 4 2
"""


def _real(rng):
    """The maps of SmolLM2, as they are stored with the course."""
    return [Case("square maps of SmolLM2", maps=stored(f"maps(text={SENTENCE!r})").astype(float))]


@asked(
    "previous-token-head",
    "The head that looks one token back",
    kind="write",
    equation="attention-of-one-head",
    points=2,
    difficulty=2,
    minutes=8,
    trains="finding a head by what its map does",
    cases=[tried(_maps, MAPS), _real],
    slips="""
        every token on itself
            maps[..., 1:, :-1] -> maps[..., 1:, 1:]
            the diagonal holds what a token gives itself; the token before stands one column to the left
        the first token for the one before
            np.trace(maps[..., 1:, :-1], axis1=-2, axis2=-1) -> maps[..., 1:, 0].sum(axis=-1)
            column 0 is the first token of the text; the token before query i is key i - 1
        one query too many
            (maps.shape[-1] - 1) -> maps.shape[-1]
            the first token has none before it: the mean is over T - 1 queries, not T
        no mean
            ` / (maps.shape[-1] - 1)` ->
            this is the sum over the queries; divide it by their number
        the token behind
            maps[..., 1:, :-1] -> maps[..., :-1, 1:]
            the first index of a map asks: the token before query i is key i - 1, below the diagonal
    """,
    hints="""
        Query i gives key i - 1 the weight `maps[layer, head, i, i - 1]`. Which diagonal is that?
        `maps.diagonal(-1, -2, -1)` takes it from all maps at once.
        The mean of `maps.diagonal(-1, -2, -1)` along its last axis is one number for each head.
    """,
    why="""
        In SmolLM2's maps of this sentence the largest mean is 0.81, of head 0 in layer 16, and head 1 of layer 11 comes second with 0.77.
    """,
)
def my_looks_back(maps):
    """(layers, heads, T, T) -> (layers, heads), the mean weight on the token before.

    Which of the 270 heads of SmolLM2 looks one token back? Write `my_looks_back(maps)` for the maps of all heads of a causal model, an
    array of shape `(layers, heads, T, T)` with at least two tokens {case}`square maps, two tokens`. For each head it returns the weight
    that a query gives to the token just before it, as the mean over all queries but the first. One case holds the maps that
    `language_model().maps("The cat sat because it was tired.")` gives you; the largest number that is then returned stands at the layer and
    head in question.
    """
    return np.trace(maps[..., 1:, :-1], axis1=-2, axis2=-1) / (maps.shape[-1] - 1)


@cache
def slices():
    """The arrays of smollm2_slices.npz as float64, the two matrices out of their blocks of 4 bits; what stands as words, as it is."""
    with np.load(Path(__file__).with_name("smollm2_slices.npz")) as file:
        arrays = {name: file[name] for name in file.files}
    return {
        name: _unpacked(array) if array.dtype == np.uint8 else array if array.dtype.kind == "U" else array.astype(float)
        for name, array in arrays.items()
    }


def _unpacked(blocks):
    """Rows in blocks of 32 numbers, 20 bytes each: scale and least number in 16 bits, then the levels, two a byte -> (in, out)."""
    scale, least = np.moveaxis(blocks[..., :4].copy().view(np.float16).astype(float), -1, 0)[..., None]
    levels = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    return (levels * scale + least).reshape(len(blocks), -1).T


def _head(normal, length, d_model, d_k, theta):
    return {"x": normal(length, d_model), "w_query": normal(d_model, d_k), "w_key": normal(d_model, d_k), "theta": theta}


HEADS = """
five tokens: 5 7 6 10000.0
a longer text: 11 5 4 100.0
one pair of features: 4 3 2 100000.0
one token: 1 5 8 10000.0
"""


def _layer_13_head_8(rng):
    return {**{name: slices()[name] for name in ("x", "w_query", "w_key")}, "theta": 100_000.0}


@asked(
    "scores-of-real-head",
    "The scores of a real head",
    kind="write",
    equation="attention-of-one-head",
    points=3,
    difficulty=3,
    minutes=15,
    trains="a head of a model that people use, from its own matrices",
    cases=[tried(_head, HEADS), _layer_13_head_8],
    then=note(
        "real-head-rotation",
        r"""
        Before the dot product the model turns queries and keys, which tells them their places. Features $2i$ and $2i + 1$ of a query (or
        key) are a pair $(a, b)$, $i = 0, 1, \ldots$ In row $t = 0, 1, \ldots$ of `x` the pair becomes

        $$(a \cos \varphi - b \sin \varphi,\; a \sin \varphi + b \cos \varphi), \qquad \varphi = t\, \theta^{-2i/d_k}.$$
        """,
    ),
    slips="""
        no rotation
            ` * np.exp(1j * angles)` ->
            queries and keys are not turned: without it the head does not know which token stands where
        only the queries are turned
            np.exp(1j * angles) -> np.exp(1j * angles * (w is w_query))
            queries and keys are both turned, each by the angle of its own place
        turned the other way
            1j * angles -> -1j * angles
            a pair (a, b) becomes (a cos - b sin, a sin + b cos); yours has the other sign at the sine
        pairs half a head apart
            (x @ w).reshape(len(x), -1, 2) -> (x @ w).reshape(len(x), 2, -1).swapaxes(1, 2)
            in this model neighbouring features are a pair, 2i and 2i + 1; yours pairs i with i + d_k / 2, as other models do
        half the exponent
            np.arange(0, d_k, 2) / d_k -> np.arange(0, d_k, 2) / d_k / 2
            pair i turns by theta to the power of -2i / d_k for each place
        always 10,000
            theta ** -> 10_000.0 **
            `theta` is given; SmolLM2's is 100,000
        no scale
            ` / np.sqrt(d_k)` ->
            the scores are divided by the root of the width of the head
        the root of the model's width
            np.sqrt(d_k) -> np.sqrt(x.shape[1])
            a score is a dot product of d_k numbers, the columns of `w_query`, not of d_model
        the keys ask
            query @ key.T -> key @ query.T
            row i belongs to query i, and column j to key j
    """,
    hints="""
        First make queries and keys without any rotation. Which two columns of them are pair i?
        An array of angles has a row for each place and a column for each pair: place times theta to the power of -2i / d_k.
        With `a = q[:, 0::2]` and `b = q[:, 1::2]` the turned pair is `a * cos - b * sin` and `a * sin + b * cos`, side by side again.
    """,
    why="""
        The order of the features within a head does not matter to a dot product, as long as it is the same for queries and keys. In layer
        13 the row of "it" is largest at "cat", 7.1, with 3.8 for "The" next, and the softmax over the words so far makes 0.94 of that.
    """,
)
def my_real_scores(x, w_query, w_key, theta):
    """(T, d_model), two matrices (d_model, d_k), theta -> scores (T, T).

    Layer 13, head 8 of SmolLM2 finds "cat" for "it" in *The cat sat because it was tired.* Compute its scores from its own matrices. Write
    `my_real_scores(x, w_query, w_key, theta)`; one case holds what goes into that layer and the two matrices of that head.

    Return all scores with the scale, without a mask or softmax: row $i$ belongs to query $i$. Queries and keys are turned as below, and
    $d_k$ is even.
    """
    d_k = w_query.shape[1]
    angles = np.arange(len(x))[:, None] * theta ** (-np.arange(0, d_k, 2) / d_k)
    turned = []
    for w in (w_query, w_key):
        pairs = (x @ w).reshape(len(x), -1, 2)
        z = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
        turned.append(np.stack([z.real, z.imag], axis=-1).reshape(len(x), d_k))
    query, key = turned
    return query @ key.T / np.sqrt(d_k)


def _step(normal, H, R, n, d_k, d_v, n_words):
    new = {"query": normal(H, d_k), "key": normal(R, d_k), "value": normal(R, d_v)}
    kept = {"keys": normal(R, n, d_k), "values": normal(R, n, d_v)}
    return {**new, **kept, "w_words": normal(H * d_v, n_words), "rest": normal(n_words)}


STEPS = """
six query heads on two, five tokens kept: 6 2 5 7 3 4
one key head: 3 1 4 5 2 7
as many key heads as query heads: 3 3 2 4 5 2
one token kept: 4 2 1 3 5 6
"""


def _last_layer(rng):
    """The last token of a text in layer 29, the tokens before it kept, and what the rest of the model adds to twelve words."""
    stored = slices()
    sides = {side: stored[side] for side in ("keys", "values")}
    new = {"query": stored["query"], "key": sides["keys"][:, -1], "value": sides["values"][:, -1]}
    return {**new, **{side: array[:, :-1] for side, array in sides.items()}, "w_words": stored["w_words"], "rest": stored["rest"]}


@asked(
    "same-word-from-cache",
    "The same word from a cache",
    kind="write",
    equation="decoding-equals-full-pass",
    points=3,
    difficulty=3,
    minutes=12,
    trains="one step of a real model with kept keys and shared heads",
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_step, STEPS), _last_layer],
    then=note(
        "word-step-inputs",
        r"""
        - `query` `(H, d_k)`, `key` `(R, d_k)` and `value` `(R, d_v)` belong to the new token, already turned to its place.
        - `keys` `(R, n, d_k)` and `values` `(R, n, d_v)` are those of the $n \ge 1$ tokens before it. $R$ divides $H$, and neighbouring
          query heads share a key head, {eq}`grouped-query-attention`. The scale is $1/\sqrt{d_k}$.
        - `w_words` `(H * d_v, n_words)` takes the outputs of the heads, side by side, to scores of some words. `rest` `(n_words,)` is what
          all other parts of the model add to these scores, as in a pass over the whole text.
        """,
    ),
    slips="""
        the token does not see itself
            keys[h // group] @ q -> keys[h // group, :-1] @ q ;; @ values[h // group] -> @ values[h // group, :-1]
            row t of causal attention includes token t: append its key and value first, then attend to all
        only the token itself
            keys[h // group] @ q -> keys[h // group, -1:] @ q ;; @ values[h // group] -> @ values[h // group, -1:]
            the query must also meet the keys that were kept
        a causal mask from the top left
            keys[h // group] @ q -> keys[h // group, :1] @ q ;; @ values[h // group] -> @ values[h // group, :1]
            the new query is the last row of the mask, not the first: it sees every key that was kept
        key heads dealt round
            all h // group -> h % len(keys)
            neighbours share a key head: query head h uses key head h // g, {eq}`grouped-query-attention`
        no scale
            ` / np.sqrt(len(q))` ->
            divide the scores by the root of the width of a head
        the scale of all heads together
            np.sqrt(len(q)) -> np.sqrt(query.size)
            a score is a dot product of d_k numbers, the last axis of `query`
        the rest of the model forgotten
            ` + rest` ->
            this is what the heads say about the words; `rest` is what all other parts of the model say, and is added
        kept in front
            [keys, key[:, None]] -> [key[:, None], keys] ;; [values, value[:, None]] -> [value[:, None], values]
            the new key and value go behind those that were kept, in the order of the text
        nothing kept
            + rest, keys, values -> + rest, keys[:, :-1], values[:, :-1]
            the scores of the words are right, but the returned keys and values lack those of the new token, which the next step needs
        merged feature by feature
            np.concatenate(heads) -> np.stack(heads, axis=1).ravel()
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
    """,
    hints="""
        Append the new key and value first, along the axis of the tokens. With how many keys does each query head meet then?
        `np.concatenate([keys, key[:, None]], axis=1)`; query head h uses key head `h // g`, and g is the number of heads divided by R.
        Each head returns d_v numbers; side by side they meet `w_words`, and `rest` is added.
    """,
    why="""
        In the case from SmolLM2 the largest score is 22.6, of " sets", and 19.5 of " set" follows, as in a pass over the whole text. (The
        states are stored in 16 bits, and no score differs by more than 0.001.) Without this layer's attention " sets" would have 21.6.
    """,
)
def my_word_step(query, key, value, keys, values, w_words, rest):
    """One token with kept keys -> scores of the words (n_words,), all keys, all values.

    SmolLM2 has read *The sun rises in the east and*, and its last layer has come to the last token. Write the step
    `my_word_step(query, key, value, keys, values, w_words, rest)` that names the next word.

    Return the tuple of the scores of some words, all keys `(R, n + 1, d_k)` and all values `(R, n + 1, d_v)`, the new ones last. The word
    with the largest score is written. The token sees itself.
    """
    keys = np.concatenate([keys, key[:, None]], axis=1)
    values = np.concatenate([values, value[:, None]], axis=1)
    group, heads = len(query) // len(keys), []
    for h, q in enumerate(query):
        scores = keys[h // group] @ q / np.sqrt(len(q))
        terms = np.exp(scores - scores.max())
        heads.append(terms / terms.sum() @ values[h // group])
    return np.concatenate(heads) @ w_words + rest, keys, values
