"""Figures of the lesson gradients: the machine read backwards, a row on its wires, learned scores."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import (
    add_colour_bar,
    draw_heatmap,
    hatch_cells,
    name_cells,
    same_shape,
)
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import number

CARDS = Path(__file__).parent / "explorables"
FIRST_ROW, ROW = 98, 54  # of the picture of a row, in pixels
LARGEST_DENOMINATOR = 20


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def row_on_wires(tokens: Sequence[str], scores: ArrayLike, value: ArrayLike, d_output: ArrayLike) -> None:
    """Show one row from its scores to the loss `d_output` times output: on each wire the value, and below it the gradient.

    `tokens`: the words, at most 7 letters each. `scores` (n,). `value` (n, 2), `d_output` (2,): small whole numbers. Raises ValueError if
    shapes do not fit.
    """
    s, v, d_z = same_shape("scores", scores, len(tokens)), same_shape("value", value, len(tokens), 2), same_shape("d_output", d_output, 2)
    powers = np.exp(s)
    p = powers / powers.sum()
    z, cost = p @ v, v @ d_z
    mean = float(p @ cost)
    d_s = p * (cost - mean)
    rows = FIRST_ROW + ROW * np.arange(len(tokens))
    middle, top, bottom = float(rows.mean()), FIRST_ROW - 30, float(rows[-1]) + 60
    drawing = Diagram("row-on-wires", 618, bottom + 4)
    softmax, mixture = (drawing.box(Area(x, (top + bottom) / 2, width, bottom - top)) for x, width in ((182, 112), (334, 92)))
    loss, end = drawing.box(Area(510, middle, 92, 56)), drawing.circle((602, middle), "L")

    def say(x: float, y: float, forward: str, back: str, apart: float = 20, **look: Any) -> None:
        drawing.text((x, y + 5 - apart / 2), forward, **look)
        drawing.text((x, y + 5 + apart / 2), back, role="gradient", **look)

    def wire(left: Area, right: Area, y: float, forward: str, back: str) -> None:
        start, stop = left.right[0], right.left[0]
        drawing.arrow((start, y - 3.5), (stop, y - 3.5))
        drawing.arrow((stop, y + 3.5), (start, y + 3.5), role="gradient")
        say((start + stop) / 2, y, forward, back, apart=28)

    for x, forward, back in ((101, "S", "dS"), (182, "softmax", "P (dP − δ)"), (263, "P", "dP"), (334, "P V", "dZ V^T"), (422, "Z", "dZ")):
        say(x, 34, forward, back, symbol=True)
    say(40, 34, "forward →", "← back", small=True)
    less = f"− {_exact(mean)}" if mean >= 0 else f"+ {_exact(-mean)}"
    for y, token, *numbers in zip(rows, tokens, s, p, v, cost, d_s, strict=True):
        score, weight, row, each, d_score = map(_exact, numbers)
        wire(drawing.box(Area(40, y, 72, 30), token), softmax, y, score, d_score)
        say(softmax.x, y, f"exp({score}) / {_exact(powers.sum())}", f"{weight} · ({each} {less})", small=True)
        wire(softmax, mixture, y, weight, each)
        say(mixture.x, y, f"{weight} · {row}", f"dZ · {row}", small=True)
    drawing.text((softmax.x, bottom - 12), f"mean δ = {_exact(mean)}", role="gradient")
    drawing.text((mixture.x, bottom - 12), "their sum")
    wire(mixture, loss, middle, _exact(z), _exact(d_z))
    say(loss.x, middle, f"{_exact(d_z)} · Z", _exact(d_z), small=True)
    wire(loss, end, middle, _exact(d_z @ z), "1")
    caption = (
        "Above each pair of arrows stands what goes forward, a value; below it, in colour, what comes back, its gradient. In each row of "
        "the softmax the mean cost δ is subtracted from the cost of the weight, and the weight multiplies the difference."
    )
    alt = (
        f"A chain from the scores of {', '.join(tokens)} to the loss. Forward: the scores {_exact(s)} become the weights {_exact(p)}, the "
        f"output {_exact(z)} and the loss {_exact(d_z @ z)}. Back: the gradient is {_exact(d_z)} at the output and {_exact(cost)} at the "
        f"weights, their costs; less their mean, {_exact(mean)}, and times the weights it is {_exact(d_s)} at the scores."
    )
    publish_diagram(drawing.finish(title="One row forward and back", caption=caption, alt=alt))


def _exact(entries: ArrayLike) -> str:
    """Return a number, or several in parentheses; as fractions where their denominators are small."""
    found = np.asarray(entries, dtype=float)
    if found.ndim:
        return f"({', '.join(map(_exact, found))})"
    fraction = Fraction(float(found)).limit_denominator(LARGEST_DENOMINATOR)
    return str(fraction).replace("-", "−") if np.isclose(float(fraction), found, atol=1e-12) else number(float(found))


def learned_scores(
    asks: Sequence[str], answers: Sequence[str], fixed: ArrayLike, learned: ArrayLike, never: Sequence[tuple[int, int]]
) -> None:
    """Show the scores that some words give to others, where the keys stayed and where they learned; pairs that never met are striped.

    `fixed`, `learned` (asks, answers). `never`: pairs of a row and a column. Raises ValueError if shapes do not fit.
    """
    maps = [same_shape(name, scores, len(asks), len(answers)) for name, scores in (("fixed", fixed), ("learned", learned))]
    unmet = np.zeros(maps[0].shape, dtype=bool)
    unmet[tuple(zip(*never, strict=True))] = True
    reach = max(float(np.abs(each).max()) for each in maps)
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
    with picture(title=title, alt=alt, height=1.5 + 0.4 * len(asks), columns=2, sharey=True) as axes:
        for ax, scores, name in zip(axes, maps, ("keys that stay", "keys that learn"), strict=True):
            image = draw_heatmap(ax, scores, signed=True, limits=(-reach, reach), digits=1)
            hatch_cells(ax, unmet)
            name_cells(ax, asks, answers, scores.shape)
            for word in ax.get_xticklabels():
                word.set(rotation=55, ha="right", rotation_mode="anchor")
            ax.set(title=name, xlabel="answers")
        axes[0].set_ylabel("asks")
        add_colour_bar(image, axes, "score", fraction=0.04)


def steps_explorable() -> None:
    """Show four scores that take steps against the gradient, and how long the best value needs."""
    publish_explorable(
        CARDS / "steps",
        "A slider sets the score of the value 2 at the start, beside the values −1, 0 and 1 with the score 0; buttons take steps against "
        "the gradient of the loss −z: one, one after another, or until the value 2 has half of the weight. Weights, their course over "
        "the steps, output and the next step of each score follow.",
    )
