"""Givens as small as they can be, in few digits: the smallest sizes at which an equation can be drawn, and at which a wrong form fails."""

import itertools
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attn_course import formulas
from attn_course.equations.core import DRAWS, Equation, Givens, Maker
from attn_course.equations.drawing import drawn
from attn_course.formulas import Formula, FormulaError, Malformed, Refuted
from attn_course.formulas.givens import Given, as_given
from attn_course.formulas.sizes import in_order, parsed, with_products

LARGEST, MANY = 4, 5  # of any size; of so many letters each has one of two sizes only
MOST_SIZES = 200  # sets of sizes that are tried
MOST_TRIED = 120  # small draws on which a wrong form is tried, before those of the registry
CLEAR = 0.05  # by which two sides should differ, in parts of the larger, for the eye to see it
FEW = 12  # numbers drawn together
ROUND_OFF = 1e-15  # of the largest number of a given
STEPS = (0.5, 0.1, None)  # to which drawn numbers are rounded; None: as the registry draws them


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
        largest = np.arange(drawn.shape[-1]) == np.expand_dims(drawn.argmax(axis=-1), -1)
        return np.round(np.where(largest, 1 + drawn - drawn.sum(axis=-1, keepdims=True), drawn), 1)

    def _few(self, drawn: Any) -> Any:
        sign = np.where(np.asarray(drawn) < 0, -1.0, 1.0)
        few = sign * np.maximum(np.round(np.abs(drawn) / self.step), 1.0)
        flat = few.ravel()
        for place in range(1, flat.size if flat.size <= FEW else 0):
            while flat[place] in flat[:place]:
                flat[place] += sign.ravel()[place]
        found = np.round(few * self.step, 6)
        return found if np.ndim(drawn) else float(found)


class Small(NamedTuple):
    """Givens drawn at some sizes, for which the equation holds."""

    sizes: Mapping[str, int]
    givens: Givens
    formula: Formula


class Counterexample(NamedTuple):
    """Where a wrong form fails, and how; `formula` is None if it cannot even be read."""

    small: Small
    formula: Formula | None
    error: FormulaError


def small_draws(equation: Equation, least: int) -> Iterator[Small]:
    """Yield givens for which the equation holds, from the smallest sizes on (none below `least`), those of few digits first."""
    for sizes, step, draw in itertools.product(_ascending(equation.sizes, least), STEPS, range(DRAWS)):
        found = _drawn(equation.make, equation.latex, equation.label, tuple(sizes.items()), step, draw)
        if found is not None:
            yield found


def all_draws(equation: Equation, least: int) -> Iterator[Small]:
    """Yield small draws, then those of the registry."""
    yield from itertools.islice(small_draws(equation, least), MOST_TRIED)
    for sizes, draws in zip(equation.size_sets(), equation.draws(), strict=True):
        yield from (Small(sizes, _without_round_off(givens), equation.read()) for givens in draws)


def counterexample(equation: Equation, form: str) -> Counterexample | None:
    """Return the smallest draw at which a wrong form is refuted, clearly if it can be; else one at which it has no meaning."""
    refuted: Counterexample | None = None
    malformed: Counterexample | None = None
    for small in all_draws(equation, least=1):
        if refuted is not None and small.sizes != refuted.small.sizes:
            break
        formula = None
        try:
            formula = formulas.formula_of(form, small.givens)
            formulas.judge(formula, small.givens)
        except Refuted as error:
            refuted = refuted or Counterexample(small, formula, error)
            if _is_clear(error):
                return Counterexample(small, formula, error)
        except Malformed as error:
            telling = len({*small.sizes.values(), 1}) == len(small.sizes) + 1  # all different, none 1: shapes tell what does not fit
            if malformed is None or (telling and 1 in malformed.small.sizes.values()):
                malformed = Counterexample(small, formula, error)
            if formula is None:
                break
    return refuted or malformed


def _is_clear(error: Refuted) -> bool:
    try:
        left, right = float(error.left), float(error.right)
    except ValueError:
        return True
    return bool(abs(left - right) >= CLEAR * max(abs(left), abs(right)) and np.isfinite(left - right))


def _ascending(sizes: str, least: int) -> list[dict[str, int]]:
    """Return sets of sizes that fulfil the equation's relations, from the smallest sum on."""
    names, products, orders = parsed(sizes)
    free = [name for name in names if name not in products]
    found = []
    every = itertools.product(range(least, (LARGEST if len(free) < MANY else least + 1) + 1), repeat=len(free))
    for chosen in sorted(every, key=lambda chosen: (sum(chosen), max(chosen, default=0), [-size for size in chosen])):
        one = with_products(dict(zip(free, chosen, strict=True)), products)
        if in_order(one, orders):
            found.append({name: one[name] for name in names})
    return found[:MOST_SIZES]


@lru_cache(maxsize=512)
def _drawn(make: Maker, latex: str, label: str, sizes: tuple[tuple[str, int], ...], step: float | None, draw: int) -> Small | None:
    """Draw givens; None if the maker cannot be called so, or the equation does not hold: rounding may break a premise."""
    seed = [zlib.crc32(label.encode()), draw]
    rng = np.random.default_rng(seed) if step is None else FewDigits(seed, step)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            givens = drawn(make, rng, draw, dict(sizes))
        formula = formulas.formula_of(latex, givens)
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
