"""Figures of the lesson attention: the machine, one query, weights by two softmaxes, and attention as a function of its query."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import (
    ON_COLOUR,
    add_colour_bar,
    as_numbers,
    draw_heatmap,
    each_of_shape,
    name_cells,
    same_shape,
)
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, KEY, LIGHT, SIGNED_MAP
from attn_course.figures.settle import ABOVE
from attn_course.figures.words import listed, number, short

CONTOURS = 9

# The picture of one query, in pixels: where its columns stand, how far its rows are apart, and the length of the largest weight.
KEY_X, DOT_X, SCORE_X, BAR_X, VALUE_X = 162, 258, 322, 366, 606
FIRST_ROW, ROW, CELL, WIDE, BAR = 126, 30, 29, 48, 124


def machine() -> None:
    """Show the machine with attention lit, its matrices as large as those of the sentence."""
    show_machine("attention", {"T": 7, "d_k": 4, "d_v": 2})


def one_query(
    tokens: Sequence[str], query: ArrayLike, keys: ArrayLike, dots: ArrayLike, weights: ArrayLike, values: ArrayLike, output: ArrayLike
) -> None:
    """Show how one query is answered: for each token its key, dot product, score, weight and value; below, the output.

    `tokens`: the words, at most 7 letters each. `query` (d_k,): whole numbers. `keys` and `values`, (kv_len, d_k) and (kv_len,
    d_v): whole numbers. `dots`, `weights` (kv_len,): whole numbers, and weights that sum to 1. `output` (d_v,): the average of
    the values. Raises ValueError if shapes do not fit, or the weights do not sum to 1.
    """
    q, k = as_numbers("query", query, 1), as_numbers("keys", keys, 2)
    v, z = as_numbers("values", values, 2), as_numbers("output", output, 1)
    d, p = same_shape("dots", dots, len(k)), same_shape("weights", weights, len(k))
    if len(tokens) != len(k) or len(v) != len(k) or len(q) != k.shape[1] or len(z) != v.shape[1]:
        raise ValueError(f"tokens, keys and values must be equally many; got {len(tokens)}, {k.shape} and {v.shape}")
    if not np.isclose(p.sum(), 1.0):
        raise ValueError(f"weights must sum to 1; got {p.sum()}")
    bottom = FIRST_ROW + ROW * len(k)
    drawing = Diagram("one-query", 680, bottom + 64)
    drawing.text((KEY_X, 22), "query", symbol=False)
    _digits(drawing, (KEY_X, 46), q, "query")
    for x, name in ((KEY_X, "keys"), (DOT_X, "q · k"), (SCORE_X, "score"), (BAR_X + BAR / 2, "weight"), (VALUE_X, "values")):
        drawing.text((x, FIRST_ROW - 26), name, symbol=name == "q · k")
    drawing.arrow((KEY_X, 62), (KEY_X, FIRST_ROW - 44))
    for row, token in enumerate(tokens):
        y = FIRST_ROW + ROW * row
        drawing.text((84, y + 5), token, anchor="end")
        _digits(drawing, (KEY_X, y), k[row], "key")
        drawing.text((DOT_X, y + 5), _whole(d[row]))
        drawing.text((SCORE_X, y + 5), short(d[row] / math.sqrt(len(q))))
        long = BAR * p[row] / p.max()
        drawing.tile(Area(BAR_X + long / 2, y, long, 20), role="weights")
        drawing.text((BAR_X + long + 7, y + 5), f"{p[row]:.3f}", anchor="start")
        _digits(drawing, (VALUE_X, y), v[row], "value")
    drawing.arrow((VALUE_X, bottom - 12), (VALUE_X, bottom + 26))
    drawing.text((VALUE_X - 14, bottom + 12), "average with these weights", anchor="end")
    _digits(drawing, (VALUE_X, bottom + 44), z, "output", digits=2)
    drawing.text((VALUE_X - WIDE * len(z) / 2 - 10, bottom + 49), "output", anchor="end")
    most = [f"“{token}”" for token, share in zip(tokens, p, strict=True) if np.isclose(share, p.max())]
    rows = "; ".join(f"{token} {_whole(dot)} and {share:.3f}" for token, dot, share in zip(tokens, d, p, strict=True))
    alt = (
        f"A query ({', '.join(map(_whole, q))}) meets the keys of {len(k)} tokens. Dot product and weight: {rows}. "
        f"The average of the values with these weights is the output, ({', '.join(f'{entry:.2f}' for entry in z)})."
    )
    whose = f"{' and '.join(most)}{', each' if len(most) > 1 else ''}"
    caption = f"One query, from its keys to its output. The largest weight, {p.max():.3f}, belongs to {whose}."
    views = [(0, 0, 356, bottom), (356, FIRST_ROW - 46, 324, bottom + 64 - FIRST_ROW + 46)]
    publish_diagram(drawing.finish(title="How one query is answered", caption=caption, alt=alt, views=views))


def _digits(drawing: Diagram, centre: tuple[float, float], numbers: np.ndarray, role: str, digits: int = 0) -> None:
    """Draw one row of a matrix with its numbers."""
    cell = CELL if digits == 0 else WIDE
    drawing.tile(Area(*centre, cell * len(numbers), 24), role=role)
    for place, entry in enumerate(numbers):
        x = centre[0] + cell * (place - (len(numbers) - 1) / 2)
        drawing.text((x, centre[1] + 5), _whole(entry) if digits == 0 else number(float(entry), digits))


def _whole(entry: float) -> str:
    return number(float(entry), 0)


def weights_by(maps: Mapping[str, ArrayLike], tokens: Sequence[str]) -> None:
    """Show weights (n, n) by name in panels, with the sum of each row beside it. `tokens`: names of the n queries, which are the keys.

    Raises ValueError if shapes do not fit.
    """
    tables = each_of_shape("maps", maps, len(tokens), len(tokens))
    sums = {name: table.sum(axis=1) for name, table in tables.items()}
    said = ". ".join(
        f"{name}: rows with the sums {listed(rows)}, columns with {listed(tables[name].sum(axis=0))}" for name, rows in sums.items()
    )
    alt = f"Heatmaps of weights, one row per query and one column per key. {said}."
    with picture(title="Only one of the two gives each query a weight of 1", alt=alt, height=4.3, columns=len(tables)) as axes:
        for ax, (name, table) in zip(axes, tables.items(), strict=True):
            draw_heatmap(ax, table, limits=(0.0, 1.0))
            name_cells(ax, tokens, tokens, table.shape)
            ax.tick_params(labelleft=ax is axes[0])
            for word in ax.get_xticklabels():
                word.set(rotation=55, ha="right", rotation_mode="anchor")
            for row, total in enumerate(sums[name]):
                ax.text(len(tokens) - 0.3, row, number(total), va="center")
            ax.annotate("sum", (len(tokens) - 0.3, 1.0), (0, ABOVE), xycoords=("data", "axes fraction"), textcoords="offset points")
            ax.set(title=name, xlabel="keys")
        axes[0].set_ylabel("queries")


def query_plane(
    axis: ArrayLike,
    maps: Mapping[str, tuple[ArrayLike, ArrayLike]],
    values: Sequence[float] | np.ndarray,
) -> None:
    """Show the output over all queries of a square in the plane, one panel for each set of keys, with these as points.

    `axis` (n,): ascending positions along both axes. `maps`: by the name of the keys, the output (n, n), row = second entry of the
    query, column = first, and the keys (m, 2). `values` (m,). Raises ValueError if shapes do not fit or there is no map.
    """
    x, v = as_numbers("axis", axis, 1), as_numbers("values", values, 1)
    fields = each_of_shape("maps", {name: field for name, (field, _) in maps.items()}, len(x), len(x))
    points = each_of_shape("keys", {name: k for name, (_, k) in maps.items()}, len(v), 2)
    title = "A key has a region of its own only where it can get the largest weight"
    said = " ".join(
        f"Keys {name}: "
        + "; ".join(
            f"({number(a, 1)}, {number(b, 1)}) with value {number(c, 1)}, on it the output {number(_nearest(x, fields[name], (a, b)), 1)}"
            for (a, b), c in zip(k, v, strict=True)
        )
        + "."
        for name, k in points.items()
    )
    alt = f"Colour maps of the output over queries from {short(x.min())} to {short(x.max())} in both directions. {said}"
    with picture(title=title, alt=alt, height=4.2, columns=len(fields), sharey=True) as axes:
        reach = float(np.abs(v).max())
        for ax, (name, field) in zip(axes, fields.items(), strict=True):
            levels = np.linspace(-reach, reach, CONTOURS)
            drawn = ax.contourf(x, x, np.clip(field, -reach, reach), levels, cmap=SIGNED_MAP)
            ax.contour(x, x, field, levels[1:-1], colors=DARK, linewidths=0.35, alpha=0.5)
            ax.plot([0.0], [0.0], "+", color=DARK, markersize=9)
            _draw_keys(ax, points[name], v)
            ax.grid(False)
            ax.set(title=name, xlabel="first entry of q", aspect="equal")
        axes[0].set_ylabel("second entry of q")
        axes[0].yaxis.set_major_locator(MaxNLocator(6, prune="lower"))  # the corner has one number
        add_colour_bar(drawn, axes, "output z(q)", fraction=0.04, ticks=MaxNLocator(5))


def _nearest(axis: np.ndarray, field: np.ndarray, point: tuple[float, float]) -> float:
    column, row = (int(np.abs(axis - coordinate).argmin()) for coordinate in point)
    return float(field[row, column])


def _draw_keys(ax: Axes, keys: np.ndarray, values: np.ndarray) -> None:
    look: dict[str, Any] = {"color": LIGHT, "markersize": 8, "markeredgecolor": KEY, "markeredgewidth": 2.5}
    ax.plot(keys[:, 0], keys[:, 1], "o", **look)
    left, right = ax.get_xlim()
    for position, ((a, b), value) in enumerate(zip(keys, values, strict=True)):
        text = f"$k_{position + 1}$: {number(float(value), 1)}"
        side = -1 if a > left + 0.75 * (right - left) else 1  # where the label has room
        ax.annotate(
            text, (a, b), xytext=(14 * side, 0), textcoords="offset points", ha="left" if side > 0 else "right", va="center", **ON_COLOUR
        )
