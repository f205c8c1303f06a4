"""How a figure stands on its page: flush left with the text around it, what is measured written level above, no room left below."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

PADDING_INCHES = 0.06  # words begin where those of the page begin, and may be a little wider than they are here
BETWEEN_INCHES = 0.14
ABOVE = 8.0  # points between a panel and the words above it
GAP = 6.0  # points between names side by side
LINE = 17.0  # points from one line of such words to the next
FULL, MOST_GROWN, HIGHEST_INCHES = (
    0.97,
    1.5,
    4.6,
)  # what square panels shall take of the width, for which they grow so many times, or so high


def settle(figure: Figure) -> None:
    """Lay a figure out. It may be called again for another size; what is drawn afterwards keeps to it."""
    panels = [panel for panel in figure.axes if panel.get_visible()]
    if not panels:
        return
    for panel in panels:
        panel.set_in_layout(True)  # which a place of its own has ended
        panel.set_anchor("NW")
    square = {panel.get_aspect() == "auto" for panel in panels} == {False}
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1, wspace=0.04, hspace=0.04, compress=square)
    layout.execute(figure)
    if square:
        _grow(panels, figure)
        layout.execute(figure)
    for panel in panels:
        _turn(panel)
    _level(panels, figure)
    layout.execute(figure)
    _push(panels, figure)


def _grow(panels: Sequence[Axes], figure: Figure) -> None:
    """Make a figure higher where square panels leave much of its width empty."""
    whole = Bbox.union([box for panel in panels if (box := panel.get_tightbbox())])
    high = max(panel.bbox.height for panel in panels) / figure.dpi
    more = min(FULL * figure.bbox.width / whole.width, MOST_GROWN, HIGHEST_INCHES / high)
    if more > 1:
        figure.set_figheight(figure.get_figheight() + (more - 1) * high)


def _turn(panel: Axes) -> None:
    """Turn the names of columns where they have no room side by side."""
    names = [name for name in panel.get_xticklabels() if name.get_visible() and name.get_text()]
    if not any(letter.isalpha() for name in names for letter in name.get_text()):
        return
    for name in names:
        name.set(rotation=0, ha="center", rotation_mode=None)
    places = [name.get_window_extent() for name in names]
    if any(left.x1 + GAP * panel.figure.dpi / 72 > right.x0 for left, right in pairwise(places)):
        for name in names:
            name.set(rotation=45, ha="right", rotation_mode="anchor")


def _level(panels: Sequence[Axes], figure: Figure) -> None:
    """Write what the vertical axes measure above their panels and below their titles, from where their numbers or names begin."""
    raised = False
    for panel in panels:
        axis = panel.yaxis
        if str(axis.get_label_position()) == "left" and axis.label.get_text() and panel.axison:
            names = [name.get_window_extent() for name in panel.get_yticklabels() if name.get_visible() and name.get_text()]
            room = max((panel.bbox.x0 - name.x0 for name in names), default=0.0)
            axis.label.set(rotation=0, ha="left", va="baseline")
            beside = ScaledTranslation(-room / panel.figure.dpi, ABOVE / 72, panel.figure.dpi_scale_trans)
            axis.set_label_coords(0.0, 1.0, transform=panel.transAxes + beside)
            raised |= bool(panel.get_title(loc="left"))
    figure.set_figheight(figure.get_figheight() + LINE / 72 * raised)
    for panel in panels:
        for title in (part for part in panel.get_children() if isinstance(part, Text) and part.get_text() == panel.get_title(loc="left")):
            panel.set_title(title.get_text(), loc="left", fontsize=title.get_fontsize(), pad=ABOVE + LINE * raised)
            break


def _push(panels: Sequence[Axes], figure: Figure) -> None:
    """Push the panels, now that they have their sizes, to the left and up to the title, and end the figure below them."""
    whole = Bbox.union([box for panel in panels if (box := panel.get_tightbbox())])
    (title,) = figure.texts
    pad, width, height = PADDING_INCHES * figure.dpi, figure.bbox.width, figure.bbox.height
    title.set(y=1 - pad / height, va="top")  # panels of one shape have drawn it to them
    left, up = whole.x0 - pad, title.get_window_extent().y0 - BETWEEN_INCHES * figure.dpi - whole.y1
    cut = round(whole.y0 + up - pad)
    places = [panel.get_position().transformed(figure.transFigure) for panel in panels]
    figure.set_size_inches(width / figure.dpi, (height - cut) / figure.dpi)
    for panel, place in zip(panels, places, strict=True):
        panel.set_position(place.translated(-left, up - cut).transformed(figure.transFigure.inverted()))
        panel.get_tightbbox()  # its words follow it
    title.set_y(1 - pad / (height - cut))
