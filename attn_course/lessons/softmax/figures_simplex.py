"""The triangle of all ways to share a weight of 1 among three entries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator
from matplotlib.tri import Triangulation
from numpy.typing import ArrayLike

from attn_course.figures.drawing import LABEL_POINTS, ON_COLOUR, add_colour_bar, as_numbers
from attn_course.figures.palette import DARK, INK, LIGHT, WEIGHTS
from attn_course.figures.words import short

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3.0) / 2.0]])  # lower left, lower right, top
CONTOURS = 14
PALE_GREYS = ListedColormap(colormaps["Greys"](np.linspace(0.02, 0.5, 256)))


def on_simplex(argument: str, points: ArrayLike) -> np.ndarray:
    """Return the rows of `points` as positions in the plane, if each is a way to share 1 among three.

    Raises ValueError if the rows do not have three entries, or an entry is negative, or a row does not sum to 1.
    """
    shares = as_numbers(argument, points, 2)
    if shares.shape[1] != 3:
        raise ValueError(f"{argument} must have rows of 3 entries; got shape {shares.shape}")
    outside = (shares < -1e-9).any(axis=1) | (np.abs(shares.sum(axis=1) - 1.0) > 1e-6)
    if outside.any():
        raise ValueError(f"{argument} must have nonnegative rows that sum to 1; got {shares[outside][0].tolist()}")
    return shares @ CORNERS


def draw_simplex(ax: Axes, corners: Sequence[str]) -> None:
    """Draw the empty triangle with the names of its corners."""
    ax.fill(*CORNERS.T, facecolor="none", edgecolor=INK, linewidth=1.2, zorder=3, clip_on=False)
    places = [("right", "top"), ("left", "top"), ("center", "bottom")]
    for name, corner, (side, height) in zip(corners, CORNERS, places, strict=True):
        offset = (0, 5) if height == "bottom" else (0, -5)
        ax.annotate(name, corner, xytext=offset, textcoords="offset points", ha=side, va=height)
    ax.set_aspect("equal")
    ax.set_axis_off()


def draw_contours(ax: Axes, points: np.ndarray, values: np.ndarray, label: str) -> None:
    """Shade the triangle by a quantity, darker where it is larger."""
    triangles = Triangulation(points[:, 0], points[:, 1])
    shaded = ax.tricontourf(triangles, values, levels=CONTOURS, cmap=PALE_GREYS)
    ax.tricontour(triangles, values, levels=np.asarray(shaded.levels), colors=LIGHT, linewidths=0.7)
    add_colour_bar(shaded, ax, label, fraction=0.045, pad=0.14, ticks=MaxNLocator(6))


def draw_average(ax: Axes, scores: np.ndarray, average: float) -> None:
    """Draw the line of all weights with this average score, from one edge of the triangle to another, and name it beside its left end."""
    ends = []
    for first, second in ((0, 1), (1, 2), (0, 2)):
        low, high = sorted((scores[first], scores[second]))
        if low <= average <= high and low < high:
            share = (average - scores[second]) / (scores[first] - scores[second])
            ends.append(share * CORNERS[first] + (1.0 - share) * CORNERS[second])
    ax.plot(*np.array(ends).T, color=INK, linewidth=1.6, linestyle="--", zorder=4)
    end = min(ends, key=lambda point: point[0])
    below = bool(end[1] < CORNERS[2, 1] / 50)  # it ends on the lower edge
    offset, side, height = ((0, -8), "center", "top") if below else ((-8, 0), "right", "center")
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": LABEL_POINTS}
    ax.annotate(f"average {short(average)}", (end[0], end[1]), xytext=offset, ha=side, va=height, **look)


def draw_path(ax: Axes, points: np.ndarray, first: str, last: str) -> None:
    """Draw a curve through the triangle, with names at its two ends, each on the side that the curve leaves free."""
    ax.plot(*points.T, color=WEIGHTS, linewidth=2.6, zorder=4, clip_on=False)
    rightwards = bool(points[0, 0] < points[-1, 0])
    for name, point, to_the_right in ((first, points[0], not rightwards), (last, points[-1], rightwards)):
        ax.plot(*point, marker="o", markersize=5, color=WEIGHTS, zorder=5, clip_on=False)
        write_beside(ax, name, point, to_the_right, rise=5 if point[1] < CORNERS[2, 1] / 2 else -6)


def draw_mark(ax: Axes, point: np.ndarray) -> None:
    """Mark one point of the triangle."""
    ax.plot(*point, marker="o", markersize=10, markerfacecolor=WEIGHTS, markeredgecolor=DARK, markeredgewidth=1.6, zorder=6, clip_on=False)


def write_beside(ax: Axes, name: str, point: np.ndarray, to_the_right: bool, rise: float) -> None:
    """Write a name next to a point, within the triangle on a halo so that contours do not cross it."""
    offset, side = (11 if to_the_right else -11, rise), "left" if to_the_right else "right"
    outside = np.linalg.norm(CORNERS - point, axis=1).min() < 0.1 and to_the_right == bool(point[0] > CORNERS[2, 0])
    look: dict[str, Any] = {"color": INK, "fontsize": LABEL_POINTS} if outside else ON_COLOUR
    ax.annotate(name, (point[0], point[1]), xytext=offset, textcoords="offset points", ha=side, va="center", zorder=7, **look)
