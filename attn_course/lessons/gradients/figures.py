"""Figures of the lesson gradients: the machine read backwards, and which words met in the sentences that were read."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, KEY, QUERY

CARDS = Path(__file__).parent / "explorables"


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def sentences(asks: Sequence[str], answers: Sequence[str], read: Sequence[tuple[int, Sequence[int]]], way: Sequence[int]) -> None:
    """Show which words met in the sentences that were read, and a way from a word that answers to one that asks.

    `read`: for each sentence the number of the word that asks, and those of two that answer, the right one first. `way`: the numbers of
    words in turn, one that answers first and one that asks last; of two alone, who never met, the line is dotted and bears a question mark.
    Raises ValueError if there is no sentence.
    """
    if not read:
        raise ValueError("read must hold at least one sentence; got none")
    right, wrong = ({(asking, pair[place]) for asking, pair in read} for place in (0, 1))
    steps = {(b, a) if turn % 2 == 0 else (a, b) for turn, (a, b) in enumerate(pairwise(way))}
    first, last = answers[way[0]], asks[way[-1]]
    unmet = not steps <= right | wrong
    title = f'No sentence joins "{last}" with the {first}' if unmet else f'A way leads from the {first} to "{last}"'
    met = [
        f"From {word} full lines lead to {_named(answers, right, at)}, broken lines to {_named(answers, wrong, at)}."
        for at, word in enumerate(asks)
    ]
    names = [(asks if turn % 2 else answers)[word] for turn, word in enumerate(way)]
    shown = f"A question mark stands between {last} and {first}." if unmet else f"The way, in thick lines: {', '.join(names)}."
    alt = f"{' and '.join(asks)} above, {', '.join(answers)} below, and lines between those that met. {' '.join(met)} {shown}"
    above = (np.arange(len(asks)) + 0.5) * len(answers) / len(asks) - 0.5
    with picture(title=title, alt=alt, height=2.5) as (ax,):
        for lines, dashes in ((right, "-"), (wrong, (0, (5, 3))), (steps - right - wrong, ":")):
            for pair in sorted(lines):
                thick = pair in steps and not unmet
                ax.plot([above[pair[0]], pair[1]], [1, 0], color=KEY if thick else INK, linewidth=4.5 if thick else 1.4, linestyle=dashes)
        if unmet:
            ax.text(0.75 * above[way[-1]] + 0.25 * way[0], 0.76, "?", fontsize=18, ha="right", va="bottom", color=INK)
        for words, places, height, colour in ((asks, above, 1, QUERY), (answers, range(len(answers)), 0, KEY)):
            ax.plot(places, [height] * len(words), "o", color=colour, markersize=9)
            side: dict[str, Any] = {"va": "bottom" if height else "top", "xytext": (0, 9 if height else -9)}
            for word, place in zip(words, places, strict=True):
                ax.annotate(word, (place, height), textcoords="offset points", ha="center", fontsize=LABEL_POINTS + 1, **side)
        ax.set(xlim=(-0.5, len(answers) - 0.5), ylim=(-0.35, 1.35), xticks=[], yticks=[])
        ax.set_axis_off()


def _named(words: Sequence[str], pairs: set[tuple[int, int]], at: int) -> str:
    return " and ".join(words[word] for asking, word in sorted(pairs) if asking == at)


def steps_explorable() -> None:
    """Show four scores that take steps against the gradient, and how long the best value needs."""
    publish_explorable(
        CARDS / "steps",
        "A slider sets the score of the value 2 at the start, beside the values −1, 0 and 1 with the score 0; buttons take steps against "
        "the gradient of the loss −z: one, one after another, or until the value 2 has half of the weight. Weights, their course over "
        "the steps, output and the next step of each score follow.",
    )
