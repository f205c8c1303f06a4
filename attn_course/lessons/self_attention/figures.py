"""Figures of the lesson self_attention: where a head looks, the rows of "it", the clocks of rotary positions."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, draw_heatmap, each_of_shape, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, LIGHT
from attn_course.figures.words import listed, number

CARDS = Path(__file__).parent / "explorables"
SENTENCE = ["the", "noun 1", "chased", "the", "noun 2", "because", "it", "was", "angry / slow"]
MEANT = {"angry": 1, "slow": 4}  # places of the nouns


def looks_back(weights: Mapping[str, ArrayLike]) -> None:
    """Show what a head gives to the token itself and to those before it.

    `weights`, each (5,): mean weights on the token so many back, 0 to 4, by the speed of the clocks. Raises ValueError if one has another
    length, or there is none.
    """
    series = each_of_shape("weights", weights, 5)
    charts.bars(
        ["itself", "1 back", "2 back", "3 back", "4 back"],
        series,
        title="With its clocks at half speed the head looks twice as far back",
        alt="Mean weights on the token itself and on those 1 to 4 back. "
        + " ".join(f"{speed}: {listed([*row])}." for speed, row in series.items()),
        x_label="which token",
        y_label="mean weight",
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
    with picture(title=title, alt=alt, height=1.7 + 0.36 * len(matrix)) as (ax,):
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


def machine() -> None:
    """Show the machine with what makes queries, keys and values lit."""
    show_machine("projections")
