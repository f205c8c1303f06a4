"""Figures of the lesson kernels: programs, causal tiles, two units at work."""

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from attn_course.figures.base import picture
from attn_course.figures.machines.programs import programs as programs
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import DARK, INK, PALE, SCORES, WEIGHTS
from attn_course.figures.words import number


def machine() -> None:
    """Show the machine with the part that becomes one kernel lit."""
    show_machine("one-kernel")


def starts(products: float, exponentials: float, tiles: int, overlap: bool) -> list[tuple[float, float]]:
    """Return when the products and the exponentials of each tile begin.

    `products`, `exponentials`: time of one tile on each unit. `overlap`: whether the products of the next tile go on while the
    exponentials of this one are taken.

    >>> starts(3, 2, 3, overlap=True)
    [(0.0, 3.0), (3.0, 6.0), (6.0, 9.0)]
    """
    found: list[tuple[float, float]] = []
    matrix_free = other_free = 0.0
    for _ in range(tiles):
        begin = matrix_free if overlap else max(matrix_free, other_free)
        matrix_free = begin + products
        second = max(matrix_free, other_free)
        other_free = second + exponentials
        found.append((begin, second))
    return found


def schedule(products: float, exponentials: float, tiles: int = 4, *, overlap: bool | None = None) -> None:
    """Show when the unit for products and the unit for exponentials work.

    `products`, `exponentials`: clock ticks that one tile takes on each unit. `overlap`: without or with overlap; both, one above
    the other, if left out. Raises ValueError if a time or the number of tiles is not positive.
    """
    if min(products, exponentials, tiles) <= 0:
        raise ValueError(f"products, exponentials and tiles must be positive; got {products}, {exponentials} and {tiles}")
    ways = [False, True] if overlap is None else [overlap]
    plans = {way: starts(products, exponentials, tiles, way) for way in ways}
    ends = {way: plan[-1][1] + exponentials for way, plan in plans.items()}
    names = {False: "without overlap", True: "with overlap"}
    title = f"{tiles} tiles take " + " and ".join(f"{number(ends[way], 0)} ticks {names[way]}" for way in ways)
    alt = f"Rows of blocks over clock ticks for {tiles} tiles. " + " ".join(
        f"{names[way].capitalize()}: products from "
        + ", ".join(f"{number(begin, 0)} to {number(begin + products, 0)}" for begin, _ in plan)
        + "; exponentials from "
        + ", ".join(f"{number(second, 0)} to {number(second + exponentials, 0)}" for _, second in plan)
        + "."
        for way, plan in plans.items()
    )
    longest = max(ends.values())
    with picture(title=title, alt=alt, height=0.9 + 1.35 * len(ways), rows=len(ways), sharex=True) as axes:
        for ax, way in zip(axes, ways, strict=True):
            for tile, (begin, second) in enumerate(plans[way]):
                for level, start, width, colour in ((1, begin, products, SCORES), (0, second, exponentials, WEIGHTS)):
                    ax.add_patch(Rectangle((start + 0.03, level - 0.38), width - 0.06, 0.76, facecolor=colour))
                    ax.text(start + width / 2, level, str(tile), ha="center", va="center", color=DARK)
            ax.set(xlim=(0, longest), ylim=(-0.55, 1.55), title=names[way])
            ax.set_yticks([0, 1], ["exponentials", "products"])
            ax.set_xticks(np.arange(0, longest + 1))
            ax.grid(visible=True, axis="x")
            ax.grid(visible=False, axis="y")
        axes[-1].set_xlabel("clock ticks")


def causal_tiles(q_len: int, kv_len: int, block_q: int, block_kv: int, *, q_offset: int = 0) -> None:
    """Show which tiles of a causal pass are skipped, which need no mask, and which lie at the edge.

    `q_len`, `kv_len`, `block_q`, `block_kv`: sizes of the scores and of a tile. `q_offset`: query i sees the keys up to i +
    q_offset. Raises ValueError if a size is below 1.
    """
    if min(q_len, kv_len, block_q, block_kv) < 1:
        raise ValueError(f"sizes must be positive; got {q_len}, {kv_len}, {block_q} and {block_kv}")
    visible = np.arange(kv_len) <= np.arange(q_len)[:, None] + q_offset
    tiles = {
        (i, j): visible[i : i + block_q, j : j + block_kv] for i in range(0, q_len, block_q) for j in range(0, kv_len, block_kv)
    }  # fmt: skip
    kinds = {place: "skipped" if not tile.any() else "whole" if tile.all() else "edge" for place, tile in tiles.items()}
    counts = {kind: list(kinds.values()).count(kind) for kind in ("whole", "edge", "skipped")}
    title = f"Of {len(tiles)} tiles {counts['skipped']} are skipped, and only {counts['edge']} need the mask"
    alt = (
        f"Scores of {q_len} queries (rows) and {kv_len} keys (columns) in tiles of {block_q} by {block_kv}. Whole, without a mask: "
        f"{counts['whole']}. At the edge: {counts['edge']}. Skipped: {counts['skipped']}, hatched, above the diagonal."
    )
    colours = {"whole": SCORES, "edge": SCORES + "55", "skipped": "none"}
    with picture(title=title, alt=alt, width=6.0, height=1.6 + 3.4 * q_len / max(q_len, kv_len)) as (ax,):
        for (i, j), tile in tiles.items():
            kind = kinds[i, j]
            look: dict[str, Any] = {"facecolor": colours[kind], "edgecolor": PALE}
            hatch = "//" if kind == "skipped" else None
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), tile.shape[1], tile.shape[0], linewidth=1.0, hatch=hatch, **look))
        edge = np.arange(q_len) + q_offset
        ax.step(np.append(edge, edge[-1] + 1) + 0.5, np.arange(q_len + 1) - 0.5, where="pre", color=INK, linewidth=1.6)
        for kind, colour in colours.items():
            hatch = "//" if kind == "skipped" else None
            ax.add_patch(Rectangle((0, 0), 0, 0, facecolor=colour, hatch=hatch, edgecolor=PALE, label=kind))
        ax.set(xlim=(-0.5, kv_len - 0.5), ylim=(q_len - 0.5, -0.5), xlabel="keys", ylabel="queries", aspect="equal")
        ax.set_xticks(range(0, kv_len, block_kv))
        ax.set_yticks(range(0, q_len, block_q))
        ax.grid(visible=False)
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=9.5)
