"""Figures of the lesson softmax: leads and their factors, a race, the best compromise, and the card."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_lines, each_of_shape, label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, WEIGHTS
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed

CARDS = Path(__file__).parent / "explorables"
HUES = [NEUTRAL_STYLES[1][0], NEUTRAL_STYLES[3][0]]  # of the two losses


def leads(scores: Mapping[str, int]) -> None:
    """Show that leads add up while their factors multiply: three tokens by their scores, the lowest first."""
    drawing = Diagram("leads", 396, 218)
    low, middle, high = scores.values()
    places = [Area(48 + 300 * (score - low) / (high - low), 109, 94, 34) for score in scores.values()]
    for place, (token, score) in zip(places, scores.items(), strict=True):
        drawing.box(place, f"{token}: {score}".replace("-", "−"))
    pairs = ((0, 1, 14, 40, middle - low), (1, 2, 14, 40, high - middle), (0, 2, -14, 78, high - low))
    for start, end, aside, away, lead in pairs:
        left, right = places[start].x + aside, places[end].x - aside
        for side, role, below, text in ((-1, "scores", -7, f"{lead}"), (1, "weights", 19, f"× f({lead})")):
            edge, far = 109 + 17 * side, 109 + away * side
            drawing.arrow((left, edge), (left, far), (right, far), (right, edge), role=role, lit=False)
            drawing.text(((left + right) / 2, far + below), text, symbol=True)
    first, second, both = (lead for *_, lead in pairs)
    caption = f"The leads above add up, {first} + {second} = {both}, and the factors below multiply, f({both}) = f({first}) · f({second})."
    said = ", ".join(f"{token} {score}" for token, score in scores.items())
    alt = f"Three tokens with their scores, {said}, and arrows to higher ones. {caption}"
    publish_diagram(drawing.finish(title="Leads in score, and factors in weight", caption=caption, alt=alt))


def compromise(share: ArrayLike, totals: Mapping[float, ArrayLike]) -> None:
    """Show score plus entropy over the weight of the second of two tokens, with the top of each curve.

    `share` (n,): that weight. `totals`, each (n,): p . z + T H(p) by price T.
    """
    at = as_numbers("share", share, 1)
    curves = each_of_shape("totals", {f"T = {T:g}": total for T, total in totals.items()}, len(at))
    tops = {name: int(curve.argmax()) for name, curve in curves.items()}
    title = "The dearer entropy is, the more the best weights share"
    said = listed([at[top] for top in tops.values()], 2)
    alt = f"Hills of the average score plus T times the entropy, for {', '.join(curves)}. Their tops lie at the shares {said}."
    with picture(title=title, alt=alt, height=3.7) as (ax,):
        draw_lines(ax, at, curves)
        for name, top in tops.items():
            ax.plot(at[top], curves[name][top], "o", color=WEIGHTS, markersize=8, zorder=4)
        ax.set(xlabel="weight of the second token", ylabel="average score + T · entropy", xlim=(0, 1))
        label_ends(ax)


def race(paths: Mapping[tuple[str, float], Sequence[float]]) -> None:
    """Show how the weight of the right token grows with the steps, until it is a half.

    `paths`: that weight after each step, by the name of a loss and the first score that it starts from, each loss's own together.
    """
    names = list(dict.fromkeys(name for name, _ in paths))
    said = ", ".join(f"{name} from {first:g}: {len(path):,} steps" for (name, first), path in paths.items())
    alt = f"The weight of the right token by step, on a logarithmic axis, until it is a half. {said}."
    last = dict(paths.keys())
    longest = max(map(len, paths.values()))
    with picture(title="The squared error waits, and then jumps", alt=alt, height=4.2) as (ax,):
        ax.axhline(0.5, color=INK, linewidth=1.0)
        ax.annotate("half", (1.0, 0.5), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points", va="center")
        for (name, first), path in paths.items():
            steps = np.unique(np.geomspace(1, len(path), 200).round().astype(int))
            colour, ends = HUES[names.index(name)], first == last[name]
            ax.plot(steps, np.take(path, steps - 1), color=colour, clip_on=False)
            ax.plot(len(path), path[-1], "o", color=colour, clip_on=False)
            beside = ends and len(path) ** 2 < longest  # in the left half the last has its words to the right, else above
            words = (f"{name}\n" if ends else "") + f"from {first:g}:{' ' if beside else chr(10)}{len(path):,} steps"
            at, across, up = ((10, 0), "left", "center") if beside else ((4, 7), "right", "bottom")
            if name != names[0] and len(path) < longest:  # below the words of the other loss
                at, across, up = (7, -19), "left", "top"
            ax.annotate(words, (len(path), path[-1]), xytext=at, textcoords="offset points", ha=across, va=up, fontsize=LABEL_POINTS)
        ax.set(xlabel="steps", ylabel="weight of the right token", xscale="log", xlim=(0.7, longest), ylim=(0, 0.8))
        ax.grid(visible=False)
        tick_decades(ax.xaxis)


def softmax_explorable() -> None:
    """Show four scores and a temperature as sliders, with weights, entropy, Jacobian and the norms of it and of J / T."""
    publish_explorable(
        CARDS / "softmax",
        "Sliders for four scores and a temperature; bars of the weights, their entropy, largest weight, Jacobian J, and the spectral norms "
        "of J and of J / T. Buttons set a uniform case, a tie, add 100 to all scores, and put all back.",
    )


def machine() -> None:
    """Show the machine with the softmax lit."""
    show_machine("softmax")
