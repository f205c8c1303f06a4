"""How a figure reaches the reader: as a picture, as text that is compared, and in words beneath it."""

import html
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.display import display
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from attn_course.figures.narrow import NARROW_INCHES, squeezed
from attn_course.figures.palette import GRID, INK
from attn_course.figures.settle import PADDING_INCHES, settle
from attn_course.figures.vector import vector

WIDTH_INCHES = 7.5
PHONE = "ATTN_COURSE_PHONE"  # "no" where outputs are only compared: what a phone is shown stands beside them

LOOK = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.75,
    "axes.linewidth": 0.8,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.75,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10.75,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.color": INK,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 10.75,
    "xtick.major.pad": 5.0,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.labelsize": 10.75,
    "ytick.major.pad": 5.0,
    "ytick.major.size": 0,
}


def require_text(argument: str, text: str, words: int) -> str:
    """Return `text`, or say what is missing when it is too short to help anyone.

    `text`: one line of prose. `words`: the fewest words that can do its job. Raises ValueError if `text` holds fewer than `words`
    words or a line break.

    >>> require_text("title", "Only exp ignores a shift", 3)
    'Only exp ignores a shift'
    """
    got = len(text.split())
    if got < words:
        raise ValueError(f"{argument} must be a text of at least {words} words; got {got}: {text!r}")
    if len(text.splitlines()) > 1:
        raise ValueError(f"{argument} must be one line; got {len(text.splitlines())} lines: {text!r}")
    return text


def require_title(title: str) -> str:
    """Return `title` if it is long enough to state a finding (three words)."""
    return require_text("title", title, 3)


def require_alt(alt: str) -> str:
    """Return `alt` if it is long enough to stand in for the picture (eight words)."""
    return require_text("alt", alt, 8)


@dataclass(frozen=True)
class Picture:
    """An SVG with its words: what a notebook shows, and what a plain interpreter prints."""

    svg: str
    alt: str
    narrow: str = ""  # the same for a phone, where there is room for its words

    def __repr__(self) -> str:
        """Return the words, which are all that a text terminal can show."""
        return f"[figure] {self.alt}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/svg+xml": self.svg, "text/plain": repr(self)}, {"image/svg+xml": {"alt": self.alt, "narrow": self.narrow}}


@dataclass(frozen=True)
class Words:
    """The same words as a folded line, because front ends do not show the alternative text of a picture."""

    alt: str

    def __repr__(self) -> str:
        """Return the folded line closed, because the picture before it prints as its words."""
        return "Figure in words (folded)"

    def _repr_html_(self) -> str:
        return f"<details><summary>Figure in words</summary><p>{html.escape(self.alt)}</p></details>"


@contextmanager
def course_look() -> Iterator[None]:
    """Draw with the course's settings, whatever the reader has set, and give the reader's settings back."""
    with style.context(["default", LOOK]):
        yield


def publish(figure: Figure, alt: str) -> None:
    """Show a figure: the picture with its alternative text, then a folded line "Figure in words".

    The text goes to three places: the metadata of the picture, its text/plain form "[figure] ..." (which nbval
    compares, so a figure that says something else fails the test), and the folded line.

    `figure`: a figure with a suptitle that states the finding. It is emptied afterwards. `alt`: what the picture shows, in at
    least eight words on one line. Raises ValueError if `alt` is too short, or the figure has no title of at least three words.
    """
    taken = photograph(figure, alt)
    figure.clear()
    display(taken)
    display(Words(alt))


def photograph(figure: Figure, alt: str) -> Picture:
    """Return a figure as a picture with its words, and make it as narrow as a phone.

    Raises ValueError if `alt` is too short, or the figure has no title of at least three words.
    """
    require_alt(alt)
    title = require_title(figure.get_suptitle().replace("\n", " "))
    with course_look():
        settle(figure)
        wide = vector(figure)
        if os.environ.get(PHONE) == "no":
            return Picture(wide, alt)
        set_title(figure, title, NARROW_INCHES)
        return Picture(wide, alt, squeezed(figure))


def titled(title: str, width: float, height: float) -> Figure:
    """Return a figure that holds nothing but its title."""
    figure = Figure(figsize=(width, height))
    set_title(figure, title, width)
    return figure


def set_title(figure: Figure, title: str, width: float) -> None:
    """Write the finding above the panels, flush left, in as few lines as fit a sheet of so many inches and these of similar length."""
    title = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", require_title(title))
    text = figure.suptitle(title, x=PADDING_INCHES / width, ha="left", fontsize=12.25, fontweight="bold", linespacing=1.25)
    room = (width - 2 * PADDING_INCHES) * figure.dpi
    one_line = text.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width
    longest = max(10, int(0.94 * len(title) * room / one_line))  # letters differ in width: leave some room
    count = len(textwrap.wrap(title, longest))
    narrowest = next(width for width in range(10, longest + 1) if len(textwrap.wrap(title, width)) == count)
    text.set_text(textwrap.fill(title, narrowest))


@contextmanager
def picture(
    *, title: str, alt: str, width: float = WIDTH_INCHES, height: float = 3.6, rows: int = 1, columns: int = 1, **subplots: Any
) -> Iterator[list[Axes]]:
    """Open a figure with its title and panels, and publish it when the block ends.

    `title`: the finding, at least three words on one line. `alt`: what the picture shows, at least eight words on one line.
    `width`, `height`: size in inches. `**subplots`: passed to `Figure.subplots`, e.g. `sharex=True`. Yields the panels, row by
    row. Raises ValueError if `title` or `alt` is too short; nothing is drawn then.
    """
    require_title(title)
    require_alt(alt)
    with course_look():
        figure = titled(title, width, height)
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
        yield list(np.ravel(axes))
        publish(figure, alt)
