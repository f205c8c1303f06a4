"""Figures of the lesson gradients: the machine read backwards, and the steps that scores take. They draw the numbers they are given."""

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.drawing import as_numbers, same_shape
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import listed, number


def machine() -> None:
    """Show the machine, read backwards."""
    show_machine("backwards")


def gains(values: ArrayLike, weights: ArrayLike, steps: ArrayLike) -> None:
    """Show the weights of some values, and the steps that a gradient takes with their scores.

    Parameters
    ----------
    values, weights, steps : (kv_len,) array_like
        One number each for every key; values have one feature.

    Raises
    ------
    ValueError
        If lengths differ.
    """
    v = as_numbers("values", values, 1)
    p, moves = same_shape("weights", weights, len(v)), same_shape("steps", steps, len(v))
    charts.heatmap(
        np.vstack([p, moves]),
        rows=["weight", "step of the score"],
        columns=[number(value) for value in v],
        row_label="",
        column_label="values v",
        signed=True,
        color_label="weight, step",
        title="Scores of values above the mixture rise, those below fall",
        alt=f"Two rows over the values {listed(v)}. Weights {listed(p)}; steps of the scores {listed(moves)}.",
    )
