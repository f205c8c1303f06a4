"""Figures of the lesson masking: masks side by side, and what leaks through them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, each_of_shape, hatch_cells
from attn_course.figures.machines.masked import masked as masked
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import GRID, INK_IN_CELL, MINUS_TINT, PALE, WEIGHTS
from attn_course.figures.ticks import inches_for

MOST_COLUMNS = 4
MOST_LINED_CELLS = 200


def combined(masks: Mapping[str, ArrayLike]) -> None:
    """Show masks and what becomes of several at once: coloured where a query may attend, hatched where not, with the number of pairs.

    `masks`, each (q_len, kv_len): True = may attend, by the name of the pattern. Raises ValueError if there is no mask, or one
    has not two axes.
    """
    cells = {name: as_numbers(f"masks[{name!r}]", mask, 2) != 0.0 for name, mask in masks.items()}
    if not cells:
        raise ValueError("masks must hold at least one pattern; got none")
    counts = {name: f"{mask.sum()} of {mask.size} pairs" for name, mask in cells.items()}
    alt = "Masks with queries in rows and keys in columns, visible cells coloured and hidden ones hatched. " + " ".join(
        f"{name}: {count} visible, {_rows_in_words(mask)}." for (name, count), mask in zip(counts.items(), cells.values(), strict=True)
    )
    title = "Masks combine by 'and': what one of them hides stays hidden"
    with _panels(title, alt, [mask.shape for mask in cells.values()]) as axes:
        for ax, (name, mask) in zip(axes, cells.items(), strict=True):
            _draw_cells(ax, np.where(mask, 1, 0), ["none", WEIGHTS])
            hatch_cells(ax, ~mask)
            ax.set_title(f"{name}\n{counts[name]}")


def leak_maps(influences: Mapping[str, ArrayLike], allowed: ArrayLike, *, at_least: float = 1e-9) -> None:
    """Show which outputs depend on which inputs, and mark the dependences that are not allowed.

    `influences`, each (q_len, kv_len): how far output row i moves when input row j moves, by the name of the layer. `allowed`
    (q_len, kv_len): True where input j may influence output i. `at_least`: smallest influence that counts. Raises ValueError if
    there is no map or shapes differ.
    """
    may = as_numbers("allowed", allowed, 2) != 0.0
    maps = {name: numbers >= at_least for name, numbers in each_of_shape("influences", influences, *may.shape).items()}
    counts = {name: int((found & ~may).sum()) for name, found in maps.items()}
    title = "Five wrong masks, five leaks: all found by moving one token at a time"
    alt = (
        f"Maps of influence, outputs in rows and inputs in columns; of {(~may).sum()} pairs that must not influence each other do: "
        + ", ".join(f"{name} {count}" for name, count in counts.items())
        + "."
    )
    with _panels(title, alt, [found.shape for found in maps.values()], "outputs", "inputs") as axes:
        for ax, (name, found) in zip(axes, maps.items(), strict=True):
            leaks = found & ~may
            _draw_cells(ax, np.select([leaks, found], [2, 1], 0), ["none", GRID, MINUS_TINT])
            hatch_cells(ax, ~found)
            for row, column in np.argwhere(leaks):
                ax.text(column, row, "!", ha="center", va="center_baseline", color=INK_IN_CELL, fontsize=10, fontweight="bold")
            ax.set_title(f"{name}\n{counts[name] or 'no'} {'leak' if counts[name] == 1 else 'leaks'}")


def _rows_in_words(mask: np.ndarray) -> str:
    """How many keys the rows see, from the first to the last."""
    seen = mask.sum(axis=1).tolist()
    return f"{seen[0]} in each row" if len(set(seen)) == 1 else f"by rows {', '.join(map(str, seen))}"


@contextmanager
def _panels(
    title: str, alt: str, shapes: Sequence[tuple[int, ...]], rows_are: str = "queries", columns_are: str = "keys"
) -> Iterator[list[Axes]]:
    """Open a picture with one panel for each shape, at most four to a row."""
    rows = -(-len(shapes) // MOST_COLUMNS)
    columns = -(-len(shapes) // rows)
    tallest = max(shape[0] / shape[1] for shape in shapes)
    height = 0.5 + rows * (0.9 + min(2.6, tallest * 6.6 / columns))
    with picture(title=title, alt=alt, height=height, rows=rows, columns=columns) as axes:
        yield axes[: len(shapes)]
        for place, ax in enumerate(axes):
            if place >= len(shapes):
                ax.set_axis_off()
            elif place % columns == 0:
                ax.set_ylabel(rows_are)
        for ax in axes[max(0, len(shapes) - columns) : len(shapes)]:
            ax.set_xlabel(columns_are)


def _draw_cells(ax: Axes, kinds: np.ndarray, colours: Sequence[str]) -> None:
    """Colour each cell by its kind, 0, 1, ...; small grids get lines between the cells."""
    ax.imshow(kinds, cmap=ListedColormap(list(colours)), vmin=-0.5, vmax=len(colours) - 0.5, interpolation="nearest")
    ax.spines[:].set_visible(False)
    ax.grid(False)
    ax.tick_params(length=0)
    for axis, count in ((ax.yaxis, kinds.shape[0]), (ax.xaxis, kinds.shape[1])):
        axis.set_major_locator(MaxNLocator(nbins=min(count, 8, int(2 * inches_for(ax))), integer=True))
    if kinds.size <= MOST_LINED_CELLS:
        ax.set_xticks(np.arange(kinds.shape[1] + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(kinds.shape[0] + 1) - 0.5, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.grid(True, which="minor", axis="both", color=PALE, linewidth=0.5)


def machine() -> None:
    """Show the machine with the mask lit."""
    show_machine("mask")
