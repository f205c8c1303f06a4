"""Figures of the lesson softmax: the map, log-sum-exp, the derivative, temperature."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import (
    LABEL_POINTS,
    add_legend_below,
    as_numbers,
    draw_bars,
    draw_heatmap,
    draw_level,
    draw_lines,
    each_of_shape,
    label_ends,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, SHADE, WEIGHTS
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed, number, short
from attn_course.lessons.softmax.figures_simplex import draw_average, draw_contours, draw_mark, draw_path, draw_simplex, on_simplex

CARDS = Path(__file__).parent / "explorables"
SAME = 1e-9  # shares closer than this are one curve
TINY = 1e-6  # smaller norms are rounding errors of the caller as much as facts


def softmax_maps(difference: ArrayLike, shares: Mapping[str, ArrayLike], *, shift: float, mark: float | None = None) -> None:
    """Show, for several maps f, the share f(z_1) / (f(z_1) + f(z_2)) before and after a shift of both scores.

    `difference` (n,): z_1 - z_2. `shares`, each (2, n): by the name of f: the share of the first entry with z_2 = 0, then with
    z_2 = `shift`. `shift`: what is added to both scores. `mark`: a difference at which both shares get a dot. Raises ValueError
    if a set of shares does not have shape (2, n), or there is none.
    """
    x = as_numbers("difference", difference, 1)
    pairs = each_of_shape("shares", shares, 2, len(x))
    gaps = {name: float(np.abs(pair[0] - pair[1]).max()) for name, pair in pairs.items()}
    same = " and ".join(name for name, gap in gaps.items() if gap < SAME) or "no map"
    moved = "; ".join(f"{name} by up to {number(gap)}" for name, gap in gaps.items() if gap >= SAME) or "none"
    title = f"Of these, only {same} keeps its shares when {short(shift)} is added to both scores"
    alt = (
        f"One panel per map. Each shows the share of the first of two entries against the score difference, from {short(x.min())} to "
        f"{short(x.max())}, before and after a shift of both scores by {short(shift)}. The two curves coincide for {same}. "
        f"They part for the others: {moved}."
    )
    if mark is not None:
        dots = "; ".join(
            f"{name} {number(float(np.interp(mark, x, pair[0])))} and {number(float(np.interp(mark, x, pair[1])))}"
            for name, pair in pairs.items()
        )
        alt += f" Dots mark the difference {short(mark)}, before and after: {dots}."
    columns = len(pairs) if len(pairs) < 4 else -(-len(pairs) // 2)
    rows = -(-len(pairs) // columns)
    with picture(title=title, alt=alt, height=1.1 + 2.3 * rows, rows=rows, columns=columns, sharey=True, sharex=True) as axes:
        for ax, (name, pair) in zip(axes, pairs.items(), strict=False):
            draw_lines(ax, x, {"z₂ = 0": pair[0], f"z₂ = {short(shift)}": pair[1]})
            if mark is not None:
                ends = [np.interp(mark, x, one) for one in pair]
                ax.plot([mark, mark], ends, color=INK, marker="o", markersize=5, linewidth=1.0, linestyle=":", zorder=5)
            ax.set_title(f"{name}: {'curves coincide' if gaps[name] < SAME else 'gap up to ' + number(gaps[name])}")
            ax.set(xlabel="z₁ − z₂", ylim=(-0.03, 1.03))
            ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        for ax in axes[len(pairs) :]:
            ax.set_axis_off()
        axes[0].set_ylabel("share of the first entry")
        add_legend_below(axes[0], 2)


def simplex_grid(steps: int = 60) -> np.ndarray:
    """Return the points of the triangle whose coordinates are multiples of 1 / `steps`.

    `steps`: how many steps lead from one corner to the next. Returns `points` (n, 3): nonnegative rows that sum to 1; n is (steps
    + 1)(steps + 2) / 2. Raises ValueError if `steps` is less than 1.

    >>> simplex_grid(1).tolist()
    [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}")
    counts = [(first, second, steps - first - second) for first in range(steps + 1) for second in range(steps + 1 - first)]
    return np.array(counts, dtype=np.float64) / steps


def simplex_entropy(
    points: ArrayLike,
    entropy: ArrayLike,
    path: ArrayLike,
    optimum: ArrayLike,
    *,
    scores: Sequence[float] | np.ndarray,
    wanted: float,
) -> None:
    """Show the entropy on the triangle of three weights, the line of one average score, and the path of softmax(beta z).

    `points` (n, 3): points of the triangle, e.g. `simplex_grid()`. `entropy` (n,): the entropy there, in nats. `path` (k, 3):
    softmax(beta z) for a growing beta, from very negative to very large. `optimum` (3,): the point of the path with the wanted
    average. `scores` (3,): z, written at the corners. `wanted`: the average score of the line; strictly between the smallest
    score and the largest.

    Raises ValueError if a row is not a point of the triangle, `optimum` has another average, or shapes do not fit.
    """
    z, best = same_shape("scores", scores, 3), same_shape("optimum", optimum, 3)
    if abs(best @ z - wanted) > 1e-3:
        raise ValueError(f"optimum must have the wanted average {short(wanted)}; got {number(best @ z)}")
    ends = as_numbers("path", path, 2)[[0, -1]]
    title = "On the line of one average score, the entropy is largest where softmax crosses it"
    alt = (
        f"Triangle of all weights on three entries with scores {listed(z, 1)}, shaded by entropy, which is largest in the centre. "
        f"A dashed line holds the weights with the average score {short(wanted)}. "
        f"The path of softmax(βz) leads from weights {listed(ends[0])} for very negative β "
        f"through the centre to {listed(ends[1])} for large β, and meets the line at weights {listed(best)}."
    )
    places = on_simplex("points", points)
    heights = same_shape("entropy", entropy, len(places))
    way, (top,) = on_simplex("path", path), on_simplex("optimum", best[None])
    with picture(title=title, alt=alt, width=6.2, height=4.4) as (ax,):
        draw_contours(ax, places, heights, "entropy H(p) (nats)")
        draw_simplex(ax, [f"$p_{i + 1} = 1$\n$z_{i + 1} = {value:g}$" for i, value in enumerate(z)])
        draw_average(ax, z, wanted)
        draw_path(ax, way, "β → −∞", "β → ∞")
        draw_mark(ax, top)


def contest(x: ArrayLike, readings: ArrayLike, average: ArrayLike, share: ArrayLike) -> None:
    """Show the best of two noisy readings as the first score grows: some contests, the average of many, and its slope.

    `x` (n,): the first score, ascending; the second is 0. `readings` (k, n): the best reading of a few contests, one row for each
    pair of errors. `average`, `share` (n,): over many contests: the average best reading, and the share that the first score
    wins, perhaps of other contests. Raises ValueError if the arrays differ in length.
    """
    score, lines = as_numbers("x", x, 1), as_numbers("readings", readings, 2)
    lines = same_shape("readings", lines, len(lines), len(score))
    mean, won = same_shape("average", average, len(score)), same_shape("share", share, len(score))
    slope = np.gradient(mean, score)
    title = "Where the first score wins, the best reading rises with it"
    alt = (
        f"Two panels over the first score x, from {short(score[0])} to {short(score[-1])}; the second score is 0. Left, the best reading "
        f"in {len(lines)} contests, each flat at first and then rising with slope 1, and the average of many, which bends gently. Right, "
        f"the slope of that average, from {number(slope[0])} to {number(slope[-1])}, and the share of contests that x wins; "
        f"they differ by at most {number(float(np.abs(slope - won).max()), 3)}."
    )
    with picture(title=title, alt=alt, height=3.7, columns=2) as (left, right):
        for row, line in enumerate(lines):
            left.plot(score, line, color=NEUTRAL_STYLES[1][0], linewidth=0.9, label="_" if row else "single contests")
        left.plot(score, mean, color=INK, linewidth=2.6, label="average of many")
        left.set(xlabel="first score x (the second is 0)", ylabel="best reading")
        left.legend(loc="upper left")
        draw_lines(right, score, {"slope of the average": slope, "share won by x": won}, colours={"share won by x": WEIGHTS})
        right.set(xlabel="first score x (the second is 0)", ylabel="slope, or share", ylim=(-0.03, 1.03))
        right.legend(loc="upper left")


def lse_bounds(x: ArrayLike, lse: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
    """Show log-sum-exp of (x, 0) between its two bounds.

    `x` (n,): the first score; the second is 0. `lse`, `lower`, `upper` (n,): lse(x, 0), max(x, 0) and max(x, 0) + ln 2. Raises
    ValueError if the arrays differ in length.
    """
    position = as_numbers("x", x, 1)
    middle, low, high = (same_shape(name, values, len(position)) for name, values in (("lse", lse), ("lower", lower), ("upper", upper)))
    tie = int(np.abs(position).argmin())
    title = "Log-sum-exp is a smooth maximum: a tie lifts it by ln 2, a clear winner by almost nothing"
    alt = (
        f"Log-sum-exp of x and 0 for x from {short(position[0])} to {short(position[-1])}, between the maximum and the maximum plus ln 2. "
        f"At x = {short(position[tie])} it lies {number(middle[tie] - low[tie])} above the maximum, on the upper bound; "
        f"at x = {short(position[-1])} only {number(middle[-1] - low[-1], 3)} above it, close to the lower bound."
    )
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        ax.fill_between(position, low, high, color=SHADE, linewidth=0)
        draw_lines(ax, position, {"lse(x, 0)": middle})
        ax.plot(position, high, color=INK, linewidth=1.3, linestyle="--", label="max(x, 0) + ln 2")
        ax.plot(position, low, color=INK, linewidth=1.3, linestyle=":", label="max(x, 0)")
        ax.set(xlabel="first score x (the second is 0)", ylabel="value", xlim=(position[0], position[-1]))
        label_ends(ax)


def overflow_ranges(names: Sequence[str], lowest: ArrayLike, highest: ArrayLike) -> None:
    """Show for which scores exp is neither 0 nor infinite, one bar per number format.

    `names`: number formats, e.g. "float16". `lowest`, `highest` (m,): the smallest score whose exp is not 0, and the largest
    whose exp is finite. Raises ValueError if the arrays differ in length.
    """
    low, high = same_shape("lowest", lowest, len(names)), same_shape("highest", highest, len(names))
    title = f"exp overflows early: beyond a score of {number(high[0], 1)} in {names[0]}"
    alt = "Bars from the smallest score whose exp is not 0 to the largest whose exp is finite. " + " ".join(
        f"{name}: {number(a, 1)} to {number(b, 1)}." for name, a, b in zip(names, low, high, strict=True)
    )
    with picture(title=title, alt=alt, height=1.5 + 0.5 * len(names)) as (ax,):
        ax.barh(range(len(names)), high - low, left=low, height=0.55, color=NEUTRAL_STYLES[1][0])
        for row, (a, b) in enumerate(zip(low, high, strict=True)):
            ax.annotate(number(a, 1), (a, row), xytext=(-4, 0), textcoords="offset points", ha="right", va="center", fontsize=LABEL_POINTS)
            ax.annotate(number(b, 1), (b, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=LABEL_POINTS)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(range(len(names)), list(names))
        ax.invert_yaxis()
        ax.set_xscale("symlog", linthresh=10.0)
        ax.set_xticks([-1000, -100, -10, 0, 10, 100, 1000], ["−1000", "−100", "−10", "0", "10", "100", "1000"])
        ax.set(xlabel="score x (a linear axis up to 10, logarithmic beyond)", xlim=(12.0 * float(low.min()), 12.0 * float(high.max())))
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)


def jacobian_heatmap(weights: ArrayLike, jacobian: ArrayLike) -> None:
    """Show weights s beside their Jacobian: row i of the heatmap says how each score moves s_i.

    `weights` (n,): s. `jacobian` (n, n): derivative of s_i (row) by z_j (column). Raises ValueError if `jacobian` is not square
    with the length of `weights`.
    """
    s = as_numbers("weights", weights, 1)
    matrix = same_shape("jacobian", jacobian, len(s), len(s))
    row_sums = matrix.sum(axis=1)
    title = "Raising one score takes from all others; raising all alike changes no weight"
    alt = (
        f"Left, bars of the weights {listed(s)}. Right, their Jacobian as signed colours: positive on the diagonal, "
        f"{listed(np.diag(matrix))}, and negative elsewhere; the largest entry off the diagonal in size is {number(np.min(matrix))}. "
        f"Row sums are {listed(row_sums)}."
    )
    names = [f"$s_{{{i + 1}}}$" for i in range(len(s))]
    with picture(title=title, alt=alt, height=1.5 + 0.55 * len(s), columns=2, width_ratios=[1.0, 1.5], sharey=True) as (left, right):
        drawn = left.barh(range(len(s)), s, height=0.72, color=WEIGHTS)
        left.bar_label(drawn, [number(value) for value in s], padding=3, fontsize=LABEL_POINTS)
        left.set(xlabel="weight", xlim=(0.0, max(1.25 * float(s.max()), 0.05)))
        left.grid(False)
        draw_heatmap(right, matrix, signed=True, annotate=True)
        right.set_aspect("auto")
        right.set_title("∂ weight / ∂ score")
        right.set_xticks(range(len(s)), [f"$z_{{{i + 1}}}$" for i in range(len(s))])
        right.set(xlabel="raised score (input)")
        left.set_yticks(range(len(s)), names)
        left.set_ylabel("output")
        for row, total in enumerate(row_sums):
            right.annotate(
                f"sum {number(float(total))}", (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=LABEL_POINTS
            )


def saturation(sharpness: ArrayLike, norm: ArrayLike, bound: ArrayLike, entropy: ArrayLike, *, max_entropy: float) -> None:
    """Show how the Jacobian's norm, its trace bound and the entropy fall as softmax sharpens.

    `sharpness` (n,): beta, ascending and positive. `norm`, `bound`, `entropy` (n,): spectral norm of J, its bound 1 - sum of s_i
    squared, and entropy of s in nats. `max_entropy`: ln n, the entropy of uniform weights. Raises ValueError if the arrays differ
    in length, or a norm is larger than a bound allows.
    """
    beta = as_numbers("sharpness", sharpness, 1)
    curves = (("norm", norm), ("bound", bound), ("entropy", entropy))
    largest, above, nats = (same_shape(name, values, len(beta)) for name, values in curves)
    if (largest > above + 1e-9).any() or (largest > 0.5 + 1e-9).any():
        raise ValueError(f"norm must exceed neither bound nor one half; got a norm of {number(largest.max(), 3)}")
    top = int(largest.argmax())
    left_over = short(largest[-1]) if largest[-1] >= TINY else "below 10⁻⁶"
    title = f"As one weight takes all, the Jacobian vanishes: at β\u00a0=\u00a0{short(beta[-1])} its norm is {left_over}"
    alt = (
        f"Two panels over the sharpness β from {short(beta[0])} to {short(beta[-1])} on a logarithmic axis. Upper: the spectral norm of "
        f"the Jacobian rises to {number(largest[top])} at β = {short(beta[top])} and falls to {left_over}, never above its trace bound "
        f"or one half. Lower: the entropy falls from {number(nats[0])} to {number(nats[-1])} nats."
    )
    with picture(title=title, alt=alt, height=4.8, rows=2, sharex=True) as (upper, lower):
        draw_lines(upper, beta, {"norm of J": largest, "trace bound": above})
        draw_level(upper, beta, 0.5, "one half")
        draw_lines(lower, beta, {"entropy": nats}, colours={"entropy": WEIGHTS})
        draw_level(lower, beta, max_entropy, "uniform weights")
        upper.set(xscale="log", xlim=(beta[0], beta[-1]), ylim=(0.0, None), ylabel="spectral norm")
        tick_decades(upper.xaxis)
        lower.set(xlabel="sharpness β = 1 / T", ylim=(0.0, 1.12 * max_entropy), ylabel="entropy (nats)")
        label_ends(upper, 0.36)
        label_ends(lower, 0.36)


def temperature_bars(scores: ArrayLike, weights: ArrayLike, temperatures: ArrayLike) -> None:
    """Show the weights of the same scores at several temperatures, one panel each.

    `scores` (n,): z. `weights` (m, n): one row per temperature. `temperatures` (m,): T. Raises ValueError if shapes do not fit.
    """
    z, kelvin = as_numbers("scores", scores, 1), as_numbers("temperatures", temperatures, 1)
    rows = same_shape("weights", weights, len(kelvin), len(z))
    names = [f"T = {short(value)}" for value in kelvin]
    title = "At a low temperature the largest scores share the weight, at a high one all do"
    alt = f"Bars of the weights of the scores {listed(z, 1)}, one panel per temperature. " + " ".join(
        f"{name}: {listed(row)}." for name, row in zip(names, rows, strict=True)
    )
    with picture(title=title, alt=alt, height=3.3, columns=len(rows), sharey=True) as axes:
        for ax, name, row in zip(axes, names, rows, strict=True):
            draw_bars(ax, row[None], ["weight"], [WEIGHTS])
            ax.set_title(name)
            ax.set_xticks(range(len(z)), [number(float(value), 1) for value in z])
            ax.set(xlabel="score", ylim=(0.0, 1.12))
        axes[0].set_ylabel("weight")


def token_weights(tokens: Sequence[str], scores: ArrayLike, weights: ArrayLike) -> None:
    """Show the scores of one query over the tokens, and beside them the weights that softmax makes of them.

    `scores`, `weights` (len(tokens),): z, and softmax(z). Raises ValueError if the lengths differ.
    """
    z, s = same_shape("scores", scores, len(tokens)), same_shape("weights", weights, len(tokens))
    winner = tokens[int(s.argmax())]
    title = f"Softmax turns the scores of “it” into weights: {number(s.max())} for “{winner}”"
    alt = (
        "Two panels of bars over the tokens of the sentence. Left, the scores: "
        + ", ".join(f"{token} {short(value)}" for token, value in zip(tokens, z, strict=True))
        + ". Right, the weights: "
        + ", ".join(f"{token} {number(value, 3)}" for token, value in zip(tokens, s, strict=True))
        + "."
    )
    with picture(title=title, alt=alt, height=3.4, columns=2) as (left, right):
        for ax, values, label, colour, digits in ((left, z, "score", NEUTRAL_STYLES[0][0], 0), (right, s, "weight", WEIGHTS, 2)):
            draw_bars(ax, values[None], [label], [colour], digits=digits)
            ax.set_xticks(range(len(tokens)), list(tokens), rotation=40, ha="right", rotation_mode="anchor")
            ax.set_ylabel(label)
        right.set_ylim(0.0, 1.12)


def softmax_explorable() -> None:
    """Show four scores and a temperature as sliders, with weights, entropy, Jacobian and the norms of it and of J / T."""
    publish_explorable(
        CARDS / "softmax",
        "Sliders for four scores and a temperature; bars of the weights, their entropy, largest weight, Jacobian J, and the spectral norms "
        "of J and of J / T. Buttons set a uniform case, a tie, add 100 to all scores, and put all back.",
    )


def machine() -> None:
    """Show the machine with the softmax lit."""
    show_machine("softmax")
