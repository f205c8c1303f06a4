"""Figures of the lesson self_attention: maps of weights, what positions and layers do to them, the clocks of rotary positions."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, as_numbers, draw_heatmap, each_of_shape, name_cells, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, INK, LIGHT
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"
SENTENCE = ["the", "noun 1", "chased", "the", "noun 2", "because", "it", "was", "angry / slow"]
MEANT = {"angry": 1, "slow": 4}  # places of the nouns


def random_maps(maps: Mapping[str, ArrayLike]) -> None:
    """Show the weights that random tokens give each other, one map for each number of features.

    `maps`, each (n, n): weights, by the name of the panel. Raises ValueError if there is no map, a map is not square or has
    another size than the first, or its numbers leave the range from 0 to 1.
    """
    weights = _square_maps(maps)
    size = len(next(iter(weights.values())))
    alt = f"Maps of {size} by {size} weights, one draw of random tokens each. Mean weight on the diagonal: " + "; ".join(
        f"{name}: {number(float(matrix.diagonal().mean()))}" for name, matrix in weights.items()
    )
    _draw_maps(weights, title="With more features each token sees little but itself", alt=f"{alt}.")


def pair_maps(maps: Mapping[str, ArrayLike], groups: Mapping[str, int]) -> None:
    """Show how strongly each of several methods connects the features of a table, the diagonal hatched.

    `maps`, each (n, n): numbers from 0 to 1, by the name of the method, the features in the same order. `groups`: names of groups
    of features, with the number of features of each, in the order of the rows. Raises ValueError if there is no map, a map is not
    square or has another size than the first, its numbers leave the range from 0 to 1, or the groups do not name all features.
    """
    matrices = _square_maps(maps)
    size = len(next(iter(matrices.values())))
    if sum(groups.values()) != size:
        raise ValueError(f"groups must name {size} features; got {sum(groups.values())}")
    ends = np.cumsum([0, *groups.values()])
    found = []
    for name, matrix in matrices.items():
        largest = np.where(np.eye(size, dtype=bool), 0.0, matrix).max(axis=1)
        parts = [largest[start:end] for start, end in pairwise(ends)]
        ranges = [f"{group} {number(part.min())} to {number(part.max())}" for group, part in zip(groups, parts, strict=True)]
        found.append(f"{name}: {', '.join(ranges)}.")
    alt = f"Maps of {size} by {size} features, ordered by pair, the diagonal hatched. Largest cell of each row, by group. {' '.join(found)}"
    title = "Correlation misses the hidden pairs; trained weights show them, but their size says little"
    _draw_maps(matrices, title=title, alt=alt, row_label="features", column_label="features", groups=groups, color_label="|r|, weight")


def plane_weights(tokens: ArrayLike, weights: ArrayLike) -> None:
    """Show the weights that tokens of the plane give each other without projections.

    `tokens` (n, 2). `weights` (n, n): what each gives each. Raises ValueError if shapes do not fit.
    """
    points = as_numbers("tokens", tokens, 2)
    matrix = same_shape("weights", weights, len(points), len(points))
    names = [f"({', '.join(short(value) for value in point)})" for point in points]
    charts.heatmap(
        matrix,
        rows=names,
        columns=names,
        title="Symmetric scores need not make symmetric weights",
        alt=f"Weights of the tokens {', '.join(names)}, one row each. "
        + " ".join(f"{name} gives {listed(row)}." for name, row in zip(names, matrix, strict=True)),
    )


def position_likeness(distances: ArrayLike, likeness: Mapping[str, ArrayLike]) -> None:
    """Show how alike a position and others are, over their distance.

    `distances` (n,): distances, ascending. `likeness`, each (n,): dot products at these distances, by the name of the position.
    Raises ValueError if lengths differ or there is no curve.
    """
    away = as_numbers("distances", distances, 1)
    curves = each_of_shape("likeness", likeness, len(away))
    products = np.stack([*curves.values()])
    apart = float(np.ptp(products, axis=0).max())
    highest = float(away[products[0].argmax()])
    far = products[:, np.abs(away) > 10]
    alt = (
        f"Dot products of places, {' and '.join(curves)}, over the distance from {number(away[0], 0)} to {number(away[-1], 0)}. "
        f"The curves differ by at most {number(apart)}. They peak at {number(products.max(), 0)} for distance {number(highest, 0)}, fall "
        f"steeply on both sides, and ripple between {number(far.min(), 0)} and {number(far.max(), 0)} at distances beyond 10."
    )
    title = "Likeness of two places depends on their distance only, and it has ripples"
    with picture(title=title, alt=alt, height=3.2, columns=len(curves), sharey=True) as axes:
        for ax, (name, values) in zip(axes, curves.items(), strict=True):
            ax.plot(away, values, color=INK)
            ax.set(title=name, xlabel="distance u − t", xlim=(away[0], away[-1]))
        axes[0].set_ylabel("dot product")


def levelling(curves: Mapping[str, ArrayLike]) -> None:
    """Show which share of the tokens differs from their mean, layer by layer.

    `curves`, each (layers + 1,): shares before the first layer and after each, by the name of the stack. Raises ValueError if
    lengths differ or there is no curve.
    """
    shares = each_of_shape("curves", curves, len(np.asarray(next(iter(curves.values()), []))))
    layers = len(next(iter(shares.values()))) - 1
    charts.lines(
        np.arange(layers + 1),
        shares,
        title="Attention alone can make all tokens equal; the residual keeps them apart",
        alt=f"Share of the tokens that differs from their mean, after 0 to {layers} layers, on a logarithmic axis. "
        + " ".join(f"{name}: from {short(float(curve[0]))} to {short(float(curve[-1]))}." for name, curve in shares.items()),
        x_label="layers",
        y_label="share that differs",
        y_log=True,
    )


def pronouns_right(models: Sequence[str], accuracy: Mapping[int, ArrayLike]) -> None:
    """Show how often models find the noun that "it" stands for, on pairs of nouns that they never saw together.

    `accuracy`, each (n_models,): share of right answers, by the seed. Raises ValueError if a seed has more or fewer shares than
    there are models, or there is none.
    """
    shares = each_of_shape("accuracy", {f"seed {seed}": row for seed, row in accuracy.items()}, len(models))
    charts.bars(
        models,
        shares,
        title="Two layers and positions are both needed to resolve “it” on pairs of nouns never seen together",
        alt=f"Share of held-out sentences with the right noun, for {', '.join(shares)}. "
        + " ".join(f"{model}: {listed([row[place] for row in shares.values()])}." for place, model in enumerate(models))
        + " The nearest noun is right in 0.50.",
        x_label="model (the nearest noun is right half of the time)",
        y_label="share right",
    )


def rows_of_it(rows: Mapping[str, ArrayLike]) -> None:
    """Show the weights of "it" in the example sentence, one row for each model, ending and seed.

    `rows`, each (9,): weights that sum to 1, by what they belong to. Raises ValueError if a row has another length than the
    sentence or does not sum to 1, or there is none.
    """
    weights = each_of_shape("rows", rows, len(SENTENCE))
    for name, row in weights.items():
        if abs(row.sum() - 1.0) > 0.01:
            raise ValueError(f"rows[{name!r}] must sum to 1; got {number(float(row.sum()))}")
    largest = [f"{name}: {number(float(row.max()))} at place {int(row.argmax())}" for name, row in weights.items()]
    meant = {row: place for row, name in enumerate(weights) for word, place in MEANT.items() if word in name}
    title = "The row of “it”: on the noun where nothing else can carry its name, often elsewhere where something can"
    alt = (
        f"Weights of “it” over the words {', '.join(SENTENCE)}, one row for each model, ending and seed. "
        f"Largest of each row, places counted from 0: {'; '.join(largest)}." + (" Dots mark the noun that is meant." if meant else "")
    )
    matrix = np.stack(list(weights.values()))
    with picture(title=title, alt=alt, height=1.35 + 0.36 * len(matrix)) as (ax,):
        image = draw_heatmap(ax, matrix, limits=(0.0, 1.0))
        ax.plot([*meant.values()], [*meant], "o", color=LIGHT, markeredgecolor=DARK, markersize=7)
        ax.set_aspect("auto")
        name_cells(ax, list(weights), SENTENCE, matrix.shape)
        ax.tick_params(axis="x", rotation=30)
        ax.set(xlabel="keys (dots: the noun that is meant)" if meant else "keys")
        add_colour_bar(image, ax, "weight", fraction=0.05)


def rope_explorable() -> None:
    """Show a query and a key with three clock hands each, turned by two sliders, and the score of the two."""
    publish_explorable(
        CARDS / "rope",
        "Two sliders move a query and a key along a sentence; three clocks, fast to slow, show the pairs of features of both as hands. "
        "The score, and the curve of scores against the distance, show that only the difference of the positions counts. Buttons play "
        "both tokens along the sentence or step by one, exchange the places, put both on one place, stop the clocks, so that places make "
        "no difference, and put all back.",
    )


def _square_maps(maps: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return square maps of one size, or say which is not one or leaves the range from 0 to 1."""
    size = len(np.asarray(next(iter(maps.values()), [])))
    matrices = each_of_shape("maps", maps, size, size)
    for name, matrix in matrices.items():
        if matrix.min() < 0.0 or matrix.max() > 1.0 + 1e-9:
            raise ValueError(f"maps[{name!r}] must hold numbers from 0 to 1; got {number(matrix.min())} to {number(matrix.max())}")
    return matrices


def _draw_maps(
    matrices: Mapping[str, np.ndarray],
    *,
    title: str,
    alt: str,
    row_label: str = "queries",
    column_label: str = "keys",
    groups: Mapping[str, int] | None = None,
    color_label: str = "weight",
) -> None:
    """Draw square maps beside each other, on one colour scale from 0 to 1; with groups of rows the diagonal is hatched."""
    size = len(next(iter(matrices.values())))
    shown = ~np.eye(size, dtype=bool) if groups else np.ones((size, size), dtype=bool)
    with picture(title=title, alt=alt, height=0.5 + 7.4 / len(matrices), columns=len(matrices), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
            image = draw_heatmap(ax, matrix, mask=shown, limits=(0.0, 1.0), annotate=size <= 6)
            name_cells(ax, None, None, matrix.shape)
            if groups:
                middles = np.cumsum([0, *groups.values()])[:-1] + (np.array(list(groups.values())) - 1) / 2
                ax.set_xticks(middles, list(groups), rotation=30)
                ax.set_yticks(middles, list(groups))
            ax.set(title=name, xlabel=column_label)
        axes[0].set_ylabel(row_label)
        add_colour_bar(image, axes, color_label, fraction=0.03)


def machine() -> None:
    """Show the machine with what makes queries, keys and values lit."""
    show_machine("projections")
