"""Figures of the lesson additive: what an additive score looks like, and what an aligner is worth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, add_colour_bar, as_numbers, draw_lines, each_of_shape, label_ends, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.aligner import aligner as aligner
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, INK, SHADE, SIGNED_MAP
from attn_course.figures.words import each_listed, listed, number, short

CARDS = Path(__file__).parent / "explorables"
LEVELS = 15
NAME_WIDTH = 13  # characters on a line above a panel


def score_surfaces(axis: ArrayLike, maps: Mapping[str, ArrayLike]) -> None:
    """Show scores over all pairs of a query and a key that are numbers, one panel for each kind of score.

    `axis` (n,): ascending numbers, for queries and keys alike. `maps`, each (n, n): scores by the name of the kind: row = query,
    column = key. Each panel has its own scale of colours, purple above 0. Raises ValueError if shapes do not fit or there is no
    map.
    """
    x = as_numbers("axis", axis, 1)
    fields = each_of_shape("maps", maps, len(x), len(x))
    high, low = int(np.argmin(np.abs(x - x[-1] / 2))), int(np.argmin(np.abs(x + x[-1] / 2)))
    title = "A sum has the same slope everywhere; tanh bends it; only a bias gives a ridge where query and key agree"
    alt = f"Level lines of scores over queries and keys from {short(x[0])} to {short(x[-1])}, one panel for each kind. " + " ".join(
        f"{name}: from {number(field.min(), 1)} to {number(field.max(), 1)}; at q = k = {short(x[high])} it is "
        f"{number(field[high, high], 1)}, at q = k = {short(x[low])} {number(field[low, low], 1)}, at q = {short(x[high])} and "
        f"k = {short(x[low])} {number(field[high, low], 1)}."
        for name, field in fields.items()
    )
    with picture(title=title, alt=alt, height=3.2, columns=len(fields), sharey=True) as axes:
        for ax, (name, field) in zip(axes, fields.items(), strict=True):
            reach = float(np.abs(field).max()) or 1.0
            levels = np.linspace(-reach, reach, LEVELS)
            drawn = ax.contourf(x, x, field, levels, cmap=SIGNED_MAP)
            add_colour_bar(
                drawn,
                ax,
                "",
                location="bottom",
                ticks=[-reach, 0.0, reach],
                format=FuncFormatter(lambda value, _: number(value, 1).removesuffix(".0")),
            )
            ax.contour(x, x, field, levels[1:-1], colors=DARK, linewidths=0.35, alpha=0.5, linestyles="solid")
            if field.min() < 0.0 < field.max():
                ax.contour(x, x, field, [0.0], colors=DARK, linewidths=1.4)
            ax.plot(x, x, color=DARK, linestyle=":", linewidth=1.0)
            ax.grid(False)
            ax.set(title=fill(name, NAME_WIDTH), xlabel="key k", aspect="equal")
            ax.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
            ax.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axes[0].set_ylabel("query q")


def right_key(curves: Mapping[str, ArrayLike]) -> None:
    """Show how the share of lookups that find the right key grows in a training.

    `curves`, each (steps,): shares after each step, by the name of the score. Raises ValueError if lengths differ or there is no
    curve.
    """
    shares = each_of_shape("curves", curves, len(np.asarray(next(iter(curves.values()), []))))
    steps = len(next(iter(shares.values())))
    last = max(1, steps // 6)
    charts.lines(
        np.arange(1, steps + 1),
        shares,
        title="Only with a bias does the additive score find the equal vector, and there it beats the product",
        alt=f"Share of lookups with the largest weight on the right key over {steps} steps. Mean of the last {last} steps: "
        + ", ".join(f"{name} {number(curve[-last:].mean())}" for name, curve in shares.items())
        + ".",
        x_label="step",
        y_label="right key found",
        y_limits=(0.0, 1.05),
        references={"most an odd score can": 0.5},
    )


def memory(lengths: ArrayLike, hidden: ArrayLike, scores: ArrayLike) -> None:
    """Show the bytes of the largest array that attention makes for all pairs of positions.

    `lengths` (n,): numbers of positions. `hidden`, `scores` (n,): megabytes at each length: of the hidden layer of an additive
    score, and of the scores of a dot product. Raises ValueError if lengths differ.
    """
    positions = as_numbers("lengths", lengths, 1)
    additive, dot = same_shape("hidden", hidden, len(positions)), same_shape("scores", scores, len(positions))
    longest, large, small = number(positions[-1], 0), number(additive[-1], 0), number(dot[-1], 0)
    charts.lines(
        positions,
        {"additive, hidden layer": additive, "dot product, scores": dot},
        title=f"At {longest} positions the hidden layer of one head fills {number(additive[-1] / 1e3, 0)} GB, the scores {small} MB",
        alt=f"Megabytes against positions from {number(positions[0], 0)} to {longest} on two logarithmic axes: two parallel lines, the "
        f"additive one {number(additive[-1] / dot[-1], 0)} times higher; at {longest} positions {large} MB against {small} MB.",
        x_label="positions T",
        y_label="MB",
        x_log=True,
        y_log=True,
    )


def spread_of_scores(widths: ArrayLike, spread: Mapping[str, ArrayLike]) -> None:
    """Show how widely scores spread before any training, over the number of features.

    `widths` (n,): numbers of features. `spread`, each (n,): standard deviations of the scores, by the name of the score. Raises
    ValueError if lengths differ or there is no score.
    """
    features = as_numbers("widths", widths, 1)
    deviations = each_of_shape("spread", spread, len(features))
    charts.lines(
        features,
        deviations,
        title="Additive scores spread alike at every width, and so do dot products once they are scaled",
        alt=f"Deviation of scores against the width d = {listed(features, 0)}, logarithmic axes. {each_listed(deviations)}",
        x_label="width d",
        y_label="deviation of the scores",
        x_log=True,
        y_log=True,
        points=True,
    )


def steps_until_learnt(widths: Sequence[int], steps: Mapping[str, ArrayLike]) -> None:
    """Show how many steps each score needs to learn a dictionary, at several hidden widths.

    `steps`, each (n_widths,): median steps, by the name of the score; 451 for a run that did not learn in the 450 steps of its
    budget. Raises ValueError if lengths differ or there is no score.
    """
    needed = each_of_shape("steps", steps, len(widths))
    charts.bars(
        [str(width) for width in widths],
        needed,
        title="Wider learns faster, but not without the scale (451: not within 450 steps)",
        alt=f"Median steps until learnt for d_h = {listed(widths, 0)}; 451 means not within 450. {each_listed(needed, 0)}",
        x_label="hidden width $d_h$",
        y_label="steps until learnt",
        digits=0,
    )


def accuracy_by_length(lengths: ArrayLike, shares: Mapping[str, ArrayLike], *, longest_trained: float) -> None:
    """Show the share of right words against the length of a sentence, with the lengths that were never trained on grey ground.

    `lengths` (n,): words of a sentence, ascending. `shares`, each (n_seeds, n): shares between 0 and 1, by the name of the model;
    a curve is their mean, a band their range. `longest_trained`: longest sentence of the training. Raises ValueError if a model
    has another number of shares, or there is none.
    """
    x = as_numbers("lengths", lengths, 1)
    seeds = len(np.asarray(next(iter(shares.values()), [])))
    bands = each_of_shape("shares", shares, seeds, len(x))
    curves = {name: band.mean(axis=0) for name, band in bands.items()}
    title = "One fixed vector fades with every word; an aligner holds on as far as it was trained"
    alt = f"Share of right words for sentences of {listed(x, 0)} words, trained up to {number(longest_trained, 0)}. {each_listed(curves)}"
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        ax.axvspan(longest_trained, float(x.max()), color=SHADE, linewidth=0, zorder=0)
        ax.text(longest_trained + 0.15, 0.02, "longer than any\nin the training", fontsize=LABEL_POINTS, color=INK, va="bottom")
        draw_lines(ax, x, curves, points=True)
        for line in list(ax.get_lines()):
            band = bands[str(line.get_label())]
            ax.fill_between(x, band.min(axis=0), band.max(axis=0), color=line.get_color(), alpha=0.22, linewidth=0)
        ax.set_xticks(x, [number(float(length), 0) for length in x])
        ax.set(xlabel="words of the sentence", ylabel="share of words right", ylim=(0.0, 1.04), xlim=(float(x.min()), float(x.max())))
        label_ends(ax)


def alignment(weights: ArrayLike) -> None:
    """Show where a translator looks in its source for each word that it writes.

    `weights` (n_words + 1, n_words): weights of the source words, one row for each word written and one for the end. Raises
    ValueError if there is not one row more than columns.
    """
    looks = as_numbers("weights", weights, 2)
    words = looks.shape[1]
    looks = same_shape("weights", looks, words + 1, words)
    charts.heatmap(
        looks,
        rows=[*(f"word {place}" for place in range(1, words + 1)), "end"],
        columns=[f"word {place}" for place in range(1, words + 1)],
        row_label="written",
        column_label="source",
        title="Nobody told it the order: the weights run backwards through the source",
        alt=f"Alignment of one fresh sentence of {words} words: rows are the words written and the end, columns the source words. "
        f"From the first row to the last, the largest weight lies on source word {listed(looks.argmax(axis=1) + 1, 0)}.",
    )


def additive_explorable() -> None:
    """Show four keys scored by two tanh units and by a dot product, with sliders for the query, the bias and the size of v."""
    publish_explorable(
        CARDS / "additive",
        "Sliders for a query that is a number, the bias of two tanh units and the size of their score vector; scores, weights and curves "
        "for four keys, additive beside the dot product. Buttons put the query on a key or far away, and take the bias away, "
        "which leaves the units blind; one puts all back.",
    )


def machine() -> None:
    """Show the machine with where a score is made lit."""
    show_machine("comparison")
