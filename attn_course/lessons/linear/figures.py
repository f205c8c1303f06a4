"""Figures of the lesson linear: a memory of outer products, as matrices and as an arrow that one writes and reads."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, count_cells, draw_heatmap
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.words import listed

CARDS = Path(__file__).parent / "explorables"


def outer_products(keys: ArrayLike, values: ArrayLike, *, title: str, digits: int = 1) -> None:
    """Show each outer product of a key and its value, and their sum, the state.

    Parameters
    ----------
    keys : (n, d_k) array_like
        One key a row.
    values : (n, d_v) array_like
        Its values.
    title : str
        The finding.
    digits : int
        Digits after the point.

    Raises
    ------
    ValueError
        If there are not as many keys as values.
    """
    k, v = as_numbers("keys", keys, 2), as_numbers("values", values, 2)
    if len(k) != len(v):
        raise ValueError(f"keys and values must be as many; got {len(k)} and {len(v)}")
    products = k[:, :, None] * v[:, None, :]
    panels = [*((f"pair {index}", product) for index, product in enumerate(products)), ("state: the sum", products.sum(axis=0))]
    alt = f"{len(panels)} heatmaps of {k.shape[1]} rows and {v.shape[1]} columns. " + " ".join(
        f"{name}: rows {', '.join('(' + listed(row, digits) + ')' for row in matrix)}." for name, matrix in panels
    )
    bound = float(np.abs([matrix for _, matrix in panels]).max())
    with picture(title=title, alt=alt, height=1.7 + 0.45 * k.shape[1], columns=len(panels), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, panels, strict=True):
            draw_heatmap(ax, matrix, signed=True, limits=(-bound, bound), annotate=True, digits=digits)
            ax.set(title=name, xlabel="value features")
            count_cells(ax, matrix.shape)
        axes[0].set_ylabel("key features")


def memory_explorable() -> None:
    """Show a state of two numbers as an arrow that three keys write and read, by sums and by the delta rule."""
    publish_explorable(
        CARDS / "memory",
        "Three unit keys as arrows in the plane, two of them turned by sliders, and the state as a fourth arrow. Buttons write 1 or -1 "
        "under key A and 1 under B and C, by sums or by the delta rule with a step size; a table compares what was written last under "
        "each key with what is read back.",
    )
