"""Figures of the lesson scaling: how scores are spread, what that does to the weights, and to a training."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_legend_below, as_numbers, draw_lines, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, SCORES
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"
LAYERS = ("scaled", "unscaled", "factor in W_Q")
LAYER_COLOURS = dict(zip(LAYERS, (colour for colour, _ in NEUTRAL_STYLES), strict=False))
LAYER_DASHES = [dashes for _, dashes in NEUTRAL_STYLES[: len(LAYERS)]]
WAYS = {
    "squared error": "as it is",
    "long ones cut": "long ones cut",
    "silent wrong raised": "silent wrong raised",
    "silent wrong turned": "silent wrong turned",
    "silent right raised": "silent right raised",
    "silent ones raised": "all silent raised",
    "equal lengths": "equal lengths",
    "minus log weight": "log weight",
}
RAISED = {loss: WAYS[loss] for loss in ("squared error", "silent ones raised", "silent wrong raised", "silent right raised")}


def towards_normal(x: ArrayLike, densities: Mapping[str, ArrayLike], normal: ArrayLike, *, title: str | None = None) -> None:
    """Show densities of scaled scores against the standard normal one, on a logarithmic axis that makes the tails visible.

    `x` (n,): scaled scores. `densities`, each (n,): one curve for each d_k; entries that are not positive leave a gap. `normal`
    (n,): the standard normal density. `title`: the finding, if it is another one. Raises ValueError if a curve has another length
    than `x`.
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
        draw_lines(ax, position, {_typeset(name): values for name, values in shown.items()})
        ax.plot(position, limit, color=INK, linewidth=1.4, linestyle=":", label="normal")
        ax.set(xlabel=r"score / $\sqrt{d_k}$", ylabel="density", yscale="log", xlim=(position[0], position[-1]), ylim=(1e-4, 3.0))
        tick_decades(ax.yaxis)
        ax.legend(loc="upper left", fontsize=9.5)


def broken_assumptions(scores: Mapping[str, ArrayLike]) -> None:
    """Show the spread of scaled scores when one assumption is broken at a time, one panel each, beside the standard normal density.

    `scores`, each (n,): by the name of what is broken: many scaled scores.
    """
    cases = {name: as_numbers(f"scores[{name!r}]", values, 1) for name, values in scores.items()}
    edges = np.linspace(-8, 12, 81)
    middle = (edges[1:] + edges[:-1]) / 2
    said = {name: f"mean {number(values.mean(), 1)}, variance {number(values.var(), 1)}" for name, values in cases.items()}
    title = "Not every broken assumption moves the mean or the variance"
    alt = "Histograms of scaled scores, each with the standard normal curve. " + " ".join(f"{name}: {text}." for name, text in said.items())
    columns = 3
    rows = -(-len(cases) // columns)
    with picture(title=title, alt=alt, height=1.0 + 2.0 * rows, rows=rows, columns=columns, sharex=True, sharey=True) as axes:
        for ax, (name, values) in zip(axes, cases.items(), strict=False):
            shares = np.histogram(values, edges)[0] / (len(values) * np.diff(edges))
            ax.fill_between(middle, shares, step="mid", color=SCORES, linewidth=0)
            ax.plot(middle, np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi), color=INK, linewidth=1.4, linestyle="--")
            ax.set_title(f"{name}\n{said[name]}", fontsize=9.5)
        for ax in axes[len(cases) :]:
            ax.set_axis_off()
        for ax in axes[len(cases) - columns : len(cases)]:
            ax.set_xlabel(r"score / $\sqrt{d_k}$")
        for ax in axes[::columns]:
            ax.set_ylabel("density")


def rows_of_scores(scores: ArrayLike) -> None:
    """Show scores as dots, one line for each query: how far a row is spread, and how far the rows lie apart.

    `scores` (q_len, kv_len): a row for each query.
    """
    table = as_numbers("scores", scores, 2)
    means, deviation = table.mean(axis=1), float(np.sqrt(table.var(axis=1).mean()))
    alt = (
        f"Scores of {table.shape[1]} keys as dots, one line for each of {table.shape[0]} queries. The means of the rows lie between "
        f"{number(means.min())} and {number(means.max())}; the standard deviation within a row is {number(deviation)}."
    )
    with picture(title="Rows may lie far apart and be narrow: softmax sees one row at a time", alt=alt, height=2.9) as (ax,):
        for place, row in enumerate(table):
            ax.scatter(row, np.full(len(row), place), s=42, color=SCORES, edgecolor=INK, linewidth=0.8, clip_on=False)
            ax.plot(row.mean(), place, "|", color=INK, markersize=18, markeredgewidth=2, clip_on=False)
        ax.set(xlabel="score (upright stroke: mean of the row)", ylabel="query", yticks=range(len(table)), ylim=(len(table) - 0.5, -0.5))


def gradient_lengths(first: Sequence[Mapping[str, Mapping[str, Mapping[str, ArrayLike]]]]) -> None:
    """Show how long the gradients of single queries are before the first step, one panel for each d_k.

    `first`: for each seed, by d_k and by layer, "scaled" and "unscaled" among them: "deciles", the nine deciles of the length.
    """
    drawn = {d_k: {name: _of_seeds([found[d_k][name]["deciles"] for found in first]) for name in LAYERS[:2]} for d_k in first[0]}
    share = np.arange(10, 100, 10)
    alt = (
        "Lengths of single queries' gradients with respect to the scores, from the shortest tenth to the longest, means of three seeds. "
        + " ".join(
            f"d_k = {d_k}, {name}: {listed(rows.mean(axis=0)[[0, 4, 8]])} at 10, 50 and 90 percent."
            for d_k, pair in drawn.items()
            for name, rows in pair.items()
        )
    )
    title = _typeset("Without the scale more gradients are short, and at large d_k most of them are")
    with picture(title=title, alt=alt, height=3.4, columns=len(drawn), sharey=True) as axes:
        for ax, (d_k, pair) in zip(axes, drawn.items(), strict=True):
            draw_lines(ax, share, {name: rows.mean(axis=0) for name, rows in pair.items()}, colours=LAYER_COLOURS, points=True)
            ax.set(xlabel="percent of queries below", xticks=[10, 50, 90], ylim=(0.0, None))
            ax.set_title(_typeset(f"d_k = {d_k}"))
        axes[0].set_ylabel("length of the gradient")
        add_legend_below(axes[0], 2)


def steps_against_step_size(
    steps: Sequence[Mapping[str, Mapping[str, Mapping[str, ArrayLike]]]], sizes: Mapping[str, Sequence[float]], *, most: int, d_k: int
) -> None:
    """Show how many steps a layer needs against the step size, one panel for each optimizer.

    `steps`: for each seed, by optimizer, d_k and layer: the steps for each step size; a training that did not learn has more than
    `most`. `sizes`: by optimizer: the step sizes. `d_k`: entries of a query. Raises ValueError if there are not as many steps as
    step sizes.
    """
    drawn = {
        name: {layer: _of_seeds([found[name][str(d_k)][layer] for found in steps], len(sizes[name])) for layer in LAYERS} for name in sizes
    }
    best = {name: {layer: rows.min(axis=1) for layer, rows in layers.items()} for name, layers in drawn.items()}
    head = f"Steps until learnt against the step size, d_k = {d_k}, each seed and their median; a cross where the median did not learn. "
    alt = f"{head}Fewest steps, over the seeds. " + " ".join(
        f"{name}: " + ", ".join(f"{number(found.min(), 0)} to {number(found.max(), 0)} {layer}" for layer, found in layers.items()) + "."
        for name, layers in best.items()
    )
    title = _typeset(f"At d_k = {d_k} the best unscaled run is slower than the best of the other two")
    with picture(title=title, alt=alt, height=3.9, columns=len(drawn), sharey=True) as axes:
        for ax, (name, layers) in zip(axes, drawn.items(), strict=True):
            x = np.asarray(sizes[name])
            levels = most * np.array([1.15, 1.35, 1.6])  # of the crosses
            for rows, (layer, colour), dashes, level in zip(layers.values(), LAYER_COLOURS.items(), LAYER_DASHES, levels, strict=True):
                middle = np.median(rows, axis=0)
                ax.plot(x, np.where(rows <= most, rows, np.nan).T, color=colour, linewidth=0.7, alpha=0.5)
                learnt = np.where(middle <= most, middle, np.nan)
                ax.plot(x, learnt, color=colour, linestyle=dashes, marker="o", markersize=4, label=_typeset(layer))
                ax.plot(x[middle > most], np.full((middle > most).sum(), level), "x", color=colour, markersize=6)
            ax.plot([], [], "x", color=INK, label=f"not learnt in {most}")
            ax.set(xscale="log", yscale="log", xlabel="step size", ylim=(2, 1.9 * most))
            ax.xaxis.set_major_locator(FixedLocator([*map(float, x[::2])]))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.yaxis.set_major_locator(FixedLocator([2, 5, 10, 20, 50, 100]))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.yaxis.set_minor_locator(NullLocator())
            ax.set_title(name)
        axes[0].set_ylabel("steps until learnt")
        add_legend_below(axes[0], 4)


def best_steps(
    best: Sequence[Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]], *, widths: Sequence[int], ways: Mapping[str, str] = WAYS
) -> None:
    """Show the fewest steps over all step sizes with and without the scale, a dot for each seed, one panel for each d_k and optimizer.

    `best`: for each seed, by optimizer, d_k, loss and layer: the fewest steps. `widths`: which d_k are shown, a row of panels
    each. `ways`: which losses are shown, and under what names.
    """
    panels = [(d_k, name) for d_k in widths for name in best[0]]
    dots = {
        (d_k, name, layer): np.array([[found[name][str(d_k)][loss][layer] for loss in ways] for found in best])
        for d_k, name in panels
        for layer in LAYERS[:2]
    }
    alt = f"Dots of the fewest steps until learnt, one for each seed, for {', '.join(ways.values())}; their means are: " + " ".join(
        f"d_k = {d_k}, {name}, {layer}: {listed(rows.mean(axis=0), 1)}." for (d_k, name, layer), rows in dots.items()
    )
    title = "Raising the silent queries that are right removes more of the delay than raising the wrong ones"
    with picture(
        title=title, alt=alt, height=1.2 + 2.3 * len(widths), rows=len(widths), columns=len(best[0]), sharex=True, sharey=True
    ) as axes:
        for ax, (d_k, name) in zip(axes, panels, strict=True):
            for layer, shift in zip(LAYERS[:2], (-0.14, 0.14), strict=True):
                rows, colour = dots[d_k, name, layer], LAYER_COLOURS[layer]
                places = np.arange(len(ways)) + shift
                ax.hlines(rows.mean(axis=0), places - 0.11, places + 0.11, color=colour, linewidth=1.6)
                beside = np.linspace(-0.05, 0.05, len(rows))[:, None]
                marker = "o" if layer == LAYERS[0] else "D"
                ax.plot((places + beside).ravel(), rows.ravel(), marker, color=colour, markersize=4.5, label=layer, clip_on=False)
            names = [shown.replace(" ", "\n") if len(shown) > 9 or len(ways) > 6 else shown for shown in ways.values()]
            ax.set_xticks(range(len(ways)), names, fontsize=min(10.0, 58 / len(ways)))
            ax.set_title(_typeset(f"{name}, d_k = {d_k}"))
            ax.set(ylim=(0.0, 1.08 * max(rows.max() for rows in dots.values())), xlim=(-0.5, len(ways) - 0.5))
        for ax in axes[:: len(best[0])]:
            ax.set_ylabel("fewest steps until learnt")
        add_legend_below(axes[len(panels) - len(best[0])], 2)


def _typeset(text: str) -> str:
    """Set the symbols of a label as mathematics."""
    return re.sub(r"\b(?:d_k|W_[QK])\b", r"$\g<0>$", text)


def _of_seeds(rows: Sequence[ArrayLike], length: int = 9) -> np.ndarray:
    return np.stack([same_shape("numbers of a seed", row, length) for row in rows])


def initial_variances(names: Sequence[str], expected: ArrayLike, measured: ArrayLike) -> None:
    """Show the variance of a scaled score under several initialisations of its two projections.

    `names`: the initialisations. `expected`, `measured` (n,): the variance by the formula, and that of random draws; n names.
    Raises ValueError if lengths differ.
    """
    formula, drawn = same_shape("expected", expected, len(names)), same_shape("measured", measured, len(names))
    charts.bars(
        names,
        {"by the formula": formula, "measured": drawn},
        title="After layer normalisation the scores still have the variance that the initialisation gives them",
        alt="Bars of the variance of a scaled score. "
        + " ".join(
            f"{name}: {number(a, 3)} by the formula, {number(b, 3)} measured." for name, a, b in zip(names, formula, drawn, strict=True)
        ),
        x_label=_typeset("initialisation of W_Q and W_K"),
        y_label="variance of a scaled score",
        digits=3,
    )


def scale_explorable() -> None:
    """Sweep d_k over powers of two: histogram of the scores, softmax weights and norms of the Jacobian, with the scale and without."""
    publish_explorable(
        CARDS / "scale",
        "What 64 random queries make of 64 random keys, with and without the scale. Sliders for d_k, in powers of two from 1 to 1024, "
        "and for one of the queries; a button that sweeps. Charts: a histogram of 4096 scores, the 16 largest weights of the query, and "
        "the norm of the softmax Jacobian against d_k, with a dot for each query. Divided by the square root of d_k hardly anything "
        "changes; not divided, one key takes nearly all the weight, and more and more queries have a Jacobian near 0.",
    )


def machine() -> None:
    """Show the machine with the scale lit."""
    show_machine("scale")
