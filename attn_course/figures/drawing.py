"""Parts that charts are made of; each draws on one panel and publishes nothing."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm, to_rgb
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D
from numpy.typing import ArrayLike

from attn_course.figures.palette import DARK, GRID, INK, INK_IN_CELL, LIFT, LIGHT, MINUS_TINT, NEUTRAL_STYLES, PALE, PLUS_TINT, WEIGHT_TINT
from attn_course.figures.settle import ABOVE
from attn_course.figures.ticks import inches_for
from attn_course.figures.words import number

MOST_ANNOTATED_CELLS = 100
LABEL_POINTS = 10.75  # 15 pixels at the width of a page
CELL_POINTS = 9.5  # of letters that are at least 11 pixels high on a phone
POINTS_PER_INCH = 72
PANEL_SHARE = 0.7  # height of a panel over that of its figure
TINTS = LinearSegmentedColormap.from_list("weights", [(WEIGHT_TINT, 0.0), WEIGHT_TINT])
SIGNED_TINTS = LinearSegmentedColormap.from_list(
    "signed", [(0.0, MINUS_TINT), (0.5, (MINUS_TINT, 0.0)), (0.5, (PLUS_TINT, 0.0)), (1.0, PLUS_TINT)]
)
LEADER_LINE: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (1, 2))}
LEADER = LEADER_LINE | {"label": "_leader"}
LETTER = 0.1  # inches that a letter of a name takes
ON_COLOUR: dict[str, Any] = {  # how words are written on a coloured ground
    "color": DARK,
    "fontsize": LABEL_POINTS,
    "bbox": {"boxstyle": "round,pad=0.25", "facecolor": LIGHT, "edgecolor": "none", "alpha": 0.9},
}


def as_numbers(argument: str, values: ArrayLike, ndim: int) -> np.ndarray:
    """Return `values` as a float64 array with `ndim` axes, or say what came instead.

    Raises ValueError if the number of axes differs or an axis has length 0.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{argument} must have {ndim} axes, none of them empty; got shape {array.shape}")
    return array


def same_shape(argument: str, values: ArrayLike, *shape: int) -> np.ndarray:
    """Return `values` as a float64 array of that shape, or say what came instead.

    Raises ValueError if the shape is another one.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{argument} must have shape {shape}; got {array.shape}")
    return array


def each_of_shape(argument: str, arrays: Mapping[str, ArrayLike], *shape: int) -> dict[str, np.ndarray]:
    """Return the arrays by name, each as `same_shape` does.

    Raises ValueError if there is none, or one has another shape.
    """
    if not arrays:
        raise ValueError(f"{argument} must hold at least one array of shape {shape}; got none")
    return {name: same_shape(f"{argument}[{name!r}]", values, *shape) for name, values in arrays.items()}


def colour_scale(visible: np.ndarray, signed: bool, limits: tuple[float, float] | None) -> Normalize:
    """Return how numbers become colours: from 0 or the minimum, or centred at zero."""
    finite = visible[~np.isnan(visible)]
    low, high = limits or (float(finite.min(initial=0.0)), float(finite.max(initial=0.0)))
    if signed:
        reach = max(abs(low), abs(high)) or 1.0
        return TwoSlopeNorm(0.0, vmin=-reach, vmax=reach)
    return Normalize(low, high if high > low else low + 1.0)


def draw_heatmap(
    ax: Axes,
    matrix: np.ndarray,
    *,
    mask: np.ndarray | None = None,
    signed: bool = False,
    limits: tuple[float, float] | None = None,
    annotate: bool | None = None,
    digits: int = 2,
) -> AxesImage:
    """Draw the cells of a matrix; hatch those where `mask` is False.

    Raises ValueError if `mask` has another shape, or a cell that is not masked is not finite.
    """
    allowed = np.ones(matrix.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if allowed.shape != matrix.shape:
        raise ValueError(f"mask must have the shape of the matrix {matrix.shape}; got {allowed.shape}")
    if not np.isfinite(matrix[allowed]).all():
        row, column = np.argwhere(allowed & ~np.isfinite(matrix))[0]
        raise ValueError(f"matrix must be finite wherever the mask allows; got {matrix[row, column]} at row {row}, column {column}")
    visible = np.where(allowed, matrix, np.nan)
    scale = colour_scale(visible, signed, limits)
    image = ax.imshow(visible, cmap=SIGNED_TINTS if signed else TINTS, norm=scale, interpolation="nearest")
    ax.grid(False)
    ax.spines[:].set(visible=True, color=GRID)
    ax.tick_params(length=0)
    hatch_cells(ax, ~allowed)
    if annotate if annotate is not None else matrix.size <= MOST_ANNOTATED_CELLS:
        for row, column in np.argwhere(allowed):
            text = number(float(matrix[row, column]), digits)
            ax.text(column, row, text, ha="center", va="center", color=INK_IN_CELL, fontsize=CELL_POINTS)
    return image


def hatch_cells(ax: Axes, masked: np.ndarray) -> None:
    """Cover the marked cells with stripes, so that "hidden" is not mistaken for "small"."""
    few = masked.size <= MOST_ANNOTATED_CELLS
    cells = []
    for row, line in enumerate(masked):
        turns = np.flatnonzero(np.diff(line, prepend=False, append=False))
        runs = [(column, column + 1) for column in np.flatnonzero(line)] if few else zip(turns[::2], turns[1::2], strict=True)
        places = (Affine2D().scale(float(end - at), 1.0).translate(at - 0.5, row - 0.5) for at, end in runs)
        cells += [Path.unit_rectangle().transformed(place) for place in places]
    if cells:
        border = 0.4 if few else 0.0
        outline = Path.make_compound_path(*cells)  # one patch: thousands of hatched ones take seconds
        ax.add_patch(PathPatch(outline, facecolor="none", edgecolor=PALE, hatch="///", linewidth=border))


def contrast(first: Any, second: Any) -> float:
    """Return the contrast ratio of two colours, from 1 (the same) to 21 (black on white).

    Web Content Accessibility Guidelines 2.2, "contrast ratio" and "relative luminance". Text should reach 4.5, lines 3.

    >>> round(contrast("white", "black"), 6)
    21.0
    """
    luminances = []
    for colour in (first, second):
        channels = np.array(to_rgb(colour))
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        luminances.append(float(linear @ np.array([0.2126, 0.7152, 0.0722])))
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


def lifted(colour: Any) -> np.ndarray:
    """Return the red, green and blue of a colour as a dark page of the course shows it."""
    return LIFT + (1.0 - LIFT) * np.array(to_rgb(colour))


def draw_bars(ax: Axes, lengths: np.ndarray, names: Sequence[str], colours: Sequence[Any], *, digits: int | None = 2) -> None:
    """Draw groups of level bars, the first group above, where each of several has its name; `lengths` is (series, groups).

    Numbers are written at their ends, unless `digits` is None: then below the panel.
    """
    series, groups = lengths.shape
    width = 0.76 / series
    for index, (row, colour) in enumerate(zip(lengths, colours, strict=True)):
        drawn = ax.barh(np.arange(groups) - 0.38 + (index + 0.5) * width, row, width * 0.86, color=colour)
        said = [number(value, digits) if digits is not None else "" for value in row]
        said[0] += f"  {names[index]}" if series > 1 else ""
        ax.bar_label(drawn, said, padding=4, fontsize=LABEL_POINTS)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_ylim(groups - 0.5, -0.5)
    ax.margins(x=0.0)
    ax.grid(visible=digits is None, axis="x")
    ax.grid(visible=False, axis="y")
    ax.spines.bottom.set_visible(False)
    ax.tick_params(axis="x", labelbottom=digits is None)


def draw_lines(
    ax: Axes,
    x: np.ndarray,
    series: Mapping[str, np.ndarray],
    *,
    colours: Mapping[str, str] | None = None,
    points: bool = False,
) -> None:
    """Draw one curve per entry; curves without a given colour take the neutral colours, each with its own dashes."""
    for index, (name, values) in enumerate(series.items()):
        neutral, dashes = NEUTRAL_STYLES[index % len(NEUTRAL_STYLES)]
        colour = (colours or {}).get(name, neutral)
        look: dict[str, Any] = {"marker": "o", "markersize": 4.5, "clip_on": False} if points else {}
        ax.plot(x, values, color=colour, linestyle=dashes, label=name, **look)
    if points:
        ax.margins(x=0.02)


def draw_level(ax: Axes, x: np.ndarray, level: float, name: str | None = None) -> None:
    """Draw a dotted level from the first x to the last."""
    ax.plot(x[[0, -1]], [level, level], color=INK, linestyle=":", linewidth=1.4, label=name)


def add_colour_bar(image: ScalarMappable, axes: Axes | Sequence[Axes], label: str, **options: Any) -> None:
    """Say beside one panel, or the last of several, what the colours measure, in a bar as high as the panel."""
    panels = [axes] if isinstance(axes, Axes) else list(axes)
    if "location" in options:
        bar = panels[-1].figure.colorbar(image, ax=axes, label=label, **options)
    else:
        pad, width = (options.pop(name, usual) * len(panels) for name, usual in (("pad", 0.03), ("fraction", 0.05)))
        bar = panels[-1].figure.colorbar(image, cax=panels[-1].inset_axes((1.0 + pad, 0.0, width, 1.0)), **options)
        bar.ax.set_title(label, fontsize=LABEL_POINTS, fontweight="normal", pad=ABOVE)
        if not options:
            bar.locator = MaxNLocator(nbins=4)
    bar.outline.set_visible(False)


def count_cells(ax: Axes, shape: tuple[int, ...]) -> None:
    """Write the number of each row and column, from 0."""
    ax.set_yticks(range(shape[0]))
    ax.set_xticks(range(shape[1]))


def label_ends(ax: Axes) -> None:
    """Write each curve's name at its right end, pushed apart where they would overlap.

    Where ends meet, a piece of its curve stands before each name. A curve that ends early has its name above its end; one that has no
    room beside the next name stands above that, where no other curve runs through it.

    Call it when the limits of the axes are final.
    """
    ax.autoscale_view()
    curves = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    to_panel = ax.transData + ax.transAxes.inverted()
    ends = []
    for curve in curves:
        data = np.column_stack([np.asarray(values, dtype=np.float64) for values in curve.get_data()])
        ends.append(to_panel.transform(data[np.isfinite(data).all(axis=1)][-1]))
    heights = np.clip([end[1] for end in ends], 0.0, 1.0)
    panel_inches = PANEL_SHARE * ax.figure.bbox.height / ax.figure.dpi
    gap = 1.35 * LABEL_POINTS / POINTS_PER_INCH / panel_inches
    late = [at for at, end in enumerate(ends) if end[0] > 0.7]
    meet = len(late) > 1 and np.diff(np.sort(heights[late])).min() < 0.02
    panel: dict[str, Any] = {"transform": ax.transAxes, "clip_on": False}
    early = sorted((at for at in range(len(curves)) if at not in late), key=lambda at: -ends[at][0])
    tall, free, high = POINTS_PER_INCH * panel_inches, np.inf, 0.0  # how far the next name may go, and where the last one stands
    for at in early:
        name, (x, y) = str(curves[at].get_label()), ends[at]
        crowded = x + LETTER * len(name) / (ax.figure.bbox.width / ax.figure.dpi) > free
        up = max(7.0, high + 1.35 * LABEL_POINTS - tall * y) if crowded else 7.0
        free, high = x, tall * y + up
        place: dict[str, Any] = {"xy": (x, y), "xycoords": "axes fraction", "xytext": (0, up), "textcoords": "offset points"}
        ax.annotate(name, ha="left" if len(early) > 1 else "center", fontsize=LABEL_POINTS, **place)
        if crowded:
            ax.annotate("", arrowprops={"arrowstyle": "-", "shrinkA": 0, "color": curves[at].get_color()} | LEADER_LINE, **place)
    for at, height in zip(late, spread_apart(heights[late], gap), strict=True):
        curve, end = curves[at], ends[at]
        if meet:
            piece = Line2D([1.055, 1.12], [height, height])
            piece.update_from(curve)
            piece.set(marker="None", label="_piece", **panel)
            ax.add_artist(piece)
        led = meet or abs(height - end[1]) > 0.01 or end[0] < 0.98  # else the name stands at the end itself
        if led:
            ax.plot([end[0] + 0.012, 1.045], [np.clip(end[1], 0, 1), height], color=curve.get_color(), **LEADER, **panel)
        ax.text(1.135 if meet else 1.055 if led else 1.03, height, str(curve.get_label()), va="center", fontsize=LABEL_POINTS, **panel)


def spread_apart(heights: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """Return the heights moved as little as needed so that neighbours are at least `gap` apart.

    >>> spread_apart([0.5, 0.5, 0.9], 0.2).round(6).tolist()
    [0.4, 0.6, 0.9]
    """
    moved = np.array(heights, dtype=np.float64)
    order = np.argsort(moved, kind="stable")
    for _ in range(100):
        for lower, upper in itertools.pairwise(order):
            missing = gap - (moved[upper] - moved[lower])
            if missing > 0.0:
                moved[lower] -= missing / 2
                moved[upper] += missing / 2
    return moved


def name_cells(ax: Axes, rows: Sequence[str] | None, columns: Sequence[str] | None, shape: tuple[int, ...]) -> None:
    """Write the names of rows and columns, or count them from 0.

    Raises ValueError if there are more or fewer names than rows or columns.
    """
    for argument, names, count, axis in (("rows", rows, shape[0], ax.yaxis), ("columns", columns, shape[1], ax.xaxis)):
        if names is None:
            axis.set_major_locator(MaxNLocator(nbins=min(count, 10, int(2 * inches_for(ax))), integer=True))
        elif len(names) != count:
            raise ValueError(f"{argument} must name {count} of them; got {len(names)}")
        else:
            axis.set_ticks(range(count), list(names))
