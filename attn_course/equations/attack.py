"""Attack an equation: every small change of its formula must be rejected by what is given for it.

A change that means the same is told by machine: it has the value of the original on givens that have nothing to do with each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from attn_course.equations.core import Equation
from attn_course.formulas import Change, Formula, FormulaError, Malformed, Refuted, alike, changes, names_of, sides, unrelated

Fate: TypeAlias = Literal["refuted", "malformed", "equivalent", "survived"]

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
    return "equivalent" if means_the_same(equation, original, changed) else "survived"


def means_the_same(equation: Equation, one: Formula, two: Formula) -> bool:
    """Whether two formulas have the same sides for givens that have nothing to do with each other."""
    rng = np.random.default_rng(0)
    draws = list(chain(*equation.draws()))
    try:
        for number in range(UNRELATED):
            givens = unrelated(draws[number % len(draws)], rng)
            for a, b in zip(sides(one, givens), sides(two, givens), strict=True):
                if not all(_equal(left, right) for left, right in zip(a, b, strict=True)):
                    return False
    except (FormulaError, ValueError):
        return False
    return True


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
