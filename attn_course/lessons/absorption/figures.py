"""Figures of the lesson absorption: the machine, the flow of latent attention, and two tables of scores."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_heatmap, name_cells
from attn_course.figures.machines.latent import latent_flow as latent_flow
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK


def two_scores(scores: Mapping[str, ArrayLike], words: Sequence[str]) -> None:
    """Show the scores of a trained head as the model has them, and those of one matrix.

    `scores`, two of (n, n): by how they were made. `words`: the n tokens. Raises ValueError if there are not two.
    """
    if len(scores) != 2:
        raise ValueError(f"scores must hold two tables; got {len(scores)}")
    tables = {name: as_numbers(f"scores[{name!r}]", table, 2) for name, table in scores.items()}
    first, second = tables.values()
    apart = np.abs(first - second)
    alt = (
        f"Two heatmaps of scores between {len(words)} tokens that ask, in rows, and answer, in columns: {' and '.join(tables)}. "
        f"The {(apart < 1e-9).sum()} scores on the diagonal are equal, the others differ by up to {apart.max():.1f}."
    )
    with picture(title="One matrix gives the right scores on the diagonal only", alt=alt, height=4.4, columns=2, sharey=True) as axes:
        for ax, (name, table) in zip(axes, tables.items(), strict=True):
            draw_heatmap(ax, table, signed=True, limits=(-8, 8), digits=1)
            name_cells(ax, words, words, table.shape)
            ax.set(title=name, xlabel="keys")
            ax.tick_params(axis="x", rotation=45)
            for row, column in np.argwhere(apart < 1e-9):
                ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.5))
        axes[0].set_ylabel("queries")


def machine() -> None:
    """Show the machine with the two matrices that compare lit."""
    show_machine("comparing-matrices")
