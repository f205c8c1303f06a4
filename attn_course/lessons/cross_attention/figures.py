"""Figures of the lesson cross_attention: who looks where in a translation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import add_colour_bar, as_numbers, draw_heatmap, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.paddings import paddings as paddings
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.words import listed, number, short

CARDS = Path(__file__).parent / "explorables"


def alignments(source: Sequence[str], written: Sequence[str], weights: Mapping[str, ArrayLike], *, title: str) -> None:
    """Show one or more alignments of a translation side by side: a row for each sign written, a column for each piece of the source.

    `source`: the pieces that answer. `written`: the signs that ask, a text will do. `weights`, each (len(written), len(source)):
    weights between 0 and 1, by the name of the head or model. Raises ValueError if there is nothing to draw, a shape does not
    fit, or a weight is not in [0, 1].
    """
    matrices = each_of_shape("weights", weights, len(written), len(source))
    for name, matrix in matrices.items():
        if matrix.min() < 0.0 or matrix.max() > 1.0:
            raise ValueError(f"weights[{name!r}] must lie in [0, 1]; got {matrix.min()} to {matrix.max()}")
    alt = f"Alignment of “{''.join(written)}” (rows) with the source “{' '.join(source)}” (columns). " + " ".join(
        f"{name}: {_tops(source, written, matrix)}." for name, matrix in matrices.items()
    )
    with picture(title=title, alt=alt, height=1.6 + 0.3 * len(written), columns=len(matrices), sharey=True) as axes:
        for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
            image = draw_heatmap(ax, matrix, limits=(0.0, 1.0), annotate=False)
            ax.set_aspect("auto")
            ax.set(title=name)
            ax.set_xticks(range(len(source)), source, rotation=55, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(len(written)), written)
        axes[0].set_ylabel("written (asks)")
        add_colour_bar(image, axes, "weight", fraction=0.04)


def recurrent_alignment(source: Sequence[str], written: Sequence[str], weights: ArrayLike) -> None:
    """Show the alignment of the date in May that the additive translator wrote.

    `source`, `written`: the pieces that answer, and the signs that ask. `weights` (len(written), len(source)): weights between 0
    and 1. Raises ValueError if the shape does not fit, or a weight is not in [0, 1].
    """
    title = "The year reads the year, 05 reads May, 09 reads “the ninth”; hyphens read anything"
    alignments(source, written, {"additive": weights}, title=title)


def head_alignments(source: Sequence[str], written: Sequence[str], weights: Sequence[ArrayLike]) -> None:
    """Show what each head of the translator without recurrence read.

    `source`, `written`: the pieces that answer, and the signs that ask. `weights`, each (len(written), len(source)): weights
    between 0 and 1, head by head. Raises ValueError if a shape does not fit, or a weight is not in [0, 1].
    """
    title = "Without recurrence two heads share the work, and their maps are harder to read"
    alignments(source, written, {f"head {head}": matrix for head, matrix in enumerate(weights)}, title=title)


def padded_batch(weights: ArrayLike, visible: ArrayLike, lengths: Sequence[int]) -> None:
    """Show the weights of a batch whose sources and targets are padded, example by example.

    `weights` (batch, target_len, source_len): weights with padding. `visible` (batch, 1, source_len): True where a piece of the
    source is real. `lengths`: numbers of real signs in each target. Raises ValueError if shapes do not fit.
    """
    p = as_numbers("weights", weights, 3)
    batch, target_len, source_len = p.shape
    real = np.asarray(visible, dtype=bool)
    if real.shape != (batch, 1, source_len) or len(lengths) != batch:
        raise ValueError(f"visible and lengths must fit weights {p.shape}; got {real.shape} and {len(lengths)}")
    said = [
        f"example {n} has {target_len - length} padded rows, and hides "
        + (f"pieces {listed(np.flatnonzero(~real[n, 0]), 0)} in every row" if not real[n].all() else "no piece")
        for n, length in enumerate(lengths)
    ]
    charts.heatmap(
        p.reshape(-1, source_len),
        rows=[f"example {n}, {i if i < length else 'padding'}" for n, length in enumerate(lengths) for i in range(target_len)],
        mask=np.broadcast_to(real, p.shape).reshape(-1, source_len),
        row_label="signs of the target",
        column_label="pieces of the source",
        title="Padding hides columns of the source, in every row",
        alt=f"Weights of {batch} examples, {target_len} rows each: {'; '.join(said)}.",
    )


def decoding_cost(steps: ArrayLike, again: ArrayLike, once: ArrayLike) -> None:
    """Show the operations of decoding when the source is projected at each step, and when it is projected once.

    `steps` (n,): numbers of signs written, ascending. `again`, `once` (n,): millions of operations so far. Raises ValueError if
    lengths differ.
    """
    signs = as_numbers("steps", steps, 1)
    every, single = same_shape("again", again, len(signs)), same_shape("once", once, len(signs))
    charts.lines(
        signs,
        {"projected again at each step": every, "projected once": single},
        title=f"A source that is projected once makes decoding {every[-1] / single[-1]:.0f} times cheaper after {signs[-1]:.0f} steps",
        alt=f"Millions of operations against signs written, two straight lines. Projected again: from {short(every[0])} to "
        f"{short(every[-1])}. Projected once: from {short(single[0])} to {short(single[-1])}.",
        x_label="signs written",
        y_label="MFLOP",
    )


def exact_translations(translators: Sequence[str], shares: Mapping[str, ArrayLike]) -> None:
    """Show how many dates each translator gets right, for days that were kept back and for years that were.

    `shares`, each (len(translators),): percent of exact translations, mean of three trainings, by what was kept back. Raises
    ValueError if a kind of dates has another number of shares, or there is none.
    """
    percent = each_of_shape("shares", shares, len(translators))
    by_translator = [
        f"{name}: " + ", ".join(f"{split} {number(values[place], 1)}" for split, values in percent.items()) + "."
        for place, name in enumerate(translators)
    ]
    charts.bars(
        translators,
        percent,
        digits=1,
        title="Both translators that look again pass 98 % on average; the fixed vector is far behind",
        alt=f"Bars of exact translations in percent, mean of three trainings. {' '.join(by_translator)}",
        x_label="translator",
        y_label="exact, %",
    )


def _tops(source: Sequence[str], written: Sequence[str], matrix: np.ndarray) -> str:
    """Name the piece with the largest weight for each sign."""
    found = [f"{sign} → {source[int(row.argmax())]} {100 * row.max():.0f} %" for sign, row in zip(written, matrix, strict=True)]
    return ", ".join(found)


def alignment_explorable(translators: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Show stored alignments: choose a source, a translator and a sign, and see where the translator looks.

    `translators`: three translators or heads; for each the same six examples, with "text", "pieces", "written" and "rows" (for
    each of the ten signs the weights of the pieces in percent). Raises ValueError if there are not three translators with six
    examples, or a row has not one number for each piece.
    """
    if len(translators) != 3 or any(len(examples) != 6 for examples in translators.values()):
        raise ValueError(f"translators must hold 3 with 6 examples each; got {[len(examples) for examples in translators.values()]}")
    for name, examples in translators.items():
        for example in examples:
            if np.shape(example["rows"]) != (len(example["written"]), len(example["pieces"])):
                raise ValueError(f"translators[{name!r}]: rows must have a number for each sign and piece of {example['text']!r}")
    publish_explorable(
        CARDS / "alignment",
        "Buttons choose one of six dates in words and one of three sets of attention weights; played, stepped, slid or pointed at, "
        "the date is written sign by sign. Each piece of the source is coloured by its share of the weight, and a table keeps the piece "
        "that was read most for each sign so far.",
        [{"name": name, "examples": [dict(example) for example in examples]} for name, examples in translators.items()],
    )


def machine() -> None:
    """Show the machine with two inputs lit."""
    show_machine("two-inputs")
