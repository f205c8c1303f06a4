"""Figures of the lesson cross_attention: who looks where in a translation. They draw numbers they are given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import draw_heatmap, each_of_shape
from attn_course.figures.explorable import publish_explorable

CARDS = Path(__file__).parent / "explorables"


def alignments(source: Sequence[str], written: Sequence[str], weights: Mapping[str, ArrayLike], *, title: str) -> None:
    """Show one or more alignments of a translation side by side: a row for each sign written, a column for each piece of the source.

    Parameters
    ----------
    source : sequence of str
        The pieces that answer.
    written : sequence of str
        The signs that ask, a text will do.
    weights : mapping of str to (len(written), len(source)) array_like
        Weights between 0 and 1, by the name of the head or model.
    title : str
        The finding.

    Raises
    ------
    ValueError
        If there is nothing to draw, a shape does not fit, or a weight is not in [0, 1].
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
            draw_heatmap(ax, matrix, limits=(0.0, 1.0), annotate=False)
            ax.set_aspect("auto")
            ax.set(title=name)
            ax.set_xticks(range(len(source)), source, rotation=55, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(len(written)), written)
        axes[0].set_ylabel("written (asks)")


def _tops(source: Sequence[str], written: Sequence[str], matrix: np.ndarray) -> str:
    """Name the piece with the largest weight for each sign."""
    found = [f"{sign} → {source[int(row.argmax())]} {100 * row.max():.0f} %" for sign, row in zip(written, matrix, strict=True)]
    return ", ".join(found)


def alignment_explorable(translators: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Show stored alignments: choose a source, a translator and a sign, and see where the translator looks.

    Parameters
    ----------
    translators : mapping of str to sequence of mappings
        Three translators or heads; for each the same six examples, with "text", "pieces", "written" and "rows" (for each of the ten
        signs the weights of the pieces in percent).

    Raises
    ------
    ValueError
        If there are not three translators with six examples, or a row has not one number for each piece.
    """
    if len(translators) != 3 or any(len(examples) != 6 for examples in translators.values()):
        raise ValueError(f"translators must hold 3 with 6 examples each; got {[len(examples) for examples in translators.values()]}")
    for name, examples in translators.items():
        for example in examples:
            if np.shape(example["rows"]) != (len(example["written"]), len(example["pieces"])):
                raise ValueError(f"translators[{name!r}]: rows must have a number for each sign and piece of {example['text']!r}")
    publish_explorable(
        CARDS / "alignment",
        "Buttons choose one of six dates in words and one of three sets of attention weights; a slider, or pointing, chooses a sign of "
        "the date that is written. Each piece of the source is coloured by its share of the weight, and one line names the largest.",
        [{"name": name, "examples": [dict(example) for example in examples]} for name, examples in translators.items()],
    )
