"""Figures of the lesson on the Transformer: the machine, a training, losses against true stories, and gradients."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import LABEL_POINTS, each_of_shape
from attn_course.figures.palette import INK, NEUTRAL_STYLES
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


def losses_and_stories(losses: Mapping[str, ArrayLike], shares: Mapping[str, ArrayLike], floor: float) -> None:
    """Show for each model the loss that it reports and the share of true stories that it tells, on either side of the floor.

    `losses` and `shares`, each (n_draws,), by the same names. Models whose points lie close together share a label. Raises ValueError
    if a model has another number of losses than the first one, or of shares.
    """
    n_draws = len(np.asarray(next(iter(losses.values()))))
    across = each_of_shape("losses", losses, n_draws)
    up = each_of_shape("shares", {name: shares[name] for name in across}, n_draws)
    places = {name: (float(across[name].mean()), float(up[name].mean())) for name in across}
    told = " ".join(f"{name}: loss {number(x, 3)}, {number(y, 2)} of the stories true." for name, (x, y) in places.items())
    alt = f"The loss across, the share of true stories up, and a line at the floor, {number(floor, 3)}. Means of {n_draws} draws: {told}"
    with picture(title="Below the floor, no story is true", alt=alt, height=3.6) as (ax,):
        ax.axvspan(-0.02, floor, color=INK, alpha=0.12, linewidth=0, clip_on=False)
        ax.axvline(floor, color=INK, linestyle=":", linewidth=1.3, clip_on=False)
        beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": LABEL_POINTS, "va": "center"}
        ax.annotate("below the floor", (floor, 0.5), xytext=(-8, 0), ha="right", **beside)
        near: dict[tuple[int, int], list[str]] = {}
        for name, (x, y) in places.items():
            colour = NEUTRAL_STYLES[1 if x < floor else 0][0]
            ax.scatter(across[name], up[name], s=50, color=colour, alpha=0.7, linewidths=0, zorder=3, clip_on=False)
            near.setdefault((round(20 * x), round(10 * y)), []).append(name)
        for names in near.values():
            x, y = np.mean([places[name] for name in names], axis=0)
            ax.annotate("\n".join(names).replace(", ", ",\n"), (x, y), xytext=(10, 0 if y > 0.1 else 16), **beside)
        ax.set(xlabel="reported loss (nats a word)", ylabel="share of true stories", xlim=(-0.02, 0.5), ylim=(-0.06, 1))


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
