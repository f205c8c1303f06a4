r"""Draws that seldom come by themselves: sizes 1 and 2 and many others, ties, zeros, nothing where something could be.

A form other than the registered one is tried on them. A draw counts only where the registered formula holds on it: what the text
forbids, that formula does not hold for, or its function cannot make it. Other sizes, ties and zeros every equation meets, larger sizes
where all givens are numbers. A right form may divide there by 0 that the registered one does not divide by, so only finite numbers
refute it, unless the equation says that its givens `may_be` such; minus infinity and negative numbers are drawn where it says so.
"""

import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attn_course import formulas
from attn_course.equations.drawing import Watched, drawn
from attn_course.formulas import Formula, FormulaError
from attn_course.formulas.givens import Outcomes
from attn_course.formulas.sizes import in_order, parsed, with_products

KINDS = ("tied", "zero", "masked", "empty", "negative")  # what may_be names; "empty": minus infinity all over
PLACES = 3  # which of the arrays that are drawn is bent
OTHERS = (1, 2, 4, 8, 9, 10, 12, 15)  # sizes that the registry does not draw: a polynomial has as many zeros as its degree at most
SMALL = 4  # sizes up to here are drawn of every equation


class Special(NamedTuple):
    """Givens that are special, how, and whether a side that is no finite number refutes a form too."""

    givens: Mapping[str, Any]
    said: str
    strict: bool


class Bent(Watched):
    """A generator that bends one of the arrays it draws; ties it makes in all of them."""

    def __init__(self, seed: Sequence[int], kind: str, place: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self._kind, self._place, self._count, self._bent = kind, place, 0, False

    def _drew(self, value: Any, again: Callable[[np.random.Generator], Any]) -> Any:
        if np.asarray(value).dtype.kind != "f":
            return value
        self._count += 1
        if self._kind != "tied" and self._count != self._place + 1:
            return value
        other = bent(value, self._kind)
        self._bent = self._bent or not np.array_equal(other, value)
        return other

    def __bool__(self) -> bool:
        """Whether anything was bent."""
        return self._bent


def bent(value: Any, kind: str) -> Any:
    """Return drawn numbers with the largest twice in each row, all 0, the first of each row or all of them minus infinity, or negative."""
    if kind == "negative":
        return -np.abs(value) if np.ndim(value) else -abs(value)
    if not np.ndim(value) or not np.size(value):
        return value
    other = np.array(value)
    if kind == "tied":
        np.put_along_axis(other, np.argmin(value, axis=-1, keepdims=True), np.max(value, axis=-1, keepdims=True), axis=-1)
    elif kind == "masked":
        other[..., 0] = -np.inf
    else:
        other[...] = 0.0 if kind == "zero" else -np.inf
    return other


def other_sizes(sizes: str, seed: int, large: bool) -> Iterator[dict[str, int]]:
    """Yield sets of sizes that the registry does not draw: all 1, all 2, then mixed ones that fulfil what binds them, or `large` ones."""
    others = [size for size in OTHERS if large or size <= SMALL]
    names, products, orders = parsed(sizes)
    free = [name for name in names if name not in products]
    rng = np.random.default_rng(seed)
    mixed = (rng.choice(others, size=len(free)).tolist() for _ in itertools.count())
    drawn: Iterable[list[int]] = (
        ([size] for size in others) if len(free) == 1 else itertools.chain(([size] * len(free) for size in others[:2]), mixed)
    )
    for one in itertools.islice(drawn, 60):
        found = with_products(dict(zip(free, one, strict=True)), products)
        if in_order(found, orders):
            yield {name: found[name] for name in names}


@lru_cache(maxsize=512)
def special_draws(make: Callable[..., Any], sizes: str, label: str, latex: str, may_be: str, draws: int) -> list[Special]:
    """Return the special draws on which a registered formula holds; raises Malformed where it does not for what its givens `may_be`."""
    wanted = [kind.strip() for kind in may_be.split(",") if kind.strip()]
    if strange := [kind for kind in wanted if kind not in KINDS]:
        raise formulas.Malformed(f"may_be wants some of {', '.join(KINDS)}; got {strange[0]!r}", (0, 1), latex)
    seed, found = zlib.crc32(label.encode()), list[Special]()
    usual = formulas.size_sets(sizes)[0]
    plain = drawn(make, np.random.default_rng(seed), 0, usual).values()
    numbers = all(np.ndim(getattr(thing, "raw", thing)) == 0 and not isinstance(thing, Outcomes) for thing in plain)
    others = list(itertools.islice(other_sizes(sizes, seed, numbers), len(OTHERS) if numbers else SMALL)) if sizes else []
    for one, draw in zip(others, itertools.cycle(range(draws)), strict=False):
        givens = _made(make, np.random.default_rng([seed, draw]), one, draw, latex)
        if givens is not None:
            said = ", ".join(f"{name} = {size}" for name, size in one.items())
            found.append(Special(givens, f"for {said}", False))
    for kind in dict.fromkeys([*KINDS[:2], *wanted]):
        here = len(found)
        for draw, place in itertools.product(range(draws), range(1 if kind == "tied" else PLACES)):  # something of each first
            givens = _made(make, Bent([seed, draw], kind, place), usual, draw, latex)
            if givens is not None and len(found) < here + draws:
                found.append(Special(givens, f"where something given is {kind}", kind in wanted))
        if kind in wanted and here == len(found):
            raise formulas.Malformed(f"the givens may be {kind}, says the equation, and it holds for none that are", (0, 1), latex)
    return found


def _made(make: Callable[..., Any], rng: np.random.Generator, sizes: Mapping[str, int], draw: int, latex: str) -> Any:
    """Return the givens if they can be made and the registered formula holds for them, else None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            givens = drawn(make, rng, draw, sizes)
        if isinstance(rng, Bent) and not rng:
            return None
        judged = formulas.judge(formulas.formula_of(latex, givens), givens)
        return givens if any(one.counted for one in judged) else None
    except (
        FormulaError,
        ValueError,
        TypeError,
        IndexError,
        ArithmeticError,
        AssertionError,
        RuntimeError,
        MemoryError,
        KeyError,
        np.linalg.LinAlgError,
    ):
        return None


def complain_of_special(formula: Formula, draws: Sequence[Special]) -> None:
    """Raise Refuted where a formula does not hold on a special draw on which the registered one does."""
    for special in draws:
        try:
            judged = formulas.sides(formula, special.givens)
        except FormulaError:  # at size 1 a product may lose its meaning, and says nothing
            continue
        for one in judged:
            wrong = one.counts & ~one.fulfilled
            if wrong.any() and not special.strict and one.left.dtype.kind in "fc":
                wrong = wrong & np.isfinite(one.left) & np.isfinite(one.right)
            if wrong.any():
                left, right = (np.broadcast_to(side, wrong.shape)[wrong][0] for side in (one.left, one.right))
                numbers = [f"{side:.4g}" if isinstance(side, float | complex) else str(side) for side in (left, right)]
                raise formulas.Refuted(one.relation, numbers, [], one.place, said=special.said)
