"""Figures about a class, for a report that stands alone: they return the picture and its words instead of displaying them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator

from attn_course.figures.base import WIDTH_INCHES, Picture, course_look, photograph, titled
from attn_course.figures.narrow import NARROW_INCHES
from attn_course.figures.palette import GRID, INK, SCORES
from attn_course.figures.vector import vector

BELOW = str.maketrans("ijkn0123456789", "ᵢⱼₖₙ₀₁₂₃₄₅₆₇₈₉")
_BIN = 10  # percent
_LONGEST_LABEL = 52
_MOST_BARS = 10


def marks_distribution(percents: Sequence[float]) -> Picture:
    """Draw how many students reached which share of the points.

    `percents`: one number for each student, 0 to 100.
    """
    counts, _ = np.histogram(np.clip(percents, 0, 100), bins=np.arange(0, 100 + _BIN, _BIN))
    median = float(np.median(percents))
    fullest = int(counts.argmax())
    title = f"Half of the {len(percents)} students reach {median:.0f} % of the points or more"
    alt = (
        f"Histogram of {len(percents)} students by percent of the points, in steps of ten. The median is {median:.0f} %; "
        f"most, {counts[fullest]}, {_reach(counts[fullest], fullest)}. "
        f"In full: {', '.join(f'{count} {_reach(count, place)}' for place, count in enumerate(counts) if count)}."
    )
    if len(percents) == 1:
        title = f"The only student reaches {median:.0f} % of the points"
        alt = f"Histogram of 1 student by percent of the points, in steps of ten: {median:.0f} %."

    def draw(ax: Axes) -> None:
        bars = ax.bar(np.arange(len(counts)) * _BIN + _BIN / 2, counts, width=_BIN * 0.92, color=SCORES, alpha=0.5)
        ax.axvline(median, color=INK, linestyle="--", linewidth=1.4)
        for label in ax.bar_label(bars, labels=[str(count) if count else "" for count in counts], padding=3, zorder=4):
            _keep_clear(label, median)
        ax.annotate(f"median {median:.0f} %", (median, 1.0), (4, 2), xycoords=("data", "axes fraction"), textcoords="offset points")
        ax.set(
            xlabel="percent of the points",
            ylabel="students" if len(percents) > 1 else "student",
            xlim=(0, 100),
            ylim=(0, counts.max() * 1.18),
        )
        ax.set_xticks(range(0, 101, _BIN))
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))

    return _drawn(title, alt, 3.2, draw)


def hardest_tasks(names: Sequence[str], passed: Sequence[int], asked: Sequence[int]) -> Picture:
    """Draw which tasks the fewest passed of those who handed them in.

    `names`: all tasks, the hardest first; the first ten are drawn. `passed`, `asked`: in how many notebooks each was passed, and
    how many notebooks that hold it were handed in and graded.
    """
    names = [_spelled(name) for name in names]
    percents = [100 * right / all_ for right, all_ in zip(passed, asked, strict=True)]
    equal = sum(percent == percents[0] for percent in percents)
    shown = slice(_MOST_BARS)
    labels = [f"{right} of {all_}" for right, all_ in zip(passed, asked, strict=True)]
    if percents[0] == 100.0:
        title = "Whoever handed a notebook in passed all its tasks"
    elif equal == 1:
        where = f"passed in {passed[0]} of {asked[0]} notebooks" if asked[0] > 1 else "not passed in the only notebook"
        title = f"Hardest: task {names[0]}, {where}"
    else:
        which = f"all {equal}" if equal == len(names) else str(equal)
        title = f"Hardest: {which} tasks, each passed in {percents[0]:.0f} % of the notebooks"
    alt = (
        "Horizontal bars, the share of the notebooks handed in that passed each task, and how many these are, the hardest first"
        f"{_cut(names, 'tasks')}: {_said(names[shown], labels[shown])}"
    )
    axis = "percent of the notebooks that were handed in"
    return _bars(title, alt, names[shown], percents[shown], labels[shown], axis, 100.0)


def common_mistakes(names: Sequence[str], counts: Sequence[int]) -> Picture:
    """Draw which known mistakes were made most often.

    `names`: all mistakes, each with its task, the commonest first; the first ten are drawn. `counts`: how many students made each.
    """
    names = [_spelled(name) for name in names]
    equal = sum(count == counts[0] for count in counts)
    who = "1 student" if counts[0] == 1 else f"{counts[0]} students"
    title = f"Commonest mistake: {names[0]}, made by {who}" if equal == 1 else f"Commonest: {equal} mistakes, each made by {who}"
    shown = slice(_MOST_BARS)
    labels = [str(count) for count in counts]
    alt = (
        "Horizontal bars, how many students made each known mistake, the commonest first"
        f"{_cut(names, 'mistakes')}: {_said(names[shown], labels[shown])}"
    )
    return _bars(title, alt, names[shown], counts[shown], labels[shown], "students", max(counts))


def _keep_clear(label: Annotation, median: float) -> None:
    """Move the label of a bar to one side of the median's line if that would pass through it."""
    centre = float(label.xy[0])
    if abs(median - centre) < 1 + len(label.get_text()):  # in percent; a digit is about 1.5 wide
        left = median >= centre
        label.xy = (median, label.xy[1])
        label.set(horizontalalignment="right" if left else "left", x=-4 if left else 4)


def _bars(title: str, alt: str, names: Sequence[str], values: Sequence[float], labels: Sequence[str], axis: str, full: float) -> Picture:
    """Draw bars with their names beside them and, for a phone, above them."""

    def draw(ax: Axes, *, above: bool = False) -> None:
        places = np.arange(len(names))
        bars = ax.barh(places, values, height=0.4 if above else 0.7, color=SCORES, edgecolor=INK, linewidth=0.6)
        ax.bar_label(bars, labels=labels, padding=4)
        words = [_shortened(name) for name in names]
        ax.set_yticks(places, ["" if above else word for word in words], parse_math=False)
        for place, word in zip(places, words, strict=True):
            if above:
                ax.text(0, place - 0.25, word, verticalalignment="bottom", parse_math=False)
        ax.set_ylim(len(names) - 0.5, -0.5 - 0.3 * above)
        ax.grid(visible=False, axis="y")
        ax.grid(visible=True, axis="x", color=GRID)
        ax.tick_params(axis="y", length=0)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set(xlabel=axis, xlim=(0, full))
        ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))

    return _drawn(title, alt, 1.3 + 0.34 * len(names), draw, 1.6 + 0.52 * len(names))


def _drawn(title: str, alt: str, height: float, draw: Callable[..., None], slim: float = 0) -> Picture:
    """`slim`: the height of a form for a phone with the words above what they name, for words that have no room beside it."""
    with course_look():
        figure = titled(title, WIDTH_INCHES, height)
        draw(figure.subplots())
        drawn = photograph(figure, alt)
        if not slim:
            return drawn
        figure = titled(title, NARROW_INCHES, slim)
        draw(figure.subplots(), above=True)
        return replace(drawn, narrow=vector(figure))


def _reach(count: int, place: int) -> str:
    return f"reach{'es' if count == 1 else ''} {place * _BIN} to {(place + 1) * _BIN} %"


def _cut(names: Sequence[str], what: str) -> str:
    """What a figure leaves out."""
    return f" ({_MOST_BARS} of {len(names)} {what})" if len(names) > _MOST_BARS else ""


def _said(names: Sequence[str], labels: Sequence[str]) -> str:
    return "; ".join(f"{name}, {label}" for name, label in zip(names, labels, strict=True)) + "."


def _spelled(name: str) -> str:
    """Return a name of the course as a figure writes it: code without its marks, an index below its letter."""
    return re.sub(r"(?<=\b[A-Za-z])_([ijkn0-9])\b", lambda found: found[1].translate(BELOW), name.replace("`", ""))


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
