"""The same figure for a phone: drawn anew on a narrow sheet with letters of the same size, where its words have room on that."""

import itertools
import warnings
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from attn_course.figures.vector import vector

NARROW_INCHES = 4.2
TALLER = 1.1  # a panel that gets narrower stays a panel
LEAST_PANEL = 0.8  # inches


def squeezed(figure: Figure) -> str:
    """Give a figure the width of a phone, and return it as SVG, or nothing where its words collide or its panels cannot be read."""
    width, height = (float(side) for side in figure.get_size_inches())
    figure.set_size_inches(min(width, NARROW_INCHES), max(height, min(height * TALLER, NARROW_INCHES)))
    with warnings.catch_warnings(record=True) as crowded:
        warnings.simplefilter("always")  # a layout that finds no room says so
        figure.draw_without_rendering()
    if crowded or any(min(panel.bbox.width, panel.bbox.height) < LEAST_PANEL * figure.dpi for panel in figure.axes if panel.axison):
        return ""
    boxes = [text.get_window_extent().padded(-1) for text in _words(figure)]
    whole = all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)
    collide = any(Bbox.intersection(one, other) for one, other in itertools.combinations(boxes, 2))
    return vector(figure) if whole and not collide else ""


def _words(figure: Figure) -> Iterator[Text]:
    beyond = {id(label) for panel in figure.findobj(Axes) for label in _labels_beyond(panel)}
    for text in figure.findobj(Text):
        panel = text.axes
        shown = panel is None or panel.axison or text in panel.texts or text is panel.title
        if id(text) not in beyond and text.get_visible() and text.get_text().strip() and shown:
            yield text


def _labels_beyond(panel: Axes) -> Iterator[Text]:
    """Yield the labels of ticks outside the limits, which are not drawn."""
    for axis in (panel.xaxis, panel.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low - 1e-6 * (high - low) <= tick.get_loc() <= high + 1e-6 * (high - low):
                yield from (tick.label1, tick.label2)
