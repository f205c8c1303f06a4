"""Figures of the lesson scaling: how far scores are spread, and what that does to the weights and to training."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES
from attn_course.figures.words import number

CARDS = Path(__file__).parent / "explorables"


def trial(runs: Mapping[str, ArrayLike]) -> None:
    """Show two shares of the queries from step to step: those that find their item, and those that are silent though they do not.

    `runs`, each (steps + 1, 2): both shares before the first step and after each, by the name of the layer.
    """
    tables = {name: as_numbers("runs", run, 2) for name, run in runs.items()}
    said = "; ".join(
        f"{name}, after {len(table) - 1} steps: {number(table[-1, 0])}, with {number(table[:, 1].max())} silent though wrong at most"
        for name, table in tables.items()
    )
    alt = f"Two panels by step, a curve for each layer: the shares of queries that are right, and silent though wrong. {said}."
    with picture(
        title="Without the root queries fall silent; with these heard, the layer learns sooner", alt=alt, height=4.8, rows=2, sharex=True
    ) as panels:
        for part, (ax, what) in enumerate(zip(panels, ("right", "silent though wrong"), strict=True)):
            for (name, table), (colour, dashes) in zip(tables.items(), NEUTRAL_STYLES, strict=False):
                ax.plot(np.arange(len(table)), table[:, part], color=colour, linestyle=dashes, label=name, clip_on=False)
            ax.set(ylabel=f"share of queries that are {what}", xlim=(0, max(map(len, tables.values())) - 1), ylim=(0, (1.25, 0.3)[part]))
            ax.set_yticks(((0, 0.5, 1), (0, 0.1, 0.2, 0.3))[part])
        label_ends(panels[0])
        panels[-1].set_xlabel("steps")


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


def scale_explorable() -> None:
    """Sweep d_k over powers of two: histogram of the scores, softmax weights and norms of the Jacobian, with the scale and without."""
    publish_explorable(
        CARDS / "scale",
        "What 64 random queries make of 64 random keys, with and without the scale. Sliders for d_k, in powers of two from 1 to 1024, "
        "and for one of the queries; a button that sweeps. Charts: a histogram of 4096 scores, the 16 largest weights of the query, and "
        "the norm of the softmax Jacobian, all its slopes, against d_k, a dot for each query. Divided by the square root of d_k hardly "
        "anything changes; not divided, one key takes nearly all the weight, and more and more queries have a Jacobian near 0.",
    )


def machine() -> None:
    """Show the machine with the scale lit."""
    show_machine("scale")
