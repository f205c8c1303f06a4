"""Ticks stand at the data, and say whole numbers and powers as a reader would write them."""

import itertools
import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from attn_course.figures.words import power

LONGEST_PLAIN = 8192  # larger powers of two are written as such
LEAST_WRITTEN, LARGEST_WRITTEN = 0.001, 100_000  # an axis that goes further has powers of ten
LETTER_INCHES = 0.095
GAP_INCHES = 0.14
PANELS = 0.62  # share of the width of a figure that its panels have, beside names and numbers


def tick_at(ax: Axes, positions: np.ndarray) -> None:
    """Put a tick under each position, or under every second or third up to the last, as the names have room.

    Large powers of two are written as powers. Call it when the limits of the axes are final.
    """
    ax.autoscale_view()
    width = PANELS * inches_for(ax)
    across = (ax.transData + ax.transAxes.inverted()).transform
    ticks = [(float(position), name, width * float(across((position, 1.0))[0])) for position, name in _named(positions)]
    kept = next(chosen for stride in itertools.count(1) if _fit(chosen := ticks[::-1][::stride][::-1]))
    names = {position: name for position, name, _ in kept}
    ax.xaxis.set_major_locator(FixedLocator([*names]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: names.get(value, "")))
    ax.xaxis.set_minor_locator(NullLocator())


def inches_for(ax: Axes) -> float:
    """Return the share of the width of a figure that one of its columns of panels has, names and numbers included."""
    place = ax.get_subplotspec()
    return float(ax.figure.bbox.width / ax.figure.dpi) / (place.get_gridspec().ncols if place else 1)


def tick_decades(axis: Axis) -> None:
    """Tick a logarithmic axis at powers of ten, with 2 and 5 between them where there are few."""
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    plain = decades <= 2.5 or (low >= LEAST_WRITTEN and high <= LARGEST_WRITTEN)
    axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if plain else power(10, round(math.log10(value)))))
    axis.set_minor_locator(NullLocator())


def double(ax: Axes, x: np.ndarray) -> None:
    """Let each doubling of x take the same room, with a tick at every x."""
    ax.set_xscale("log", base=2)
    tick_at(ax, x)


def doublings(x: np.ndarray) -> np.ndarray:
    """Return those of the numbers that are powers of two."""
    positive = x[x > 0]
    return positive[np.log2(positive) % 1 == 0]


def _named(positions: np.ndarray) -> list[tuple[float, str]]:
    places = np.unique(positions)
    if len(doublings(places)) == len(places) and places[-1] > LONGEST_PLAIN:
        return [(place, power(2, round(math.log2(place)))) for place in places]
    return [(place, f"{place:g}") for place in places]


def _fit(ticks: list[tuple[float, str, float]]) -> bool:
    pairs = itertools.pairwise(ticks)
    return all(right[2] - left[2] > LETTER_INCHES * (len(left[1]) + len(right[1])) / 2 + GAP_INCHES for left, right in pairs)
