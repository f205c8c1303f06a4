"""Figures of the lesson lookup: the way of a token, a card with a dial, and a river guessed from its other years."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_lines, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.paths import paths as paths
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, VALUE
from attn_course.figures.words import short

CARDS = Path(__file__).parent / "explorables"


def nile_guesses(years: ArrayLike, flow: ArrayLike, guesses: Mapping[str, ArrayLike]) -> None:
    """Show the flow of the Nile, and beside each other what was guessed for each year from all others, by the name of the width.

    `years`, `flow` (n,): in years and in 10^8 cubic metres. `guesses`, each (n,). Raises ValueError if lengths differ or there is none.
    """
    x = as_numbers("years", years, 1)
    values = same_shape("flow", flow, len(x))
    curves = each_of_shape("guesses", guesses, len(x))
    title = "A narrow bell guesses with the noise of two neighbours, a wide one flattens the change"
    alt = f"{len(x)} points, flow (10⁸ m³) against year, and a curve in each panel. " + " ".join(
        f"{name}: from {short(float(np.min(curve)))} to {short(float(np.max(curve)))}." for name, curve in curves.items()
    )
    with picture(title=title, alt=alt, height=3.3, columns=len(curves), sharey=True) as axes:
        for ax, (name, curve) in zip(axes, curves.items(), strict=True):
            ax.plot(x, values, "o", color=VALUE, markersize=3.2, markeredgecolor="none", alpha=0.75)
            draw_lines(ax, x, {name: curve}, colours={name: INK})
            ax.lines[-1].set_linewidth(1.6)
            ax.set(title=name, xlabel="year")
            ax.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axes[0].set_ylabel("flow (10⁸ m³)")


def lookup_explorable() -> None:
    """Show a query on the clock, moved by a slider, with weights and answer of a soft lookup."""
    publish_explorable(
        CARDS / "lookup",
        "Sliders move a query between 0 and 24 o'clock and the width of the similarity; the weights of four noted temperatures, the "
        "answer, the whole curve of answers and its range follow. Buttons put the query on a key, between keys and far from all, set a "
        "narrow and a wide similarity (at both, the answer hardly moves with the query), note the 9 o'clock pair twice, and put all back.",
    )


def machine() -> None:
    """Show the machine with queries, keys, values and their average lit."""
    show_machine("dictionary")
