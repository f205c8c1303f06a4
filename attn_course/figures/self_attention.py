"""Figures of the lesson self_attention: maps beside each other, rows of one query, the clocks of rotary positions.

They draw numbers they are given.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_heatmap, hatch_cells, name_cells
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.words import number


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
    matrices = {name: as_numbers(f"maps[{name!r}]", matrix, 2) for name, matrix in maps.items()}
    if not matrices:
        raise ValueError("maps must hold at least one matrix; got none")
    size = len(next(iter(matrices.values())))
    for name, matrix in matrices.items():
        if matrix.shape != (size, size):
            raise ValueError(f"maps[{name!r}] must have shape ({size}, {size}); got {matrix.shape}")
        if matrix.min() < 0.0 or matrix.max() > 1.0 + 1e-9:
            raise ValueError(f"maps[{name!r}] must hold numbers from 0 to 1; got {number(matrix.min())} to {number(matrix.max())}")
    shown = ~np.eye(size, dtype=bool) if hide_diagonal else np.ones((size, size), dtype=bool)
    with picture(title=title, alt=alt, height=0.9 + 7.4 / len(matrices), columns=len(matrices), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
            image = draw_heatmap(ax, matrix, mask=shown, limits=(0.0, 1.0), annotate=size <= 6)
            hatch_cells(ax, ~shown)
            name_cells(ax, None, None, matrix.shape)
            if blocks:
                middles = np.cumsum([0, *blocks.values()])[:-1] + (np.array(list(blocks.values())) - 1) / 2
                ax.set_xticks(middles, list(blocks), rotation=30)
                ax.set_yticks(middles, list(blocks))
            ax.set(title=name, xlabel=column_label)
        axes[0].set_ylabel(row_label)
        bar = axes[0].figure.colorbar(image, ax=axes, label=color_label, fraction=0.03)
        bar.outline.set_visible(False)


def query_rows(
    rows: Mapping[str, ArrayLike],
    words: Sequence[str],
    *,
    title: str,
    alt: str | None = None,
) -> None:
    """Show the weights of one query under several circumstances, one row for each, with the words as columns.

    Parameters
    ----------
    rows : mapping of str to (n_words,) array_like
        Weights that sum to 1, by the name of the circumstance.
    words : sequence of str
        Names of the keys.
    title : str
        The finding.
    alt : str, optional
        Replaces the text made from the numbers.

    Raises
    ------
    ValueError
        If a row has another length than `words` or does not sum to 1, or there is none.
    """
    weights = {name: as_numbers(f"rows[{name!r}]", row, 1) for name, row in rows.items()}
    if not weights:
        raise ValueError("rows must hold at least one row; got none")
    for name, row in weights.items():
        if len(row) != len(words):
            raise ValueError(f"rows[{name!r}] must have {len(words)} weights, one for each word; got {len(row)}")
        if abs(row.sum() - 1.0) > 0.01:
            raise ValueError(f"rows[{name!r}] must sum to 1; got {number(float(row.sum()))}")
    largest = [f"{name}: {number(float(row.max()))} at place {int(row.argmax())}" for name, row in weights.items()]
    alt = alt or (
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
        bar = ax.figure.colorbar(image, ax=ax, label="weight", fraction=0.05)
        bar.outline.set_visible(False)


def rope_explorable(slug: str = "rope") -> None:
    """Show a query and a key with three clock hands each, turned by two sliders, and the score of the two.

    Parameters
    ----------
    slug : str
        Prefix of its ids; give a second card on the same page another one.
    """
    publish_explorable(
        "rope",
        slug,
        "Two sliders move a query and a key along a sentence; three clocks, fast to slow, show the pairs of features of both as hands. "
        "The score, and the curve of scores against the distance, show that only the difference of the positions counts. "
        "Buttons move both on by one, exchange the places, put both on one place, and stop the clocks, so that places make no difference.",
    )
