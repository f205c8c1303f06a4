"""Figures of the lesson heads: how features are cut into heads, and what each head looks at."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, as_numbers, count_cells, draw_heatmap, name_cells
from attn_course.figures.machines.heads import split_and_merge as split_and_merge
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import listed, number


def head_maps(
    maps: ArrayLike,
    *,
    title: str,
    alt: str | None = None,
    annotate: bool | None = None,
    heads: Sequence[str] | None = None,
    tokens: Sequence[str] | None = None,
) -> None:
    """Show the weights of every head side by side, queries in rows and keys in columns.

    `maps` (n_heads, q_len, kv_len): weights; rows sum to 1. `alt`: replaces the text made from the numbers. `annotate`: write the
    number in each cell; by default up to 100 cells in a map. `heads`: their names, else numbers.
    `tokens`: names of rows and columns, else numbers. Raises ValueError if a row of weights does not sum to 1.
    """
    p = as_numbers("maps", maps, 3)
    if not np.allclose(p.sum(axis=-1), 1.0, atol=1e-3):
        raise ValueError(
            f"maps must have rows that sum to 1; got sums from {number(p.sum(axis=-1).min())} to {number(p.sum(axis=-1).max())}"
        )
    heads = heads or [f"head {head}" for head in range(len(p))]
    alt = alt or f"{len(p)} heatmaps of weights, queries in rows and keys in columns. " + " ".join(
        f"{name}: the keys with the largest weight, query by query, are {listed(each.argmax(axis=1), 0)}."
        for name, each in zip(heads, p, strict=True)
    )
    height = 1.35 + min(0.5, 5.4 / (len(p) * p.shape[2])) * p.shape[1]
    with picture(title=title, alt=alt, height=height, columns=len(p), sharey=True) as axes:
        for ax, name, each in zip(axes, heads, p, strict=True):
            image = draw_heatmap(ax, each, limits=(0.0, 1.0), annotate=annotate)
            if tokens is not None:
                name_cells(ax, tokens, tokens, each.shape)
                ax.tick_params(axis="x", rotation=60)
            elif max(each.shape) <= 12:
                count_cells(ax, each.shape)
            else:
                name_cells(ax, None, None, each.shape)
            ax.set(title=name, xlabel="keys")
        axes[0].set_ylabel("queries")
        add_colour_bar(image, axes, "weight", fraction=0.04)


def machine() -> None:
    """Show the machine with all heads lit."""
    show_machine("all-heads")


def looking_back(maps: ArrayLike, tokens: Sequence[str]) -> None:
    """Show how much weight each head of a causal model gives to the token before, and the map of the head that gives it most.

    `maps` (layers, heads, len, len): weights; rows sum to 1. `tokens` (len,): the pieces that the model reads. Means are over the
    queries behind the first.
    """
    p = as_numbers("maps", maps, 4)
    back = p.diagonal(-1, -2, -1).mean(axis=-1)
    layer, head = map(int, np.unravel_index(back.argmax(), back.shape))
    names = [token.strip() for token in tokens]
    most = int((back > 0.65).sum())
    alt = (
        f"Left, a grid of {back.size} cells, one for each head: its mean weight on the token before. Above 0.65: {most} of them. The "
        f"largest is {number(back.max())}, of head {head} in layer {layer}. Right, the map of this head, queries in rows and keys in "
        f"columns: the keys with the largest weight, query by query, are {listed(p[layer, head].argmax(axis=1), 0)}."
    )
    title = f"Head {head} of layer {layer} looks one token back"
    with picture(title=title, alt=alt, height=3.4, columns=2, width_ratios=(1.5, 1)) as (grid, one):
        draw_heatmap(grid, back.T, limits=(0.0, 1.0), annotate=False)
        grid.set(title="weight on the token before", xlabel="layer", ylabel="head", aspect="auto")
        grid.set(xticks=range(0, len(back), 4), yticks=range(0, back.shape[1], 2))
        image = draw_heatmap(one, p[layer, head], limits=(0.0, 1.0), annotate=False)
        name_cells(one, names, names, p.shape[2:])
        one.tick_params(axis="x", rotation=60)
        one.set(title=f"layer {layer}, head {head}", xlabel="keys", ylabel="queries")
        add_colour_bar(image, [grid, one], "weight", fraction=0.03)
