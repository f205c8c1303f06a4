"""Figures of the lesson linear: features of a kernel, two brackets, and a memory of outer products and what it recalls."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, count_cells, draw_heatmap, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.orders import orders as orders
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import each_listed, listed, number

CARDS = Path(__file__).parent / "explorables"


def outer_products(keys: ArrayLike, values: ArrayLike) -> None:
    """Show each outer product of a key and its value, and their sum, the state.

    `keys` (n, d_k): one key a row. `values` (n, d_v). Raises ValueError if there are not as many keys as values.
    """
    k, v = as_numbers("keys", keys, 2), as_numbers("values", values, 2)
    if len(k) != len(v):
        raise ValueError(f"keys and values must be as many; got {len(k)} and {len(v)}")
    products = k[:, :, None] * v[:, None, :]
    panels = [*((f"pair {index}", product) for index, product in enumerate(products)), ("state: the sum", products.sum(axis=0))]
    alt = f"{len(panels)} heatmaps of {k.shape[1]} rows and {v.shape[1]} columns. " + " ".join(
        f"{name}: rows {', '.join('(' + listed(row, 1) + ')' for row in matrix)}." for name, matrix in panels
    )
    bound = float(np.abs([matrix for _, matrix in panels]).max())
    title = "Each pair adds its outer product to one matrix, where they overlap"
    with picture(title=title, alt=alt, height=1.3 + 0.45 * k.shape[1], columns=len(panels), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, panels, strict=True):
            draw_heatmap(ax, matrix, signed=True, limits=(-bound, bound), annotate=True, digits=1)
            ax.set(title=name, xlabel="value features")
            count_cells(ax, matrix.shape)
        axes[0].set_ylabel("key features")


def feature_errors(degrees: ArrayLike, positive: ArrayLike, waves: ArrayLike) -> None:
    """Show how far one random feature is off, against the angle between query and key of length 1.

    `degrees` (n,): angles, ascending. `positive`, `waves` (n,): standard deviation over kernel, of positive features and of sines
    and cosines. Raises ValueError if lengths differ.
    """
    angles = as_numbers("degrees", degrees, 1)
    curves = {
        "positive": same_shape("positive", positive, len(angles)),
        "sines and cosines": same_shape("waves", waves, len(angles)),
    }
    ends = f"at {number(angles[0], 0)} and {number(angles[-1], 0)} degrees"
    charts.lines(
        angles,
        curves,
        title="Sines and cosines fail where the kernel is small",
        alt="Standard deviation of one random feature product divided by the kernel, against the angle between query and key of length 1. "
        + " ".join(f"{name.capitalize()}: {listed(curve[[0, -1]], 1)} {ends}." for name, curve in curves.items()),
        x_label="angle between query and key, degrees",
        y_label="standard deviation / kernel",
    )


def brackets(lengths: ArrayLike, width: int, plain: ArrayLike, softmax: ArrayLike) -> None:
    """Show what scores first costs over state first: counted, measured, and measured with a softmax.

    `lengths` (n,): numbers of positions, ascending. `width`: features of keys and of values, and the length at which the FLOPs of
    both orders are equal. `plain`, `softmax` (n,): ratios of CPU times, without and with a softmax. Raises ValueError if lengths
    differ.
    """
    positions = as_numbers("lengths", lengths, 1)
    curves = {
        "counted": positions / width,
        "measured": same_shape("plain", plain, len(positions)),
        "with softmax": same_shape("softmax", softmax, len(positions)),
    }
    charts.lines(
        positions,
        curves,
        title="The count predicts the crossover; a softmax moves it to shorter texts",
        alt=f"FLOPs, and CPU time on one thread, of scores first divided by state first at width {width}, against {listed(positions, 0)} "
        f"positions; dotted line at 1. {each_listed(curves, 1)}",
        x_label=f"length T (width {width})",
        y_label="scores first / state first",
        points=True,
        references={"equal": 1.0},
    )


def reading_errors(counts: ArrayLike, errors: Mapping[str, ArrayLike], d_k: int) -> None:
    """Show the error of reading values back against the pairs in a memory.

    `counts` (n,): numbers of pairs, ascending. `errors`, each (n,): error over size of the values, by the name of the state.
    `d_k`: rows of the state. Raises ValueError if a state has another number of errors, or there is none.
    """
    pairs = as_numbers("counts", counts, 1)
    curves = each_of_shape("errors", errors, len(pairs))
    charts.lines(
        pairs,
        curves,
        title=f"Sums suffer from the second pair on; up to {d_k} pairs would fit in {d_k} rows",
        alt=f"Error of reading back, in units of the values, for {listed(pairs, 0)} pairs in {d_k} rows. {each_listed(curves)}",
        x_label=f"pairs in the memory (d_k = {d_k})",
        y_label="error of reading / size of values",
        points=True,
    )


def recall_shares(pairs: ArrayLike, shares: Mapping[str, ArrayLike]) -> None:
    """Show the share of questions answered right against the pairs that were written once.

    `pairs` (n,): numbers of pairs, ascending. `shares`, each (n,): shares by the name of the layer. Raises ValueError if a layer
    has another number of shares, or there is none.
    """
    written = as_numbers("pairs", pairs, 1)
    curves = each_of_shape("shares", shares, len(written))
    charts.lines(
        written,
        curves,
        title="Beyond d_k = 8 pairs every state loses; softmax loses nothing",
        alt=f"Share of questions answered right for {listed(written, 0)} pairs, mean of three seeds. {each_listed(curves)}",
        x_label="pairs written (head of width 8)",
        y_label="share answered right",
        points=True,
        y_limits=(0.0, 1.05),
    )


def overwriting_shares(pairs: ArrayLike, shares: Mapping[str, ArrayLike]) -> None:
    """Show the share of questions answered right where every key was written twice.

    `pairs` (n,). `shares`, each (n,): shares by the name of the layer. Raises ValueError if a layer has another number of shares,
    or there is none.
    """
    written = as_numbers("pairs", pairs, 1)
    heights = each_of_shape("shares", shares, len(written))
    charts.bars(
        [f"{n:.0f} pairs" for n in written],
        heights,
        title="Only the delta rule overwrites by itself; softmax needs to know what is near",
        alt="Share of questions answered right when every key is written twice, mean of three seeds, "
        f"for {listed(written, 0)} pairs. {each_listed(heights)}",
        x_label="",
        y_label="share answered right",
        y_limits=(0.0, 1.15),
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
