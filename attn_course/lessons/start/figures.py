"""Figures of the lesson start: the machine with its links, who looks at whom, one step drawn, the map."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Arc
from numpy.typing import ArrayLike

from attn_course.figures.base import picture
from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.drawing import LABEL_POINTS, as_numbers, same_shape
from attn_course.figures.explorable import publish_explorable
from attn_course.figures.machines.whole import machine as show_machine
from attn_course.figures.palette import INK
from attn_course.figures.words import number
from attn_course.numbers import cite, title
from attn_course.sentence import QUERY, VALUE, X

CARDS = Path(__file__).parent / "explorables"
MOST_WORDS = 7  # side by side in a drawing
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


def looks_explorable(query: ArrayLike, key: ArrayLike, value: ArrayLike, tokens: Sequence[str], first: int) -> None:
    """Show whom each word looks at, in each head, and begin with one word.

    `query`, `key`, `value` (heads, tokens, features): whole numbers. The card divides scores by 2, and hides no word. `first`:
    the number of the word to begin with, from 0. Raises ValueError if the arrays do not hold one row for each word, or there is
    no such word.
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
        "the thicker the more weight. Buttons choose the word and the head; a table shows every key with its score and weight.",
        {"tokens": list(tokens), "first": first, "heads": heads},
    )


def asks_explorable(key: ArrayLike, query: ArrayLike, tokens: Sequence[str], asks: int) -> None:
    """Show at whom one word looks while its wish is moved from somebody alive to what somebody does.

    `key` (tokens, 4): columns: alive, tells, open, alive - tells. Scores are divided by 2, the root of 4. `query` (4,): what the
    word looks for. The slider sets its first and its last number, and its other two stay. `asks`: the number of the word that
    asks, from 0. Raises ValueError if there is not one key for each word, or there is no such word.
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


def one_step(
    weights: ArrayLike, value: ArrayLike, before: ArrayLike, after: ArrayLike, tokens: Sequence[str], *, asks: int, found: int
) -> None:
    """Draw what one word takes home: a line from each value, thicker for a larger weight, their average, the word before and after.

    `weights` (tokens,): what each word weighs for the one that asks; they sum to 1. `value` (tokens, 3): whole numbers. `before`
    and `after`, (tokens, 3) and (3,): every word as it comes in, in whole numbers, and the word that asks as it goes out.
    `tokens`: the words, seven at most. `asks`, `found`: the number of the word that asks, and of one to compare it with, from 0.

    Raises ValueError if there are too many words, an array has another shape, or the weights do not sum to 1.
    """
    count = len(tokens)
    if not 1 <= count <= MOST_WORDS:
        raise ValueError(f"tokens must be 1 to {MOST_WORDS} words; got {count}")
    shares, values = same_shape("weights", weights, count), same_shape("value", value, count, 3)
    words, result = same_shape("before", before, count, 3), same_shape("after", after, 3)
    if not np.isclose(shares.sum(), 1.0):
        raise ValueError(f"weights must sum to 1; got {shares.sum():.3g}")
    average, token, other = _vector(shares @ values, 2), tokens[asks], tokens[found]
    drawing = Diagram("one-step", 660, 368)
    drawing.text((5, 18), "each word, and its value (alive, tells, alive − open)", anchor="start")
    home, turned = Area(330, 206, 290, 40), Area(330, 266, 290, 34)
    for place, (word, share, entries) in enumerate(zip(tokens, shares, values, strict=True)):
        box = Area(330 + 94 * (place - (count - 1) / 2), 56, 88, 52)
        end = home.x + 0.4 * (box.x - home.x)
        drawing.wire((box.x, 107), (box.x, 118), (end, home.top[1] - 12), (end, home.top[1]), weight=float(share))
        drawing.box(box, role="value", lit=place == found)
        drawing.text((box.x, 51), word)
        drawing.text((box.x, 73), _vector(entries))
        drawing.text((box.x, 101), number(float(share)))
    drawing.box(home, f"average: {average}", role="output")
    drawing.box(turned)
    drawing.text((212, 271), "W_O", symbol=True)
    drawing.text((350, 271), "the third number times −1")
    asking, became, like = Area(83, 332, 156, 54), Area(448, 332, 166, 54), Area(598, 332, 112, 54)
    added = drawing.circle((330, 332), "+")
    for area, name, text in (
        (asking, f"{token}, before", _vector(words[asks])),
        (became, f"{token}, after", _vector(result, 2)),
        (like, other, _vector(words[found])),
    ):
        drawing.box(area, role="output", lit=area is became)
        drawing.text((area.x, 327), name)
        drawing.text((area.x, 349), text)
    drawing.arrow(home.bottom, turned.top)
    drawing.arrow(turned.bottom, added.top)
    drawing.arrow(asking.right, added.left)
    drawing.arrow(added.right, became.left)
    drawing.text((5, 294), "(alive, tells, open)", anchor="start")
    caption = (
        f"The line of a word is thicker where its weight is larger, and the smallest weights have the thinnest line. The average is added "
        f"to the numbers of “{token}”, its third number with a minus. Beside the result stands “{other}”."
    )
    given = ", ".join(
        f"{word} {_vector(entries)} with {number(float(share))}" for word, entries, share in zip(tokens, values, shares, strict=True)
    )
    alt = (
        f"Lines, thicker for larger weights of '{token}', lead from the values of all words to their average: {given}; the average is "
        f"{average}. It is added to '{token}', {_vector(words[asks])}, its third number with a minus, which makes {_vector(result, 2)}. "
        f"Beside it stands '{other}', {_vector(words[found])}."
    )
    publish_diagram(drawing.finish(title="What one word takes home", caption=caption, alt=alt))


def _vector(entries: np.ndarray, digits: int = 0) -> str:
    return f"({', '.join(number(float(entry), digits) for entry in entries)})"


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


def our_machine() -> None:
    """Show what one head does, lit, in the sizes of our sentence and its two heads."""
    heads, length, d_k = QUERY.shape
    show_machine("attention", {"T": length, "d_model": X.shape[1], "d_k": d_k, "d_v": VALUE.shape[2], "H": heads})


def machine() -> None:
    """Show the whole machine, each part a link to its lesson."""
    links = {}
    for part, name in LESSONS.items():
        number, slug = cite(name).split("_", 1)
        links[part] = (f"{number}_{slug}.ipynb", f"{number} {title(slug)}")
    show_machine("whole", links=links)
