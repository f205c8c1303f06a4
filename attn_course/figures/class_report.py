"""Figures about a class, for a report that stands alone: they return the picture and its words instead of displaying them."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attn_course.figures.base import DISPLAY_DPI, PADDING_INCHES, WIDTH_INCHES, Picture, course_look, render, require_alt, set_title
from attn_course.figures.palette import GRID, INK, REFERENCE, SCORES

_BIN = 10  # percent
_LONGEST_LABEL = 52


def marks_distribution(percents: Sequence[float]) -> Picture:
    """Draw how many students reached which share of the points.

    Parameters
    ----------
    percents : sequence of float
        One number for each student, 0 to 100.

    Returns
    -------
    picture : Picture
        A PNG with its words.
    """
    counts, _ = np.histogram(np.clip(percents, 0, 100), bins=np.arange(0, 100 + _BIN, _BIN))
    median = float(np.median(percents))
    fullest = int(counts.argmax())
    title = f"Half of the {len(percents)} students reach {median:.0f} % of the points or more"
    filled = [f"{count} reach {_range(place)}" for place, count in enumerate(counts) if count]
    alt = (
        f"Histogram of {len(percents)} students by percent of the points, in steps of ten. The median is {median:.0f} %; "
        f"most, {counts[fullest]}, reach {_range(fullest)}. In full: {', '.join(filled)}."
    )

    def draw(ax: Axes) -> None:
        bars = ax.bar(np.arange(len(counts)) * _BIN + _BIN / 2, counts, width=_BIN * 0.92, color=SCORES, edgecolor=INK, linewidth=0.6)
        ax.bar_label(bars, labels=[str(count) if count else "" for count in counts], padding=2)
        ax.axvline(median, color=INK, linestyle="--", linewidth=1.4)
        ax.annotate(f"median {median:.0f} %", (median, 1.0), (4, 2), xycoords=("data", "axes fraction"), textcoords="offset points")
        ax.set(xlabel="percent of the points", ylabel="students", xlim=(0, 100), ylim=(0, counts.max() * 1.18))
        ax.set_xticks(range(0, 101, _BIN))
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))

    return _drawn(title, alt, 3.2, draw)


def hardest_tasks(names: Sequence[str], percents: Sequence[float]) -> Picture:
    """Draw which tasks the fewest students passed.

    Parameters
    ----------
    names : sequence of str
        The tasks, the hardest first.
    percents : sequence of float
        Share of the class that passed each.

    Returns
    -------
    picture : Picture
        A PNG with its words.
    """
    title = f"Hardest: task {names[0]}, passed by {percents[0]:.0f} % of the class"
    alt = "Horizontal bars, the share of the class that passed each task, the hardest first: " + _said(names, percents, " %")
    return _drawn(title, alt, _height(names), lambda ax: _draw_bars(ax, names, percents, " %", "percent of the class that passed", 100.0))


def common_mistakes(names: Sequence[str], counts: Sequence[int]) -> Picture:
    """Draw which known mistakes were made most often.

    Parameters
    ----------
    names : sequence of str
        The mistakes, each with its task, the commonest first.
    counts : sequence of int
        How many notebooks hold each.

    Returns
    -------
    picture : Picture
        A PNG with its words.
    """
    title = f"Commonest mistake: {names[0]}, {counts[0]} time{'s' if counts[0] != 1 else ''}"
    alt = "Horizontal bars, how many notebooks hold each known mistake, the commonest first: " + _said(names, counts, "")
    return _drawn(title, alt, _height(names), lambda ax: _draw_bars(ax, names, counts, "", "notebooks", max(counts)))


def _draw_bars(ax: Axes, names: Sequence[str], values: Sequence[float], unit: str, label: str, full: float) -> None:
    places = np.arange(len(names))
    bars = ax.barh(places, values, height=0.7, color=SCORES, edgecolor=INK, linewidth=0.6)
    ax.bar_label(bars, labels=[f"{value:.0f}{unit}" for value in values], padding=4)
    ax.set_yticks(places, [_shortened(name) for name in names], parse_math=False)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=GRID)
    ax.tick_params(axis="y", length=0)
    ax.axvline(0.0, color=REFERENCE, linewidth=0.8)
    ax.set(xlabel=label, xlim=(0, full * 1.12))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _drawn(title: str, alt: str, height: float, draw: Callable[[Axes], None]) -> Picture:
    require_alt(alt)
    with course_look():
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=PADDING_INCHES, h_pad=0.1)  # type: ignore[union-attr, call-arg]
        set_title(figure, title)
        draw(figure.subplots())
        width_pixels, height_pixels = (round(float(inches) * DISPLAY_DPI) for inches in figure.get_size_inches())
        return Picture(render(figure), alt, width_pixels, height_pixels)


def _height(names: Sequence[str]) -> float:
    return 1.3 + 0.34 * len(names)


def _range(place: int) -> str:
    return f"{place * _BIN} to {(place + 1) * _BIN} %"


def _said(names: Sequence[str], values: Sequence[float], unit: str) -> str:
    return "; ".join(f"{name}, {value:.0f}{unit}" for name, value in zip(names, values, strict=True)) + "."


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
