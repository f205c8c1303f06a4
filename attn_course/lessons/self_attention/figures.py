"""Figures of the lesson self_attention: maps beside each other, rows of one query, the clocks of rotary positions.

They draw numbers they are given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, draw_heatmap, each_of_shape, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.words import number

CARDS = Path(__file__).parent / "explorables"


def weight_maps(
    maps: Mapping[str, ArrayLike],
    *,
    title: str,
    alt: str,
    row_label: str = "queries",
    column_label: str = "keys",
    hide_diagonal: bool = False,
    blocks: Mapping[str, int] | None = None,
    color_label: str = "weight",
) -> None:
    """Show square maps of the same size beside each other, on one colour scale from 0 to 1.

    Parameters
    ----------
    maps : mapping of str to (n, n) array_like
        Numbers from 0 to 1, by the name of the panel.
    title, alt : str
        The finding, and what the picture shows.
    row_label, column_label : str
        What rows and columns are.
    hide_diagonal : bool
        Hatch the diagonal.
    blocks : mapping of str to int, optional
        Names of groups of rows, with the number of rows of each, in the order of the rows; the rest has no name.
    color_label : str
        What the colours measure.

    Raises
    ------
    ValueError
        If there is no map, a map is not square or has another size than the first, or its numbers leave the range from 0 to 1.
    """
    size = len(np.asarray(next(iter(maps.values()), [])))
    matrices = each_of_shape("maps", maps, size, size)
    for name, matrix in matrices.items():
        if matrix.min() < 0.0 or matrix.max() > 1.0 + 1e-9:
            raise ValueError(f"maps[{name!r}] must hold numbers from 0 to 1; got {number(matrix.min())} to {number(matrix.max())}")
    shown = ~np.eye(size, dtype=bool) if hide_diagonal else np.ones((size, size), dtype=bool)
    with picture(title=title, alt=alt, height=0.9 + 7.4 / len(matrices), columns=len(matrices), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
            image = draw_heatmap(ax, matrix, mask=shown, limits=(0.0, 1.0), annotate=size <= 6)
            name_cells(ax, None, None, matrix.shape)
            if blocks:
                middles = np.cumsum([0, *blocks.values()])[:-1] + (np.array(list(blocks.values())) - 1) / 2
                ax.set_xticks(middles, list(blocks), rotation=30)
                ax.set_yticks(middles, list(blocks))
            ax.set(title=name, xlabel=column_label)
        axes[0].set_ylabel(row_label)
        add_colour_bar(image, axes, color_label, fraction=0.03)


def query_rows(rows: Mapping[str, ArrayLike], words: Sequence[str], *, title: str) -> None:
    """Show the weights of one query under several circumstances, one row for each, with the words as columns.

    Parameters
    ----------
    rows : mapping of str to (n_words,) array_like
        Weights that sum to 1, by the name of the circumstance.
    words : sequence of str
        Names of the keys.
    title : str
        The finding.

    Raises
    ------
    ValueError
        If a row has another length than `words` or does not sum to 1, or there is none.
    """
    weights = each_of_shape("rows", rows, len(words))
    for name, row in weights.items():
        if abs(row.sum() - 1.0) > 0.01:
            raise ValueError(f"rows[{name!r}] must sum to 1; got {number(float(row.sum()))}")
    largest = [f"{name}: {number(float(row.max()))} at place {int(row.argmax())}" for name, row in weights.items()]
    alt = (
        f"Weights of one query over the words {', '.join(words)}, one row per circumstance. "
        f"Largest of each row, places counted from 0: {'; '.join(largest)}."
    )
    matrix = np.stack(list(weights.values()))
    with picture(title=title, alt=alt, height=1.35 + 0.4 * len(matrix)) as (ax,):
        image = draw_heatmap(ax, matrix, limits=(0.0, 1.0))
        ax.set_aspect("auto")
        name_cells(ax, list(weights), list(words), matrix.shape)
        ax.tick_params(axis="x", rotation=30)
        ax.set(xlabel="keys")
        add_colour_bar(image, ax, "weight", fraction=0.05)


def rope_explorable() -> None:
    """Show a query and a key with three clock hands each, turned by two sliders, and the score of the two."""
    publish_explorable(
        CARDS / "rope",
        "Two sliders move a query and a key along a sentence; three clocks, fast to slow, show the pairs of features of both as hands. "
        "The score, and the curve of scores against the distance, show that only the difference of the positions counts. "
        "Buttons move both on by one, exchange the places, put both on one place, and stop the clocks, so that places make no difference.",
    )
