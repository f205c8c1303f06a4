"""Attack an equation: every small change of its formula must be rejected by what is given for it.

A change that means the same is told by machine: it has the value of the original on givens that have nothing to do with each other. One
that says the same of fewer cases is weaker, and no mistake.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np

from attn_course.equations.core import Equation
from attn_course.formulas import (
    Change,
    Formula,
    FormulaError,
    Judged,
    Malformed,
    Node,
    Refuted,
    alike,
    changes,
    count,
    sides,
    unrelated,
)

Fate: TypeAlias = Literal["refuted", "malformed", "equivalent", "weaker", "survived"]

UNRELATED = 12  # draws of unrelated givens on which a change that means the same has the same value: 2500 others differ by the 7th


@dataclass(frozen=True)
class Mutant:
    """A changed formula, and what became of it."""

    change: Change
    fate: Fate


def all_changes(equation: Equation) -> Iterator[Change]:
    """Yield every small change of an equation's formula."""
    original = equation.read()
    draws = list(chain(*equation.draws()))

    @functools.cache
    def likes(name: str) -> list[str]:
        return [other for other in original.given if name in original.given and any(alike(draw[name], draw[other]) for draw in draws)]

    return changes(original.tree, likes)


def mutants(equation: Equation, every: int = 1) -> Iterator[Mutant]:
    """Yield every small change of an equation's formula, or one in `every` and all it names, judged on the equation's own givens.

    Those that "survived" are mistakes that the check would miss.
    """
    original = equation.read()
    compared = Unrelated(equation, original)
    for number, change in enumerate(all_changes(equation)):
        if number % every == 0 or str(change) in equation.equivalent:
            yield Mutant(change, _fate(equation, compared, change))


def _fate(equation: Equation, compared: "Unrelated", change: Change) -> Fate:
    original = compared.original
    try:
        changed = original.with_tree(change.tree)
        equation.judge(changed)
    except Refuted:
        return "refuted"
    except Malformed:
        return "malformed"
    if _renamed(change.tree, original.ranges) == _renamed(original.tree, original.ranges):
        return "equivalent"
    return compared.meaning(changed)


def _renamed(tree: Node, ranges: frozenset[str]) -> Node:
    """Return the formula with the free letters of each of its statements named in the order in which they come."""

    def renamed(statement: Node) -> Node:
        free = statement.letters() - ranges
        order = list(dict.fromkeys(node.value for node in statement.walk() if node.kind == "index" and node.value in free))
        return statement.map(
            lambda node: replace(node, value=f"#{order.index(node.value)}") if node.kind == "index" and node.value in free else node
        )

    return replace(tree, children=tuple(renamed(statement) for statement in tree.children))


class Unrelated:
    """A formula on givens that have nothing to do with each other, to compare its changes with: each draw is evaluated once."""

    def __init__(self, equation: Equation, original: Formula) -> None:
        self.original = original
        self._drawn = list[tuple[Mapping[str, Any], list[Judged]]]()
        self._coming = self._draws(equation)

    def _draws(self, equation: Equation) -> Iterator[tuple[Mapping[str, Any], list[Judged]]]:
        rng = np.random.default_rng(0)
        smallest = sorted(equation.draws(), key=lambda draws: sum(count(given) for given in draws[0].values()))[:2]
        for number, draw in enumerate([*chain(*smallest)] * UNRELATED):
            givens = unrelated(draw, rng)
            try:
                yield givens, sides(self.original, givens)
            except (FormulaError, ValueError):  # what a function of the givens does not take
                if number > 2 * UNRELATED:
                    return

    def meaning(self, changed: Formula) -> Fate:
        """Tell whether a changed formula has the same sides, and whether it counts as often."""
        fate: Fate = "equivalent"
        compared = 0
        for place in itertools.count():
            if place == len(self._drawn):
                drawn = next(self._coming, None)
                if drawn is None:
                    break
                self._drawn.append(drawn)
            givens, before = self._drawn[place]
            try:
                pairs = list(zip(before, sides(changed, givens), strict=True))
            except (FormulaError, ValueError):
                if place > 2 * UNRELATED:
                    break
                continue
            for one, two in pairs:
                same = _equal(one.fulfilled, two.fulfilled) and _equal(one.left, two.left) and _equal(one.right, two.right)
                if not same or not np.all(one.counts | ~two.counts):
                    return "survived"
                fate = fate if np.array_equal(one.counts, two.counts) else "weaker"
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
