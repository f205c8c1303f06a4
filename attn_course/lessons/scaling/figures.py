"""Figures of the lesson scaling: what 64 queries make of 64 keys, a task for a layer, and a race of divisors on it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import label_ends
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK, NEUTRAL_STYLES
from attn_course.figures.ticks import double
from attn_course.figures.words import number

CARDS = Path(__file__).parent / "explorables"
ITEMS, MOST_STEPS = 16, 100  # of the lesson's task and its training


def task() -> None:
    """Show one example of the task: a guest's item, described in a foreign language, and what finds it among 16 items."""
    drawing = Diagram("cloakroom", 656, 206)
    at = [133 + 33 * place for place in range(ITEMS)]
    for place, x in enumerate(at):
        lit = place == 0
        drawing.box(Area(x, 24, 26, 26), role="value", lit=lit)
        drawing.matrix((x, 76), 4, 2, cell=10, role="key", lit=lit)
    for y, name in ((29, "values"), (81, "16 items"), (183, "guest")):
        drawing.text((84, y), name, anchor="end")
    turned = drawing.box(Area(at[0], 178, 84, 34), "language")
    drawing.arrow((at[0] - 5, 98), (at[0] - 5, turned.top[1]))
    query = drawing.box(Area(256, 178, 90, 34), "query", role="query")
    drawing.arrow(turned.right, query.left)
    learnt = drawing.box(Area(430, 178, 144, 34), "W_Q, W_K", symbol=True)
    drawing.text((512, 183), "learnt", anchor="start")
    drawing.arrow(query.right, learnt.left)
    for place, x in enumerate(at):
        drawing.wire(learnt.top, (x + 6 if place == 0 else x, 98), weight=0.3 if place == 0 else 0.0)
    told = "The guest describes the first item. The layer should give all weight to it, and so hand out its value."
    publish_diagram(
        drawing.finish(
            title="One guest and sixteen items",
            caption=told,
            alt=f"{ITEMS} items in a row, each with its features and, above them, its value. The features of one item go through a box "
            f"named language and become the query; W_Q and W_K, which are learnt, compare it with all items. {told}",
        )
    )


def races(runs: Mapping[str, Mapping[int, Sequence[int]]]) -> None:
    """Show how many steps each divisor needs at each width: a dot for each start, and a line through the means.

    `runs`: by name of the divisor and width the steps of some starts; 100 is the most. Raises ValueError if there are no divisors or
    more than four.
    """
    if not 0 < len(runs) <= len(NEUTRAL_STYLES):
        raise ValueError(f"runs must hold 1 to {len(NEUTRAL_STYLES)} divisors; got {len(runs)}")
    means = {name: {width: float(np.mean(steps)) for width, steps in found.items()} for name, found in runs.items()}
    said = "; ".join(f"{name}: {', '.join(number(mean, 1) for mean in found.values())}" for name, found in means.items())
    widths = np.array([*next(iter(runs.values()))], dtype=float)
    alt = f"Steps until learnt, at most {MOST_STEPS}, on average at the widths {', '.join(f'{width:g}' for width in widths)}. {said}."
    with picture(title="How many steps each divisor needs as the width grows", alt=alt, height=3.6) as (ax,):
        ax.axhline(MOST_STEPS, color=INK, linestyle=":", linewidth=1.4)
        for (name, found), (colour, dashes) in zip(runs.items(), NEUTRAL_STYLES, strict=False):
            for width, steps in found.items():
                ax.plot([width] * len(steps), steps, "o", color=colour, markersize=4.5, alpha=0.6, markeredgecolor="none", clip_on=False)
            label = name.replace("d_k", "$d_k$")
            ax.plot(widths, [*means[name].values()], color=colour, linestyle=dashes, linewidth=2.6, label=label, clip_on=False)
        ax.set_yscale("log", base=2)
        ax.set(xlabel="width $d_k$", ylabel="steps until learnt", ylim=(2, 112), yticks=[2, 4, 8, 16, 32, 64, MOST_STEPS])
        ax.set_yticklabels(["2", "4", "8", "16", "32", "64", "limit"])
        ax.minorticks_off()
        double(ax, widths)
        label_ends(ax)


def scale_explorable() -> None:
    """Sweep d_k over powers of two: histogram of the scores, softmax weights and norms of the Jacobian, with the scale and without."""
    publish_explorable(
        CARDS / "scale",
        "What 64 random queries make of 64 random keys, with and without the scale. Sliders for d_k, in powers of two from 1 to 1024, "
        "and for one of the queries; a button that sweeps. Charts: a histogram of 4096 scores, the 16 largest weights of the query, and, "
        "in a fold, the norm of the softmax Jacobian, all its slopes, against d_k, a dot for each query. Divided by the square root of d_k "
        "hardly anything changes; not divided, one key takes nearly all the weight, and more and more queries have a Jacobian near 0.",
    )


def machine() -> None:
    """Show the machine with the scale lit."""
    show_machine("scale")
