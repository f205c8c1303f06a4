"""Givens as small as they can be, in few digits: the smallest sizes at which an equation can be drawn, and at which a wrong form fails."""

import itertools
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from attn_course import formulas
from attn_course.equations.core import DRAWS, Equation, Givens, Maker
from attn_course.formulas import Formula, FormulaError, Malformed, Refuted
from attn_course.formulas.givens import Given, as_given

LARGEST = 4  # of any size
MOST_SIZES = 200  # sets of sizes that are tried
MOST_TRIED = 120  # small draws on which a wrong form is tried, before those of the registry
CLEAR = 0.05  # by which two sides should differ, in parts of the larger, for the eye to see it
MANY = 5  # letters: of these each has one of two sizes only
FEW = 12  # numbers drawn together
ROUND_OFF = 1e-15  # of the largest number of a given
STEPS = (0.5, 0.1, None)  # to which drawn numbers are rounded; None: as the registry draws them
RELATION = re.compile(r"(\w+) (=|>=|>) (\w+(?: \w+)*)")


class FewDigits(np.random.Generator):
    """Draws as any generator does, and rounds numbers to multiples of a step; none becomes 0, and few that are drawn together differ."""

    def __init__(self, seed: list[int], step: float) -> None:
        super().__init__(np.random.PCG64(seed))
        self.step = step

    def normal(self, *args: Any, **kwargs: Any) -> Any:
        """Draw from a normal distribution."""
        return self._few(super().normal(*args, **kwargs))

    def uniform(self, *args: Any, **kwargs: Any) -> Any:
        """Draw from an interval."""
        return self._few(super().uniform(*args, **kwargs))

    def random(self, *args: Any, **kwargs: Any) -> Any:
        """Draw between 0 and 1."""
        return self._few(super().random(*args, **kwargs))

    def dirichlet(self, *args: Any, **kwargs: Any) -> Any:
        """Draw weights; the largest is what the others leave of 1."""
        drawn = np.maximum(np.round(super().dirichlet(*args, **kwargs), 1), 0.1)
        largest = np.expand_dims(drawn.argmax(axis=-1), -1)
        np.put_along_axis(drawn, largest, 0.0, axis=-1)
        np.put_along_axis(drawn, largest, 1 - drawn.sum(axis=-1, keepdims=True), axis=-1)
        return np.round(drawn, 1)

    def _few(self, drawn: Any) -> Any:
        sign = np.where(np.asarray(drawn) < 0, -1.0, 1.0)
        few = sign * np.maximum(np.round(np.abs(drawn) / self.step), 1.0)
        if 1 < few.size <= FEW:
            flat = few.ravel()
            for place in range(flat.size):
                while flat[place] in flat[:place]:
                    flat[place] += sign.ravel()[place]
        found = np.round(few * self.step, 6)
        return found if np.ndim(drawn) else float(found)


@dataclass(frozen=True)
class Small:
    """Givens drawn at some sizes, for which the equation holds."""

    sizes: Mapping[str, int]
    givens: Givens
    formula: Formula


def small_draws(equation: Equation, least: int) -> Iterator[Small]:
    """Yield givens for which the equation holds, from the smallest sizes on (none below `least`), those of few digits first."""
    for sizes in itertools.islice(_ascending(equation.sizes, least), MOST_SIZES):
        for step in STEPS:
            for draw in range(DRAWS):
                found = _drawn(equation.make, equation.latex, equation.label, tuple(sizes.items()), step, draw)
                if found is not None:
                    yield found


def all_draws(equation: Equation, least: int) -> Iterator[Small]:
    """Yield small draws, then those of the registry."""
    yield from itertools.islice(small_draws(equation, least), MOST_TRIED)
    formula = equation.read()
    for sizes, draws in zip(equation.size_sets(), equation.draws(), strict=True):
        yield from (Small(sizes, _without_round_off(givens), formula) for givens in draws)


class Counterexample(NamedTuple):
    """Where a wrong form fails, and how; `formula` is None if it cannot even be read."""

    small: Small
    formula: Formula | None
    error: FormulaError


def counterexample(equation: Equation, form: str) -> Counterexample | None:
    """Return the smallest draw at which a wrong form is refuted, clearly if it can be; else one at which it has no meaning."""
    refuted: Counterexample | None = None
    malformed: Counterexample | None = None
    for small in all_draws(equation, least=1):
        if refuted is not None and small.sizes != refuted.small.sizes:
            break
        formula = None
        try:
            formula = Formula.of(form, formulas.names_of(small.givens), small.formula.ranges)
            formulas.judge(formula, small.givens)
        except Refuted as error:
            if _is_clear(error):
                return Counterexample(small, formula, error)
            refuted = refuted or Counterexample(small, formula, error)
        except Malformed as error:
            if formula is None:
                return Counterexample(small, None, error)
            if malformed is None or (_are_telling(small.sizes) and not _are_telling(malformed.small.sizes)):
                malformed = Counterexample(small, formula, error)
    return refuted or malformed


def _are_telling(sizes: Mapping[str, int]) -> bool:
    """Whether sizes are all different, and none is 1: then shapes tell what does not fit."""
    return len({*sizes.values(), 1}) == len(sizes) + 1


def _is_clear(error: Refuted) -> bool:
    try:
        left, right = float(error.left), float(error.right)
    except ValueError:
        return True
    return bool(abs(left - right) >= CLEAR * max(abs(left), abs(right)) and np.isfinite(left - right))


def _ascending(sizes: str, least: int) -> Iterator[dict[str, int]]:
    """Yield sets of sizes that fulfil the equation's relations, from the smallest sum on."""
    names, *bound = (part.strip() for part in sizes.split(","))
    relations = [match.groups() for match in map(RELATION.fullmatch, bound) if match]
    products = {name: factors.split() for name, sign, factors in relations if sign == "="}
    free = [name for name in names.split() if name not in products]
    every = itertools.product(range(least, (LARGEST if len(free) < MANY else least + 1) + 1), repeat=len(free))
    for chosen in sorted(every, key=lambda chosen: (sum(chosen), max(chosen, default=0), [-size for size in chosen])):
        found = dict(zip(free, chosen, strict=True))
        while len(found) < len(names.split()):
            ready = {name: factors for name, factors in products.items() if name not in found and {*factors} <= found.keys()}
            found |= {name: int(np.prod([found[factor] for factor in factors])) for name, factors in ready.items()}
        if all(found[a] > found[b] or (sign == ">=" and found[a] == found[b]) for a, sign, b in relations if sign != "="):
            yield {name: found[name] for name in names.split()}


@lru_cache(maxsize=512)
def _drawn(make: Maker, latex: str, label: str, sizes: tuple[tuple[str, int], ...], step: float | None, draw: int) -> Small | None:
    """Draw givens; None if the maker cannot be called so, or the equation does not hold: rounding may break a premise."""
    seed = [zlib.crc32(label.encode()), draw]
    rng = np.random.default_rng(seed) if step is None else FewDigits(seed, step)
    numbered = {"draw": draw} if "draw" in signature(make).parameters else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            givens = make(rng, **numbered, **dict(sizes))
        ranges = [name for name, given in givens.items() if formulas.is_range(given)]
        formula = Formula.of(latex, formulas.names_of(givens), ranges)
        if not any(one.counted for one in formulas.judge(formula, givens)):
            return None
    except (FormulaError, ValueError, TypeError, IndexError, ArithmeticError, AssertionError, Warning, np.linalg.LinAlgError):
        return None
    return Small(dict(sizes), _without_round_off(givens), formula)


def _without_round_off(givens: Givens) -> Givens:
    """Return givens in which what round-off leaves of 0 is 0."""
    found = dict[str, Any]()
    for name, thing in givens.items():
        given = found[name] = as_given(thing)
        if isinstance(given, Given) and np.asarray(given.raw).dtype.kind == "f":
            size = np.abs(given.raw)
            slack = given.noise + ROUND_OFF * max(1.0, np.max(size, where=np.isfinite(size), initial=0.0))
            found[name] = replace(given, raw=np.where(size <= slack, 0.0, given.raw))
    return found
