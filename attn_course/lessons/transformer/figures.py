"""Figures of the lesson on the Transformer: the whole machine, a training, and gradients by block."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.words import number


def machine() -> None:
    """Show the stream of a word through a block, with both parts beside it, and the table at both ends."""
    drawing = Diagram("stream", 350, 444)
    table = drawing.box(Area(60, 24, 60, 36), "table")
    drawing.text((100, 29), "words", anchor="start")
    drawing.panel(Area(175, 192, 334, 268))
    drawing.text((258, 312), "one of L blocks")
    at = table.bottom
    for y, letter, part, role in ((96, "A_l", "attention", "weights"), (210, "H_l", "hidden units", "value")):
        norm = drawing.box(Area(126, y, 44, 32), "N", symbol=True, lit=True)
        box = drawing.box(Area(258, y, 146, 36), "", role=role, lit=True)
        drawing.text((box.x - 46, y + 5), letter, symbol=True)
        drawing.text((box.x + 18, y + 5), part)
        plus = drawing.circle((60, y + 56), "+")
        drawing.arrow(at, plus.top)
        drawing.arrow((60, y), norm.left)
        drawing.arrow(norm.right, box.left)
        drawing.arrow(box.bottom, (box.x, y + 56), plus.right)
        at = plus.bottom
    norm = drawing.box(Area(60, 362, 44, 32), "N", symbol=True)
    drawing.arrow(at, norm.top)
    table = drawing.box(Area(60, 420, 60, 36), "table")
    drawing.text((100, 425), "scores", anchor="start")
    drawing.arrow(norm.bottom, table.top)
    told = (
        "The stream runs down the left side. Each part reads a normed copy of it, and what it found is added. Attention alone brings "
        "something from other positions."
    )
    alt = f"From the table of words through two sums to a norm and the table again. {told} Attention comes first, then hidden units."
    publish_diagram(drawing.finish(title="The stream through one block", caption=told, alt=alt))


def training(losses: ArrayLike, floor: float) -> None:
    """Show the loss of each step of a training, and the floor that no model can be below on average."""
    found = np.asarray(losses, dtype=float)
    charts.lines(
        np.arange(len(found)),
        {"loss": found},
        title="The loss falls to the floor",
        alt=f"Loss of each step, from {number(found[0], 2)} to {number(found[-1], 2)}, and the floor at {number(floor, 2)}.",
        x_label="step",
        y_label="nats a word",
        references={"the floor": floor},
    )


def gradients_by_block(lengths: Mapping[str, ArrayLike]) -> None:
    """Show how long the gradient of each block's `w_in` is, against the last block's: the geometric mean of some draws.

    `lengths`, each (n_draws, n_blocks): by where the norm stands, and what was divided.
    """
    against_last = {way: np.log(np.asarray(found)) for way, found in lengths.items()}
    curves = {way: np.exp((found - found[:, -1:]).mean(axis=0)) for way, found in against_last.items()}
    blocks = np.arange(1, len(next(iter(curves.values()))) + 1)
    told = " ".join(f"{way}: {number(curve[0], 2)} times in block 1, 1 in block {blocks[-1]}." for way, curve in curves.items())
    charts.lines(
        blocks,
        curves,
        title="Gradients explode only behind the sum, and undivided",
        alt="Length of the gradient of w_in in each block before training, against that of the last block, on a logarithmic axis. " + told,
        x_label="block",
        y_label="gradient / that of the last block",
        y_log=True,
    )
