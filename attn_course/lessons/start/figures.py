"""Figures of the lesson start: the machine with its links, who looks at whom, the map of the course, one table in two orientations."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.patches import Arc
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, draw_heatmap
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK
from attn_course.numbers import cite, title

CARDS = Path(__file__).parent / "explorables"
REACH = 0.62  # width of an arc by its height: flat arcs leave room for the titles


def map_of_chapters(counts: Mapping[int, int], links: Mapping[tuple[int, int], int], titles: Mapping[int, str]) -> None:
    """Show which chapter builds on which: one row per chapter, and an arc down to each chapter that uses its equations.

    Parameters
    ----------
    counts : mapping of int to int
        Chapter -> number of its equations.
    links : mapping of (int, int) to int
        (chapter that is used, chapter that uses it) -> how often.
    titles : mapping of int to str
        Chapter -> a short name.

    Raises
    ------
    ValueError
        If there is no chapter or no link, a link leads to no chapter or upwards, or a title is missing.
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
    title = f"Later lessons build most on lesson {named[most]}: {used[most]} links from {users[most]} lessons"
    alone = [named[chapter] for chapter in chapters if not any(chapter in pair for pair in links)]
    alt = (
        f"Map of {len(chapters)} lessons in a column, with arcs from each lesson down to those whose equations use its own. "
        f"Most used: {', '.join(f'{named[chapter]} ({used[chapter]} links)' for chapter in order[:4])}. "
        f"Thickest arc: {_thickest(links, named)}." + (f" Without any link: {', '.join(alone)}." if alone else "")
    )
    with picture(title=title, alt=alt, height=1.0 + 0.37 * len(chapters)) as (ax,):
        row = {chapter: -float(place) for place, chapter in enumerate(chapters)}
        for (source, target), count in sorted(links.items(), key=lambda item: (item[0][0] == most, -item[1])):
            _draw_arc(ax, row[source], row[target], count, 0.95 if source == most else 0.4)
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


def two_orientations(weights: ArrayLike, mask: ArrayLike | None = None) -> None:
    """Show one table of weights twice: with rows as queries, and turned, with columns as queries.

    Parameters
    ----------
    weights : (q_len, kv_len) array_like
        Rows are queries and sum to 1.
    mask : (q_len, kv_len) array_like of bool, optional
        True = may attend; the others are hatched.

    Raises
    ------
    ValueError
        If a row does not sum to 1, or the mask has another shape.
    """
    p = as_numbers("weights", weights, 2)
    if not np.allclose(p.sum(axis=1), 1.0):
        raise ValueError(f"weights must sum to 1 in each row; got {p.sum(axis=1).round(2).tolist()}")
    allowed = np.ones(p.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if allowed.shape != p.shape:
        raise ValueError(f"mask must have the shape of weights, {p.shape}; got {allowed.shape}")
    queries, keys = ([f"{word} {number}" for number in range(count)] for word, count in zip("qk", p.shape, strict=True))
    causal = not allowed.all() and np.array_equal(allowed, np.tril(np.ones(p.shape, dtype=bool)))
    moved = ", and what is hidden moves below the diagonal" if causal else ", and the softmax runs down"
    title = f"One table, turned: queries become columns{moved}"
    above, below = (f", and the hidden cells lie {side} the diagonal" if causal else "" for side in ("above", "below"))
    alt = (
        f"Two heatmaps of the same weights; {int((~allowed).sum())} cells are hidden. Left, {len(p)} by {p.shape[1]}: rows are queries, "
        f"each row sums to 1{above}. Right, its transpose: columns are queries, each column sums to 1{below}."
    )
    panels = (
        (p, allowed, queries, keys, "rows are queries: Q Kᵀ", "each row sums to 1"),
        (p.T, allowed.T, keys, queries, "columns are queries: Kᵀ Q", "each column sums to 1"),
    )
    with picture(title=title, alt=alt, height=1.6 + 0.46 * max(p.shape), columns=2) as axes:
        for ax, (matrix, shown, rows, columns, name, sums) in zip(axes, panels, strict=True):
            draw_heatmap(ax, matrix, mask=shown, limits=(0.0, 1.0))
            ax.set_yticks(range(len(rows)), rows)
            ax.set_xticks(range(len(columns)), columns)
            ax.set(title=name, xlabel=sums)


def notation_explorable() -> None:
    """Show one attention in five dialects: formula, shapes, softmax axis and mask change, the numbers are only turned."""
    publish_explorable(
        CARDS / "notation",
        "Five buttons choose a dialect: the course's own, m data points, columns are positions, Attention Is All You Need, PyTorch. "
        "Formula, shapes, weights and output follow. Sliders set the numbers of queries and keys and pick one pair, whose weight is "
        "outlined, as does a click on a weight; buttons hide the keys after the query and put all back. Only the dialect of columns turns "
        "the tables; its softmax runs down each column.",
    )


def looks_explorable(query: ArrayLike, key: ArrayLike, value: ArrayLike, tokens: Sequence[str], first: int) -> None:
    """Show whom each word looks at, in each head, and begin with one word.

    Parameters
    ----------
    query, key, value : (heads, tokens, features) array_like
        Whole numbers. The card divides scores by 2 until a slider is moved, and hides no word.
    tokens : sequence of str
        The words.
    first : int
        The number of the word to begin with, from 0.

    Raises
    ------
    ValueError
        If the arrays do not hold one row for each word, or there is no such word.
    """
    queries, keys, values = (as_numbers(name, array, 3) for name, array in (("query", query), ("key", key), ("value", value)))
    for name, array in (("query", queries), ("key", keys), ("value", values)):
        if array.shape[1] != len(tokens):
            raise ValueError(f"{name} must have a row for each of {len(tokens)} words; got {array.shape[1]}")
    if not 0 <= first < len(tokens):
        raise ValueError(f"first must be the number of a word, 0 to {len(tokens) - 1}; got {first}")
    heads = [
        {name: (array + 0.0).tolist() for name, array in (("query", q), ("key", k), ("value", v), ("scores", q @ k.T))}
        for q, k, v in zip(queries, keys, values, strict=True)
    ]
    publish_explorable(
        CARDS / "looks",
        f"The sentence '{' '.join(tokens)}' twice, one line above the other, with lines from each word that asks to the words it looks at, "
        "the thicker the more weight. Buttons choose the word and the head, a slider what scores are divided by; a table shows every key "
        "with its score and weight.",
        {"tokens": list(tokens), "first": first, "heads": heads},
    )


@dataclass(frozen=True)
class Folded:
    """A text in fixed width behind a line that opens it."""

    summary: str
    text: str

    def __repr__(self) -> str:
        """Return the whole, as a text terminal shows it."""
        return f"{self.summary}\n\n{self.text}"

    def _repr_html_(self) -> str:
        shown = f'<pre style="font-family: monospace; white-space: pre; overflow-x: auto">{html.escape(self.text)}</pre>'
        return f"<details><summary>{html.escape(self.summary)}</summary>{shown}</details>"


def folded(summary: str, text: str) -> None:
    """Show a long text, such as a table, folded behind one line."""
    display(Folded(summary, text))


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


def machine() -> None:
    """Show the whole machine, each part a link to its lesson."""
    links = {}
    for part, name in LESSONS.items():
        number, slug = cite(name).split("_", 1)
        links[part] = (f"{number}_{slug}.ipynb", f"{number} {title(slug)}")
    show_machine("whole", links=links)
