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


def looks(before: ArrayLike, after: ArrayLike) -> None:
    """Show where three heads look on a ring of eight places: an arrow to each neighbour with at least a tenth of the weight.

    `before`, `after` (3,): mean weights of the single head of a layer, and of the two heads of another.
    """
    names, (left, right) = ("the single head", "first of two", "second of two"), (np.asarray(each, dtype=float) for each in (before, after))
    turns = np.arange(8) * np.pi / 4
    drawing = Diagram("looks", 426, 170)
    for middle, name, *weights in zip((71, 213, 355), names, left, right, strict=True):
        centres = np.stack([middle + 56 * np.sin(turns), 72 - 56 * np.cos(turns)], axis=1)
        both = min(weights) >= 0.1
        for place, (x, y) in enumerate(centres):
            drawing.box(Area(x, y, 20, 20), str(place))
            for step, weight in zip((-1, 1), weights, strict=True):
                if weight >= 0.1:
                    drawing.arrow(*_between(centres[place], centres[(place + step) % 8], 3.5 * both), role="weights")
        for y, side, weight in zip((69, 87), ("before", "after"), weights, strict=True):
            drawing.text((middle, y), f"{side} {weight:.2f}", small=True)
        drawing.text((middle, 160), name)
    told = "An arrow leads from each place to the neighbours it looks at; before is to the left of the upper place, after to the right."
    shares = (f"{name} {before:.2f} and {after:.2f}" for name, before, after in zip(names, left, right, strict=True))
    publish_diagram(
        drawing.finish(
            title="One head looks both ways, two heads one way each",
            caption="Each place looks at the places its arrows lead to. The numbers are the mean weights on both neighbours.",
            alt=f"Three rings of eight places. {told} Weights on the places before and after: {'; '.join(shares)}.",
            views=drawing.strips(142),
        )
    )


def _between(start: np.ndarray, end: np.ndarray, aside: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where an arrow leaves one box of 20 by 20 pixels and meets another, a little to the right of the line of their centres."""
    along = (end - start) / np.linalg.norm(end - start)
    shift = aside * np.array([-along[1], along[0]])
    out = min((10 - np.sign(way) * off) / abs(way) for way, off in zip(along, shift, strict=True) if abs(way) > 1e-9)
    into = min((10 + np.sign(way) * off) / abs(way) for way, off in zip(along, shift, strict=True) if abs(way) > 1e-9)
    first, last = start + shift + (out + 2) * along, end + shift - into * along
    return (float(first[0]), float(first[1])), (float(last[0]), float(last[1]))


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
            near = np.diff(each, append=np.inf) < 1.2  # a dot that would hide the next one stands below it
            ax.plot(each, row + 0.1 + 0.17 * near, "o", color=INK, markersize=4, clip_on=False)
            ax.annotate(f"{each.mean():.0f} %", (each.mean(), row - 0.19), (5, 0), textcoords="offset points", va="center")
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
