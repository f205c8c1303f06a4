"""Figures of the lesson softmax about the map itself. They draw the numbers they are given and compute no formula of the course."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_lines, label_ends, same_length
from attn_course.figures.palette import GRID, INK, REFERENCE, SCORES
from attn_course.figures.simplex import simplex
from attn_course.figures.words import listed, number, short

SAME = 1e-9  # shares closer than this are one curve


def softmax_maps(
    difference: ArrayLike, shares: Mapping[str, ArrayLike], *, shift: float, title: str | None = None, alt: str | None = None
) -> None:
    """Show, for several maps f, the share f(z_1) / (f(z_1) + f(z_2)) before and after a shift of both scores.

    Parameters
    ----------
    difference : (n,) array_like
        z_1 - z_2.
    shares : mapping of str to (2, n) array_like
        By the name of f: the share of the first entry with z_2 = 0, then with z_2 = `shift`.
    shift : float
        What is added to both scores.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If a set of shares does not have shape (2, n), or there is none.
    """
    x = as_numbers("difference", difference, 1)
    pairs = {name: as_numbers(f"shares[{name!r}]", pair, 2) for name, pair in shares.items()}
    wrong = {name: pair.shape for name, pair in pairs.items() if pair.shape != (2, len(x))}
    if wrong or not pairs:
        raise ValueError(f"shares must map names to arrays of shape (2, {len(x)}); got {wrong or 'none'}")
    gaps = {name: float(np.abs(pair[0] - pair[1]).max()) for name, pair in pairs.items()}
    same = " and ".join(name for name, gap in gaps.items() if gap < SAME) or "no map"
    moved = "; ".join(f"{name} by up to {number(gap)}" for name, gap in gaps.items() if gap >= SAME) or "none"
    title = title or f"Only {same} gives the same shares after {short(shift)} is added to both scores"
    alt = alt or (
        f"One panel per map. Each shows the share of the first of two entries against the score difference, from {short(x.min())} to "
        f"{short(x.max())}, before and after a shift of both scores by {short(shift)}. The two curves coincide for {same}. "
        f"They part for the others: {moved}."
    )
    columns = len(pairs) if len(pairs) < 4 else -(-len(pairs) // 2)
    rows = -(-len(pairs) // columns)
    with picture(title=title, alt=alt, height=1.1 + 2.3 * rows, rows=rows, columns=columns, sharey=True, sharex=True) as axes:
        for ax, (name, pair) in zip(axes, pairs.items(), strict=False):
            draw_lines(ax, x, {"z₂ = 0": pair[0], f"z₂ = {short(shift)}": pair[1]})
            ax.set_title(f"{name}: {'curves coincide' if gaps[name] < SAME else 'gap up to ' + number(gaps[name])}")
            ax.set(xlabel="z₁ − z₂", ylim=(-0.03, 1.03))
            ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        for ax in axes[len(pairs) :]:
            ax.set_axis_off()
        axes[0].set_ylabel("share of the first entry")
        handles, names = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(handles, names, loc="outside lower center", ncols=2, handlelength=3.2)


def simplex_entropy(
    points: ArrayLike,
    objective: ArrayLike,
    path: ArrayLike,
    optimum: ArrayLike,
    *,
    temperature: float,
    scores: Sequence[float] | np.ndarray,
    title: str | None = None,
    alt: str | None = None,
) -> None:
    """Show p·z + T H(p) on the triangle of three weights, its maximum, and where the maximum goes as T changes.

    Parameters
    ----------
    points : (n, 3) array_like
        Points of the triangle, e.g. `simplex_grid()`.
    objective : (n,) array_like
        p·z + T H(p) there.
    path : (k, 3) array_like
        The maximum for a growing temperature, from near 0 to very large.
    optimum : (3,) array_like
        The maximum for `temperature`.
    temperature : float
        The T of the contours.
    scores : (3,) array_like
        z, written at the corners.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If a row is not a point of the triangle, or shapes do not fit.
    """
    z, best = same_length("scores", scores, 3), same_length("optimum", optimum, 3)
    ends = as_numbers("path", path, 2)[[0, -1]]
    title = title or "The best compromise between score and entropy is one point; temperature moves it"
    alt = alt or (
        f"Triangle of all weights on three entries with scores {listed(z, 1)}. Contours of score plus {short(temperature)} times entropy "
        f"close around a single maximum at weights {listed(best)}. As the temperature grows, the maximum moves from weights "
        f"{listed(ends[0])} to {listed(ends[1])}."
    )
    simplex(
        title=title,
        alt=alt,
        corners=[f"$p_{i + 1} = 1$\n$z_{i + 1} = {value:g}$" for i, value in enumerate(z)],
        points=points,
        values=objective,
        value_label=f"p · z + T H(p) at T = {short(temperature)} (nats)",
        paths={("T → 0", "T → ∞"): path},
        marks={f"maximum at T = {short(temperature)}": best},
    )


def lse_bounds(
    x: ArrayLike, lse: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, title: str | None = None, alt: str | None = None
) -> None:
    """Show log-sum-exp of (x, 0) between its two bounds.

    Parameters
    ----------
    x : (n,) array_like
        The first score; the second is 0.
    lse, lower, upper : (n,) array_like
        lse(x, 0), max(x, 0) and max(x, 0) + ln 2.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If the arrays differ in length.
    """
    position = as_numbers("x", x, 1)
    middle, low, high = (same_length(name, values, len(position)) for name, values in (("lse", lse), ("lower", lower), ("upper", upper)))
    tie = int(np.abs(position).argmin())
    title = title or "Log-sum-exp is a smooth maximum: a tie lifts it by ln 2, a clear winner by almost nothing"
    alt = alt or (
        f"Log-sum-exp of x and 0 for x from {short(position[0])} to {short(position[-1])}, between the maximum and the maximum plus ln 2. "
        f"At x = {short(position[tie])} it lies {number(middle[tie] - low[tie])} above the maximum, on the upper bound; "
        f"at x = {short(position[-1])} only {number(middle[-1] - low[-1], 3)} above it, on the lower bound."
    )
    height = 3.7
    with picture(title=title, alt=alt, height=height) as (ax,):
        ax.fill_between(position, low, high, color=GRID, alpha=0.6, linewidth=0)
        draw_lines(ax, position, {"lse(x, 0)": middle})
        ax.plot(position, high, color=REFERENCE, linewidth=1.3, linestyle="--", label="max(x, 0) + ln 2")
        ax.plot(position, low, color=REFERENCE, linewidth=1.3, linestyle=":", label="max(x, 0)")
        ax.set(xlabel="first score x (the second is 0)", ylabel="value", xlim=(position[0], position[-1]))
        label_ends(ax, height * 0.7)


def overflow_ranges(
    names: Sequence[str], lowest: ArrayLike, highest: ArrayLike, *, title: str | None = None, alt: str | None = None
) -> None:
    """Show for which scores exp is neither 0 nor infinite, one bar per number format.

    Parameters
    ----------
    names : sequence of str
        Number formats, e.g. "float16".
    lowest, highest : (m,) array_like
        The smallest score whose exp is not 0, and the largest whose exp is finite.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If the arrays differ in length.
    """
    low, high = same_length("lowest", lowest, len(names)), same_length("highest", highest, len(names))
    title = title or f"exp overflows early: beyond a score of {number(high[0], 1)} in {names[0]}"
    alt = alt or "Bars from the smallest score whose exp is not 0 to the largest whose exp is finite. " + " ".join(
        f"{name}: {number(a, 1)} to {number(b, 1)}." for name, a, b in zip(names, low, high, strict=True)
    )
    with picture(title=title, alt=alt, height=1.5 + 0.5 * len(names)) as (ax,):
        ax.barh(range(len(names)), high - low, left=low, height=0.55, color=SCORES)
        for row, (a, b) in enumerate(zip(low, high, strict=True)):
            ax.annotate(number(a, 1), (a, row), xytext=(-4, 0), textcoords="offset points", ha="right", va="center", fontsize=LABEL_POINTS)
            ax.annotate(number(b, 1), (b, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=LABEL_POINTS)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(range(len(names)), list(names))
        ax.invert_yaxis()
        ax.set_xscale("symlog", linthresh=10.0)
        ax.set(xlabel="score x", xlim=(12.0 * float(low.min()), 12.0 * float(high.max())))
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
