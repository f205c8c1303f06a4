"""Figures of the lesson softmax about the derivative, saturation and temperature. They draw the numbers they are given."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_bars, draw_heatmap, draw_lines, label_ends, same_length
from attn_course.figures.palette import GRADIENT, INK, REFERENCE, WEIGHTS
from attn_course.figures.words import listed, number, short

TINY = 1e-6  # smaller norms are rounding errors of the caller as much as facts


def jacobian_heatmap(weights: ArrayLike, jacobian: ArrayLike, *, title: str | None = None, alt: str | None = None) -> None:
    """Show weights s beside their Jacobian: row i of the heatmap says how each score moves s_i.

    Parameters
    ----------
    weights : (n,) array_like
        s.
    jacobian : (n, n) array_like
        Derivative of s_i (row) by z_j (column).
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If `jacobian` is not square with the length of `weights`.
    """
    matrix = as_numbers("jacobian", jacobian, 2)
    s = same_length("weights", weights, len(matrix))
    if matrix.shape != (len(s), len(s)):
        raise ValueError(f"jacobian must have shape ({len(s)}, {len(s)}); got {matrix.shape}")
    row_sums = matrix.sum(axis=1)
    title = title or "Raising one score takes from all others: every row and column sums to zero"
    alt = alt or (
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
        image = draw_heatmap(right, matrix, signed=True)
        right.set_aspect("auto")
        right.set_xticks(range(len(s)), [f"$z_{{{i + 1}}}$" for i in range(len(s))])
        right.set(xlabel="raised score (input)")
        left.set_yticks(range(len(s)), names)
        left.set_ylabel("output")
        for row, total in enumerate(row_sums):
            right.annotate(
                f"sum {number(float(total))}", (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=LABEL_POINTS
            )
        bar = right.figure.colorbar(image, ax=right, label="∂ weight / ∂ score", fraction=0.06, pad=0.05)
        bar.outline.set_visible(False)


def saturation(
    sharpness: ArrayLike,
    norm: ArrayLike,
    bound: ArrayLike,
    entropy: ArrayLike,
    *,
    max_entropy: float,
    title: str | None = None,
    alt: str | None = None,
) -> None:
    """Show how the Jacobian's norm, its trace bound and the entropy fall as softmax sharpens.

    Parameters
    ----------
    sharpness : (n,) array_like
        beta, ascending and positive.
    norm, bound, entropy : (n,) array_like
        Spectral norm of J, its bound 1 - sum of s_i squared, and entropy of s in nats.
    max_entropy : float
        ln n, the entropy of uniform weights.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If the arrays differ in length, or a norm is larger than a bound allows.
    """
    beta = as_numbers("sharpness", sharpness, 1)
    curves = (("norm", norm), ("bound", bound), ("entropy", entropy))
    largest, above, nats = (same_length(name, values, len(beta)) for name, values in curves)
    if (largest > above + 1e-9).any() or (largest > 0.5 + 1e-9).any():
        raise ValueError(f"norm must exceed neither bound nor one half; got a norm of {number(largest.max(), 3)}")
    top = int(largest.argmax())
    left_over = short(largest[-1]) if largest[-1] >= TINY else "below 10⁻⁶"
    title = title or f"Saturation kills the gradient: at β\u00a0=\u00a0{short(beta[-1])} the Jacobian's norm is {left_over}"
    alt = alt or (
        f"Two panels over the sharpness β from {short(beta[0])} to {short(beta[-1])} on a logarithmic axis. Upper: the spectral norm of "
        f"the Jacobian rises to {number(largest[top])} at β = {short(beta[top])} and falls to {left_over}, never above its trace bound "
        f"or one half. Lower: the entropy falls from {number(nats[0])} to {number(nats[-1])} nats."
    )
    height = 4.8
    with picture(title=title, alt=alt, height=height, rows=2, sharex=True) as (upper, lower):
        draw_lines(upper, beta, {"norm of J": largest, "trace bound": above}, colours={"norm of J": INK, "trace bound": GRADIENT})
        draw_level(upper, beta, 0.5, "one half")
        draw_lines(lower, beta, {"entropy": nats}, colours={"entropy": WEIGHTS})
        draw_level(lower, beta, max_entropy, "uniform weights")
        upper.set(xscale="log", xlim=(beta[0], beta[-1]), ylim=(0.0, None), ylabel="spectral norm")
        upper.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        lower.set(xlabel="sharpness β = 1 / T", ylim=(0.0, 1.12 * max_entropy), ylabel="entropy (nats)")
        label_ends(upper, height * 0.36)
        label_ends(lower, height * 0.36)


def draw_level(ax: Axes, x: np.ndarray, level: float, name: str) -> None:
    """Draw a dotted level across the panel, to be named at its right end."""
    ax.plot(x[[0, -1]], [level, level], color=REFERENCE, linestyle=":", linewidth=1.4, label=name)


def temperature_bars(
    scores: ArrayLike,
    weights: ArrayLike,
    temperatures: ArrayLike,
    *,
    hide_temperatures: bool = False,
    title: str | None = None,
    alt: str | None = None,
) -> None:
    """Show the weights of the same scores at several temperatures, one panel each.

    Parameters
    ----------
    scores : (n,) array_like
        z.
    weights : (m, n) array_like
        One row per temperature.
    temperatures : (m,) array_like
        T.
    hide_temperatures : bool
        Name the panels A, B, C instead, in picture and words: for a task that asks which is which.
    title, alt : str, optional
        Replace the texts made from the numbers.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    z, rows = as_numbers("scores", scores, 1), as_numbers("weights", weights, 2)
    kelvin = same_length("temperatures", temperatures, len(rows))
    if rows.shape[1] != len(z):
        raise ValueError(f"weights must have shape ({len(kelvin)}, {len(z)}); got {rows.shape}")
    names = [chr(ord("A") + index) if hide_temperatures else f"T = {short(value)}" for index, value in enumerate(kelvin)]
    if title is None:
        title = (
            "Same scores, different temperatures: which panel is which?"
            if hide_temperatures
            else "A low temperature picks the winner, a high one spreads the weight"
        )
    alt = alt or (
        f"Bars of the weights of the scores {listed(z, 1)}, one panel per temperature. "
        + " ".join(f"{name}: {listed(row)}." for name, row in zip(names, rows, strict=True))
    )
    with picture(title=title, alt=alt, height=3.3, columns=len(rows), sharey=True) as axes:
        for ax, name, row in zip(axes, names, rows, strict=True):
            draw_bars(ax, row[None], ["weight"], [WEIGHTS])
            ax.set_title(name)
            ax.set_xticks(range(len(z)), [number(float(value), 1) for value in z])
            ax.set(xlabel="score", ylim=(0.0, 1.12))
        axes[0].set_ylabel("weight")
