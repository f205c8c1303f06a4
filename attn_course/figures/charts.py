"""Charts for any chapter: heatmap, lines, bars. Each needs a title that states the finding and an alternative text."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import (
    add_colour_bar,
    as_numbers,
    draw_bars,
    draw_heatmap,
    draw_level,
    draw_lines,
    each_of_shape,
    label_ends,
    name_cells,
)
from attn_course.figures.palette import NEUTRAL_STYLES, WEIGHTS
from attn_course.figures.ticks import doublings, tick_at, tick_decades


def heatmap(
    matrix: ArrayLike,
    *,
    title: str,
    alt: str,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    row_label: str = "queries",
    column_label: str = "keys",
    mask: ArrayLike | None = None,
    signed: bool = False,
    limits: tuple[float, float] | None = None,
    annotate: bool | None = None,
    digits: int = 2,
    color_label: str = "weight",
) -> None:
    """Show a matrix as colours: rows are queries (or outputs), columns are keys (or inputs).

    `matrix` (q_len, kv_len).
    `rows`, `columns`: names of rows and columns; counted from 0 if missing.
    `row_label`, `column_label`: what rows and columns are.
    `mask` (q_len, kv_len): True where the query may attend to the key. Other cells are hatched, whatever `matrix` holds there.
    `signed`: orange and purple from zero (differences, Jacobians) instead of pink (weights).
    `limits`: numbers at the ends of the colour scale; by default those of the matrix and zero.
    `annotate`: write the number in each cell; by default up to 100 cells.
    `digits`: digits after the point.
    `color_label`: what the colours measure, with its unit if it has one.

    Raises ValueError if shapes or the number of names do not fit, a visible cell is not finite, or a text is too short.
    """
    numbers = as_numbers("matrix", matrix, 2)
    allowed = None if mask is None else np.asarray(mask, dtype=bool)
    cell = min(0.8, 4.6 / max(numbers.shape))
    names = 0.085 * max(map(len, rows or [""]))
    height, width = 1.5 + cell * numbers.shape[0], max(4.8, 1.9 + names + cell * numbers.shape[1])
    with picture(title=title, alt=alt, width=width, height=max(2.4, height)) as (ax,):
        image = draw_heatmap(ax, numbers, mask=allowed, signed=signed, limits=limits, annotate=annotate, digits=digits)
        name_cells(ax, rows, columns, numbers.shape)
        ax.set(xlabel=column_label, ylabel=row_label)
        add_colour_bar(image, ax, color_label, fraction=0.05)


def lines(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    title: str,
    alt: str,
    x_label: str,
    y_label: str,
    x_log: bool = False,
    y_log: bool = False,
    y_limits: tuple[float, float] | None = None,
    points: bool = False,
    references: Mapping[str, float] | None = None,
) -> None:
    """Show curves over a common axis, each named at its right end.

    `x` (n,): common horizontal positions. `series`, each (n,): curves by name; NaN leaves a gap. `x_label`, `y_label`: what the
    axes measure, with units. `x_log`, `y_log`: use a logarithmic axis. `y_limits`: ends of the vertical axis. `points`: mark each
    position. `references`: dotted grey levels by name, such as a bound. Raises ValueError if a curve has another length than `x`,
    there is no curve, or a text is too short.
    """
    positions = as_numbers("x", x, 1)
    curves = each_of_shape("series", series, len(positions))
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        draw_lines(ax, positions, curves, points=points)
        ax.set(xlabel=x_label, ylabel=y_label, xscale="log" if x_log else "linear", yscale="log" if y_log else "linear")
        for name, level in (references or {}).items():
            draw_level(ax, positions, level, name)
        if not points:
            ax.set_xlim(float(positions.min()), float(positions.max()))
        if y_limits is not None:
            ax.set_ylim(*y_limits)
        if points:
            tick_at(ax, positions)
        elif x_log and len(powers := doublings(positions)) > 2:
            tick_at(ax, powers)
        elif x_log:
            tick_decades(ax.xaxis)
        if y_log:
            tick_decades(ax.yaxis)
        label_ends(ax)


def bars(
    groups: Sequence[str],
    series: Mapping[str, ArrayLike],
    *,
    title: str,
    alt: str,
    x_label: str,
    y_label: str,
    digits: int = 2,
    y_limits: tuple[float, float] | None = None,
) -> None:
    """Show level bars in groups, with their numbers while there are at most 20 of them.

    `groups`: names beside the groups. `series`, each (len(groups),): one bar per group and series. A single series takes the colour
    of the weights. `x_label`: what the groups are. `y_label`: what the bars measure, with its unit. `digits`: digits after the point
    of the numbers at the bars. `y_limits`: ends of the axis of what is measured. Raises ValueError if a series has another length
    than `groups`, there is none, or a text is too short.
    """
    names = list(series)
    lengths = np.stack([*each_of_shape("series", series, len(groups)).values()])
    neutral = [WEIGHTS] if len(names) == 1 else [colour for colour, _ in NEUTRAL_STYLES]
    colours = [neutral[index % len(neutral)] for index in range(len(names))]
    with picture(title=title, alt=alt, height=1.1 + len(groups) * (0.16 + 0.22 * len(names))) as (ax,):
        draw_bars(ax, lengths, names, colours, digits=digits if lengths.size <= 20 else None)
        ax.set_yticks(range(len(groups)), list(groups))
        ax.set_ylabel(f"{y_label}, by {x_label}")
        if y_limits is not None:
            ax.set_xlim(*y_limits)
