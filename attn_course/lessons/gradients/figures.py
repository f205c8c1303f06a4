"""Figures of the lesson gradients: the machine read backwards, what a row gets, learned scores, the error of a difference quotient."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import (
    add_colour_bar,
    as_numbers,
    draw_heatmap,
    draw_lines,
    each_of_shape,
    label_ends,
    name_cells,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, SCORES, WEIGHTS
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed, number, power

CARDS = Path(__file__).parent / "explorables"


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def row_of_gains(tokens: Sequence[str], gains: ArrayLike, weights: ArrayLike) -> None:
    """Show what each weight of one row costs, with the mean under the weights, and the gradients of the scores that result.

    `gains`, `weights` (n,): the gradient at each weight, and the weights. Raises ValueError if lengths differ, or the weights do
    not sum to 1.
    """
    worth = same_shape("gains", gains, len(tokens))
    p = same_shape("weights", weights, len(tokens))
    if not np.isclose(p.sum(), 1.0):
        raise ValueError(f"weights must sum to 1; got a sum of {number(float(p.sum()))}")
    mean = float(p @ worth)
    d_scores = p * (worth - mean)
    title = "A score gets the cost of its weight above the mean of the row, times the weight"
    alt = (
        f"Two bar charts over the tokens {', '.join(tokens)}. Left, dP: {listed(worth, 1)}; each bar goes to it from the dashed line of "
        f"their mean under the weights, {number(mean, 1)}. Right, dS, each bar times its weight: {listed(d_scores)}; their sum is 0."
    )
    with picture(title=title, alt=alt, height=3.4, columns=2) as axes:
        places = np.arange(len(tokens))
        for ax, heights, start, colour in zip(axes, (worth - mean, d_scores), (mean, 0.0), (WEIGHTS, SCORES), strict=True):
            ax.bar(places, heights, 0.7, bottom=start, color=colour)
            ax.axhline(start, color=INK, linewidth=1.6 if start else 0.8, linestyle="--" if start else "-")
            ax.set_xticks(places, tokens, rotation=40, ha="right", rotation_mode="anchor")
            ax.tick_params(axis="x", length=0)
            ax.grid(axis="x", visible=False)
            ax.margins(y=0.1)
        axes[0].set(title=f"dP, bars from its mean, {number(mean, 1)}")
        axes[1].set(title="dS")
        axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
        if np.allclose(p, p[0]):  # fractions that everybody can follow by hand
            parts = np.arange(np.floor(d_scores.min() * len(p)), np.ceil(d_scores.max() * len(p)) + 1)
            axes[1].set_yticks(parts / len(p), [f"{part:+.0f}/{len(p)}".replace("-", "−") if part else "0" for part in parts])


def learned_scores(asks: Sequence[str], answers: Sequence[str], before: ArrayLike, after: ArrayLike) -> None:
    """Show the scores that some words give to others, before training and after.

    `before`, `after` (asks, answers). Raises ValueError if shapes do not fit.
    """
    maps = [same_shape(name, scores, len(asks), len(answers)) for name, scores in (("before", before), ("after", after))]
    reach = max(float(np.abs(each).max()) for each in maps)
    high = "; ".join(
        f"{word}: {', '.join(name for name, score in zip(answers, row, strict=True) if score > 0)}"
        for word, row in zip(asks, maps[1], strict=True)
    )
    title = "Each last word has learned high scores for the nouns that it fits"
    alt = (
        f"Two heatmaps of scores; {', '.join(asks)} ask, in rows, and {', '.join(answers)} answer, in columns. Before training the scores "
        f"lie from {number(maps[0].min(), 1)} to {number(maps[0].max(), 1)}, after it from {number(maps[1].min(), 1)} to "
        f"{number(maps[1].max(), 1)}. Above 0 are then, {high}."
    )
    with picture(title=title, alt=alt, height=1.5 + 0.27 * len(asks), columns=2, sharey=True) as axes:
        for ax, scores, name in zip(axes, maps, ("before training", "after"), strict=True):
            image = draw_heatmap(ax, scores, signed=True, limits=(-reach, reach), annotate=False)
            name_cells(ax, asks, answers, scores.shape)
            for word in ax.get_xticklabels():
                word.set(rotation=55, ha="right", rotation_mode="anchor")
            ax.set(title=name, xlabel="answers")
        axes[0].set_ylabel("asks")
        add_colour_bar(image, axes, "score", fraction=0.04)


def difference_errors(steps: ArrayLike, errors: Mapping[str, ArrayLike]) -> None:
    """Show the error of a central difference against its step, one curve for each kind of number.

    `steps` (n,): powers of ten, descending or ascending. `errors`, each (n,): errors at each step, by the name of the numbers.
    Raises ValueError if a curve has another length, or there is none.
    """
    h = as_numbers("steps", steps, 1)
    curves = each_of_shape("errors", errors, len(h))
    best = {name: int(np.round(np.log10(h[values.argmin()]))) for name, values in curves.items()}
    title = "Too large a step errs by its square, too small a step by rounding"
    alt = "Error of a central difference against its step, on two logarithmic axes: a valley for each kind of numbers. " + " ".join(
        f"{name}: lowest at a step of 10 to the power {exponent}." for name, exponent in best.items()
    )
    rising = h.argsort()  # the curves are named at their right ends
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        draw_lines(ax, h[rising], {name: values[rising] for name, values in curves.items()}, points=True)
        ax.set(xlabel="step h", ylabel="error", xscale="log", yscale="log")
        ax.set_xticks(h, [power(10, round(np.log10(step))) for step in h], minor=False)
        ax.xaxis.set_minor_locator(NullLocator())
        tick_decades(ax.yaxis)
        label_ends(ax)


def steps_explorable() -> None:
    """Show four scores that take steps against the gradient, and how long the best value needs."""
    publish_explorable(
        CARDS / "steps",
        "A slider sets the score of the value 2 at the start, beside the values −1, 0 and 1 with the score 0; buttons take steps against "
        "the gradient of the loss −z: one, one after another, or until the value 2 has half of the weight. Weights, their course over "
        "the steps, output and the next step of each score follow.",
    )
