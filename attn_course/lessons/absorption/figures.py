"""Figures of the lesson absorption: the forms of a trained head, what may be cut from it, and what latent attention costs and keeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures import charts
from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_heatmap, each_of_shape, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.latent import latent_flow as latent_flow
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import NEUTRAL_STYLES
from attn_course.figures.words import each_listed, listed, number, short

CARDS = Path(__file__).parent / "explorables"
UNITS = ("B", "KiB", "MiB", "GiB")


def form_parts(form: ArrayLike) -> None:
    """Show a bilinear form beside its symmetric and its antisymmetric part, which add up to it.

    `form` (n, n): scores of a feature that asks (rows) with one that answers (columns). Raises ValueError if the form is not
    square.
    """
    w = as_numbers("form", form, 2)
    if w.shape[0] != w.shape[1]:
        raise ValueError(f"form must be square; got shape {w.shape}")
    parts = {"W": w, "symmetric part W₊": (w + w.T) / 2, "antisymmetric part W₋": (w - w.T) / 2}
    alt = (
        f"Three heatmaps of {len(w)} features that ask, in rows, and answer, in columns. W: the largest entry of each row stands in the "
        f"columns {listed(w.argmax(axis=1), 0)}. Its symmetric part is mirrored at the diagonal; its antisymmetric part is mirrored with "
        f"the other sign, and zero on the diagonal."
    )
    reach = float(np.abs(w).max())
    title = "A trained head: each name asks for the next one (first seed)"
    with picture(title=title, alt=alt, height=3.1, columns=3, sharey=True) as axes:
        for ax, (name, part) in zip(axes, parts.items(), strict=True):
            draw_heatmap(ax, part, signed=True, limits=(-reach, reach), digits=1)
            ax.set(title=name, xlabel="answers")
            ax.set_xticks(range(len(w)))
        axes[0].set_ylabel("asks")
        axes[0].set_yticks(range(len(w)))


def two_gauges(projections: Mapping[str, ArrayLike], form: ArrayLike) -> None:
    """Show a projection of the same head in several gauges, and the one form that all of them give.

    `projections`, each (n, d_k): W_Q by the name of its gauge. `form` (n, n): W_Q W_K^T, with or without the scale, the same for
    all. Raises ValueError if there is no projection, or one has another number of rows than the form.
    """
    w = as_numbers("form", form, 2)
    if not projections:
        raise ValueError("projections must hold at least one gauge; got none")
    panels = {name: as_numbers(f"projections[{name!r}]", each, 2) for name, each in projections.items()}
    for name, each in panels.items():
        if len(each) != len(w):
            raise ValueError(f"projections[{name!r}] must have {len(w)} rows; got {len(each)}")
    words = " ".join(
        f"{name}: the column with the largest magnitude in each row is {listed(np.abs(each).argmax(axis=1), 0)}."
        for name, each in panels.items()
    )
    alt = (
        f"{len(panels) + 1} heatmaps. W_Q by gauge, features in rows, query entries in columns. {words} Their common form W: the largest "
        f"entry of each row stands in the columns {listed(w.argmax(axis=1), 0)}."
    )
    title = "Two gauges: other queries, the same head (first seed)"
    with picture(title=title, alt=alt, height=3.2, columns=len(panels) + 1, sharey=True) as axes:
        for ax, (name, each) in zip(axes, [*panels.items(), ("W, the same in both", w)], strict=True):
            draw_heatmap(ax, each, signed=True, digits=1)
            ax.set(title=name, xlabel="entry of the query" if each is not w else "feature that answers")
            ax.set_xticks(range(each.shape[1]))
        axes[0].set_ylabel("feature that asks")
        axes[0].set_yticks(range(len(w)))


def cache_sizes(models: Sequence[tuple[str, str, float]]) -> None:
    """Show bytes per token of several models as bars on a logarithmic axis, one look for each kind of cache.

    `models`: name, kind and bytes of each, from top to bottom. Raises ValueError if there is no model, or one keeps no byte.
    """
    if not models or min(n_bytes for *_, n_bytes in models) <= 0:
        raise ValueError("models must hold at least one, each with more than 0 bytes")
    kinds = list(dict.fromkeys(kind for _, kind, _ in models))
    colours = dict(zip(kinds, [colour for colour, _ in NEUTRAL_STYLES], strict=False))
    alt = "Bars of cache bytes per token, all layers, on a logarithmic axis. " + " ".join(
        f"{name} ({kind}): {size(n_bytes)}." for name, kind, n_bytes in models
    )
    title = "DeepSeek-V2 keeps less of a token than an 8B model with grouped heads"
    with picture(title=title, alt=alt, height=1.4 + 0.42 * len(models)) as (ax,):
        for place, (_, kind, n_bytes) in enumerate(models):
            ax.barh(place, n_bytes, color=colours[kind], height=0.66)
            ax.text(n_bytes * 1.08, place, f"{size(n_bytes)}  {kind}", va="center", fontsize=9.5)
        ax.set(xlabel="cache for one token, all layers, 16-bit numbers")
        ax.set_xscale("log", base=2)
        ax.set_yticks(range(len(models)), [name for name, *_ in models])
        ax.set_xlim(min(n for *_, n in models) / 4, max(n for *_, n in models) * 12)
        ax.set_xticks(marks := 4.0 ** np.arange(*np.ceil(np.log2(ax.get_xlim()) / 2)), [size(mark) for mark in marks])
        ax.invert_yaxis()
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)


def rank_shares(cut: ArrayLike, narrow: ArrayLike) -> None:
    """Show what a head told right by the rank of its form: a wide head that was cut, and heads trained at that width.

    `cut` (n,): shares told right at the ranks 1 to n. `narrow` (m,): shares at the widths 1 to m; m is at most n. Raises
    ValueError if there are more widths than ranks.
    """
    wide, trained = as_numbers("cut", cut, 1), as_numbers("narrow", narrow, 1)
    if len(trained) > len(wide):
        raise ValueError(f"narrow must have at most {len(wide)} shares, as cut has; got {len(trained)}")
    charts.lines(
        np.arange(1, len(wide) + 1),
        {"trained wide, then cut": wide, "trained at that width": np.append(trained, [np.nan] * (len(wide) - len(trained)))},
        title="Width 2 suffices if trained for; cut to rank 2, the wide head fails",
        alt=f"Share told right against rank 1 to {len(wide)}, mean of three seeds. Trained wide, then cut: {listed(wide)}. "
        f"Trained at width 1 to {len(trained)}: {listed(trained)}.",
        x_label="rank of W",
        y_label="share told right",
        y_limits=(0.4, 1.03),
        points=True,
    )


def value_circuit(logits: ArrayLike, n_names: int) -> None:
    """Show which colour each feature writes when it is read.

    `logits` (n_names + n_colours, n_colours): rows are the features that are read: names first, then colours. Raises ValueError
    if the rows are not as many as names and colours.
    """
    table = as_numbers("logits", logits, 2)
    n_colours = table.shape[1]
    if len(table) != n_names + n_colours:
        raise ValueError(f"logits must have {n_names + n_colours} rows, for {n_names} names and {n_colours} colours; got {len(table)}")
    copied, spread = np.diag(table[n_names:]).mean(), np.ptp(table[:n_names], axis=0).max()
    charts.heatmap(
        table,
        rows=[f"name {n}" for n in range(n_names)] + [f"colour {n}" for n in range(n_colours)],
        columns=[str(n) for n in range(n_colours)],
        row_label="feature that is read",
        column_label="colour that is written",
        signed=True,
        digits=0,
        color_label="logit",
        title="The OV circuit copies colours and gives all names the same row",
        alt=f"Heatmap of {len(table)} features that are read against {n_colours} colours that are written (logits, first seed). Each "
        f"colour is written as itself: the diagonal of its rows has a mean of {number(copied, 0)}. The rows of the names differ by at most "
        f"{number(spread, 1)} in a column.",
    )


def kept_numbers(latent: Mapping[int, float], merged: Mapping[int, float]) -> None:
    """Show what a model tells right after its keys and values were squeezed into fewer numbers.

    `latent`, `merged`: shares told right by the numbers kept of a token: in one latent vector; with key heads merged. Raises
    ValueError if one of them is empty.
    """
    if not latent or not merged:
        raise ValueError(f"latent and merged must each hold at least one share; got {len(latent)} and {len(merged)}")
    kept = sorted({*latent, *merged})
    told = {way: ", ".join(f"{n}: {number(share)}" for n, share in shares.items()) for way, shares in (("one", latent), ("many", merged))}
    charts.lines(
        kept,
        {
            "one latent vector": [latent.get(n, np.nan) for n in kept],
            "key heads merged": [merged.get(n, np.nan) for n in kept],
        },
        title="16 numbers of a latent vector lose nothing; 16 of a merged key head nearly all",
        alt="Share of both neighbours named right against the numbers kept of a token, mean of three seeds, no retraining. "
        f"Latent vector of {told['one']}. Merged key heads, {told['many']}.",
        x_label="numbers kept for one token",
        y_label="both neighbours named right",
        y_limits=(0.0, 1.05),
        points=True,
    )


def prompt_flops(new: ArrayLike, flops: Mapping[str, ArrayLike]) -> None:
    """Show the FLOPs of one layer of DeepSeek-V2 against the tokens that are new, for three orders of its products.

    `new` (n,): numbers of new tokens; the last is the length of the whole text. `flops`, each (n,): GFLOP by form: naive,
    factored and absorbed. Raises ValueError if a form is missing or has another number of counts.
    """
    names = {"naive": "naive: keys and values rebuilt", "factored": "in the latent space", "absorbed": "matrices multiplied out"}
    tokens = as_numbers("new", new, 1)
    counts = each_of_shape("flops", flops, len(tokens))
    if missing := names.keys() - counts:
        raise ValueError(f"flops must hold {', '.join(names)}; it lacks {', '.join(sorted(missing))}")
    whole = f"{tokens[-1]:.0f}"
    ends = (", ".join(short(counts[form][place]) for form in names) for place in (0, -1))
    charts.lines(
        tokens,
        {name: counts[form] for form, name in names.items()},
        title="DeepSeek-V2's sizes: the latent space wins for few new tokens, loses for many",
        alt=f"GFLOP of one layer, projections included, against the new tokens among {whole}, both axes logarithmic: naive, in the latent "
        f"space, matrices multiplied out. {tokens[0]:.0f} new: {next(ends)}. All {whole} new: {next(ends)}.",
        x_label=f"new tokens ({whole} in all)",
        y_label="GFLOP for one layer",
        x_log=True,
        y_log=True,
    )


def step_times(lengths: ArrayLike, naive: ArrayLike, absorbed: ArrayLike) -> None:
    """Show how long one step of decoding took against the tokens in the cache.

    `lengths` (n,): numbers of cached tokens. `naive`, `absorbed` (n,): CPU milliseconds of a step that rebuilds keys and values,
    and of one that stays in the latent space. Raises ValueError if lengths differ.
    """
    cached = as_numbers("lengths", lengths, 1)
    curves = {"naive": same_shape("naive", naive, len(cached)), "absorbed": same_shape("absorbed", absorbed, len(cached))}
    charts.lines(
        cached,
        curves,
        title="Rebuilding the past slows a step much more than attending in the latent space",
        alt=f"CPU milliseconds of one step, mean of three seeds, against {listed(cached, 0)} cached tokens, logarithmic axes. "
        f"{each_listed(curves, 1)}",
        x_label="cached tokens",
        y_label="CPU milliseconds",
        x_log=True,
        y_log=True,
        points=True,
    )


def size(n_bytes: float) -> str:
    """Return bytes with a binary unit.

    >>> size(69120), size(3.75 * 2**20)
    ('68 KiB', '3.8 MiB')
    """
    unit = 0
    while n_bytes >= 1024 and unit < len(UNITS) - 1:
        n_bytes, unit = n_bytes / 1024, unit + 1
    return f"{short(n_bytes)} {UNITS[unit]}"


def latent_explorable() -> None:
    """Show a cache that fills token by token: keys and values, or latent vectors, read by rebuilding them or by absorbing."""
    publish_explorable(
        CARDS / "latent",
        "Three caches side by side fill from left to right as time plays: keys and values, latent vectors from which every step rebuilds "
        "keys and values, and latent vectors read in the absorbed way. Bars beneath grow: the bytes kept and read, and the FLOPs of "
        "the step. Buttons play, pause, step, reset and set the sizes of five published models; sliders set time, tokens a column, key "
        "heads and latent width.",
    )


def machine() -> None:
    """Show the machine with the two matrices that compare lit."""
    show_machine("comparing-matrices")
