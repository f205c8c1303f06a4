"""What a reader would mind in a drawn plot: pale ink, a ground of its own, clipped markers, ticks beside the data, curves without names."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from attn_course.figures.drawing import contrast
from attn_course.figures.palette import DARK, LIGHT
from attn_course.figures.vector import THEMED

DARK_PAGES = ("#111111", "#1C2128")
ON_A_CELL = 4.4  # black on brown, the darkest neutral colour, has 4.46


def faults(figure: Figure, pixels: np.ndarray) -> list[str]:
    """Say what is wrong with a figure that was just drawn as these pixels: (height, width, 4) uint8."""
    return [*_ground(pixels), *_pale_texts(figure, pixels), *_pale_curves(figure), *_clipped(figure), *_ticks(figure), *_unnamed(figure)]


def on_pages(colour: Any, ground: Any = "none") -> float:
    """Return the least contrast of a colour to a white page and to dark ones as the course shows them, or to a ground that tints them."""
    light, dark = THEMED.get(to_hex(colour), (colour, colour))
    *tint, share = to_rgba(ground)
    seen = [share * np.array(tint) + (1 - share) * np.array(to_rgb(page)) for page in ("white", *DARK_PAGES)]
    return min(contrast(light, seen[0]), *(contrast(dark, page) for page in seen[1:]))


def _ground(pixels: np.ndarray) -> Iterator[str]:
    edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    if edges[:, 3].any():
        yield "the picture has a ground of its own"


def _pale_texts(figure: Figure, pixels: np.ndarray) -> Iterator[str]:
    beyond = {id(text) for axes in figure.findobj(Axes) for text in _beyond_the_limits(axes)}
    for text in figure.findobj(Text):
        if id(text) in beyond or not text.get_text().strip() or not text.get_visible() or not _shown(text):
            continue
        if text.get_path_effects():
            least, wanted = contrast(text.get_color(), LIGHT), 4.5
        else:
            ground = _behind(text, pixels)
            least, wanted = on_pages(text.get_color(), ground), ON_A_CELL if ground[3] == 1 else 4.5
        if least < wanted:
            yield f"the text {text.get_text()!r} has a contrast of {least:.2f}"


def _beyond_the_limits(axes: Axes) -> Iterator[Text]:
    """Yield the labels of ticks that lie outside the panel, which are not drawn."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-6 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low - slack <= tick.get_loc() <= high + slack:
                yield from (tick.label1, tick.label2)


def _shown(text: Text) -> bool:
    axes = text.axes
    return axes is None or (axes.axison and axes.get_visible()) or text in axes.texts or text is axes.title


def _behind(text: Text, pixels: np.ndarray) -> np.ndarray:
    """Return the colour at the sides of a text, with its share; that is 0 if one of them shows the page alone."""
    box = text.get_window_extent()
    columns = np.clip([int(box.x0) - 2, int(box.x1) + 2], 0, pixels.shape[1] - 1)
    row = np.clip(int(len(pixels) - 1 - (box.y0 + box.y1) / 2), 0, len(pixels) - 1)  # names of a panel without axes may lie below it
    sides = pixels[row, columns] / 255
    return sides[sides[:, 3].argmin()]


def _pale_curves(figure: Figure) -> Iterator[str]:
    for line in _lines(figure):
        on_colour = to_hex(line.get_color()) in (DARK.lower(), LIGHT.lower())
        filled = bool(line.axes.images or line.axes.collections or line.axes.patches)
        if on_pages(to_rgb(line.get_color())) < 3 and not (on_colour and filled):
            yield f"the curve {line.get_label()!r} is pale on a page"


def _clipped(figure: Figure) -> Iterator[str]:
    for line in _lines(figure):
        if line.get_marker() in (None, "None", "", " "):
            continue
        points = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
        points = points[np.isfinite(points).all(axis=1)]
        room = figure.dpi / 72 * line.get_markersize() / 2 if line.get_clip_on() else -1.0
        box = line.axes.bbox
        low, high = np.array([box.x0, box.y0]) + room, np.array([box.x1, box.y1]) - room
        if ((points < low) | (points > high)).any():
            yield f"a marker of {line.get_label()!r} is clipped"


def _unnamed(figure: Figure) -> Iterator[str]:
    written = {" ".join(text.get_text().split()) for text in figure.findobj(Text)}
    for axes in figure.axes:
        named = [str(line.get_label()) for line in axes.lines if not str(line.get_label()).startswith("_")]
        for name in named:
            if len(named) > 1 and " ".join(name.split()) not in written:
                yield f"the curve {name!r} has its name nowhere"


def _ticks(figure: Figure) -> Iterator[str]:
    for axes in figure.axes:
        for text in [*axes.get_xticklabels(which="both"), *axes.get_yticklabels(which="both")]:
            if "times" in text.get_text() or "×" in text.get_text():
                yield f"the tick {text.get_text()!r} is no plain number"
        measured = [
            line for line in axes.lines if line.get_marker() == "o" and line.get_linestyle() != "None" and len(line.get_xdata()) > 2
        ]
        if measured and axes.axison:
            places = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in measured])
            low, high = axes.get_xlim()
            beside = [tick for tick in axes.get_xticks() if low <= tick <= high and not np.isclose(places, tick).any()]
            if beside:
                yield f"the ticks {beside} stand at no measured point"


def _lines(figure: Figure) -> Iterator[Line2D]:
    for axes in figure.axes:
        yield from (line for line in axes.lines if line.get_visible())
