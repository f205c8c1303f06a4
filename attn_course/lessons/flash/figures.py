"""Figures of the lesson flash: a machine's roof, what rounding costs, and the card of the tiles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, each_of_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import each_listed, listed, number

CARDS = Path(__file__).parent / "explorables"


def rooflines(points: Mapping[str, tuple[float, float]], *, peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> None:
    """Show the roof of a machine over arithmetic intensity, and where kernels stand beneath it.

    `points`: intensity in FLOPs per byte, and rate in FLOPs per second. `peak_flops_per_s`, `bandwidth_bytes_per_s`: the two
    roofs. Raises ValueError if there is no point, or a number is not positive.
    """
    numbers = [peak_flops_per_s, bandwidth_bytes_per_s, *(value for point in points.values() for value in point)]
    if not points or not all(value > 0 for value in numbers):
        raise ValueError(f"points and both roofs must be positive, and there must be a point; got {dict(points)}")
    ridge = peak_flops_per_s / bandwidth_bytes_per_s
    giga = 1e9
    alt = (
        f"Rate against intensity on logarithmic axes. The roof rises with {number(bandwidth_bytes_per_s / giga, 1)} GB/s up to "
        f"{number(ridge, 1)} FLOPs per byte and is level from there on at {number(peak_flops_per_s / giga, 0)} GFLOP/s. "
        + " ".join(f"{name}: {number(i, 1)} FLOPs per byte, {number(rate / giga, 1)} GFLOP/s." for name, (i, rate) in points.items())
    )
    intensities = np.array([point[0] for point in points.values()])
    title = "Eager attention stays far below the roof; without stored scores it comes much nearer"
    x = np.geomspace(min(intensities.min(), ridge) / 5, max(intensities.max(), ridge) * 4, 200)
    with picture(title=title, alt=alt, height=4.1) as (ax,):
        ax.plot(x, np.minimum(peak_flops_per_s, x * bandwidth_bytes_per_s) / giga, color=INK, linewidth=2.4)
        ax.axvline(ridge, color=INK, linestyle=":", linewidth=1.3)
        along: dict[str, Any] = {"textcoords": "offset points", "fontsize": LABEL_POINTS}
        steep: dict[str, Any] = {"rotation_mode": "anchor", "transform_rotates_text": True}
        middle, above = np.sqrt(x[0] * ridge), 1.18 * bandwidth_bytes_per_s / giga
        angle = np.degrees(np.arctan(above))
        ax.text(middle, middle * above, "memory", ha="center", rotation=angle, fontsize=LABEL_POINTS, **steep)
        ax.annotate("arithmetic", (np.sqrt(ridge * x[-1]), peak_flops_per_s / giga), xytext=(0, 5), ha="center", **along)
        ax.annotate(number(ridge, 1), (ridge, 0), xycoords=("data", "axes fraction"), xytext=(5, 6), **along)
        markers = ("o", "s", "^", "D", "v", "P")
        for index, (name, (intensity, rate)) in enumerate(points.items()):
            colour = NEUTRAL_STYLES[index % len(NEUTRAL_STYLES)][0]
            look: dict[str, Any] = {"color": colour, "marker": markers[index % len(markers)], "clip_on": False}
            ax.scatter(intensity, rate / giga, s=70, zorder=3, **look)
            low, left = intensity < ridge, intensity < ridge or intensity > np.sqrt(x[0] * x[-1])  # not across the dotted line
            beside: dict[str, Any] = {"xytext": (-9 if left else 9, 0), "ha": "right" if left else "left"}
            ax.annotate(name.replace(", ", ",\n") if low else name, (intensity, rate / giga), va="center", **beside, **along)
        ax.set(xscale="log", yscale="log", xlabel="arithmetic intensity (FLOPs per byte)", ylabel="GFLOP/s", xlim=(x[0], x[-1]))
        ax.set_ylim(bottom=min(rate for _, rate in points.values()) / giga / 1.6)
        tick_decades(ax.xaxis)
        tick_decades(ax.yaxis)


def float16_errors(errors: Mapping[str, ArrayLike], spreads: ArrayLike) -> None:
    """Show the relative error of attention in float16, computed in several ways, as bars in units of 0.0001.

    `errors`, each (n,): relative errors by the name of the way. `spreads` (n,): standard deviations of the scores. Raises
    ValueError if a way has another number of errors, or there is none.
    """
    deviations = as_numbers("spreads", spreads, 1)
    heights = {way.removeprefix("float16, "): 1e4 * found for way, found in each_of_shape("errors", errors, len(deviations)).items()}
    charts.bars(
        [f"{deviation:.0f}" for deviation in deviations],
        heights,
        title="In float16 tiles are more exact than stored scores, if their state is float32",
        alt=f"Bars of the relative error of float16, in units of 0.0001, for scores of standard deviation {listed(deviations, 0)}. "
        f"{each_listed(heights, 1)}",
        x_label="deviation of scores",
        y_label="relative error / 0.0001",
        digits=1,
    )


def tiles_explorable() -> None:
    """Let a tile walk over the scores: HBM beside the chip, what is kept for each row, and bytes racing those of plain attention."""
    publish_explorable(
        CARDS / "tiles",
        "How can one tile at a time give the same output and move fewer bytes? Sliders for the step and for the queries and keys in a "
        "tile; buttons that play, step and set a causal mask, whose hidden tiles are skipped. One picture shows HBM with Q, K, V, the "
        "rows of O and L written so far and where the tile is; another the chip with its tile of Q, K, V and scores, and maximum, sum "
        "and accumulator of each row. Bars show the bytes moved, those of plain attention, and those held on the chip.",
    )


def machine() -> None:
    """Show the machine with the tables that plain attention stores lit."""
    show_machine("square-matrices")
