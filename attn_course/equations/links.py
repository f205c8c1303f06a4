"""Which chapter builds on which: counted from what the registered equations say they use and follow from."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from attn_course.equations.core import REGISTRY, Registry

SHORT_TITLES: Mapping[int, str] = {
    0: "Start here",
    1: "Lookup",
    2: "Softmax",
    3: "Similarity, scale",
    4: "Dot-product attention",
    5: "Self-attention",
    6: "Additive attention",
    7: "Masks",
    8: "Heads",
    9: "Cross-attention",
    10: "Absorption",
    11: "Without softmax",
    12: "FlashAttention",
}
"""Chapter -> a name short enough for a picture; the title proper is the lesson's."""


class ChapterMap(NamedTuple):
    """The course as a graph.

    Parameters
    ----------
    counts : dict of int to int
        Chapter -> how many numbered equations it has.
    links : dict of (int, int) to int
        (chapter that is used, chapter that uses it) -> how often an equation of the second names one of the first.
    """

    counts: dict[int, int]
    links: dict[tuple[int, int], int]


def chapter_map(registry: Registry = REGISTRY) -> ChapterMap:
    """Count the equations of each chapter, and the links between chapters.

    Parameters
    ----------
    registry : Registry, optional
        Where to look; the course's own by default.

    Returns
    -------
    graph : ChapterMap
        Links inside a chapter are left out, and an equation that both uses and follows another counts once.
    """
    equations = registry.all_equations()
    links: Counter[tuple[int, int]] = Counter()
    for equation in equations:
        for tag in {*equation.uses, *filter(None, [equation.follows])}:
            links[int(tag.split(".")[0]), equation.chapter] += 1
    between = {pair: count for pair, count in sorted(links.items()) if pair[0] != pair[1]}
    return ChapterMap(dict(sorted(Counter(equation.chapter for equation in equations).items())), between)
