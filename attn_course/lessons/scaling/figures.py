"""Figures of the lesson scaling: how far scores are spread, and how fast layers learn with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES

CARDS = Path(__file__).parent / "explorables"


def walks(paths: ArrayLike) -> None:
    """Show random walks, and the root of the number of steps on both sides.

    `paths` (n, steps): where each walk is after each step.
    """
    table = as_numbers("paths", paths, 2)
    steps = np.arange(1, table.shape[1] + 1)
    root = np.sqrt(steps)
    inside = int((np.abs(table[:, -1]) <= root[-1]).sum())
    alt = (
        f"{len(table)} random walks of {len(steps)} steps, which spread ever more slowly. Two curves mark the root of the number of steps, "
        f"above 0 and below; {inside} of the walks end between them."
    )
    with picture(title="A random walk gets about as far as the root of the number of its steps", alt=alt, height=3.4) as (ax,):
        every = max(1, len(steps) // 128)  # what a figure of this width can show
        ax.plot(steps[::-every][::-1], table[:, ::-every][:, ::-1].T, color=NEUTRAL_STYLES[1][0], linewidth=0.8)
        for side in (root, -root):
            ax.plot(steps, side, color=INK, linewidth=2.4, linestyle="--")
        ax.annotate("√$d_k$", (steps[-1], root[-1]), xytext=(5, 0), textcoords="offset points", color=INK, va="center")
        ax.set(xlabel=r"entries counted so far, up to $d_k$", ylabel=r"$q \cdot k$ so far", xlim=(0, len(steps)))


def trainings(layers: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Show how the share of found items grows with the steps, in one line for each start; the middle start has the thick one.

    `layers`: for each layer and start the shares before the steps. Raises ValueError if there are no layers or more than four.
    """
    if not 0 < len(layers) <= len(NEUTRAL_STYLES):
        raise ValueError(f"layers must hold 1 to {len(NEUTRAL_STYLES)} of them; got {len(layers)}")
    ordered = {name: sorted(starts, key=len) for name, starts in layers.items()}
    said = "; ".join(f"{name}, after {len(starts[0]) - 1} to {len(starts[-1]) - 1} steps" for name, starts in ordered.items())
    count = len(next(iter(ordered.values())))
    alt = f"The share of queries that find their item, by step, from {count} starts of each layer, until it is more than 90 %: {said}."
    with picture(title="Equal lengths win back most of the delay", alt=alt, height=3.7) as (ax,):
        ax.axhline(0.9, color=INK, linestyle=":", linewidth=1.4)
        for (name, starts), (colour, dashes) in zip(ordered.items(), NEUTRAL_STYLES, strict=False):
            middle = len(starts) // 2
            for shares in (*starts[:middle], *starts[middle + 1 :]):
                ax.plot(shares, color=colour, linewidth=0.8, alpha=0.6)
            ax.plot(starts[middle], color=colour, linestyle=dashes, linewidth=2.6, label=name)
        room = 1.45 * max(len(starts[len(starts) // 2]) for starts in ordered.values())  # so that each name stands above its line
        ax.set(xlabel="step", ylabel="found", xlim=(0, room), ylim=(0, 1), yticks=[0, 0.5, 0.9], yticklabels=["0", "50 %", "90 %"])
        label_ends(ax)


def scale_explorable() -> None:
    """Sweep d_k over powers of two: histogram of the scores, softmax weights and norms of the Jacobian, with the scale and without."""
    publish_explorable(
        CARDS / "scale",
        "What 64 random queries make of 64 random keys, with and without the scale. Sliders for d_k, in powers of two from 1 to 1024, "
        "and for one of the queries; a button that sweeps. Charts: a histogram of 4096 scores, the 16 largest weights of the query, and, "
        "in a fold, the norm of the softmax Jacobian, all its slopes, against d_k, a dot for each query. Divided by the square root of d_k "
        "hardly anything changes; not divided, one key takes nearly all the weight, and more and more queries have a Jacobian near 0.",
    )


def machine() -> None:
    """Show the machine with the scale lit."""
    show_machine("scale")
