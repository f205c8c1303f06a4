r"""Draws that seldom come by themselves: sizes 1 and 2 and many others, ties, zeros, nothing where something could be.

A form other than the registered one is tried on them. A draw counts only where the registered formula holds on it: what the text
forbids, that formula does not hold for, or its function cannot make it. Other sizes, ties, zeros, a row of zeros and whole numbers every
equation meets, larger sizes where all givens are numbers. Where all sides of the registered formula are finite numbers, 0/0 refutes
another, and so do an index that reaches nothing and an inverse that is none; else only finite numbers do, unless the equation says that
its givens `may_be` such. Minus infinity and negative numbers are drawn where it says so.
"""

import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attn_course import formulas
from attn_course.equations.drawing import Watched, drawn
from attn_course.formulas import Formula, FormulaError
from attn_course.formulas.givens import Given, Outcomes, aliases, as_given
from attn_course.formulas.sizes import in_order, parsed, with_products
from attn_course.formulas.values import FLAT

KINDS = ("tied", "zero", "masked", "empty", "negative")  # what may_be names; "empty": minus infinity all over
EDGES = ("tied", "zero", "zero in a row", "whole", "level", "apart")  # what every equation meets; see `bent`
UNBOUNDED = ("normal", "standard_normal")  # draws that may be any number: others are rates and shares, which need not be whole
EVERYWHERE = ("tied", "whole", "level", "apart")  # in all the arrays that are drawn
PLACES = 3  # which of the arrays that are drawn is bent
OTHERS = (1, 2, 4, 8, 9, 10, 12, 15)  # sizes that the registry does not draw: a polynomial has as many zeros as its degree at most
SMALL = 4  # sizes up to here are drawn of every equation


class Special(NamedTuple):
    """Givens that are special, how, and whether a side that is no finite number refutes a form too."""

    givens: Mapping[str, Any]
    said: str
    strict: bool


class Bent(Watched):
    """A generator that bends one of the arrays it draws, or all of them."""

    def __init__(self, seed: Sequence[int], kind: str, place: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self._kind, self._place, self._count, self._bent = kind, place, 0, False
        self._tables = 0

    def _drew(self, name: str, value: Any, again: Callable[[np.random.Generator], Any]) -> Any:
        if np.asarray(value).dtype.kind != "f" or (self._kind in ("whole", "level", "apart") and name not in UNBOUNDED):
            return value
        if self._kind == "negative" and not np.all(value > 0):
            return value  # what is drawn with both signs
        self._count += 1
        if self._kind not in EVERYWHERE and self._count != self._place + 1:
            return value
        self._tables += np.ndim(value) > 0
        other = bent(value, self._kind, self._tables)
        self._bent = self._bent or not np.array_equal(other, value)
        return other

    def __bool__(self) -> bool:
        """Whether anything was bent."""
        return self._bent


def bent(value: Any, kind: str, count: int = 0) -> Any:
    """Return drawn numbers that are special.

    tied: the largest stands twice in each row; level: it is 2, in all that is drawn; whole: near a whole number, so often 0; apart: every
    other entry is 0, so that rows of one array are orthogonal to those of the next; zero, also in one row only; the first of each row or
    all minus infinity; negative.
    """
    if kind == "negative":
        return -np.abs(value) if np.ndim(value) else -abs(value)
    if kind == "whole":
        return np.rint(value)
    if kind in ("level", "zero") and not np.ndim(value):
        return 2.0 if kind == "level" else 0.0
    if not np.ndim(value) or not np.size(value):
        return value
    other = np.array(value)
    if kind == "tied":
        np.put_along_axis(other, np.argmin(value, axis=-1, keepdims=True), np.max(value, axis=-1, keepdims=True), axis=-1)
    elif kind == "level":
        np.put_along_axis(other, np.argmax(value, axis=-1, keepdims=True), 2.0, axis=-1)
        other = np.minimum(other, 2.0)
    elif kind == "apart":
        other = np.where(np.arange(other.shape[-1]) % 2 == count % 2, other, 0.0)
    elif kind == "masked":
        other[..., 0] = -np.inf
    elif kind == "zero in a row":
        other[0] = 0.0
    else:
        other[...] = 0.0 if kind == "zero" else -np.inf
    return other


def other_sizes(sizes: str, seed: int, large: bool) -> Iterator[dict[str, int]]:
    """Yield sets of sizes that the registry does not draw: all 1, one of them 1, all 2, then mixed ones, `large` too, as they are bound."""
    others = [size for size in OTHERS if large or size <= SMALL]
    names, products, orders = parsed(sizes)
    free = [name for name in names if name not in products]
    rng = np.random.default_rng(seed)
    mixed = (rng.choice(others, size=len(free)).tolist() for _ in itertools.count())
    equal = [[size] * len(free) for size in others]
    edges = [[1 if name == one else SMALL for name in free] for one in free]
    drawn: Iterable[list[int]] = equal if len(free) == 1 else itertools.chain(equal[:1], edges, equal[1:2], mixed)
    for one in itertools.islice(drawn, 60):
        found = with_products(dict(zip(free, one, strict=True)), products)
        if in_order(found, orders):
            yield {name: found[name] for name in names}


@lru_cache(maxsize=512)
def special_draws(
    make: Callable[..., Any], sizes: str, label: str, latex: str, may_be: str, draws: int, come: frozenset[str] = frozenset()
) -> list[Special]:
    """Return the special draws on which a registered formula holds; raises Malformed where it does not for what its givens `may_be`.

    `come`: the names of what comes from other givens, and so is not 0 by itself.
    """
    seed, found = zlib.crc32(label.encode()), list[Special]()
    usual = formulas.size_sets(sizes)[0]
    plain = drawn(make, np.random.default_rng(seed), 0, usual).values()
    numbers = all(np.ndim(getattr(thing, "raw", thing)) == 0 and not isinstance(thing, Outcomes) for thing in plain)
    most = len(OTHERS) if numbers else SMALL + len(usual)
    others = list(itertools.islice(other_sizes(sizes, seed, numbers), most)) if sizes else []
    for one, draw in zip(others, itertools.cycle(range(draws)), strict=False):
        givens, finite = _made(make, np.random.default_rng([seed, draw]), one, draw, latex)
        if givens is not None:
            said = ", ".join(f"{name} = {size}" for name, size in one.items())
            found.append(Special(givens, f"for {said}", finite))
    for kind in (kind for kind in EDGES if kind not in may_be):
        found += _bent_draws(make, sizes, label, latex, kind, draws)
    found += draws_that_may_be(make, sizes, label, latex, may_be, draws)
    givens = drawn(make, np.random.default_rng([seed, 0]), 0, usual)
    for name, thing in givens.items():
        given = as_given(thing)
        if isinstance(given, Given) and given.form in ("scalar", "matrix", *FLAT) and np.asarray(given.raw).dtype.kind == "f":
            for said, raw in _zeroed(name, given, name in come):
                other = {**givens, **dict.fromkeys(aliases(name, givens), replace(given, raw=raw))}
                holds, finite = _judged(other, latex)
                if holds:
                    found.append(Special(other, f"where {said} is 0", finite))
    return found


def draws_that_may_be(make: Callable[..., Any], sizes: str, label: str, latex: str, may_be: str, draws: int) -> list[Special]:
    """Return draws of each kind that givens `may_be`; raises Malformed where the registered formula holds on none that are."""
    every = list[Special]()
    for kind in (kind.strip() for kind in may_be.split(",") if kind.strip()):
        if kind not in KINDS:
            raise formulas.Malformed(f"may_be wants some of {', '.join(KINDS)}; got {kind!r}", (0, 1), latex)
        found = [one._replace(strict=True) for one in _bent_draws(make, sizes, label, latex, kind, draws)]
        if not found:
            raise formulas.Malformed(f"the givens may be {kind}, says the equation, and it holds for none that are", (0, 1), latex)
        every += found
    return every


def _bent_draws(make: Callable[..., Any], sizes: str, label: str, latex: str, kind: str, draws: int) -> list[Special]:
    """Return draws on which a registered formula holds, and something given is of a kind: something of each first."""
    seed, usual, found = zlib.crc32(label.encode()), formulas.size_sets(sizes)[0], list[Special]()
    for draw, place in itertools.product(range(draws), range(1 if kind in EVERYWHERE else PLACES)):
        givens, finite = _made(make, Bent([seed, draw], kind, place), usual, draw, latex)
        if givens is not None:
            found.append(Special(givens, f"where something given is {kind}", finite))
        if len(found) == draws:
            break
    return found


def _zeroed(name: str, given: Given, comes: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield zeros for a number or a vector, and, where it is positive, it with the first of each row 0; weights still sum to 1."""
    raw = np.asarray(given.raw)
    if given.form != "matrix" and not comes:
        yield name, np.zeros(raw.shape)
    if raw.ndim and raw.shape[-1] > 1 and (raw > 0).all():
        other = np.where(np.arange(raw.shape[-1]) > 0, raw, 0.0)
        if np.allclose(raw.sum(axis=-1), 1):
            other = other / other.sum(axis=-1, keepdims=True)
        yield f"one of {name}", other


def _made(make: Callable[..., Any], rng: np.random.Generator, sizes: Mapping[str, int], draw: int, latex: str) -> tuple[Any, bool]:
    """Return the givens, None if they cannot be made or the registered formula does not hold; and whether all its sides are finite."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            givens = drawn(make, rng, draw, sizes)
        if isinstance(rng, Bent) and not rng:
            return None, False
        holds, finite = _judged(givens, latex)
        return givens if holds else None, finite
    except (ArithmeticError, AssertionError, LookupError, MemoryError, RuntimeError, TypeError, ValueError):
        return None, False


def _judged(givens: Mapping[str, Any], latex: str) -> tuple[bool, bool]:
    """Return whether the registered formula holds for some givens, and whether all its sides are finite there."""
    try:
        judged = formulas.judge(formulas.formula_of(latex, givens), givens)
    except FormulaError:
        return False, False
    ends = [side for one in judged for side in (one.left, one.right) if side.dtype.kind in "fc"]
    return any(one.counted for one in judged), all(np.isfinite(side).all() for side in ends)


def complain_of_special(formula: Formula, draws: Sequence[Special]) -> None:
    """Raise Refuted where a formula does not hold on a special draw on which the registered one does."""
    for special in draws:
        try:
            judged = formulas.sides(formula, special.givens)
        except formulas.Malformed as error:  # at size 1 a product may lose its meaning, and says nothing
            singular = "the matrix has no inverse" * ("whole" not in special.said)  # a product of such may have one by round-off
            if special.strict and error.problem.startswith(("the index reaches", singular or "the index reaches")):
                raise formulas.Malformed(f"{special.said} {error.problem}", error.place, formula.latex) from None
            continue
        for one in judged:
            wrong = one.counts & ~one.fulfilled
            if wrong.any() and not special.strict and one.left.dtype.kind in "fc":
                wrong = wrong & np.isfinite(one.left) & np.isfinite(one.right)
            if wrong.any():
                left, right = (np.broadcast_to(side, wrong.shape)[wrong][0] for side in (one.left, one.right))
                same = (wrong & one.equal).any() or np.asarray(left).dtype.kind not in "fc" or f"{left:.4g}" != f"{right:.4g}"
                digits = 4 if same else 12
                numbers = [f"{side:.{digits}g}" if isinstance(side, float | complex) else str(side) for side in (left, right)]
                raise formulas.Refuted(one.relation, numbers, [], one.place, said=special.said)
