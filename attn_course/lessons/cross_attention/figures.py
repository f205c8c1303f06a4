"""Figures of the lesson cross_attention: who looks where in a translation."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, draw_heatmap, each_of_shape
from attn_course.figures.machines.paddings import paddings as paddings
from attn_course.figures.machines.whole import machine as show_machine


def alignments(source: Sequence[str], written: Sequence[str], weights: Mapping[str, ArrayLike], *, title: str) -> None:
    """Show one or more alignments of a translation side by side: a row for each sign written, a column for each piece of the source.

    `source`: the pieces that answer. `written`: the signs that ask, a text will do. `weights`, each (len(written), len(source)):
    weights between 0 and 1, by name. Raises ValueError if there is nothing to draw, a shape does not fit, or a weight is not in [0, 1].
    """
    matrices = each_of_shape("weights", weights, len(written), len(source))
    for name, matrix in matrices.items():
        if matrix.min() < 0.0 or matrix.max() > 1.0:
            raise ValueError(f"weights[{name!r}] must lie in [0, 1]; got {matrix.min()} to {matrix.max()}")
    alt = f"Alignment of “{''.join(written)}” (rows) with the source “{' '.join(source)}” (columns). " + " ".join(
        f"{name}: {_tops(source, written, matrix)}." for name, matrix in matrices.items()
    )
    with picture(title=title, alt=alt, height=1.6 + 0.3 * len(written), columns=len(matrices), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
            image = draw_heatmap(ax, matrix, limits=(0.0, 1.0), annotate=False)
            ax.set_aspect("auto")
            ax.set(title=name)
            ax.set_xticks(range(len(source)), source)
            ax.set_yticks(range(len(written)), written)
        axes[0].set_ylabel("written (asks)")
        add_colour_bar(image, axes, "weight", fraction=0.04)


def three_alignments(source: Sequence[str], written: Sequence[str], weights: Sequence[ArrayLike]) -> None:
    """Show how three trainings of one translator align the date in May; `weights`, each (len(written), len(source))."""
    title = "Three trainings write the same date: 5 reads May in all of them, 9 and the hyphens differ"
    alignments(source, written, {f"training {number}": matrix for number, matrix in enumerate(weights, 1)}, title=title)


def own_alignment(source: Sequence[str], written: Sequence[str], weights: ArrayLike) -> None:
    """Show what the reader's own translator read; `weights` (len(written), len(source))."""
    alignments(source, written, {"yours": weights}, title="Where your translator looked")


def _tops(source: Sequence[str], written: Sequence[str], matrix: np.ndarray) -> str:
    """Name the piece with the largest weight for each sign."""
    found = [f"{sign} → {source[int(row.argmax())]} {100 * row.max():.0f} %" for sign, row in zip(written, matrix, strict=True)]
    return ", ".join(found)


def machine() -> None:
    """Show the machine with two inputs lit."""
    show_machine("two-inputs")
