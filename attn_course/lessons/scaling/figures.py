"""Figures of the lesson scaling: how scores are spread, what that does to the weights, and to a training.

They draw the numbers they are given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_legend_below, as_numbers, draw_level, draw_lines, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, SCORES
from attn_course.figures.ticks import tick_at, tick_decades
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"
SCALE_COLOURS = dict(zip(("scaled", "unscaled"), (colour for colour, _ in NEUTRAL_STYLES), strict=False))


def towards_normal(x: ArrayLike, densities: Mapping[str, ArrayLike], normal: ArrayLike, *, title: str | None = None) -> None:
    """Show densities of scaled scores against the standard normal one, on a logarithmic axis that makes the tails visible.

    Parameters
    ----------
    x : (n,) array_like
        Scaled scores.
    densities : mapping of str to (n,) array_like
        One curve for each d_k; entries that are not positive leave a gap.
    normal : (n,) array_like
        The standard normal density.
    title : str, optional
        The finding, if it is another one.

    Raises
    ------
    ValueError
        If a curve has another length than `x`.
    """
    position, limit = as_numbers("x", x, 1), same_shape("normal", normal, len(np.asarray(x)))
    curves = each_of_shape("densities", densities, len(position))
    far = {name: short(float(values[-1])) for name, values in curves.items()}
    title = title or "Few dimensions give a sharp peak and heavy tails; many give the normal curve"
    alt = (
        f"Densities of scaled scores from {short(position[0])} to {short(position[-1])} on a logarithmic axis, with the standard normal "
        f"density. At {short(position[-1])} the normal density is {short(float(limit[-1]))}; the others are "
        + ", ".join(f"{value} for {name}" for name, value in far.items())
        + ". The higher a curve lies in the tails, the sharper its peak at 0."
    )
    with picture(title=title, alt=alt, height=3.9) as (ax,):
        shown = {name: np.where(values > 0.0, values, np.nan) for name, values in curves.items()}
        draw_lines(ax, position, shown)
        ax.plot(position, limit, color=INK, linewidth=1.4, linestyle=":", label="normal")
        ax.set(xlabel="score / √d_k", ylabel="density", yscale="log", xlim=(position[0], position[-1]), ylim=(1e-4, 3.0))
        tick_decades(ax.yaxis)
        ax.legend(loc="upper left", fontsize=9.5)


def broken_assumptions(
    centres: ArrayLike, densities: Mapping[str, ArrayLike], normal: ArrayLike, moments: Mapping[str, tuple[float, float]]
) -> None:
    """Show the spread of scaled scores when one assumption is broken at a time, one panel each.

    Parameters
    ----------
    centres : (n,) array_like
        Middle of each bin.
    densities : mapping of str to (n,) array_like
        By the name of what is broken: the share of scores in each bin, divided by its width.
    normal : (n,) array_like
        The standard normal density, which the unbroken case follows nearly.
    moments : mapping of str to (mean, variance)
        Of the same cases.

    Raises
    ------
    ValueError
        If lengths or names do not fit.
    """
    middle = as_numbers("centres", centres, 1)
    limit = same_shape("normal", normal, len(middle))
    cases = each_of_shape("densities", densities, len(middle))
    if set(moments) != set(cases):
        raise ValueError(f"moments must have the names of densities, {list(cases)}; got {list(moments)}")
    said = {name: f"mean {number(moments[name][0], 1)}, variance {number(moments[name][1], 1)}" for name in cases}
    title = "Mean 0 and variance 1 hold while the assumptions do, and no longer"
    alt = "Histograms of scaled scores, each with the standard normal curve. " + " ".join(f"{name}: {text}." for name, text in said.items())
    columns = 3
    rows = -(-len(cases) // columns)
    with picture(title=title, alt=alt, height=1.0 + 2.0 * rows, rows=rows, columns=columns, sharex=True, sharey=True) as axes:
        for ax, (name, values) in zip(axes, cases.items(), strict=False):
            ax.fill_between(middle, values, step="mid", color=SCORES, linewidth=0)
            ax.plot(middle, limit, color=INK, linewidth=1.4, linestyle="--")
            ax.set_title(f"{name}\n{said[name]}", fontsize=9.5)
        for ax in axes[len(cases) :]:
            ax.set_axis_off()
        for ax in axes[len(cases) - columns : len(cases)]:
            ax.set_xlabel("score / √d_k")
        for ax in axes[::columns]:
            ax.set_ylabel("density")


def spread_and_softmax(
    d_k: ArrayLike, entropy: Mapping[str, ArrayLike], largest: Mapping[str, ArrayLike], norm: Mapping[str, ArrayLike], *, n_keys: int
) -> None:
    """Show entropy, largest weight and Jacobian norm against d_k, with and without the scale.

    Parameters
    ----------
    d_k : (n,) array_like
        Ascending and positive.
    entropy, largest, norm : mapping of {"scaled", "unscaled"} to (n,) array_like
        Means over many rows: entropy in nats, largest weight, spectral norm of the Jacobian.
    n_keys : int
        Keys in a row.

    Raises
    ------
    ValueError
        If lengths or names do not fit.
    """
    widths = as_numbers("d_k", d_k, 1)
    panels = {"entropy (nats)": entropy, "largest weight": largest, "norm of J": norm}
    for argument, curves in zip(("entropy", "largest", "norm"), panels.values(), strict=True):
        if set(curves) != set(SCALE_COLOURS):
            raise ValueError(f"{argument} must have the names {list(SCALE_COLOURS)}; got {list(curves)}")
    drawn = {label: {name: same_shape(label, curves[name], len(widths)) for name in SCALE_COLOURS} for label, curves in panels.items()}
    title = "Without the scale one key takes the whole row as d_k grows; with it hardly anything changes"
    alt = f"Three panels over d_k from {short(widths[0])} to {short(widths[-1])}, {n_keys} keys in a row. " + " ".join(
        f"{label}: scaled from {listed(c['scaled'][[0, -1]]).replace(' and ', ' to ')}, "
        f"unscaled from {listed(c['unscaled'][[0, -1]]).replace(' and ', ' to ')}."
        for label, c in drawn.items()
    )
    with picture(title=title, alt=alt, height=3.3, columns=3, sharex=True) as axes:
        for ax, (label, curves) in zip(axes, drawn.items(), strict=True):
            draw_lines(ax, widths, curves, colours=SCALE_COLOURS, points=True)
            ax.set(xscale="log", xlabel="d_k", ylim=(0.0, 1.1 * max(float(c.max()) for c in curves.values())))
            ax.set_title(label)
            tick_at(ax, widths)
        add_legend_below(axes[0], 2)


def two_trainings(curves: Mapping[str, Mapping[str, ArrayLike]], *, chance: float, d_k: int) -> None:
    """Show accuracy against training step with and without the scale, one panel for each start.

    Parameters
    ----------
    curves : mapping of str to mapping of {"scaled", "unscaled"} to (n_seeds, n_steps) array_like
        By start: accuracies. Each seed is a thin line, their mean a thick one.
    chance : float
        Accuracy of guessing.
    d_k : int
        Entries of a query.

    Raises
    ------
    ValueError
        If names do not fit.
    """
    panels = {
        start: {name: as_numbers(f"curves[{start!r}][{name!r}]", rows, 2) for name, rows in pair.items()} for start, pair in curves.items()
    }
    wrong = [start for start, pair in panels.items() if set(pair) != set(SCALE_COLOURS)]
    if wrong or not panels:
        raise ValueError(f"curves must hold {list(SCALE_COLOURS)} for each start; got {wrong or 'no start'}")
    title = f"At d_k = {d_k} the scale speeds up one start, and does nothing for a start that already holds the factor"
    alt = "Accuracy against training step, one panel for each start, means of several seeds. " + " ".join(
        f"{start}: accuracy {number(float(pair['scaled'].mean(axis=0)[pair['scaled'].shape[1] // 4]))} scaled and "
        f"{number(float(pair['unscaled'].mean(axis=0)[pair['unscaled'].shape[1] // 4]))} unscaled after a quarter of the steps."
        for start, pair in panels.items()
    )
    with picture(title=title, alt=alt, height=3.5, columns=len(panels), sharey=True) as axes:
        for ax, (start, pair) in zip(axes, panels.items(), strict=True):
            for name in SCALE_COLOURS:
                rows = pair[name]
                steps = np.arange(1, rows.shape[1] + 1)
                ax.plot(steps, rows.T, color=SCALE_COLOURS[name], linewidth=0.8, alpha=0.5)
                ax.plot(steps, rows.mean(axis=0), color=SCALE_COLOURS[name], linestyle="-" if name == "scaled" else "--", label=name)
            draw_level(ax, steps, chance, "chance")
            ax.set(xlabel="training step", ylim=(0.0, 1.03), xlim=(1, steps[-1]))
            ax.set_title(start)
        axes[0].set_ylabel("right lookups")
        add_legend_below(axes[0], 3)


def initial_variances(names: Sequence[str], expected: ArrayLike, measured: ArrayLike) -> None:
    """Show the variance of a scaled score under several initialisations of its two projections.

    Parameters
    ----------
    names : sequence of str
        The initialisations.
    expected, measured : (n,) array_like
        The variance by the formula, and that of random draws; n names.

    Raises
    ------
    ValueError
        If lengths differ.
    """
    formula, drawn = same_shape("expected", expected, len(names)), same_shape("measured", measured, len(names))
    charts.bars(
        names,
        {"by the formula": formula, "measured": drawn},
        title="After layer normalisation the scores still have the variance that the initialisation gives them",
        alt="Bars of the variance of a scaled score. "
        + " ".join(f"{name}: {number(a)} by the formula, {number(b)} measured." for name, a, b in zip(names, formula, drawn, strict=True)),
        x_label="initialisation of W_Q and W_K",
        y_label="variance of a scaled score",
    )


def scale_explorable() -> None:
    """Sweep d_k over powers of two: histogram of the scores, softmax weights and norms of the Jacobian, with the scale and without."""
    publish_explorable(
        CARDS / "scale",
        "What happens to the softmax as d_k grows, with and without the scale? Sliders for d_k, in powers of two from 1 to 1024, and for "
        "one of 64 queries; a button that sweeps. Charts: a histogram of 4096 scores, the 16 largest weights of the query, and the norm "
        "of the softmax Jacobian against d_k, with a dot for each query. Divided by the square root of d_k hardly anything changes; not "
        "divided, one key takes nearly all the weight, and more and more queries have hardly any gradient.",
    )


def machine() -> None:
    """Show the machine with the scale lit."""
    show_machine("scale")
