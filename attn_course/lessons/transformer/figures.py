"""Figures of the lesson on the Transformer: its place in the machine, and gradients by block."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import number


def machine() -> None:
    """Show the machine with its sum lit."""
    show_machine("residual")


def gradients_by_block(lengths: Mapping[str, ArrayLike]) -> None:
    """Show how long the gradient of each block's weights is, against the last block's: the geometric mean of some draws.

    `lengths`, each (n_draws, n_blocks): by where the norm stands.
    """
    against_last = {way: np.log(np.asarray(found)) for way, found in lengths.items()}
    curves = {way: np.exp((found - found[:, -1:]).mean(axis=0)) for way, found in against_last.items()}
    blocks = np.arange(1, len(next(iter(curves.values()))) + 1)
    told = " ".join(f"{way}: {number(curve[0], 2)} times in block 1, 1 in block {blocks[-1]}." for way, curve in curves.items())
    charts.lines(
        blocks,
        curves,
        title="With the norm behind the sum, gradients grow without end on their way back",
        alt="Length of the gradient of each block's weights before training, against that of the last block, on a logarithmic axis. "
        + told,
        x_label="block",
        y_label="gradient / that of the last block",
        y_log=True,
    )
