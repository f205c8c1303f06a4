"""Figures of the lesson on the Transformer: its place in the machine, its stream, and gradients by block."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import number


def machine() -> None:
    """Show the machine with its sum lit."""
    show_machine("residual")


def stream() -> None:
    """Show the stream of a word through a block, with both parts beside it, and the table at both ends."""
    drawing = Diagram("stream", 656, 250)
    table = drawing.box(Area(40, 190, 60, 40), "table")
    drawing.text((40, 230), "words")
    drawing.panel(Area(305, 132, 410, 200))
    drawing.text((305, 226), "one of L blocks")
    at = table.right
    for x, letter, part, role in ((140, "A_l", "attention", "weights"), (340, "H_l", "hidden units", "value")):
        norm = drawing.box(Area(x, 130, 44, 32), "N", symbol=True, lit=True)
        box = drawing.box(Area(x + 50, 64, 146, 36), "", role=role, lit=True)
        drawing.text((box.x - 44, 69), letter, symbol=True)
        drawing.text((box.x + 20, 69), part)
        plus = drawing.circle((x + 100, 190), "+")
        drawing.arrow(at, plus.left)
        for points in (((x, 190), norm.bottom), (norm.top, (x, box.bottom[1])), ((x + 100, box.bottom[1]), plus.top)):
            drawing.arrow(*points, lit=True)
        at = plus.right
    norm = drawing.box(Area(548, 190, 44, 32), "N", symbol=True)
    drawing.arrow(at, norm.left)
    table = drawing.box(Area(616, 190, 60, 40), "table")
    drawing.arrow(norm.right, table.left)
    drawing.text((616, 230), "scores")
    told = (
        "The stream runs along the bottom. Each part reads a normed copy of it, and what it found is added. Attention alone brings "
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
    """Show how long the gradient of each block's weights is, against the last block's: the geometric mean of some draws.

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
        alt="Length of the gradient of each block's weights before training, against that of the last block, on a logarithmic axis. "
        + told,
        x_label="block",
        y_label="gradient / that of the last block",
        y_log=True,
    )
