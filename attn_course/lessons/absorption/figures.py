"""Figures of the lesson absorption: a bilinear form and its parts, the same head in two gauges, and caches of real models."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import as_numbers, draw_heatmap
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.palette import GRADIENT, INK, REFERENCE, SCORES
from attn_course.figures.words import listed, short

CARDS = Path(__file__).parent / "explorables"
UNITS = ("B", "KiB", "MiB", "GiB")


def form_parts(form: ArrayLike, *, title: str, digits: int = 1) -> None:
    """Show a bilinear form beside its symmetric and its antisymmetric part, which add up to it.

    Parameters
    ----------
    form : (n, n) array_like
        Scores of a feature that asks (rows) with one that answers (columns).
    title : str
        The finding.
    digits : int
        Digits after the point.

    Raises
    ------
    ValueError
        If the form is not square.
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
    with picture(title=title, alt=alt, height=3.3, columns=3, sharey=True) as axes:
        for ax, (name, part) in zip(axes, parts.items(), strict=True):
            draw_heatmap(ax, part, signed=True, limits=(-reach, reach), digits=digits)
            ax.set(title=name, xlabel="answers")
            ax.set_xticks(range(len(w)))
        axes[0].set_ylabel("asks")
        axes[0].set_yticks(range(len(w)))


def two_gauges(projections: Mapping[str, ArrayLike], form: ArrayLike, *, title: str, digits: int = 1) -> None:
    """Show a projection of the same head in several gauges, and the one form that all of them give.

    Parameters
    ----------
    projections : mapping of str to (n, d_k) array_like
        W_Q by the name of its gauge.
    form : (n, n) array_like
        W_Q W_K^T, with or without the scale, the same for all.
    title : str
        The finding.
    digits : int
        Digits after the point.

    Raises
    ------
    ValueError
        If there is no projection, or one has another number of rows than the form.
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
    with picture(title=title, alt=alt, height=3.5, columns=len(panels) + 1, sharey=True) as axes:
        for ax, (name, each) in zip(axes, [*panels.items(), ("W, the same in both", w)], strict=True):
            draw_heatmap(ax, each, signed=True, digits=digits)
            ax.set(title=name, xlabel="entry of the query" if each is not w else "feature that answers")
            ax.set_xticks(range(each.shape[1]))
        axes[0].set_ylabel("feature that asks")
        axes[0].set_yticks(range(len(w)))


def cache_sizes(models: Sequence[tuple[str, str, float]], *, title: str) -> None:
    """Show bytes per token of several models as bars on a logarithmic axis, one look for each kind of cache.

    Parameters
    ----------
    models : sequence of (name, kind, n_bytes)
        From top to bottom.
    title : str
        The finding.

    Raises
    ------
    ValueError
        If there is no model, or one keeps no byte.
    """
    if not models or min(n_bytes for *_, n_bytes in models) <= 0:
        raise ValueError("models must hold at least one, each with more than 0 bytes")
    kinds = list(dict.fromkeys(kind for _, kind, _ in models))
    colours = dict(zip(kinds, (REFERENCE, SCORES, INK, GRADIENT), strict=False))
    alt = "Bars of cache bytes per token, all layers, on a logarithmic axis. " + " ".join(
        f"{name} ({kind}): {size(n_bytes)}." for name, kind, n_bytes in models
    )
    with picture(title=title, alt=alt, height=1.4 + 0.42 * len(models)) as (ax,):
        for place, (_, kind, n_bytes) in enumerate(models):
            ax.barh(place, n_bytes, color=colours[kind], height=0.66)
            ax.text(n_bytes * 1.08, place, f"{size(n_bytes)}  {kind}", va="center", fontsize=9.5)
        ax.set(xscale="log", xlabel="bytes of cache for one token, all layers, 16-bit numbers")
        ax.set_yticks(range(len(models)), [name for name, *_ in models])
        ax.set_xlim(min(n for *_, n in models) / 4, max(n for *_, n in models) * 12)
        ax.invert_yaxis()
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)


def size(n_bytes: float) -> str:
    """Return bytes with a binary unit.

    Examples
    --------
    >>> size(69120), size(3.75 * 2**20)
    ('68 KiB', '3.8 MiB')
    """
    unit = 0
    while n_bytes >= 1024 and unit < len(UNITS) - 1:
        n_bytes, unit = n_bytes / 1024, unit + 1
    return f"{short(n_bytes)} {UNITS[unit]}"


def latent_explorable() -> None:
    """Show what four kinds of attention keep of a token, for sizes of real models or one's own."""
    publish_explorable(
        CARDS / "latent",
        "Sliders for heads, width of a head, groups, latent width, rotary width, layers and context; bars compare the bytes that "
        "multi-head, grouped, multi-query and latent attention keep for one token, and beneath stand the whole cache of each and the "
        "number of groups that would fill the latent one. Buttons set the sizes of five published models.",
    )
