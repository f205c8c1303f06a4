"""Figures of the lesson gradients: the machine read backwards, a row on its wires, learned scores, and how they are learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import (
    LABEL_POINTS,
    draw_heatmap,
    hatch_cells,
    name_cells,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import GRID, INK, KEY, QUERY
from attn_course.figures.words import each_listed, number

CARDS = Path(__file__).parent / "explorables"
FIRST_ROW, ROW = 164, 58  # of the picture of a row, in pixels


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def row_on_wires(tokens: Sequence[str], query: ArrayLike, keys: ArrayLike, values: ArrayLike, target: ArrayLike) -> None:
    """Show one query from its keys to the loss, half the squared distance to the target: on each wire a number, below it the gradient.

    `tokens`: the words, at most 7 letters each. `query` (4,), `keys` (n, 4), `values` (n, 2), `target` (2,): numbers of few digits. Raises
    ValueError if shapes do not fit.
    """
    q, t = same_shape("query", query, 4), same_shape("target", target, 2)
    k, v = same_shape("keys", keys, len(tokens), 4), same_shape("values", values, len(tokens), 2)
    s = k @ q / 2
    powers = np.exp(s)
    p = powers / powers.sum()
    z = p @ v
    d_z = z - t
    cost, loss = v @ d_z, _few(d_z @ d_z / 2)
    mean = float(p @ cost)
    d_s = p * (cost - mean)
    d_q, d_k, d_v = d_s @ k / 2, np.outer(d_s, q) / 2, np.outer(p, d_z)
    rows = [float(FIRST_ROW + ROW * row) for row in range(len(tokens))]
    middle, top, bottom = (rows[0] + rows[-1]) / 2, FIRST_ROW - 30, rows[-1] + 58
    drawing = Diagram("row-on-wires", 758, bottom + 4)
    columns = ((241, 62), (374, 112), (523, 106))
    match, softmax, mixture = (drawing.box(Area(x, (top + bottom) / 2, width, bottom - top)) for x, width in columns)
    far = drawing.box(Area(706, middle, 98, 84))

    def say(x: float, y: float, forward: str, back: str, apart: float = 20, **look: Any) -> None:
        drawing.text((x, y + 5 - apart / 2), forward, **look)
        drawing.text((x, y + 5 + apart / 2), back, role="gradient", **look)

    def wire(left: Area, right: Area, y: float, forward: str, back: str) -> None:
        start, stop = left.right[0], right.left[0]
        drawing.arrow((start, y - 3.5), (stop, y - 3.5))
        drawing.arrow((stop, y + 3.5), (start, y + 3.5), role="gradient")
        say((start + stop) / 2, y, forward, back, apart=28, small=True)

    say(40, 34, "forward →", "← back", small=True)
    names = ["K dK", "S dS", "softmax P(dP−δ)", "P dP", "P·V dV", "Z dZ"]
    for x, (forward, back) in zip((137, 295, 374, 450, 523, 616), map(str.split, names), strict=True):
        say(x, 34, forward, back, symbol=True)
    asking = drawing.box(Area(match.x, 84, 222, 44))
    say(match.x, 84, f"q = {_few(q)}", f"dq = {_few(d_q)}", small=True)
    drawing.arrow((match.x - 3.5, asking.bottom[1]), (match.x - 3.5, top))
    drawing.arrow((match.x + 3.5, top), (match.x + 3.5, asking.bottom[1]), role="gradient")
    less = f"−{_few(mean)}" if mean >= 0 else f"+{_few(-mean)}"
    for row, (y, token) in enumerate(zip(rows, tokens, strict=True)):
        weight = _few(p[row])
        wire(drawing.box(Area(34, y, 64, 30), token), match, y, _few(k[row]), _few(d_k[row]))
        drawing.text((match.x, y + 5), f"{_few(k[row] @ q)} / 2", small=True)
        wire(match, softmax, y, _few(s[row]), _few(d_s[row]))
        say(softmax.x, y, f"{_few(powers[row])} / {_few(powers.sum())}", f"{weight}·({_few(cost[row])}{less})", small=True)
        wire(softmax, mixture, y, weight, _few(cost[row]))
        say(mixture.x, y, f"{weight} · {_few(v[row])}", _few(d_v[row]), small=True)
    drawing.text((match.x, bottom - 10), "q · k / 2")
    drawing.text((softmax.x, bottom - 10), f"mean δ = {_few(mean)}", role="gradient")
    drawing.text((mixture.x, bottom - 10), "their sum")
    wire(mixture, far, middle, _few(z), _few(d_z))
    for line, words in enumerate((f"t = {_few(t)}", "½ |z − t|²", f"L = {loss}")):
        drawing.text((far.x, middle - 14 + 20 * line), words, small=True)
    caption = (
        "Above each pair of arrows stands what goes forward, a number or a vector; below it, in colour, what comes back, its gradient. In "
        "each row of the softmax the mean cost δ is subtracted from the cost of the weight, and the weight multiplies the difference."
    )
    alt = (
        f"A circuit from the query {_few(q)} and the keys of {', '.join(tokens)} to the loss. Forward: the scores {_few(s)} become the "
        f"weights {_few(p)}, the output {_few(z)} and the loss {loss}. Back: the gradient is {_few(d_z)} at the output and {_few(cost)} at "
        f"the weights, their costs; less their mean, {_few(mean)}, and times the weights it is {_few(d_s)} at the scores. It is "
        f"{_few(d_q)} at the query, {', '.join(map(_few, d_k))} at the keys and {', '.join(map(_few, d_v))} at the values."
    )
    publish_diagram(drawing.finish(title="One query forward and back", caption=caption, alt=alt))


def _few(entries: ArrayLike) -> str:
    """Return a number, or several in parentheses: exact where three digits behind the point are enough, and else with two of them."""
    found = np.asarray(entries, dtype=float)
    if found.ndim:
        return f"({', '.join(map(_few, found))})"
    digits = 3 if np.isclose(np.round(found, 3), found, atol=1e-9) else 2
    return number(float(found), digits).rstrip("0").rstrip(".")


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
    low = ", ".join(f"{asks[row]} and {answers[column]} {number(maps[0][row, column], 1)}" for row, column in never)
    title = "With keys that learn, an ending finds nouns that it has never met"
    alt = (
        f"Two heatmaps of scores; {', '.join(asks)} ask, in rows, and {', '.join(answers)} answer, in columns. Keys that stay: scores from "
        f"{number(maps[0].min(), 1)} to {number(maps[0].max(), 1)}; of pairs that never met, {low}. Keys that learn: scores from "
        f"{number(maps[1].min(), 1)} to {number(maps[1].max(), 1)}. Above 0 are there, {high}."
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
