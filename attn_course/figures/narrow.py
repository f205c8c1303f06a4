"""The same figure for a phone: drawn anew on a narrow sheet with letters of the same size, where its words have room on that."""

import itertools
import warnings
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from attn_course.figures.settle import settle
from attn_course.figures.vector import vector

NARROW_INCHES = 4.2
TALLER = 1.1  # a panel that gets narrower stays a panel
LEAST_PANEL = 1.2, 0.7  # inches
MOST_COLUMNS = 2  # of a panel so wide, with its numbers
MOST_OF_WORDS = 1 / 3  # of the width of one of two panels beside each other


def squeezed(figure: Figure) -> str:
    """Give a figure the width of a phone, its panels in as few columns as they need, and return it as SVG.

    Returns nothing where its words collide, or its panels cannot be read.
    """
    width, height = (float(side) for side in figure.get_size_inches())
    panels = [panel for panel in figure.axes if panel.axison]
    rows, columns = next((place.get_gridspec().get_geometry() for panel in panels if (place := panel.get_subplotspec())), (1, 1))
    for fewer in range(min(columns, MOST_COLUMNS), 0, -1):
        stacked = max(1, -(-len(panels) // fewer))
        figure.set_size_inches(min(width, NARROW_INCHES), max(height, min(height * TALLER, NARROW_INCHES)))
        if fewer < columns:
            figure.set_figheight(stacked * min(height / rows, 1.4 + 0.7 * NARROW_INCHES / fewer))
            _stack(figure, panels, stacked, fewer)
        with warnings.catch_warnings(record=True) as crowded:
            warnings.simplefilter("always")  # a layout that finds no room says so
            settle(figure)
        if not crowded and _can_be_read(figure, panels) and (fewer == 1 or all(map(_has_room, panels))):
            return vector(figure)
    return ""


def _stack(figure: Figure, panels: Sequence[Axes], rows: int, columns: int) -> None:
    """Put the panels into another grid; names and numbers, and what they are, go to its left and below each."""
    grid = figure.add_gridspec(rows, columns)
    upright, level = ({axis.label.get_text() for axis in axes} - {""} for axes in zip(*((p.yaxis, p.xaxis) for p in panels), strict=True))
    for at, panel in enumerate(panels):
        first = at % columns == 0
        panel.set_subplotspec(grid[at // columns, at % columns])
        panel.tick_params(labelleft=first or panel.yaxis.get_tick_params()["labelleft"], labelbottom=True)
        if len(upright) == 1:
            panel.yaxis.label.set_text(min(upright) if first else "")
        if len(level) == 1:
            panel.xaxis.label.set_text(min(level))


def _can_be_read(figure: Figure, panels: Sequence[Axes]) -> bool:
    if any(side < least * figure.dpi for panel in panels for side, least in zip(panel.bbox.size, LEAST_PANEL, strict=True)):
        return False
    figure.draw_without_rendering()  # a legend finds its place as it is drawn
    words = [text for text in _words(figure) if text.get_rotation() % 90 == 0]  # the others lean on each other
    boxes = [text.get_window_extent().padded(-1) for text in words]
    whole = all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)
    return whole and not any(Bbox.intersection(one, other) for one, other in itertools.combinations(boxes, 2))


def _has_room(panel: Axes) -> bool:
    inside = [box for text in panel.texts if panel.bbox.overlaps(box := text.get_window_extent()) and panel.bbox.contains(box.x0, box.y0)]
    return all(box.width <= MOST_OF_WORDS * panel.bbox.width for box in inside)


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
