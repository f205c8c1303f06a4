"""Figures of the lesson heads: what each head looks at, what a mixture of two colours still tells, and two heads that find a word."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import add_colour_bar, as_numbers, count_cells, draw_heatmap, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, WEIGHTS
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


def ring_maps(maps: ArrayLike) -> None:
    """Show the mean weights of the single head of a layer on the ring, and of the two heads of another: (3, places, places)."""
    names, p = ["the single head", "first of two", "second of two"], np.asarray(maps)
    places = np.arange(p.shape[1])
    near = [p[:, places, np.roll(places, shift)].mean(axis=1) for shift in (1, -1)]
    alt = "Weights of three heads on a ring, queries in rows and keys in columns. Weights on the place before and on the place after: "
    shares = zip(names, *near, (2, 1, 1), strict=True)  # two digits where one would hide which is larger
    alt += "; ".join(f"{name} {before:.{digits}f} and {after:.{digits}f}" for name, before, after, digits in shares) + "."
    head_maps(p, title="One head shares out its weight; two heads take a neighbour each", alt=alt, annotate=False, heads=names)


def blocks(places: int) -> None:
    """Show which block of which place each row of two heads holds after one `reshape`, and in the loop over heads.

    Raises ValueError unless `places` is an even number from 2 to 10.
    """
    if places % 2 or not 2 <= places <= 10:
        raise ValueError(f"places must be an even number from 2 to 10; got {places}")
    stored = [(place, block) for place in range(places) for block in range(2)]
    reshaped, looped = [stored[:places], stored[places:]], [stored[0::2], stored[1::2]]
    drawing = Diagram("blocks", 96 + 34 * places + 2, 246)
    for y, said, size, rows in ((20, "in order", 17, [stored]), (80, "reshape", 34, reshaped), (178, "the loop", 34, looped)):
        drawing.text((2, y + 5 if len(rows) == 1 else y - 14), said, anchor="start")
        for head, row in enumerate(rows):
            if len(rows) > 1:
                drawing.text((84, y + 15 + 32 * head), f"head {head}", anchor="end")
            for at, (place, block) in enumerate(row):
                middle = 96 + size * (at + 0.5), y + (10 + 32 * head if len(rows) > 1 else 0)
                drawing.box(Area(*middle, size - 3, 26), str(place), role=("scores", "gradient")[block])
    half = places // 2
    told = "Each tile is one of the two blocks of a place, with the number of the place. The colour says which block."
    publish_diagram(
        drawing.finish(
            title="One reshape gives each head the wrong rows",
            caption=told,
            alt=f"{told} In order, the two blocks of a place stand side by side. After reshape, head 0 holds both blocks of the places "
            f"0 to {half - 1}, and head 1 those of the places {half} to {places - 1}. In the loop, head 0 holds the first block of all "
            f"{places} places, and head 1 the second.",
        )
    )


def silenced(good: Mapping[str, ArrayLike]) -> None:
    """Show which percent of each text the model names right, by the heads that are silent: a dot for each text, a bar for their mean.

    Raises ValueError if there is nothing to show, or a number is no percentage.
    """
    if not good or any(np.min(each) < 0 or np.max(each) > 100 for each in good.values()):
        raise ValueError(f"good must hold percentages by what is silent; got {dict(good)}")
    rows = {name: np.sort(each) for name, each in good.items()}
    told = "; ".join(f"{name} {each.mean():.0f} % ({each.min():.0f} to {each.max():.0f})" for name, each in rows.items())
    alt = f"Bars of the part of the tokens that is named right, a dot for each text, by what is silent. Means and ranges: {told}."
    with picture(title="Without head 0 of layer 16, the model no longer repeats", alt=alt, height=3.3) as (ax,):
        for row, each in enumerate(rows.values()):
            ax.barh(row, each.mean(), 0.7, color=WEIGHTS, alpha=0.45)
            ax.plot(each, row + np.linspace(0.22, -0.22, len(each)), "o", color=INK, markersize=4.5, clip_on=False)
            ax.annotate(f"{each.mean():.0f} %", (each.max(), row), (9, 0), textcoords="offset points", va="center")
        ax.set_yticks(range(len(rows)), [textwrap.fill(name, 18) for name in rows])
        ax.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5), xlabel="tokens named right, in percent", ylabel="silent")
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")


def mixture_explorable() -> None:
    """Show which of two colours a threshold tells from their mixture."""
    publish_explorable(
        CARDS / "mixture",
        "A slider shares the weight of one head between the place before and the place after. The mixtures of red, 0, and blue, 1, lie on "
        "a line, coloured once by the colour before and once by the colour after, with a threshold where one tells red from blue: for the "
        "place with the larger weight only.",
    )
