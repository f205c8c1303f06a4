"""Figures of the lesson additive: the network of one pair, a card with two units, and how fast three scores learn."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.drawing import each_of_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.aligner import aligner as aligner
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import each_listed, listed

CARDS = Path(__file__).parent / "explorables"


def steps_until_learnt(widths: Sequence[int], steps: Mapping[str, ArrayLike]) -> None:
    """Show how many steps each score needs to learn a dictionary, at several hidden widths.

    `steps`, each (n_widths,): median steps, by the name of the score; 451 for a run that did not learn in the 450 steps of its
    budget. Raises ValueError if lengths differ or there is no score.
    """
    needed = each_of_shape("steps", steps, len(widths))
    charts.bars(
        [str(width) for width in widths],
        needed,
        title="Wider learns faster, but not without the scale (451: not within 450 steps)",
        alt=f"Median steps until learnt for d_h = {listed(widths, 0)}; 451 means not within 450. {each_listed(needed, 0)}",
        x_label="hidden width $d_h$",
        y_label="steps until learnt",
        digits=0,
    )


def additive_explorable() -> None:
    """Show four keys scored by two tanh units and by a dot product, with sliders for the query, the bias and the size of v."""
    publish_explorable(
        CARDS / "additive",
        "Sliders for a query that is a number, the bias of two tanh units and the size of their score vector; scores, weights and curves "
        "for four keys, additive beside the dot product. Buttons put the query on a key or far away, and take the bias away, "
        "which leaves the units blind; one puts all back.",
    )


def machine() -> None:
    """Show the machine with where a score is made lit."""
    show_machine("comparison")
