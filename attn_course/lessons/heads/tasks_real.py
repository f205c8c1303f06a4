"""The task on the heads of a real model: which of 270 maps looks one token back."""

import numpy as np

from attn_course.language.stored import stored
from attn_course.tasks.asked import asked, tried
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
        In SmolLM2's maps of this sentence the largest mean is 0.78, of head 0 in layer 16, and head 1 of layer 11 comes second with 0.73.
    """,
)
def my_looks_back(maps):
    """(layers, heads, T, T) -> (layers, heads), the mean weight on the token before.

    Which of the 270 heads of SmolLM2 looks one token back? Write `my_looks_back(maps)` for the maps of all heads of a causal model, an
    array of shape `(layers, heads, T, T)` with at least two tokens {case}`square maps, two tokens`. For each head it returns the weight
    that a query gives to the token just before it, as the mean over all queries but the first, which has none. One case holds the maps
    that `language_model().maps("The cat sat because it was tired.")` gives you; the largest number that your function then returns
    stands at the layer and the head in question, both counted from 0.
    """
    return np.trace(maps[..., 1:, :-1], axis1=-2, axis2=-1) / (maps.shape[-1] - 1)
