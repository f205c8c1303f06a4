"""Figures of the lesson gradients: the machine read backwards, values with their average, learned scores, and how they are learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import (
    LABEL_POINTS,
    LEADER_LINE,
    draw_heatmap,
    hatch_cells,
    name_cells,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import GRID, INK, KEY, QUERY, VALUE
from attn_course.figures.words import each_listed, number

CARDS = Path(__file__).parent / "explorables"


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def mixture(tokens: Sequence[str], weights: ArrayLike, values: ArrayLike, target: ArrayLike) -> None:
    """Show values in a plane, their average under the weights, and the way from there to the target.

    `weights` (n,), `values` (n, 2), `target` (2,). Raises ValueError if shapes do not fit.
    """
    p, v = same_shape("weights", weights, len(tokens)), same_shape("values", values, len(tokens), 2)
    z, t = p @ v, same_shape("target", target, 2)
    names = [f"{token}, weight {share:.2g}" for token, share in zip(tokens, p, strict=True)]
    places = dict(zip([*names, "output", "target"], [*v, z, t], strict=True))
    alt = f"Values of {len(tokens)} words in a plane, and an arrow from their average, the output, to a target. {each_listed(places, 1)}"
    with picture(title="An output that should be elsewhere", alt=alt, height=3.4) as (ax,):
        for name, place in places.items():
            colour, side = (VALUE, np.sign(place[0] - z[0]) or -1) if name in names else (INK, -1)
            if name in names:
                ax.plot(*zip(place, z, strict=True), color=colour, **LEADER_LINE)
            ax.plot(*place, color=colour, marker="o")
            ends: dict[str, Any] = {"ha": "left" if side > 0 else "right", "va": "top" if name == "output" else "bottom"}
            ax.annotate(name, place, xytext=(8 * side, 0), textcoords="offset points", fontsize=LABEL_POINTS, **ends)
        ax.annotate("", (t[0], t[1]), (z[0], z[1]), arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.6})
        ax.margins(0.22)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set(xlabel="first entry", ylabel="second entry")


def learned_scores(
    asks: Sequence[str], answers: Sequence[str], fixed: ArrayLike, learned: ArrayLike, never: Sequence[tuple[int, int]]
) -> None:
    """Show the scores that some words give to others, where the keys stayed and where they learned; pairs that never met are striped.

    `fixed`, `learned` (asks, answers). `never`: pairs of a row and a column. Raises ValueError if shapes do not fit.
    """
    maps = [same_shape(name, scores, len(asks), len(answers)) for name, scores in (("fixed", fixed), ("learned", learned))]
    unmet = np.zeros(maps[0].shape, dtype=bool)
    unmet[tuple(zip(*never, strict=True))] = True
    high = "; ".join(
        f"{word}: {', '.join(name for name, score in zip(answers, row, strict=True) if score > 0)}"
        for word, row in zip(asks, maps[1], strict=True)
    )
    low = ", ".join(f"{asks[row]} and {answers[column]} {number(maps[0][row, column])}" for row, column in never)
    title = "With keys that learn, an ending finds nouns that it has never met"
    alt = (
        f"Two heatmaps of scores; {', '.join(asks)} ask, in rows, and {', '.join(answers)} answer, in columns. Keys that stay: scores from "
        f"{number(maps[0].min())} to {number(maps[0].max())}; of pairs that never met, {low}. Keys that learn: scores from "
        f"{number(maps[1].min())} to {number(maps[1].max())}. Above 0 are there, {high}."
    )
    reach = max(float(np.abs(each).max()) for each in maps)
    with picture(title=title, alt=alt, height=1.3 + 0.5 * len(asks), columns=2, sharey=True) as axes:
        for ax, scores, name in zip(axes, maps, ("keys that stay", "keys that learn"), strict=True):
            draw_heatmap(ax, scores, signed=True, limits=(-reach, reach), digits=1)
            hatch_cells(ax, unmet)
            name_cells(ax, asks, answers, unmet.shape)
            ax.set(title=name, xlabel="answers", aspect="auto")
            for words in ax.texts:
                words.set_fontsize(LABEL_POINTS)
        axes[0].set_ylabel("asks")


def learning(asks: Sequence[str], answers: Sequence[str], models: Sequence[tuple[ArrayLike, ArrayLike]]) -> None:
    """Show how the queries of some words and the keys of others move in training.

    `models`: queries (asks, 4) and keys (answers, 4), from the first to the last. They are shown in a plane: the first place less the
    third, and the second less the fourth. Raises ValueError if shapes do not fit.
    """
    plane = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    queries, keys = zip(*models, strict=True)
    paths = {word: (KEY, "-", path) for word, path in zip(answers, _paths("keys", keys, len(answers)) @ plane, strict=True)}
    paths |= {word: (QUERY, "--", path) for word, path in zip(asks, _paths("queries", queries, len(asks)) @ plane, strict=True)}
    said = [each_listed({word: path[at] for word, (_, _, path) in paths.items()}, 1) for at in (0, -1)]
    title = "Training pulls some keys together, and pushes others away"
    alt = f"Paths of queries, dashed, and keys in a plane. They begin at these places. {said[0]} They end at these. {said[1]}"
    with picture(title=title, alt=alt, height=4.9) as (ax,):
        for word, (colour, dashes, path) in paths.items():
            ax.plot(*path.T, color=colour, linestyle=dashes)
            ax.plot(*path[1:-1].T, "o", color=colour, markersize=4)
            ax.plot(*path[0], "o", color=colour, markerfacecolor="none", markersize=8)
            ax.annotate(
                "",
                path[-1],
                path[-2],
                arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "linewidth": 0, "mutation_scale": 20},
            )
            name: dict[str, Any] = {"textcoords": "offset points", "fontsize": LABEL_POINTS}
            ax.annotate(
                word, path[-1], xytext=(8 * np.sign(path[-1, 0]), 0), ha="left" if path[-1, 0] > 0 else "right", va="center", **name
            )
        ax.plot([], [], color=KEY, label="keys")
        ax.plot([], [], color=QUERY, linestyle="--", label="queries")
        ax.plot([], [], "o", color=INK, markerfacecolor="none", markersize=8, label="before training")
        ax.legend(loc="lower right")
        ax.grid(visible=False)
        ax.axhline(0.0, color=GRID, linewidth=0.8)
        ax.axvline(0.0, color=GRID, linewidth=0.8)
        ends = np.concatenate([path for _, _, path in paths.values()])
        low, high = ends.min(axis=0), ends.max(axis=0)
        room = 0.1 * np.ptp(ends, axis=0)
        ax.set(xlabel="first place less third", ylabel="second place less fourth", aspect="equal")
        ax.set(xlim=(low[0] - 2 * room[0], high[0] + 2 * room[0]), ylim=(low[1] - room[1], high[1] + room[1]))


def _paths(name: str, steps: Sequence[ArrayLike], words: int) -> np.ndarray:
    """Return one path for each word (words, steps, 4)."""
    return np.stack([same_shape(name, step, words, 4) for step in steps], axis=1)


def steps_explorable() -> None:
    """Show four scores that take steps against the gradient, and how long the best value needs."""
    publish_explorable(
        CARDS / "steps",
        "A slider sets the score of the value 2 at the start, beside the values −1, 0 and 1 with the score 0; buttons take steps against "
        "the gradient of the loss −z: one, one after another, or until the value 2 has half of the weight. Weights, their course over "
        "the steps, output and the next step of each score follow.",
    )
