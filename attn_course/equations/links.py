"""Which chapter builds on which: counted from what the registered equations say they use."""

from collections import Counter
from typing import NamedTuple

from attn_course import numbers
from attn_course.equations.core import REGISTRY, Registry


class ChapterMap(NamedTuple):
    """The course as a graph.

    `links`: (chapter that is used, chapter that uses it) -> how often an equation of the second names one of the first.
    `titles`: chapter -> a name short enough for a picture; the title proper is the lesson's.
    """

    counts: dict[int, int]
    links: dict[tuple[int, int], int]
    titles: dict[int, str]


def chapter_map(registry: Registry = REGISTRY) -> ChapterMap:
    """Count the equations of each chapter, and the links between chapters.

    `registry`: where to look; the course's own by default.

    Returns `graph`: links inside a chapter are left out.
    """
    equations = {equation.label: equation for equation in registry.all_equations()}
    chapter = {label: equation.number[0] for label, equation in equations.items() if equation.number}
    links: Counter[tuple[int, int]] = Counter()
    for label in chapter:
        for used in {*equations[label].uses} & set(chapter):
            links[chapter[used], chapter[label]] += 1
    between = {pair: count for pair, count in sorted(links.items()) if pair[0] != pair[1]}
    titles = {number: numbers.title(equations[label].lesson) for label, number in chapter.items()}
    return ChapterMap(dict(sorted(Counter(chapter.values()).items())), between, titles)
