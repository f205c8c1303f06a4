"""Figures of the lesson softmax: leads and their factors, the bet, the best compromise, and the card."""

import itertools
from collections.abc import Mapping
from pathlib import Path

from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import as_numbers, draw_lines, each_of_shape, label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES, WEIGHTS
from attn_course.figures.ticks import tick_decades
from attn_course.figures.words import listed

CARDS = Path(__file__).parent / "explorables"


def leads(scores: Mapping[str, int]) -> None:
    """Show that leads add up while their factors multiply: three tokens by their scores, the lowest first."""
    drawing = Diagram("leads", 396, 234)
    low, middle, high = scores.values()
    places = [Area(39 + 318 * (score - low) / (high - low), 117, 76, 46) for score in scores.values()]
    for place, (token, score) in zip(places, scores.items(), strict=True):
        drawing.box(place)
        drawing.text((place.x, place.y - 4), token)
        drawing.text((place.x, place.y + 14), f"{score}".replace("-", "−"))
    pairs = ((0, 1, 12, 46, middle - low), (1, 2, 12, 46, high - middle), (0, 2, -12, 86, high - low))
    for start, end, aside, away, lead in pairs:
        left, right = places[start].x + aside, places[end].x - aside
        for side, role, below, text in ((-1, "scores", -7, f"{lead}"), (1, "weights", 19, f"× f({lead})")):
            edge, far = 117 + 23 * side, 117 + away * side
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


def bet(runs: Mapping[str, ArrayLike], leads: ArrayLike, most: int = 7) -> None:
    """Show races as dots, steps across and the score of the right token at the end upwards, and the box in which a bet is kept.

    `runs`, each (n, 2): steps and last score of a race from each lead, by name. `leads` (n,). `most`: the largest number of steps, and the
    largest score, with which a race is in the box. Raises ValueError if a number is not positive, because both axes are logarithmic.
    """
    begun = as_numbers("leads", leads, 1)
    chains = each_of_shape("runs", runs, len(begun), 2)
    for name, chain in chains.items():
        if not (chain > 0.0).all():
            raise ValueError(f"runs[{name!r}] must be positive to be drawn on logarithmic axes; got {chain.min()}")
    kept = " and ".join(name for name, chain in chains.items() if (chain.round(2) <= most).all()) or "none"
    said = "; ".join(f"{name}: " + ", ".join(f"{steps:,.0f} to {last:,.2f}" for steps, last in chain) for name, chain in chains.items())
    title = f"All dots in the box: {kept}"
    alt = f"Steps and last score of the right token, from the leads {listed(begun, 0)}: {said}. In the box, at most {most} each: {kept}."
    with picture(title=title, alt=alt, height=4.4) as (ax,):
        ax.add_patch(Rectangle((0.6, 0.2), most - 0.6, most - 0.2, color=WEIGHTS, alpha=0.16, linewidth=0, clip_on=False))
        for (name, chain), (colour, dashes) in zip(chains.items(), itertools.cycle(NEUTRAL_STYLES)):
            ax.plot(*chain.T, color=colour, linestyle=dashes, label=name)
            ax.plot(*chain.T, "o", color=colour, markersize=6.5, label="_dots")
        ax.annotate(f"box: {most} steps,\nscore {most}", (most, 0.2), (5, 6), textcoords="offset points", color=INK)
        highest, longest = (max(chain[:, axis].max() for chain in chains.values()) for axis in (1, 0))
        ends = f"left dot from {begun[0]:g}, right from {begun[-1]:g}"
        ax.set(xlabel=f"steps ({ends})", ylabel="last score of the right token", xscale="log", yscale="log")
        ax.set(xlim=(0.6, max(2 * longest, 1000)), ylim=(0.2, max(2 * highest, 30)))
        tick_decades(ax.xaxis)
        tick_decades(ax.yaxis)
        label_ends(ax)


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
