"""Figures of the lesson linear: three orders of one sum, and a memory that is written, read and overwritten."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.drawing import each_of_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.orders import orders as orders
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import each_listed, listed

CARDS = Path(__file__).parent / "explorables"


def recall_by_age(shares: Mapping[str, ArrayLike]) -> None:
    """Show the share of answers that are right against the number of pairs that were written since.

    `shares`, each (n,): from the oldest pair to the newest, by the name of the memory. Raises ValueError if memories have different
    numbers of pairs, or there is none.
    """
    since = np.arange(len(np.asarray(next(iter(shares.values()), ()))))[::-1]
    curves = each_of_shape("shares", shares, len(since))
    charts.lines(
        since[::-1],
        {name: curve[::-1] for name, curve in curves.items()},
        title="Sums forget a little of everything, the delta rule forgets what is old",
        alt=f"Share of answers that are right, for {listed(since[::-1], 0)} pairs written since. "
        + each_listed({name: curve[::-1] for name, curve in curves.items()}),
        x_label="pairs written since",
        y_label="share of right answers",
        points=True,
        y_limits=(0.0, 1.05),
    )


def memory_explorable() -> None:
    """Show a state of two numbers as an arrow that three keys write and read, by sums and by the delta rule."""
    publish_explorable(
        CARDS / "memory",
        "Three unit keys as arrows in the plane, two of them turned by sliders, and the state as a fourth arrow. Pairs are written "
        "one after the other, played or step by step, by sums or by the delta rule with a step size; buttons write 1 or -1 under key A "
        "and 1 under B and C. A table compares what was written last under each key with what is read before and after the last write.",
    )


def machine() -> None:
    """Show the machine with the softmax and the two square matrices lit."""
    show_machine("softmax-between")
