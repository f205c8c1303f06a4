"""Figures of the lesson lookup: recall at a distance, maps of a lookup, kernel regression, the hull."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import (
    LABEL_POINTS,
    as_numbers,
    draw_heatmap,
    draw_level,
    draw_lines,
    each_of_shape,
    label_ends,
    name_cells,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.paths import paths as paths
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, VALUE
from attn_course.figures.ticks import double, tick_decades
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"


def recall_at_distance(
    stretches: ArrayLike, steps: Mapping[str, ArrayLike], distances: ArrayLike, norms: Mapping[str, ArrayLike], *, most_steps: float
) -> None:
    """Show the training steps a model needs, and its gradient before training, against the distance.

    `stretches` (n,): distractions between item and question in training, ascending powers of two. `steps`, each (n,): steps until
    the task was learnt, by model; `most_steps` stands for "not learnt" and is drawn as a cross. `distances` (m,): distractions for
    the gradients. `norms`, each (m,): norm of the gradient at the item, by model; positive. `most_steps`: where training ended.
    Raises ValueError if lengths or models do not fit, or there is no model.
    """
    x, far = as_numbers("stretches", stretches, 1), as_numbers("distances", distances, 1)
    needed = each_of_shape("steps", steps, len(x))
    slopes = each_of_shape("norms", norms, len(far))
    if list(needed) != list(slopes):
        raise ValueError(f"steps and norms must name the same models; got {list(needed)} and {list(slopes)}")
    title = "Attention learns recall quickly at every distance tried; the recurrent networks need longer and longer, or fail"
    alt = (
        f"Left: training steps needed with {listed(x, 0)} distractions. "
        + " ".join(f"{name}: {_needed(values, most_steps)}." for name, values in needed.items())
        + f" Right: gradient norm at the item before training, from {far[0]:.0f} to {far[-1]:.0f} distractions, logarithmic axes. "
        + " ".join(f"{name}: from {short(values[0])} to {short(values[-1])}." for name, values in slopes.items())
    )
    with picture(title=title, alt=alt, height=3.7, columns=2) as axes:
        draw_lines(axes[0], x, needed, points=True)
        draw_level(axes[0], x, most_steps)
        note: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "fontsize": LABEL_POINTS, "color": INK}
        axes[0].annotate("the end; cross: not learnt", (x[0], most_steps), **note)
        for name, values in needed.items():
            failed = values >= most_steps
            colour = next(line.get_color() for line in axes[0].lines if line.get_label() == name)
            axes[0].plot(x[failed], values[failed], "X", color=colour, markersize=10, clip_on=False)
        axes[0].set(ylabel="training steps needed", ylim=(0.0, 1.12 * most_steps))
        draw_lines(axes[1], far, slopes, points=True)
        axes[1].set(ylabel="gradient norm at the item", yscale="log")
        for ax, ticks in zip(axes, (x, far), strict=True):
            double(ax, ticks)
            ax.set_xlabel("distractions before the question")
        tick_decades(axes[1].yaxis)
        label_ends(axes[1])


def _needed(steps: np.ndarray, most_steps: float) -> str:
    texts = ["not learnt" if value >= most_steps else f"{value:.0f}" for value in steps]
    return _joined(texts)


def _joined(texts: Sequence[str]) -> str:
    return ", ".join(texts[:-1]) + f" and {texts[-1]}" if len(texts) > 1 else texts[0]


def exchanged_roles(people: Sequence[str], weights: ArrayLike, swapped: ArrayLike) -> None:
    """Show who attends to whom, and beside it the same with queries and keys exchanged.

    `people`: names of those who ask, who are also those who answer. `weights`, `swapped` (n, n): weights of the answers, one row
    for each who asks; n people. Raises ValueError if shapes do not fit.
    """
    maps = each_of_shape("maps", {"query = name asked for, key = badge": weights, "roles exchanged": swapped}, len(people), len(people))
    left, right = ("; ".join(f"{who} {_largest(row, people)}" for who, row in zip(people, matrix, strict=True)) for matrix in maps.values())
    _maps_side_by_side(
        maps,
        title="With the roles exchanged, each hears from those who asked, and from all alike if nobody did",
        alt=f"Two heatmaps of weights: {_joined(people)} ask in rows and answer in columns. The largest weights of each row are, "
        f"left: {left}. Right, with the roles exchanged: {right}.",
        names=people,
        labels=("who asks", "who answers"),
    )


def _largest(row: np.ndarray, names: Sequence[str]) -> str:
    """Return the largest number of a row, and whose it is."""
    holders = [name for name, value in zip(names, row, strict=True) if np.isclose(value, row.max())]
    return f"{number(float(row.max()))} on {_joined(holders)}"


def sides(left: ArrayLike, right: ArrayLike, *, features: int) -> None:
    """Show which entry of an output depends on which entry of the values, for weights from the left and from the right.

    `left`, `right` (n, n): derivatives of the output (row) by the values (column). Both count the features of the first position,
    then those of the second. `features`: features of a position, named by letters. Raises ValueError if shapes differ, or
    `features` does not divide n.
    """
    count = len(as_numbers("left", left, 2))
    if features < 1 or count % features:
        raise ValueError(f"features must divide {count} entries; got {features}")
    maps = each_of_shape("maps", {"P V: from the left": left, "V W: from the right": right}, count, count)
    position, feature = np.divmod(np.arange(count), features)
    said = [
        f"{_nonzero(matrix, position)} between different positions and {_nonzero(matrix, feature)} between different features"
        for matrix in maps.values()
    ]
    _maps_side_by_side(
        maps,
        title="From the left, weights connect positions; from the right, only features of one position",
        alt=f"Two matrices of derivatives for {count // features} positions with {features} features each. Left, {said[0]} are not zero. "
        f"Right, {said[1]} are not zero.",
        names=[f"{place}{chr(ord('a') + letter)}" for place, letter in zip(position, feature, strict=True)],
        labels=("output entry (position, feature)", "value entry (position, feature)"),
        block=features,
    )


def _nonzero(matrix: np.ndarray, group: np.ndarray) -> str:
    """Return how many entries between different groups are not zero."""
    between = matrix[group[:, None] != group]
    return f"{np.count_nonzero(between)} of {between.size} entries"


def _maps_side_by_side(
    maps: Mapping[str, np.ndarray], *, title: str, alt: str, names: Sequence[str], labels: tuple[str, str], block: int = 0
) -> None:
    """Show square matrices beside each other on one colour scale, with the same names for rows and columns.

    Those of weights between 0 and 1 have two digits after the point. Those in blocks of `block` rows have one, colours centred at zero,
    and lines between the blocks.
    """
    signed = block > 0
    reach = max(float(np.abs(matrix).max()) for matrix in maps.values())
    limits = (-reach, reach) if signed else (0.0, 1.0)
    with picture(title=title, alt=alt, height=1.5 + 0.5 * len(names), columns=len(maps), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, maps.items(), strict=True):
            draw_heatmap(ax, matrix, signed=signed, limits=limits, digits=1 if signed else 2)
            for edge in np.arange(block, len(matrix), block) - 0.5 if signed else ():
                ax.axhline(edge, color=INK, linewidth=0.8)
                ax.axvline(edge, color=INK, linewidth=0.8)
            ax.set_aspect("auto")
            name_cells(ax, names, names, matrix.shape)
            ax.set(title=name, xlabel=labels[1])
        axes[0].set_ylabel(labels[0])


def dial(keys: ArrayLike, query: float, widths: ArrayLike, shares: ArrayLike) -> None:
    """Show the weights of keys that are hours of a day, for one query, against the width of the similarity.

    `keys` (m,): hours. `query`: the hour asked for. `widths` (n,): ascending and positive. `shares` (n, m): the weights at each
    width. Raises ValueError if shapes do not fit.
    """
    hours, h = as_numbers("keys", keys, 1), as_numbers("widths", widths, 1)
    weights = same_shape("shares", shares, len(h), len(hours))
    half = float(np.interp(-0.5, -weights.max(axis=1), h))
    charts.lines(
        h,
        {f"{hour:.0f} o'clock": weight for hour, weight in zip(hours, weights.T, strict=True)},
        title="One dial leads from the nearest key alone to all keys alike",
        alt=f"Weights of the keys {listed(hours, 0)} for the query {short(query)} against the width h from {short(h[0])} to {short(h[-1])} "
        f"hours on a logarithmic axis. They go from {listed(weights[0])} to {listed(weights[-1])}; at {short(half)} hours the largest is "
        "one half.",
        x_label="width h (hours)",
        y_label="weight",
        x_log=True,
        y_limits=(0.0, 1.05),
    )


def nile_fits(years: ArrayLike, flow: ArrayLike, grid: ArrayLike, fits: Mapping[str, ArrayLike]) -> None:
    """Show the measured flow of the Nile and curves through it, one panel for each curve.

    `years`, `flow` (m,): the points: keys and values, in years and in 10⁸ cubic metres. `grid` (n,): where the curves were
    evaluated: the queries. `fits`, each (n,): outputs there, by the name of the width. Raises ValueError if lengths differ or
    there is no curve.
    """
    keys, queries = as_numbers("years", years, 1), as_numbers("grid", grid, 1)
    values = same_shape("flow", flow, len(keys))
    curves = each_of_shape("fits", fits, len(queries))
    title = "Too narrow copies the noise, too wide forgets the curve: one width shows what changed"
    alt = f"{len(keys)} points, flow (10⁸ m³) against year, and a curve in each panel. " + " ".join(
        f"{name}: from {short(float(curve.min()))} to {short(float(curve.max()))}." for name, curve in curves.items()
    )
    with picture(title=title, alt=alt, height=3.3, columns=len(curves), sharey=True) as axes:
        for ax, (name, curve) in zip(axes, curves.items(), strict=True):
            ax.plot(keys, values, "o", color=VALUE, markersize=3.2, markeredgecolor="none", alpha=0.75)
            draw_lines(ax, queries, {name: curve}, colours={name: INK})
            ax.lines[-1].set_linewidth(1.6)
            ax.set(title=name, xlabel="year")
            ax.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axes[0].set_ylabel("flow (10⁸ m³)")


def outputs_in_hull(values: ArrayLike, outputs: ArrayLike, *, outside: ArrayLike | None = None) -> None:
    """Show values in the plane with their hull, and outputs among them.

    `values` (m, 2): corners of a convex polygon, in order around it. `outputs` (n, 2): averages of the values. `outside` (2,): a
    point made with negative weights. Raises ValueError if shapes do not fit, or the corners are not those of a convex polygon in
    order.
    """
    v, z = as_numbers("values", values, 2), as_numbers("outputs", outputs, 2)
    if v.shape[1] != 2 or z.shape[1] != 2:
        raise ValueError(f"values and outputs must be points of the plane; got shapes {v.shape} and {z.shape}")
    edges = np.roll(v, -1, axis=0) - v
    following = np.roll(edges, -1, axis=0)
    turns = np.sign(edges[:, 0] * following[:, 1] - edges[:, 1] * following[:, 0])
    if len(v) < 3 or abs(turns.sum()) != len(v):
        raise ValueError("values must be the corners of a convex polygon, in order around it")
    stray = None if outside is None else same_shape("outside", outside, 2)
    title = "Averages stay within the hull of the values; negative weights lead out"
    points = "; ".join(f"({number(a, 1)}, {number(b, 1)})" for a, b in z)
    alt = f"A polygon with {len(v)} values as corners and {len(z)} outputs inside it, at {points}." + (
        "" if stray is None else f" One point with negative weights lies at ({number(stray[0], 1)}, {number(stray[1], 1)})."
    )
    with picture(title=title, alt=alt, width=5.4, height=3.7) as (ax,):
        ax.add_patch(Polygon(v, closed=True, facecolor=VALUE, alpha=0.13, edgecolor="none"))
        ax.add_patch(Polygon(v, closed=True, fill=False, edgecolor=VALUE, linewidth=1.2))
        ax.plot(v[:, 0], v[:, 1], "o", color=VALUE, markersize=8)
        ax.plot(z[:, 0], z[:, 1], "s", color=INK, markersize=6)
        marked = [*zip(v, [f"$v_{n}$" for n in range(1, len(v) + 1)], strict=True)]
        marked += zip(z, [f"$z_{n}$" for n in range(1, len(z) + 1)], strict=True)
        if stray is not None:
            ax.plot(*stray, "X", color=INK, markersize=9)
            marked.append((stray, "negative weights"))
        lowest = v[:, 1].min()
        for point, text in marked:
            place: dict[str, Any] = {"xytext": (0, -9), "va": "top"} if point[1] == lowest else {"xytext": (0, 8)}
            ax.annotate(text, point, textcoords="offset points", ha="center", fontsize=LABEL_POINTS, **place)
        ax.margins(0.16)
        ax.set(xlabel="first entry", ylabel="second entry", aspect="equal")


def lookup_explorable() -> None:
    """Show a query on the clock, moved by a slider, with weights and answer of a soft lookup."""
    publish_explorable(
        CARDS / "lookup",
        "Sliders move a query between 0 and 24 o'clock and the width of the similarity; the weights of four noted temperatures, the "
        "answer, the whole curve of answers and its range follow. Buttons put the query on a key, between keys and far from all, set a "
        "narrow and a wide similarity (which makes the answer forget the query), note the 9 o'clock pair twice, and put all back.",
    )


def machine() -> None:
    """Show the machine with queries, keys, values and their average lit."""
    show_machine("dictionary")
