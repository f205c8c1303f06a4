"""Attack an equation: every small change of its formula must be rejected by what is given for it.

A change that means the same is told by machine: it has the value of the original on givens that have nothing to do with each other. One
that says the same of fewer cases is weaker, and no mistake.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from attn_course.equations.core import Equation
from attn_course.formulas import Change, Formula, FormulaError, Malformed, Node, Refuted, alike, changes, names_of, sides, unrelated

Fate: TypeAlias = Literal["refuted", "malformed", "equivalent", "weaker", "survived"]

UNRELATED = 24  # draws of unrelated givens on which a change that means the same has the same value


@dataclass(frozen=True)
class Mutant:
    """A changed formula, and what became of it."""

    change: Change
    fate: Fate


def all_changes(equation: Equation) -> Iterator[Change]:
    """Yield every small change of an equation's formula."""
    original = equation.read()
    draws = list(chain(*equation.draws()))

    def likes(name: str) -> list[str]:
        return [other for other in original.given if name in original.given and any(alike(draw[name], draw[other]) for draw in draws)]

    return changes(original.tree, likes)


def mutants(equation: Equation) -> Iterator[Mutant]:
    """Yield every small change of an equation's formula, judged on the equation's own givens.

    Those that "survived" are mistakes that the check would miss.
    """
    original = equation.read()
    for change in all_changes(equation):
        yield Mutant(change, _fate(equation, original, change))


def _fate(equation: Equation, original: Formula, change: Change) -> Fate:
    try:
        changed = Formula(change.tree, names_of(equation.draws()[0][0]), original.ranges, " ")
        equation.judge(changed)
    except Refuted:
        return "refuted"
    except Malformed:
        return "malformed"
    if _renamed(change.tree, original.ranges) == _renamed(original.tree, original.ranges):
        return "equivalent"
    return _meaning(equation, original, changed)


def _renamed(tree: Node, ranges: frozenset[str]) -> Node:
    """Return the formula with the free letters of each of its statements named in the order in which they come."""

    def renamed(statement: Node) -> Node:
        free = statement.letters() - ranges
        order = list(dict.fromkeys(node.value for node in statement.walk() if node.kind == "index" and node.value in free))
        return statement.map(
            lambda node: replace(node, value=f"#{order.index(node.value)}") if node.kind == "index" and node.value in free else node
        )

    return replace(tree, children=tuple(renamed(statement) for statement in tree.children))


def _meaning(equation: Equation, original: Formula, changed: Formula) -> Fate:
    """Compare two formulas on givens that have nothing to do with each other: have they the same sides, and do they count as often?"""
    rng = np.random.default_rng(0)
    smallest = sorted(equation.draws(), key=lambda draws: sum(_numbers(given) for given in draws[0].values()))[:2]
    fate: Fate = "equivalent"
    compared = 0
    for number, draw in enumerate([*chain(*smallest)] * UNRELATED):
        givens = unrelated(draw, rng)
        try:
            pairs = list(zip(sides(original, givens), sides(changed, givens), strict=True))
        except (FormulaError, ValueError):  # what a function of the givens does not take
            if number > 2 * UNRELATED:
                break
            continue
        for (counts, *one), (other, *two) in pairs:
            if not all(map(_equal, one, two)) or not np.all(counts | ~other):
                return "survived"
            fate = fate if np.array_equal(counts, other) else "weaker"
        compared += 1
        if compared == UNRELATED:
            return fate
    return "survived"


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype == object or b.dtype == object:
        return bool(np.all(a == b))
    if a.shape != b.shape:
        try:
            a, b = np.broadcast_arrays(a, b)
        except ValueError:
            return False
    scale = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9 * max(scale, 1e-300), equal_nan=True))


def _numbers(given: object) -> int:
    """Count the numbers of an array that is given."""
    raw = getattr(given, "raw", given)
    return raw.size if isinstance(raw, np.ndarray) else 1
