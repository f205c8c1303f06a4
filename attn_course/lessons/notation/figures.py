"""Figures of the lesson notation: one table in two orientations and the card of dialects."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_heatmap
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine

CARDS = Path(__file__).parent / "explorables"


def two_orientations(weights: ArrayLike, mask: ArrayLike | None = None, *, tokens: Sequence[str] = ()) -> None:
    """Show one table of weights twice: with rows as queries, and turned, with columns as queries.

    `weights` (q_len, kv_len): rows are queries and sum to 1. `mask` (q_len, kv_len): True = may attend; the others are hatched.
    `tokens`: the words, where they are both queries and keys. Raises ValueError if a row does not sum to 1, the mask has another
    shape, or there is not one word for each query and each key.
    """
    p = as_numbers("weights", weights, 2)
    if not np.allclose(p.sum(axis=1), 1.0):
        raise ValueError(f"weights must sum to 1 in each row; got {p.sum(axis=1).round(2).tolist()}")
    allowed = np.ones(p.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if allowed.shape != p.shape:
        raise ValueError(f"mask must have the shape of weights, {p.shape}; got {allowed.shape}")
    if tokens and p.shape != (len(tokens), len(tokens)):
        raise ValueError(f"tokens must be as many as queries and keys, {p.shape}; got {len(tokens)}")
    queries, keys = (list(tokens) or [f"{word} {number}" for number in range(count)] for word, count in zip("qk", p.shape, strict=True))
    causal = not allowed.all() and np.array_equal(allowed, np.tril(np.ones(p.shape, dtype=bool)))
    moved = ", and what is hidden moves below the diagonal" if causal else ", and the softmax runs down"
    title = f"One table, turned: queries become columns{moved}"
    above, below = (f", and the hidden cells lie {side} the diagonal" if causal else "" for side in ("above", "below"))
    alt = (
        f"Two heatmaps of the same weights; {int((~allowed).sum())} cells are hidden. Left, {len(p)} by {p.shape[1]}: rows are queries, "
        f"each row sums to 1{above}. Right, its transpose: columns are queries, each column sums to 1{below}."
    )
    panels = (
        (p, allowed, queries, keys, "rows are queries: Q K⊤", "each row sums to 1"),
        (p.T, allowed.T, keys, queries, "columns are queries: K⊤ Q", "each column sums to 1"),
    )
    with picture(title=title, alt=alt, height=1.6 + 0.46 * max(p.shape), columns=2) as axes:
        for ax, (matrix, shown, rows, columns, name, sums) in zip(axes, panels, strict=True):
            draw_heatmap(ax, matrix, mask=shown, limits=(0.0, 1.0))
            ax.set_yticks(range(len(rows)), rows)
            ax.set_xticks(range(len(columns)), columns)
            ax.set(title=name, xlabel=sums)


def notation_explorable() -> None:
    """Show one attention in five dialects: formula, shapes, softmax axis and mask change, the numbers are only turned."""
    publish_explorable(
        CARDS / "notation",
        "Five buttons choose a dialect: the course's own, m data points, columns are positions, Attention Is All You Need, PyTorch. "
        "Formula, shapes, weights and output follow. Sliders set the numbers of queries and keys and pick one pair, whose weight is "
        "outlined, as does a click on a weight; buttons hide the keys after the query and put all back. Only the dialect of columns turns "
        "the tables; its softmax runs down each column.",
    )


def machine() -> None:
    """Show the machine with its scores lit."""
    show_machine("scores")
