"""Figures of the lesson start: the machine with its links, who looks at whom, the map."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Arc
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK
from attn_course.numbers import cite, title

CARDS = Path(__file__).parent / "explorables"
REACH = 0.62  # width of an arc by its height: flat arcs leave room for the titles


def map_of_chapters(counts: Mapping[int, int], links: Mapping[tuple[int, int], int], titles: Mapping[int, str]) -> None:
    """Show which chapter builds on which: one row per chapter, and an arc down to each chapter that uses its equations.

    `counts`: chapter -> number of its equations. `links`: (chapter that is used, chapter that uses it) -> how often. `titles`:
    chapter -> a short name. Raises ValueError if there is no chapter or no link, a link leads to no chapter or upwards, or a
    title is missing.
    """
    chapters = sorted(counts)
    if stray := [pair for pair in links if not set(pair) <= set(chapters) or pair[0] >= pair[1]]:
        raise ValueError(f"links must lead from a chapter to a later one out of {chapters}; got {stray}")
    if missing := [chapter for chapter in chapters if chapter not in titles]:
        raise ValueError(f"titles must name every chapter; got none for {missing}")
    if not links:
        raise ValueError("links must hold at least one link; got none")
    used = {chapter: sum(count for (source, _), count in links.items() if source == chapter) for chapter in chapters}
    users = {chapter: sum(source == chapter for source, _ in links) for chapter in chapters}
    order = sorted(chapters, key=lambda chapter: -used[chapter])
    most = order[0]
    named = {chapter: f"{chapter:02d} {titles[chapter]}" for chapter in chapters}
    title = f"The equations of lesson {named[most]} are used most: {used[most]} links from {users[most]} lessons"
    alone = [named[chapter] for chapter in chapters if not any(chapter in pair for pair in links)]
    alt = (
        f"Map of {len(chapters)} lessons in a column, with arcs from each lesson down to those whose equations use its own. "
        f"Most used: {', '.join(f'{named[chapter]} ({used[chapter]} links)' for chapter in order[:4])}. "
        f"Thickest arc: {_thickest(links, named)}." + (f" Without any link: {', '.join(alone)}." if alone else "")
    )
    with picture(title=title, alt=alt, height=1.0 + 0.37 * len(chapters)) as (ax,):
        row = {chapter: -float(place) for place, chapter in enumerate(chapters)}
        for (source, target), count in sorted(links.items(), key=lambda item: (item[0][0] == most, -item[1])):
            _draw_arc(
                ax, row[source], row[target], count, 0.95 if source == most else min(0.5, 0.12 * count)
            )  # what is used once stays back
        for chapter in chapters:
            _name_chapter(ax, row[chapter], named[chapter], counts[chapter], used[chapter], bold=chapter == most)
        longest = max(target - source for source, target in ((row[b], row[a]) for a, b in links))
        ax.set(xlim=(-5.9, REACH * longest / 2 + 0.6), ylim=(row[chapters[-1]] - 0.6, 1.1))
        ax.set_axis_off()
        header: dict[str, Any] = {"fontsize": LABEL_POINTS, "color": INK, "va": "center"}
        ax.text(-5.8, 0.9, "lesson", **header)
        ax.text(-1.6, 0.9, "equations", ha="right", **header)
        ax.text(-0.35, 0.9, "used", ha="right", **header)
        ax.text(0.35, 0.9, "arcs lead down to the lessons that use it", **header)


def _thickest(links: Mapping[tuple[int, int], int], named: Mapping[int, str]) -> str:
    source, target = max(sorted(links), key=lambda pair: links[pair])
    return f"from {named[source]} to {named[target]}, {links[source, target]} links"


def _draw_arc(ax: Axes, top: float, bottom: float, count: int, alpha: float) -> None:
    height = top - bottom
    ax.add_patch(
        Arc((0.0, (top + bottom) / 2), REACH * height, height, theta1=-90, theta2=90, color=INK, linewidth=0.5 + 0.5 * count, alpha=alpha)
    )


def _name_chapter(ax: Axes, y: float, name: str, equations: int, used: int, *, bold: bool) -> None:
    ax.text(-5.8, y, name, va="center", fontsize=LABEL_POINTS + 0.5, fontweight="bold" if bold else "normal")
    ax.text(-1.6, y, str(equations), ha="right", va="center", fontsize=LABEL_POINTS)
    ax.text(-0.35, y, f"{used} ×" if used else "–", ha="right", va="center", fontsize=LABEL_POINTS)
    ax.plot([0.0], [y], "o", color=INK, markersize=6, zorder=3)


def looks_explorable(weights: ArrayLike, tokens: Sequence[str], first: int) -> None:
    """Show whom each word looks at in one head, and begin with one word.

    `weights` (tokens, tokens): rows ask, and sum to 1; later words are hidden. `first`: the number of the word to begin with, from 0.
    Raises ValueError if there is not one row and one column for each word, or there is no such word.
    """
    shares = same_shape("weights", weights, len(tokens), len(tokens))
    if not 0 <= first < len(tokens):
        raise ValueError(f"first must be the number of a word, 0 to {len(tokens) - 1}; got {first}")
    words = [token.strip() for token in tokens]
    publish_explorable(
        CARDS / "looks",
        f"The sentence '{' '.join(words)}' twice, one line above the other, with lines from each word that asks to the words it looks at, "
        "the thicker the more weight, and percentages below. Buttons choose the word.",
        {"tokens": words, "first": first, "weights": shares.round(4).tolist()},
    )


def asks_explorable(key: ArrayLike, query: ArrayLike, tokens: Sequence[str], asks: int) -> None:
    """Show at whom one word looks while its wish is moved from somebody alive to what somebody does.

    `key` (tokens, 4): columns: alive, tells, open, alive - tells. `query` (4,): what the word looks for. The slider sets its first and its
    last number, and the others stay. `asks`: the number of the word that asks, from 0. Raises ValueError if there is not one key for
    each word, or there is no such word.
    """
    keys, asked = same_shape("key", key, len(tokens), 4), same_shape("query", query, 4)
    if not 0 <= asks < len(tokens):
        raise ValueError(f"asks must be the number of a word, 0 to {len(tokens) - 1}; got {asks}")
    still, moved = keys[:, 1:3] @ asked[1:3] / 2, (keys[:, 0] + keys[:, 3]) / 2
    publish_explorable(
        CARDS / "asks",
        f"The word '{tokens[asks]}' above the sentence '{' '.join(tokens)}', with a line to each of its words, the thicker the more it "
        "looks there, and percentages below. A slider moves what it looks for, from somebody alive to what somebody does.",
        {"tokens": list(tokens), "asks": asks, "still": (still + 0.0).tolist(), "moved": (moved + 0.0).tolist()},
    )


QUESTIONS = {  # of each lesson: what it answers
    "start": "What does one word take from the others, and how does this course work?",
    "lookup": "How does a dictionary become something that can be trained?",
    "softmax": "Why the exponential, and not some other way to make weights of scores?",
    "scaling": r"Why are scores divided by $\sqrt{d_k}$, and when does that not help?",
    "attention": r"What is $\mathrm{softmax}(Q K^\top / \sqrt{d_k})\, V$ in shapes, as a function, and in cost?",
    "gradients": "What does attention pass back when it is trained, and can you write its backward pass?",
    "self_attention": "What happens when a sentence asks itself, and how does it know its word order?",
    "additive": "What if a small network compares, instead of a dot product?",
    "masking": "How do you hide a word, and how do you find out that it still leaks?",
    "heads": "What do several small heads buy, and what must be kept while a model writes?",
    "cross_attention": "How does one sequence read another one, as in translation?",
    "absorption": "Which of the matrices are really needed, and how small can the cache become?",
    "linear": "What if we leave the softmax out, and carry a memory instead?",
    "flash": "How is the same result computed with far less traffic to memory?",
    "kernels": "How does one write attention as a program for a GPU?",
    "transformer": "How do all parts become one machine that writes?",
    "writing": "What must a model keep to read each word only once while it writes?",
    "induction": "How does a trained model copy what it read before, and where in it?",
    "notation": "How do you read a text that writes attention the other way round?",
}


LESSONS = {  # where each part of the machine is taken apart
    "input": "{lesson}`self_attention`_self_attention",
    "projections": "{lesson}`self_attention`_self_attention",
    "roles": "{lesson}`lookup`_lookup",
    "scores": "{lesson}`scaling`_scaling",
    "scale": "{lesson}`scaling`_scaling",
    "mask": "{lesson}`masking`_masking",
    "softmax": "{lesson}`softmax`_softmax",
    "weights": "{lesson}`attention`_attention",
    "output": "{lesson}`attention`_attention",
    "heads": "{lesson}`heads`_heads",
    "merge": "{lesson}`heads`_heads",
    "residual": "{lesson}`self_attention`_self_attention",
}


SO_FAR = {  # as far as the lesson has come
    "comparison": "A query meets a key, and one number comes out: their score.",
}


def machine(so_far: str = "") -> None:
    """Show the machine with one head's attention lit, each part a link to its lesson; or only one of its parts, of `SO_FAR`."""
    if so_far:
        show_machine(so_far, {"T": 7, "d_k": 4}, alone=SO_FAR[so_far])
        return
    links = {}
    for part, name in LESSONS.items():
        number, slug = cite(name).split("_", 1)
        links[part] = (f"{number}_{slug}.ipynb", f"{number} {title(slug)}")
    show_machine("attention", links=links)
