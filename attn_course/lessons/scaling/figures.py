"""Figures of the lesson scaling: how far scores are spread, and what that does to the weights and to a query's gradient."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, each_of_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, QUERY, SCORES, WEIGHTS
from attn_course.figures.words import number

CARDS = Path(__file__).parent / "explorables"
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "color": QUERY, "linewidth": 2.0, "shrinkA": 0, "shrinkB": 0}


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


def loud_and_silent(ways: Mapping[str, ArrayLike]) -> None:
    """Show one query in several ways: its scores, its weights, and as arrows where a step pulls its scores.

    `ways`, each (3, n): scores, that of the right key first, weights, and the slopes of the loss along the scores.
    """
    n = np.shape(next(iter(ways.values())))[-1]
    pairs = each_of_shape("ways", ways, 3, n)
    said = []
    for name, (scores, weights, slopes) in pairs.items():
        lead = scores.argmax()
        said.append(
            f"{name}: the right key, 0, has the weight {number(weights[0], 3)} and the arrow {number(-slopes[0], 3)}; the leader, key "
            f"{lead}, has the weight {number(weights[lead], 3)} and the arrow {number(-slopes[lead], 3)}."
        )
    alt = f"Scores, weights and arrows of one query over its {n} keys, 0 to {n - 1}. {' '.join(said)}"
    reach = 1.15 * max(abs(slopes).max() for _, _, slopes in pairs.values())
    with picture(
        title="Near a weight of 1, hardly any pull is left", alt=alt, height=4.6, rows=3, columns=len(pairs), sharex=True, sharey="row"
    ) as axes:
        for column, (name, (scores, weights, slopes)) in enumerate(pairs.items()):
            above, middle, below = axes[column :: len(pairs)]
            above.set_title(name)
            above.bar(range(n), scores, color=SCORES)
            middle.bar(range(n), weights, color=WEIGHTS)
            middle.set(ylim=(0, 1))
            for at, slope in enumerate(slopes):
                below.plot(at, 0, ".", color=QUERY, markersize=4)
                if abs(slope) > reach / 10:  # a shorter arrow is all head
                    below.annotate("", (at, -slope), (at, 0), arrowprops=ARROW)
            below.set(ylim=(-reach, reach), xticks=[0, scores.argmax()], xticklabels=["right", "wrong"])
            for panel in (above, below):
                panel.axhline(0, color=INK, linewidth=0.8)
                panel.spines.bottom.set_visible(False)
        for panel, name in zip(axes[:: len(pairs)], ("score", "weight", "pull, −g"), strict=True):
            panel.set_ylabel(name)


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
