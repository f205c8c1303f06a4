"""Figures of the lesson heads: how features are cut into heads, and what each head looks at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course import sentence
from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, as_numbers, count_cells, draw_heatmap, each_of_shape, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.heads import split_and_merge as split_and_merge
from attn_course.figures.machines.heads import three_definitions as three_definitions
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, INK, KEY, LIGHT, QUERY
from attn_course.figures.words import each_listed, listed, number, short

CARDS = Path(__file__).parent / "explorables"
ASKED = ("symbol before", "symbol after", "both")


def head_split(length: int, n_heads: int, d_head: int) -> None:
    """Show which numbers of Q a head gets when it is split as it should be, and when it is merely reshaped.

    `length`, `n_heads`, `d_head`: Q has `length` rows and n_heads * d_head columns. Raises ValueError if a size is below 1.
    """
    if min(length, n_heads, d_head) < 1:
        raise ValueError(f"length, n_heads and d_head must be positive; got {length}, {n_heads} and {d_head}")
    position = np.repeat(np.arange(length), n_heads * d_head).reshape(length, n_heads * d_head)
    right = position[:, :d_head]
    bare = position.reshape(n_heads, length, d_head)[0]
    seen = np.unique(bare)
    title = "Split, head 0 has a part of every position; reshaped at once, it has all of a few"
    alt = (
        f"Three grids whose cells name the position they come from. Q, {length} by {n_heads * d_head}: row t holds position t, and lines "
        f"cut its columns into {n_heads} heads. Head 0 after split and swap, {length} by {d_head}: positions 0 to {length - 1}, one in "
        f"each row. Head 0 after a bare reshape, of the same shape: only positions {listed(seen, 0)}."
    )
    panels = ((position, "Q", n_heads), (right, "head 0: split", 1), (bare, "head 0: reshaped", 1))
    with picture(
        title=title, alt=alt, height=1.6 + 0.42 * length, columns=3, width_ratios=[n_heads * d_head, 1.7 * d_head, 1.7 * d_head]
    ) as axes:
        for ax, (grid, name, blocks) in zip(axes, panels, strict=True):
            draw_heatmap(ax, grid.astype(float), limits=(0.0, length - 1.0), digits=0)
            ax.set_aspect("auto")
            for block in range(1, blocks):
                ax.axvline(block * d_head - 0.5, color=LIGHT, linewidth=5)
                ax.axvline(block * d_head - 0.5, color=DARK, linewidth=1.2)
            ax.set(title=name, xlabel="features")
            count_cells(ax, grid.shape)
        axes[0].set_ylabel("rows (in the cells: position)")


def head_maps(maps: ArrayLike, *, title: str, alt: str | None = None, annotate: bool | None = None) -> None:
    """Show the weights of every head side by side, queries in rows and keys in columns.

    `maps` (n_heads, q_len, kv_len): weights; rows sum to 1. `alt`: replaces the text made from the numbers. `annotate`: write the
    number in each cell; by default up to 100 cells in a map. Raises ValueError if a row of weights does not sum to 1.
    """
    p = as_numbers("maps", maps, 3)
    if not np.allclose(p.sum(axis=-1), 1.0, atol=1e-3):
        raise ValueError(
            f"maps must have rows that sum to 1; got sums from {number(p.sum(axis=-1).min())} to {number(p.sum(axis=-1).max())}"
        )
    heads = [f"head {head}" for head in range(len(p))]
    alt = alt or f"{len(p)} heatmaps of weights, queries in rows and keys in columns. " + " ".join(
        f"{name}: the keys with the largest weight, query by query, are {listed(each.argmax(axis=1), 0)}."
        for name, each in zip(heads, p, strict=True)
    )
    height = 1.35 + min(0.5, 5.4 / (len(p) * p.shape[2])) * p.shape[1]
    with picture(title=title, alt=alt, height=height, columns=len(p), sharey=True) as axes:
        for ax, name, each in zip(axes, heads, p, strict=True):
            image = draw_heatmap(ax, each, limits=(0.0, 1.0), annotate=annotate)
            if max(each.shape) <= 12:
                count_cells(ax, each.shape)
            else:
                name_cells(ax, None, None, each.shape)
            ax.set(title=name, xlabel="keys")
        axes[0].set_ylabel("queries")
        add_colour_bar(image, axes, "weight", fraction=0.04)


def neighbours_named(shares: Mapping[str, ArrayLike]) -> None:
    """Show how often each layer names the symbol before, the symbol after, and both.

    `shares`, each (3,): shares named right, means of three seeds, by the name of the layer. Raises ValueError if a layer has not
    three shares, or there is none.
    """
    named = each_of_shape("shares", shares, len(ASKED))
    charts.bars(
        ASKED,
        named,
        title="Two heads name both neighbours; one head needs a network behind it",
        alt=f"Share named right, mean of three seeds, for the symbol before, the symbol after, and both. {each_listed(named)}",
        x_label="",
        y_label="share named right",
        y_limits=(0.0, 1.18),
    )


def divided_work(maps: ArrayLike) -> None:
    """Show the weights that the heads have learned on the ring in one training.

    `maps` (n_heads, q_len, kv_len): weights; rows sum to 1. Raises ValueError if a row of weights does not sum to 1.
    """
    head_maps(maps, title="Two heads have divided the work: one looks back, the other ahead (first seed)", annotate=False)


def cache_growth(context: ArrayLike, caches: Mapping[str, ArrayLike], weights: float) -> None:
    """Show the size of a cache against the length of the context, beside that of the model's weights.

    `context` (n,): numbers of tokens, ascending. `caches`, each (n,): GiB of cache at each length, by the number of key heads in
    words. `weights`: GiB of the model's weights. Raises ValueError if a cache has another number of sizes, or there is none.
    """
    tokens = as_numbers("context", context, 1)
    sizes = each_of_shape("caches", caches, len(tokens))
    largest = next(iter(sizes))
    at_the_end = ", ".join(f"{name} {short(size[-1])} GiB" for name, size in sizes.items())
    charts.lines(
        tokens,
        sizes,
        title=f"With {largest} the cache outgrows the weights before 32 768 tokens",
        alt="GiB of cache against tokens of context on two logarithmic axes: parallel lines, one for each number of key heads. "
        f"At {tokens[-1]:.0f} tokens: {at_the_end}. A dotted line at {short(weights)} GiB marks the weights of the model.",
        x_label="tokens of context",
        y_label="GiB of cache",
        x_log=True,
        y_log=True,
        references={"weights": weights},
    )


def group_map(n_heads: int, n_kv_heads: int) -> None:
    """Show which key head serves which query head, for groups of neighbours (right) and for tiles (wrong).

    `n_heads`, `n_kv_heads`: query heads, and key heads, which divide them. Raises ValueError if `n_kv_heads` does not divide
    `n_heads`.
    """
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads; got {n_kv_heads} and {n_heads}")
    group = n_heads // n_kv_heads
    orders = {"repeat": np.repeat(np.arange(n_kv_heads), group), "tile": np.tile(np.arange(n_kv_heads), group)}
    title = "Repeat gives neighbours the same key head; tile deals the heads round"
    alt = f"Two rows of {n_heads} query heads joined by lines to {n_kv_heads} key heads. " + " ".join(
        f"{name}: query heads 0 to {n_heads - 1} use key heads {listed(served, 0)}." for name, served in orders.items()
    )
    with picture(title=title, alt=alt, height=2.9, columns=2) as axes:
        for ax, (name, served) in zip(axes, orders.items(), strict=True):
            places = (np.arange(n_kv_heads) + 0.5) * group - 0.5
            for head, key_head in enumerate(served):
                ax.plot([head, places[key_head]], [1, 0], color=INK, linewidth=1.4, zorder=1)
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10.0, "zorder": 3}
            for spots, level, letter in ((np.arange(n_heads), 1, "Q"), (places, 0, "K")):
                ax.scatter(spots, np.full(len(spots), level), s=520, color=QUERY if letter == "Q" else KEY, zorder=2)
                for count, spot in enumerate(spots):
                    ax.text(spot, level, f"{letter}{count}", color=LIGHT if letter == "Q" else DARK, **look)
            ax.set(title=f"{name}{' (right)' if name == 'repeat' else ' (wrong)'}", ylim=(-0.4, 1.4), xlim=(-0.8, n_heads - 0.2))
            ax.axis("off")


def sentence_heads() -> dict[str, Any]:
    """Return four heads on the sentence of the course, as the card takes them: two of its own, and one more for the keys of each.

    "what" asks the keys of "who" for somebody who tells, and "two back" turns its queries back one hour more than "one back".
    """
    what = np.array([[0, 0, 0, 0], [0, 1, 0, -1], [0, 1, -1, -1], [0, 0, 0, 0], [0, 0, 0, 0]])
    two_back = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [-1, -1, -1, -1], [3, -1, -1, -1]])
    who_writes, back_writes = sentence.W_OUTPUT.reshape(2, 3, 5)
    tells_only = who_writes * [[0], [1], [0]]
    arrays = {
        "x": sentence.X,
        "query": [sentence.QUERY[0], sentence.X @ what, sentence.QUERY[1], sentence.X @ two_back],
        "key": np.repeat(sentence.KEY, 2, axis=0),
        "value": np.repeat(sentence.VALUE, 2, axis=0),
        "output": [who_writes, tells_only, back_writes, back_writes],
    }
    words = {"tokens": sentence.TOKENS, "names": ("who", "what", "one back", "two back"), "features": sentence.FEATURES[:3]}
    return {**words, **{name: np.array(array, dtype=int).tolist() for name, array in arrays.items()}}


def heads_explorable() -> None:
    """Show what four heads of the sentence look at and add, muted one by one, and what shared keys change and save."""
    publish_explorable(
        CARDS / "heads",
        "The sentence of the course with arcs of four colours, one for each head, from the word that asks to the words it looks at, as "
        "thick as the weights. Buttons choose the word, mute a head, and merge the keys of four heads into two and into one; bars show "
        "what each head adds to the word's features, and the bytes of the cache stand beside it, for the sentence and, with a slider for "
        "the context, for a model of 32 layers.",
        sentence_heads(),
    )


def machine() -> None:
    """Show the machine with all heads lit."""
    show_machine("all-heads")
