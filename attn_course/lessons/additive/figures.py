"""Figures of the lesson additive: what an additive score looks like, and what an aligner is worth. They draw the numbers they are given."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_lines, each_of_shape, label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.palette import INK, MASKED, REFERENCE, SIGNED_MAP
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"
LEVELS = 15


def score_surfaces(axis: ArrayLike, maps: Mapping[str, ArrayLike]) -> None:
    """Show scores over all pairs of a query and a key that are numbers, one panel for each kind of score.

    Parameters
    ----------
    axis : (n,) array_like
        Ascending numbers, for queries and keys alike.
    maps : mapping of str to (n, n) array_like
        Scores by the name of the kind: row = query, column = key. Each panel has its own scale of colours, purple above 0.

    Raises
    ------
    ValueError
        If shapes do not fit or there is no map.
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
    with picture(title=title, alt=alt, height=3.1, columns=len(fields), sharey=True) as axes:
        for ax, (name, field) in zip(axes, fields.items(), strict=True):
            reach = float(np.abs(field).max()) or 1.0
            levels = np.linspace(-reach, reach, LEVELS)
            ax.contourf(x, x, field, levels, cmap=SIGNED_MAP)
            ax.contour(x, x, field, levels[1:-1], colors=INK, linewidths=0.35, alpha=0.5, linestyles="solid")
            if field.min() < 0.0 < field.max():
                ax.contour(x, x, field, [0.0], colors=INK, linewidths=1.4)
            ax.plot(x, x, color=REFERENCE, linestyle=":", linewidth=1.0)
            ax.grid(False)
            ax.set(title=f"{name}\n{number(field.min(), 1)} to {number(field.max(), 1)}", xlabel="key k", aspect="equal")
            ax.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
            ax.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axes[0].set_ylabel("query q")


def accuracy_by_length(
    lengths: ArrayLike, shares: Mapping[str, ArrayLike], *, longest_trained: float, spread: Mapping[str, ArrayLike] | None = None
) -> None:
    """Show the share of right words against the length of a sentence, with the lengths that were never trained on grey ground.

    Parameters
    ----------
    lengths : (n,) array_like
        Words of a sentence, ascending.
    shares : mapping of str to (n,) array_like
        Shares between 0 and 1, by the name of the model.
    longest_trained : float
        Longest sentence of the training.
    spread : mapping of str to (2, n) array_like, optional
        Lowest and highest share of several seeds, by the same names.

    Raises
    ------
    ValueError
        If a model has another number of shares, or there is none.
    """
    x = as_numbers("lengths", lengths, 1)
    curves = each_of_shape("shares", shares, len(x))
    bands = each_of_shape("spread", spread, 2, len(x)) if spread else {}
    if stray := set(bands) - set(curves):
        raise ValueError(f"spread must have names of shares, {[*curves]}; got {[*stray]}")
    title = "One fixed vector fades with every word; an aligner holds on as far as it was trained"
    alt = f"Share of right words for sentences of {listed(x, 0)} words, trained up to {number(longest_trained, 0)}. " + " ".join(
        f"{name}: {listed(values)}." for name, values in curves.items()
    )
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        ax.axvspan(longest_trained, float(x.max()), color=MASKED, zorder=0)
        ax.text(longest_trained + 0.15, 0.02, "longer than any\nin the training", fontsize=LABEL_POINTS, color=REFERENCE, va="bottom")
        draw_lines(ax, x, curves, points=True)
        for line in list(ax.get_lines()):
            if (band := bands.get(str(line.get_label()))) is not None:
                ax.fill_between(x, band[0], band[1], color=line.get_color(), alpha=0.22, linewidth=0)
        ax.set_xticks(x, [number(float(length), 0) for length in x])
        ax.set(xlabel="words of the sentence", ylabel="share of words right", ylim=(0.0, 1.04), xlim=(float(x.min()), float(x.max())))
        label_ends(ax)


def additive_explorable() -> None:
    """Show four keys scored by two tanh units and by a dot product, with sliders for the query, the bias and the size of v."""
    publish_explorable(
        CARDS / "additive",
        "Sliders for a query that is a number, the bias of two tanh units and the size of their score vector; scores, weights and curves "
        "for four keys, additive beside the dot product. Buttons put the query on a key or far away, and take the bias away, "
        "which leaves the units blind.",
    )
