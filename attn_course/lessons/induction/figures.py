"""Figures of the lesson on induction: two heads in a row, how they arrive, and where the table can read what they found."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import number


def machine() -> None:
    """Show the machine with what a head compares lit."""
    show_machine("matches")


def circuit(words: Sequence[str], found: int) -> None:
    """Show how two heads find what comes behind the last word: its query, the note that answers, and the word that is copied.

    `words`: the text. `found`: the place of the word that is copied, from 0.
    """
    drawing = Diagram("circuit", 656, 280)
    left = 112.0  # room for names
    step = (648 - left) / len(words)
    at = [left + step * (place + 0.5) for place in range(len(words))]
    for place, word in enumerate(words):
        box = drawing.box(Area(at[place], 246, step - 16, 34), word)
        if place:
            note = drawing.box(Area(at[place], 156, step - 16, 34), words[place - 1], role="key", lit=place == found)
            drawing.arrow((at[place - 1], box.top[1]), (at[place], note.bottom[1]), lit=place == found)
    for y, name in ((251, "words"), (153, "first head:"), (171, "word before"), (73, "second head:"), (91, "matches"), (31, "copies")):
        drawing.text((52, y), name)
    query = drawing.box(Area(at[-1], 84, step - 16, 34), f"{words[-1]} ?", role="query")
    drawing.arrow(query.left, (at[found], 84), (at[found], note.top[1]))
    answer = drawing.box(Area(at[-1], 26, step - 16, 34), words[found], role="value")
    drawing.arrow(query.top, answer.bottom)
    told = (
        "The first head writes into each position which word came before. The last word looks for its own name in these notes, "
        f"and copies {words[found]}."
    )
    publish_diagram(
        drawing.finish(
            title="Two heads in a row copy",
            caption=told,
            alt=f"The words {' '.join(words)} in a row. Above each a note of the word before it. {told} An arrow leads from the query "
            f"of the last word to the note above {words[found]}.",
        )
    )


def arrival(way: Mapping[str, ArrayLike]) -> None:
    """Show what was "copied" by "step" of training, and the largest weight on the word "before" and "induction" score of a head."""
    names = {"right": "copied", "one back": "before", "induction score": "induction"}
    curves = {name: np.asarray(way[what]) for name, what in names.items()}
    told = " ".join(f"{name}: {number(curve[0], 2)} at first, {number(curve[-1], 2)} at the end." for name, curve in curves.items())
    charts.lines(
        np.asarray(way["step"], dtype=float),
        curves,
        title="Copying comes when both heads come",
        alt="Share of right words in the second round, the largest weight of a head on the word before, and the largest induction score, "
        f"by step of training. {told}",
        x_label="step of training",
        y_label="share of right words, or weight",
        y_limits=(0.0, 1.0),
    )


def depths(ranks: Mapping[str, ArrayLike]) -> None:
    """Show the rank of the right word among all words by depth: the median of some draws, on a logarithmic axis.

    `ranks`, each (n_draws, n_depths), by which heads are silenced.
    """
    curves = {name: np.median(np.asarray(found, dtype=float), axis=0) for name, found in ranks.items()}
    told = " ".join(
        f"{name}: {number(curve[0], 0)} before the first layer, {number(curve[-1], 0)} at the end." for name, curve in curves.items()
    )
    charts.lines(
        np.arange(len(next(iter(curves.values())))),
        curves,
        title="Without the eight heads the word stays far back",
        alt=f"Rank of the right word when the stream behind each number of layers is read by the table; 1 is the first. {told}",
        x_label="layers that have added",
        y_label="rank of the right word",
        y_log=True,
    )
