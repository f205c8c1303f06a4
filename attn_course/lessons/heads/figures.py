"""Figures of the lesson heads: a ring of colours, what each head looks at, and what a mixture of two colours still tells."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, add_colour_bar, as_numbers, count_cells, draw_heatmap, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, GRID, INK, LIGHT, OKABE_ITO
from attn_course.figures.words import listed, number

CARDS = Path(__file__).parent / "explorables"


def head_maps(
    maps: ArrayLike,
    *,
    title: str,
    alt: str | None = None,
    annotate: bool | None = None,
    heads: Sequence[str] | None = None,
) -> None:
    """Show the weights of every head side by side, queries in rows and keys in columns.

    `maps` (n_heads, q_len, kv_len): weights; rows sum to 1. `alt`: replaces the text made from the numbers. `annotate`: write the
    number in each cell; by default up to 100 cells in a map. `heads`: their names, else numbers.
    Raises ValueError if a row of weights does not sum to 1.
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
            if max(each.shape) <= 12:
                count_cells(ax, each.shape)
            else:
                name_cells(ax, None, None, each.shape)
            ax.set(title=name, xlabel="keys")
        axes[0].set_ylabel("queries")
        add_colour_bar(image, axes, "weight", fraction=0.04)


def machine() -> None:
    """Show the machine with all heads lit."""
    show_machine("all-heads")


def ring(colours: ArrayLike) -> None:
    """Show a ring of colours, numbered from 0 to 7, clockwise; at the top, with a thick edge, stands the second."""
    found = np.asarray(colours)
    angles = np.pi * (0.5 - 2 * (np.arange(len(found)) - 1) / len(found))
    across, up = np.cos(angles), np.sin(angles)
    alt = f"A ring of coloured places, clockwise {listed(found, 0)}. At the place marked as this one, {found[1]}, the colour before is "
    alt += f"{found[0]}, and the colour after is {found[2]}."
    with picture(title="Which colours stand before and after this place?", alt=alt, height=2.6) as (ax,):
        circle = np.linspace(0, 2 * np.pi, 100)
        ax.plot(np.cos(circle), np.sin(circle), color=GRID, zorder=1)
        hues = [["#656D76", *OKABE_ITO.values()][colour + bool(colour)] for colour in found]  # grey for black, which dark pages hide
        ax.scatter(across, up, s=620, c=hues, edgecolors=INK, linewidths=[1, 4, *[1] * 6], zorder=2)
        for x, y, colour in zip(across, up, found, strict=True):
            ink = DARK if colour % 5 else LIGHT  # as the ground asks
            ax.text(x, y, str(colour), ha="center", va="center", color=ink, fontsize=LABEL_POINTS, fontweight="bold")
        for x, y, name in zip(across, up, ("before", "this place", "after"), strict=False):
            ax.annotate(name, (x, y), xytext=(0, 18), textcoords="offset points", ha="center", fontsize=LABEL_POINTS)
        ax.margins(0.12, 0.28)
        ax.set(xticks=[], yticks=[])
        ax.spines.bottom.set_visible(False)


def ring_maps(maps: ArrayLike) -> None:
    """Show the mean weights of the single head of a layer on the ring, and of the two heads of another: (3, places, places)."""
    names, p = ["the single head", "first of two", "second of two"], np.asarray(maps)
    places = np.arange(p.shape[1])
    near = [p[:, places, np.roll(places, shift)].mean(axis=1) for shift in (1, -1)]
    alt = "Weights of three heads on a ring, queries in rows and keys in columns. Weights on the place before and on the place after: "
    shares = zip(names, *near, (2, 1, 1), strict=True)  # two digits where one would hide which is larger
    alt += "; ".join(f"{name} {before:.{digits}f} and {after:.{digits}f}" for name, before, after, digits in shares) + "."
    head_maps(p, title="One head shares out its weight; two heads take a neighbour each", alt=alt, annotate=False, heads=names)


def mixture_explorable() -> None:
    """Show which of two colours a threshold tells from their mixture."""
    publish_explorable(
        CARDS / "mixture",
        "A slider shares the weight of one head between the place before and the place after. The mixtures of red, 0, and blue, 1, lie on "
        "a line, coloured once by the colour before and once by the colour after, with a threshold where one tells red from blue: for the "
        "place with the larger weight only.",
    )
