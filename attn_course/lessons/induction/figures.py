"""Figures of the lesson on induction: two heads in a row, how they arrive, and where the table can read what they found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import draw_heatmap
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


def stripes(run: Mapping[str, Any]) -> None:
    """Show the maps of the two heads of a recorded training: those of the first layer above, of the second below, by step."""
    steps = [int(step) for step in run["maps"]]
    right = dict(zip(run["way"]["step"], run["way"]["copied"], strict=True))
    found = {step: [_filled(rows) for rows in run["maps"][str(step)]] for step in steps}
    before, score = ([number(float(look(found[step][layer]))) for step in steps] for layer, look in enumerate((_back, _behind)))
    _grid(
        [found[step][layer] for layer in (0, 1) for step in steps],
        [f"step {step}: {100 * right[step]:.0f} % right" for step in steps] + [""] * len(steps),
        title="Two stripes arrive together, and copying with them",
        alt=f"Maps of one head of each layer at the steps {', '.join(map(str, steps))}. In the first layer a stripe appears right below "
        f"the diagonal: mean weight on the word before {', '.join(before)}. In the second layer a stripe appears in the second round, "
        f"{len(found[steps[0]][0]) // 2 - 1} places below the diagonal: induction score {', '.join(score)}.",
        rows=("first layer", "second layer"),
    )


def maps(layers: Sequence[ArrayLike]) -> None:
    """Show the mean map of every head, a row of panels for each layer; `layers`: weights (n_texts, n_heads, 2 n, 2 n) of each."""
    means = [np.asarray(weights, dtype=float).mean(0) for weights in layers]
    names = [f"layer {layer}, head {head}" for layer, heads in enumerate(means) for head in range(len(heads))]
    told = "; ".join(
        f"{name}: {number(float(_back(each)))} on the word before, induction score {number(float(_behind(each)))}"
        for name, each in zip(names, np.concatenate(means), strict=True)
    )
    _grid(
        [*np.concatenate(means)],
        names,
        title="What each head of your model looks at",
        alt=f"Maps of all heads. {told}.",
        rows=[""] * len(means),
    )


def _grid(found: Sequence[np.ndarray], names: Sequence[str], *, title: str, alt: str, rows: Sequence[str]) -> None:
    across = len(found) // len(rows)
    with picture(title=title, alt=alt, height=1.0 + 1.95 * len(rows), rows=len(rows), columns=across) as axes:
        for place, (ax, each, name) in enumerate(zip(axes, found, names, strict=True)):
            draw_heatmap(ax, each, limits=(0.0, 1.0), annotate=False)
            ax.set(title=name, xticks=[], yticks=[])
            if place % across == 0:
                ax.set_ylabel(rows[place // across])


def _filled(rows: Sequence[Sequence[int]]) -> np.ndarray:
    square = np.zeros((len(rows), len(rows)))
    for place, row in enumerate(rows):
        square[place, : len(row)] = np.asarray(row) / 100
    return square


def _back(weights: np.ndarray) -> np.floating:
    return weights.diagonal(-1).mean()


def _behind(weights: np.ndarray) -> np.floating:
    return weights.diagonal(1 - len(weights) // 2)[1:].mean()


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
