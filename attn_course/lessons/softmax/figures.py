"""Figures of the lesson softmax: the best compromise, covariances, a race, and the card."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_lines, each_of_shape, label_ends, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, MINUS_TINT, NEUTRAL_STYLES, PLUS_TINT, WEIGHTS
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed, number

CARDS = Path(__file__).parent / "explorables"
DOT = 900  # area in points squared of a dot with the weight 1


def compromise(share: ArrayLike, totals: Mapping[float, ArrayLike]) -> None:
    """Show score plus entropy over the weight of the second of two tokens, with the top of each curve.

    `share` (n,): that weight. `totals`, each (n,): p . z + T H(p) by price T.
    """
    at = as_numbers("share", share, 1)
    curves = each_of_shape("totals", {f"T = {T:g}": total for T, total in totals.items()}, len(at))
    tops = {name: int(curve.argmax()) for name, curve in curves.items()}
    title = "The dearer entropy is, the more the best weights share"
    said = listed([at[top] for top in tops.values()], 2)
    alt = f"Hills of the average score plus T times the entropy, for {', '.join(curves)}. Their tops lie at the shares {said}."
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        draw_lines(ax, at, curves)
        for name, top in tops.items():
            ax.plot(at[top], curves[name][top], "o", color=WEIGHTS, markersize=8, zorder=4)
        ax.set(xlabel="weight of the second token", ylabel="average score + T · entropy", xlim=(0, 1))
        label_ends(ax)


def race(paths: Mapping[str, Sequence[float]]) -> None:
    """Show how the weight of the right token grows with the steps. `paths`: that weight after each step, by name."""
    said = ", ".join(f"{name}: {len(path)} steps" for name, path in paths.items())
    alt = f"The weight of the right token by step, on a logarithmic axis, until it is a half. {said}."
    with picture(title="The squared error waits, and then jumps", alt=alt, height=4.2) as (ax,):
        for (name, path), (colour, dashes) in zip(paths.items(), NEUTRAL_STYLES, strict=False):
            steps = np.unique(np.geomspace(1, len(path), 200).round().astype(int))
            ax.plot(steps, np.take(path, steps - 1), color=colour, linestyle=dashes, label=name)
        ax.set(xlabel="steps", ylabel="weight of the right token", xscale="log", ylim=(0, 0.9))
        tick_decades(ax.xaxis)
        label_ends(ax)


def covariance(weights: ArrayLike, rates: ArrayLike, numbers: ArrayLike) -> None:
    """Show covariances under weights, one in each panel: each token a dot, with the rectangle between it and the two averages.

    `weights` (m, n): in each row weights that sum to 1. `rates` (n,), `numbers` (m, n): the two lists of each row. Raises ValueError if
    the shapes do not fit, or weights do not sum to 1.
    """
    p = as_numbers("weights", weights, 2)
    across, up = same_shape("rates", rates, p.shape[1]), same_shape("numbers", numbers, *p.shape)
    if abs(p.sum(axis=1) - 1.0).max() > 1e-9:
        raise ValueError(f"weights must sum to 1; got {listed(p.sum(axis=1), 3)}")
    averages = np.stack([p @ across, (p * up).sum(axis=1)], axis=1)
    areas = (across - averages[:, :1]) * (up - averages[:, 1:])
    totals = (p * areas).sum(axis=1)
    said = [
        f"Weights {listed(row)}: the cross is at {number(middle[0])} and {number(middle[1])}, the areas are {listed(found)}, and their "
        f"weighted average is {number(total)}."
        for row, middle, found, total in zip(p, averages, areas, totals, strict=True)
    ]
    title = f"The weighted average of the areas is the covariance: {listed(totals)}"
    alt = (
        f"{len(p)} panels with a dot for each token, at the rates {listed(across, 1)}, and rectangles from the dots to a cross of the "
        f"averages, negative at the upper left and the lower right. {' '.join(said)}"
    )
    with picture(title=title, alt=alt, height=3.7, columns=len(p), sharex=True, sharey=True) as axes:
        for ax, row, heights, middle, found in zip(axes, p, up, averages, areas, strict=True):
            _rectangles(ax, row, across, heights, (float(middle[0]), float(middle[1])), found)
            ax.set(title=f"weights {listed(row)}", xlabel="rate of the score")
        axes[0].set_ylabel("slope of the loss along the weight")


def _rectangles(ax: Axes, p: np.ndarray, across: np.ndarray, up: np.ndarray, middle: tuple[float, float], areas: np.ndarray) -> None:
    """Draw the dots of one model, the cross of the averages, and what lies between."""
    for one, x, y, area in zip(p, across, up, areas, strict=True):
        colour = PLUS_TINT if area >= 0 else MINUS_TINT
        ax.add_patch(Rectangle(middle, x - middle[0], y - middle[1], facecolor=colour, alpha=0.3, edgecolor=colour, linewidth=1.2))
        ax.scatter([x], [y], s=DOT * one, color=WEIGHTS, zorder=4, clip_on=False)
        above, left = y >= middle[1], x < across.mean()
        near = abs(x - middle[0]) < np.ptp(across) / 4  # the dotted line: the words stand beside it
        ax.annotate(
            f"{number(one)} × {number(area, 2 if abs(area) >= 0.005 else 4)}",
            (x, y),
            ha=("left" if left else "right") if near else "center",
            va="bottom" if above else "top",
            xytext=((5 if left else -5) if near else 0, 17 if above else -17),
            textcoords="offset points",
            fontsize=LABEL_POINTS,
        )
    ax.axvline(middle[0], color=INK, linewidth=1.0, linestyle=":")
    ax.axhline(middle[1], color=INK, linewidth=1.0, linestyle=":")
    ax.plot(*middle, "x", color=INK, markersize=9, markeredgewidth=2.5, zorder=5)
    ax.margins(0.3)
    ax.set_xticks(np.unique(across))
    ax.grid(visible=False)


def softmax_explorable() -> None:
    """Show four scores and a temperature as sliders, with weights, entropy, Jacobian and the norms of it and of J / T."""
    publish_explorable(
        CARDS / "softmax",
        "Sliders for four scores and a temperature; bars of the weights, their entropy, largest weight, Jacobian J, and the spectral norms "
        "of J and of J / T. Buttons set a uniform case, a tie, add 100 to all scores, and put all back.",
    )


def machine() -> None:
    """Show the machine with the softmax lit."""
    show_machine("softmax")
