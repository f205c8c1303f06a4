"""Figures of the lesson on induction: two heads in a row, how they arrive, and where the table can read what they found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import LABEL_POINTS, draw_heatmap, draw_level, draw_lines, label_ends, name_cells
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import NEUTRAL_STYLES, PALE, WEIGHTS
from attn_course.figures.words import number


def machine() -> None:
    """Show the machine with what a head compares lit."""
    show_machine("matches")


def circuit(words: Sequence[str], found: int) -> None:
    """Show how two heads find what comes behind the last word: its query, the note that answers, and the word that is copied.

    `words`: the text. `found`: the place of the word that is copied, from 0.
    """
    drawing = Diagram("circuit", 412, 280)
    step = 412 / len(words)
    at = [step * (place + 0.5) for place in range(len(words))]
    for place, word in enumerate(words):
        box = drawing.box(Area(at[place], 246, step - 10, 34), word)
        if place:
            note = drawing.box(Area(at[place], 156, step - 10, 34), words[place - 1], role="key", lit=place == found)
            drawing.arrow((at[place - 1], box.top[1]), (at[place], note.bottom[1]), lit=place == found)
    for y, name in ((153, "first head:"), (171, "one back"), (73, "second head:"), (91, "matches"), (31, "copies")):
        drawing.text((4, y), name, anchor="start")
    query = drawing.box(Area(at[-1], 84, step - 10, 34), f"{words[-1]} ?", role="query")
    drawing.arrow(query.left, (at[found], 84), (at[found], note.top[1]))
    answer = drawing.box(Area(at[-1], 26, step - 10, 34), words[found], role="value")
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


def arrival(log: Sequence[Sequence[float]], run: Mapping[str, Any], alone: float) -> None:
    """Show how copying and its two heads arrive in training, and at what the two look in the end.

    `log`: for each measurement its step, the share of right words, the largest weight on the word before, and the largest score.
    `run`: what is stored of such a training; the words tell its numbers. `alone`: the share that one layer gets right.
    """
    steps, *curves = np.asarray(log, dtype=float).T
    way, last = run["way"], str(max(map(int, run["maps"])))
    told = "; ".join(
        f"step {way['step'][at]}: {number(way['copied'][at])} right, {number(way['before'][at])} on the word before, "
        f"score {number(way['induction'][at])}"
        for at in (0, len(way["step"]) // 2, 2 * len(way["step"]) // 3)
    )
    alt = (
        f"Three curves against the steps of training stay low and then rise side by side. In our run, {told}. A dotted level: one layer, "
        f"{number(alone)} right. Beside them two maps of the end: a stripe right below the diagonal, and one in the second round alone."
    )
    with picture(title="Two heads and the copying rise together", alt=alt, height=3.0, columns=3, width_ratios=[1.3, 1, 1]) as (
        ax,
        *squares,
    ):
        draw_lines(ax, steps, dict(zip(("right", "one back", "score"), curves, strict=True)))
        draw_level(ax, steps, alone, "one layer")
        ax.set(xlabel="step", ylabel="share of words, or weight", ylim=(0, 1))
        ax.set_xlim(steps.min(), steps.max())
        label_ends(ax)
        for square, rows, name in zip(squares, run["maps"][last], ("one back", "score"), strict=True):
            draw_heatmap(square, _filled(rows), limits=(0.0, 1.0), annotate=False)
            name_cells(square, None, None, (len(rows), len(rows)))
            square.set(title=name, xlabel="looks at", ylabel="place" if square is squares[0] else "")


def missed(found: Mapping[str, Any]) -> None:
    """Show every head of a real model by its induction score, and by its weight on what a begun name needs.

    `found`: "score" and "name", each (layers, heads); "late", the head that the score misses; "eight", those it finds.
    """
    late, eight = tuple(found["late"]), found["eight"]
    score, name = (np.asarray(found[which], dtype=float) for which in ("score", "name"))
    high = [head for head in zip(*np.nonzero(name > 0.4), strict=True) if head != late]
    alt = (
        f"A point for each of {score.size} heads. Head {late} has the score {number(score[late])} and gives the name {number(name[late])}. "
        f"Of the others, {len(high)} give it more than 0.40, all of them with a score above {number(min(score[head] for head in high))}."
    )
    with picture(title=f"Head {late} looks at the name, and the score misses it", alt=alt, height=3.6) as (ax,):
        chosen = np.zeros(score.shape, dtype=bool)
        chosen[tuple(np.transpose([*eight, late]))] = True
        ax.scatter(score[~chosen], name[~chosen], s=16, color=PALE, clip_on=False)
        across, up = (each[tuple(np.transpose(eight))] for each in (score, name))
        ax.scatter(across, up, s=44, color=NEUTRAL_STYLES[1][0], clip_on=False)
        ax.text(across.mean(), up.mean(), "the eight", ha="center", fontsize=LABEL_POINTS)
        ax.scatter(score[late], name[late], s=80, color=WEIGHTS, marker="D", clip_on=False)
        ax.annotate(f"head {late}", (score[late], name[late]), xytext=(10, 0), textcoords="offset points", va="center")
        ax.set(xlabel="induction score on random tokens", ylabel="weight on the name", xlim=(-0.03, 1), ylim=(0, 1))


def _filled(rows: Sequence[Sequence[int]]) -> np.ndarray:
    square = np.zeros((len(rows), len(rows)))
    for place, row in enumerate(rows):
        square[place, : len(row)] = np.asarray(row) / 100
    return square


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
