r"""What is alive of an equation: which of its numbers may be changed, how the others follow from these, and all its forms as JavaScript.

    life = living(REGISTRY.get_equation("attention-weights"))
    life.inputs      # what the reader changes, with the whole numbers it begins with
    life.derived     # what follows: by the equation itself, by another equation, or as a softmax where the draws are weights
    life.forms       # the equation and its wrong forms; both sides of each relation as JavaScript

Of this only the formula of a function may be declared. An input is what may be changed alone without the equation breaking, which NumPy
tries; a symbol that a formula defines is never one. Where nothing may be changed alone there are no inputs, and the numbers are those of
a small draw. `StaysStill` says why an equation is not alive.
"""

import itertools
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attn_course.equations.core import Equation
from attn_course.equations.drawing import drawn
from attn_course.equations.small import small_draws
from attn_course.formulas import Formula, FormulaError, Malformed, Node, judge, sides
from attn_course.formulas.functions import BUILT_IN
from attn_course.formulas.givens import Function, Given, Of, Outcomes, Range, as_given
from attn_course.formulas.sizes import in_order, parsed, with_products
from attn_course.game.recipes import Alias, Recipe, known, recipes
from attn_course.game.sides import Chain, formula_with, keys_of, value_of, written

LARGEST = 3  # of a size, if it can be
MOST_NUMBERS = 12  # of what is random, to be changed
MOST_GIVEN = 250  # numbers on a card
TRIALS = 4  # of what may be changed
BROKEN = (FormulaError, ValueError, TypeError, IndexError, ArithmeticError, AssertionError, Warning, np.linalg.LinAlgError)


class StaysStill(Exception):
    """Why an equation is not alive."""


@dataclass(frozen=True)
class Form:
    """The equation as printed (its name is empty), or a wrong form of it; `problem` says why it has no chains."""

    name: str
    latex: str
    chains: tuple[Chain, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Input:
    """What the reader may change: `kind` is any, positive, share (between 0 and 1), whole (and positive) or set."""

    name: str
    given: Given | Outcomes
    kind: str


@dataclass(frozen=True)
class Derived:
    """A symbol that follows from others: by a formula, `latex`, as a source of JavaScript."""

    name: str
    latex: str
    source: str


@dataclass(frozen=True)
class Life:
    """All of an equation that lives on a page."""

    equation: Equation
    formula: Formula
    givens: Mapping[str, Any]  # with the numbers it begins with
    inputs: tuple[Input, ...]
    fixed: tuple[str, ...]
    derived: tuple[Derived, ...]
    forms: tuple[Form, ...]
    aliases: tuple[Alias, ...]
    made: Mapping[str, Of]  # what is computed from others in Python, of which a derivative asks how
    functions: Mapping[str, str]  # that are given, and the formulas that define them
    scores: tuple[str, ...]  # symbols that no formula has: of them weights are the softmax


def living(equation: Equation) -> Life:
    """Return what is alive of an equation; raises StaysStill, which says why nothing is."""
    if equation.kind == "transcribed":
        raise StaysStill("it is transcribed, not read")
    return _Finder(equation).life()


def _far(sizes: Sequence[int]) -> int:
    """How far sizes are from what a card shows best; a larger one counts twice."""
    return sum(abs(size - LARGEST) * (1 + (size > LARGEST)) for size in sizes)


class _Finder:
    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.rng = np.random.default_rng(zlib.crc32(equation.label.encode()))
        self.draws = [_plain(draw) for some in equation.draws() for draw in some]
        self.steep = any(sign in equation.latex for sign in ("e^", "softmax", r"\sigma", r"\exp", "lse", r"\tanh"))
        self.functions = self._functions()
        self.made: dict[str, Of] = {}
        self.givens = self._small()
        self.recipes: dict[str, Recipe] = {}
        self.scores: dict[str, str] = {}  # weights, and the symbol of the scores that they are the softmax of
        self.aliases = self._aliases()
        self.fixed = self._fixed()

    def life(self) -> Life:
        """Return what lives."""
        if problem := self._form("", self.equation.latex).problem:
            raise StaysStill(problem)
        self._derive()
        if self.free():
            self._begin()
        elif self.made:
            raise StaysStill("what it is differentiated by cannot be changed: its derivative cannot be shown")
        else:
            self._settle()
        count = sum(_numbers(given).size for given in self.givens.values() if isinstance(given, Given | Outcomes) and _is_real(given))
        if count > MOST_GIVEN:
            raise StaysStill(f"it takes {count:,} numbers, which cannot be shown on a card")
        inputs = tuple(Input(name, self.givens[name], self.kind(name)) for name in self.free())
        forms = (self._form("", self.equation.latex), *(self._form(wrong.name, wrong.latex) for wrong in self.equation.wrongs))
        return Life(
            self.equation,
            self._formula(self.equation.latex),
            self.givens,
            inputs,
            tuple(self.fixed),
            tuple(self._derived()),
            forms,
            tuple(self.aliases.values()),
            self.made,
            self.functions,
            tuple(self.scores.values()),
        )

    # -- the formula
    def _formula(self, latex: str) -> Formula:
        return formula_with(latex, self._named(self.givens), self.functions)

    def _form(self, name: str, latex: str) -> Form:
        try:
            found = tuple(written(self._formula(latex), self.givens))
            with np.errstate(all="ignore"):
                sides(self._formula(latex), self._named(self.givens, made=True))
            return Form(name, latex, found)
        except Malformed as error:
            return Form(name, latex, problem=error.problem)

    def _functions(self) -> dict[str, str]:
        """Return for each function that is given how the course defines it: "" for one that every formula knows."""
        found = {}
        for name, given in self.draws[0].items():
            if isinstance(given, Function):
                if name in BUILT_IN:
                    found[name] = ""
                elif latex := next(self._told(name, given), ""):
                    found[name] = latex
        return found

    def _known(self, name: str) -> Iterator[Recipe]:
        """Yield how a symbol follows from other givens; how far a sum runs may be left open where that is not given."""
        for recipe in known(name, self.equation):
            yield recipe
            unknown = [re.escape(need) for need in recipe.needs if need not in self.draws[0]]
            if unknown:
                yield replace(recipe, latex=re.sub(rf"_\{{(\w)=1\}}\^\{{({'|'.join(unknown)})\}}", r"_{\1}", recipe.latex))

    def _told(self, name: str, given: Function) -> Iterator[str]:
        """Yield formulas that give what the Python function does: its own, those of the course."""
        every = itertools.chain([given.formula] if given.formula else [], (one.latex for one in self._known(name)))
        return (latex for latex in every if self._tells(name, latex))

    def _tells(self, name: str, latex: str) -> bool:
        """Whether a formula of a function gives what the Python function does, wherever the equation calls it."""
        try:
            for draw in self.draws[:: len(self.draws) // 3]:
                formula = formula_with(self.equation.latex, draw, {name: latex})
                judge(formula, draw)
        except BROKEN:
            return False
        return True

    # -- small givens
    def _small(self) -> dict[str, Any]:
        for sizes in self._sizes():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = drawn(self.equation.make, np.random.default_rng(7), 0, sizes)
                judge(formula_with(self.equation.latex, {name: as_given(one) for name, one in found.items()}, self.functions), found)
            except BROKEN:
                continue
            self.sizes = sizes
            if "derivative" in {node.kind for node in self.equation.read().tree.walk()}:
                self.made = {name: given for name, given in found.items() if isinstance(given, Of)}
            return _plain(found)
        raise StaysStill("it holds at no small sizes")

    def _sizes(self) -> Iterator[dict[str, int]]:
        """Yield sets of sizes: those on which the shape of something depends as near to 3 as can be, the others different numbers."""
        names, products, orders = parsed(self.equation.sizes)
        free = [name for name in names if name not in products]
        self.shaping = self._shaping(free, products, orders)
        others = dict(zip((name for name in free if name not in self.shaping), (2, 3, 5, 7, 4, 6, 8, 9), strict=False))
        shaping = [name for name in free if name in self.shaping]
        every = itertools.product(range(1, 6), repeat=len(shaping))
        for some in sorted(every, key=_far)[:80]:
            for lift in (0, 4):
                one = with_products({**dict(zip(shaping, some, strict=True)), **{k: v + lift for k, v in others.items()}}, products)
                if in_order(one, orders):
                    yield {name: one[name] for name in names}

    def _shaping(self, free: Sequence[str], products: Mapping[str, list[str]], orders: Sequence[tuple[str, str, str]]) -> set[str]:
        """Return the sizes on which the shape of something depends."""
        base = self.equation.size_sets()[0]
        found = set()
        for name in free:
            for more in (1, 2, -1):
                other = with_products({**{one: base[one] for one in free}, name: base[name] + more}, dict(products))
                if not in_order(other, orders):
                    continue
                try:
                    one, two = (
                        drawn(self.equation.make, np.random.default_rng(7), 0, {k: some[k] for k in base}) for some in (base, other)
                    )
                except BROKEN:
                    continue
                if any(_shape(one[key]) != _shape(two[key]) for key in one):
                    found.add(name)
                break
        return found

    # -- what may be changed
    def _fixed(self) -> list[str]:
        """Return what is no input: sizes of what is given, what is the same in every draw, what is not made of real numbers."""
        found = []
        draws = [self._drawn_again(seed) for seed in range(TRIALS)]
        bumped = self._bumped()
        for name, given in self.givens.items():
            if isinstance(given, Function | Range):
                continue
            if isinstance(given, Outcomes):
                if np.size(given.given.raw) > MOST_NUMBERS:
                    found.append(name)
                continue
            if value_of(given) is None or not np.isfinite(np.asarray(given.raw, float)).all():
                found.append(name)
            elif not np.ndim(given.raw) and all(draw[name].raw == given.raw for draw in draws):
                counted = any(one[name].raw != given.raw for one in bumped)
                if not counted or any(one[name].raw != given.raw for one in self._bumped(shaping=True)):
                    found.append(name)
        return found

    def _aliases(self) -> dict[str, Alias]:
        """Return the symbols that are others in every draw: rows or columns of a matrix, or a matrix of them."""
        arrays = [name for name, given in self.givens.items() if isinstance(given, Given) and np.ndim(given.raw) and value_of(given)]
        found = dict[str, Alias]()
        for base, name in itertools.permutations(sorted(arrays, key=lambda name: self.givens[name].form != "matrix"), 2):
            if base in found or name in found or any(one.base == name for one in found.values()) or np.size(self.givens[name].raw) < 2:
                continue
            if self.givens[name].form == "set" or np.ndim(self.givens[base].raw) != np.ndim(self.givens[name].raw):
                continue
            for turned in (False, True)[: np.ndim(self.givens[name].raw)]:
                one = Alias(name, base, turned)
                if all(np.array_equal(one.value(draw), draw[name].raw) for draw in [self.givens, *self.draws]):
                    found[name] = one
                    break
        return found

    def _drawn_again(self, seed: int, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
        found = drawn(self.equation.make, np.random.default_rng(100 + seed), 0, sizes or self.sizes)
        return _plain(found)

    def _bumped(self, shaping: bool = False) -> list[dict[str, Any]]:
        """Return givens at sizes of which one is larger: one on which a shape depends, or one of the others."""
        _, products, _ = parsed(self.equation.sizes)
        found = []
        for name in self.sizes:
            if name not in products and (name in self.shaping) == shaping:
                free = {one: size + (one == name) for one, size in self.sizes.items() if one not in products}
                other = with_products(free, dict(products))
                try:
                    found.append(self._drawn_again(0, {one: other[one] for one in self.sizes}))
                except BROKEN:
                    continue
        return found

    def kind(self, name: str) -> str:
        """Return what kind of numbers a symbol has in the draws of its equation."""
        if name in self.scores.values():
            return "any"
        given = self.givens[name]
        if isinstance(given, Given) and given.form == "set":
            return "set"
        some = [_numbers(draw[name]) for draw in self.draws]
        every = np.concatenate([one[np.isfinite(one)] for one in some])
        if (every > 0).all() and (every == np.rint(every)).all():
            return "whole"
        if (every > 0).all() and (every < 1).all():
            return "share"
        above = [bool((one > 0).all()) for one in some if one.any()]  # a sum that is 0 before the first step is positive after it
        return "positive" if above and all(above) else "any"

    def free(self) -> list[str]:
        """Return the symbols that are neither fixed nor follow from others."""
        arrays = [name for name, given in self.givens.items() if isinstance(given, Given | Outcomes)]
        return [name for name in arrays if not {name} & {*self.fixed, *self.recipes, *self.scores, *self.aliases}]

    def _derive(self) -> None:
        """Find what follows from what, until what is left can be changed; what cannot be is fixed."""
        known = len(self.fixed)
        for name in self.made:
            if not self._take(name) and not self._weighed(name):
                raise StaysStill(f"how {name} moves with what it is differentiated by cannot be written as JavaScript")
        for name in self.free():
            own = next((one for one in recipes(self.equation) if one.name == name and self._follows(name, one)), None)
            if own:
                self.recipes[name] = own
        for name in self.free():
            if self._is_weights(name) and not self._take(name) and not self._weighed(name) and not self.made:
                self._weigh(name)
        for _ in range(3):
            if not self.free() or self._holds(self.free()):
                break
            stuck = [name for name in self.free() if not self._holds([name])]
            taken = [name for name in stuck if self._take(name)]
            if not taken:
                self.fixed += stuck or self.free()
        if self.free() and not self._holds(self.free()):
            self.fixed += self.free()
        if any(np.ndim(getattr(self.givens[name], "raw", 0)) for name in self.fixed[known:]):
            self.fixed += self.scores.values()  # what belongs together may belong to the weights: P + N >= 0

    def _take(self, name: str) -> bool:
        """Let a symbol follow from others by an equation of the course, if one says how."""
        found = next((one for one in self._known(name) if self._follows(name, one)), None)
        if found:
            self.recipes[name] = found
        return found is not None

    def _follows(self, name: str, recipe: Recipe) -> bool:
        """Whether a recipe gives a symbol, in the draws too, from symbols that do not follow from it."""
        if recipe.left.kind == "call" or name in self._beneath(recipe.needs) or not isinstance(self.givens[name], Given):
            return False
        try:
            recipe.source(self.givens, self.functions)
            for draw in [self.givens, *self.draws[:: max(1, len(self.draws) // 4)]]:
                with np.errstate(all="ignore"):
                    found = recipe.value(draw, self.functions)
                if not np.allclose(found, np.asarray(draw[name].raw, float), rtol=1e-8, atol=1e-10, equal_nan=True):
                    return False
        except BROKEN:
            return False
        return True

    def _beneath(self, names: Iterable[str]) -> set[str]:
        """Return symbols and all from which they follow."""
        found = set(names)
        while more := {need for name in found for need in self._needs(name)} - found:
            found |= more
        return found

    def _needs(self, name: str) -> Iterable[str]:
        if name in self.aliases:
            return [self.aliases[name].base]
        return self.recipes[name].needs if name in self.recipes else ()

    def _is_weights(self, name: str) -> bool:
        """Whether a symbol stands for weights, row by row, in every draw."""
        if not isinstance(self.givens[name], Given) or self.givens[name].form not in ("matrix", "row", "column", "vector"):
            return False
        arrays = [np.asarray(draw[name].raw, float) for draw in [self.givens, *self.draws]]
        return all(one.ndim and one.shape[-1] > 1 and (one >= 0).all() and np.allclose(one.sum(axis=-1), 1) for one in arrays)

    def _weighed(self, name: str) -> bool:
        """Let weights be the softmax of another given, if they are."""
        for base, turned in itertools.product(self.free(), ("", r"^\top")):
            source = rf"\mathrm{{softmax}}({base}{turned})"
            recipe = Recipe(name, Node("name", (), name), f"{name} = {source}", frozenset([base]))
            if (
                base != name
                and np.shape(getattr(self.givens[base], "raw", 0)) == np.shape(self.givens[name].raw)
                and self._follows(name, recipe)
            ):
                self.recipes[name] = recipe
                return True
        return False

    def _weigh(self, name: str) -> None:
        """Let weights be the softmax of scores that no formula has."""
        said = " ".join([*self.givens, self.equation.latex, *(wrong.latex for wrong in self.equation.wrongs)])
        taken = set(re.findall(r"\\[A-Za-z]+|d?[A-Za-z]'?", said))  # dS is one symbol, and leaves S free
        symbol = next((one for one in ("S" if name[0].isupper() else "s", "z", "Z", "u", "U", "x", "X") if one not in taken), "")
        given = self.givens[name]
        if symbol and not (given.form in ("column", "row", "vector") and np.ndim(given.raw) > 1 and given.form == "column"):
            self.scores[name] = symbol
            self.givens[symbol] = given

    def followed(self, givens: Mapping[str, Any]) -> dict[str, Any]:
        """Return givens in which all that follows from others is computed from them."""
        found = dict(givens)
        for name, symbol in self.scores.items():
            shifted = np.exp(np.asarray(found[symbol].raw, float))
            found[name] = replace(found[name], raw=shifted / shifted.sum(axis=-1, keepdims=True))
        for name in self.order():
            if name in self.aliases:
                found[name] = replace(found[name], raw=self.aliases[name].value(found))
                continue
            found[name] = replace(found[name], raw=self.recipes[name].value(self._named(found), self.functions))
        return found

    def _named(self, givens: Mapping[str, Any], made: bool = False) -> dict[str, Any]:
        """Return the givens that the equation knows; with how they are `made`, where a derivative asks for it."""
        return {name: given for name, given in {**givens, **(self.made if made else {})}.items() if name not in self.scores.values()}

    def order(self) -> list[str]:
        """Return what follows from others, in an order in which it can be computed."""
        follow = dict.fromkeys([*self.recipes, *self.aliases])
        return sorted(follow, key=lambda name: len(self._beneath([name]) & follow.keys()))

    def _holds(self, names: Sequence[str]) -> bool:
        """Whether the equation holds when some symbols get other numbers."""
        try:
            with np.errstate(all="ignore"):
                for _ in range(TRIALS):
                    changed = {name: self._other(name, self.rng) for name in names}
                    if not self._claims(self._named(self.followed({**self.givens, **changed}), made=True)):
                        return False
        except BROKEN:
            return False
        return True

    def _claims(self, givens: Mapping[str, Any]) -> bool:
        """Whether each relation of the equation claims something of some givens; raises Refuted if it does not hold."""
        judged = judge(self._formula(self.equation.latex), givens)
        counted = {one.place for one in judged if one.counted}
        return all(one.place in counted for one in judged)

    def _other(self, name: str, rng: np.random.Generator, few: bool = False) -> Given | Outcomes:
        """Return other numbers of the same kind: whole ones, where they can be, neither 0 nor 1."""
        given = self.givens[name]
        inner = given.given if isinstance(given, Outcomes) else given
        shape, kind = np.shape(inner.raw), self.kind(name)
        count = int(np.prod(shape))
        if kind == "set":
            raw = rng.random(shape) < 0.6  # of no fixed count, and no row empty
            raw[..., 0] |= ~raw.any(axis=-1)
        else:
            pool = {"share": np.array([2, 3, 4, 6, 7, 8]) / 10, "positive": np.array([2, 3, 4, 5]), "whole": np.array([2, 3, 4, 5, 6])}
            signed = np.array([-2, -1, 2, 3]) if few or self.steep else np.array([-4, -3, -2, 2, 3, 4, 5])
            some = [rng.permutation(pool.get(kind, signed)) for _ in range(count)]  # so that neighbours differ
            raw = np.concatenate([np.zeros(0), *some])[:count].astype(float).reshape(shape)
        inner = replace(inner, raw=raw)
        return replace(given, given=inner) if isinstance(given, Outcomes) else inner

    def _settle(self) -> None:
        """Take numbers that belong together, in few digits where there are such, for an equation of which none can be changed alone."""
        self.givens, self.recipes, self.scores, self.aliases = self._named(self.givens), {}, {}, {}
        forms = [self.equation.latex, *(wrong.latex for wrong in self.equation.wrongs)]
        small = [_plain(one.givens) for one in itertools.islice(small_draws(self.equation, least=2), 2)]
        if small:  # the first on which most mistakes show
            self.givens = max(small, key=lambda givens: self._looks(forms, givens)[1])
        self.fixed = [name for name, given in self.givens.items() if isinstance(given, Given | Outcomes)]

    # -- the numbers that it begins with
    def _begin(self) -> None:
        """Choose the numbers it begins with: those on which most mistakes show, and most numbers differ."""
        best, found = (-1.0,), self.givens
        forms = [self.equation.latex, *(wrong.latex for wrong in self.equation.wrongs)]
        for seed in range(10):
            rng = np.random.default_rng(seed)
            try:
                changed = {name: self._other(name, rng, few=seed % 2 == 0) for name in self.free()}
                with np.errstate(all="ignore"):
                    givens = self.followed({**self.givens, **changed})
                    if not self._claims(self._named(givens, made=True)):
                        continue
                    numbers, differ = self._looks(forms, self._named(givens, made=True))
            except BROKEN:
                continue
            shown = np.round(np.abs(numbers), 2)
            telling = ((shown > 0.02) & (shown != 1) & (shown < 1000)).mean() if shown.size else 0.0
            varied = len({*shown.tolist()}) / max(1, shown.size)
            if (mark := (differ + 2 * telling + varied,)) > best:
                best, found = mark, givens
        self.givens = found

    def _looks(self, forms: Sequence[str], givens: Mapping[str, Any]) -> tuple[np.ndarray, int]:
        """Return all numbers of the sides of the equation, and how many wrong forms differ."""
        numbers, differ = np.zeros(0), 0
        for place, latex in enumerate(forms):
            try:
                found = sides(self._formula(latex), givens)
            except BROKEN:
                continue
            if not place:
                numbers = np.concatenate([one.right[one.counts & one.fulfilled].ravel() for one in found if one.right.dtype.kind == "f"])
            differ += any((one.counts & ~one.fulfilled).any() for one in found)
        return numbers[np.isfinite(numbers)], differ

    def _derived(self) -> Iterator[Derived]:
        keys = keys_of(self.givens)
        for name, symbol in self.scores.items():
            yield Derived(name, rf"{name} = \mathrm{{softmax}}({symbol})", f'o.softmax(o.given($.{keys[symbol]}, "{keys[symbol]}"))')
        for name in self.order():
            if name in self.aliases:
                yield Derived(name, "", self.aliases[name].source(self.givens, keys))
                continue
            yield Derived(name, self.recipes[name].latex, self.recipes[name].source(self.givens, self.functions))


def _plain(givens: Mapping[str, Any]) -> dict[str, Any]:
    """Return givens in which those that are computed from others are what they are."""
    found = {name: as_given(given) for name, given in givens.items()}
    for name, given in found.items():
        arrays = [found[one] for one in given.names] if isinstance(given, Of) else []
        plain = [one.raw for one in arrays if isinstance(one, Given)]
        if isinstance(given, Of) and len(plain) == len(arrays):
            found[name] = given.at(plain, name)
    return found


def _shape(given: Any) -> Any:
    """Return the shape of a given, or the values of a declared index."""
    given = as_given(given)
    if isinstance(given, Given):
        try:
            return np.shape(given.raw)
        except ValueError:
            return ()
    if isinstance(given, Outcomes):
        return np.shape(given.given.raw)
    return tuple(given.call()) if isinstance(given, Range) and not given.names and given.call().ndim == 1 else ()


def _is_real(given: Given | Outcomes) -> bool:
    return value_of(given.given if isinstance(given, Outcomes) else given) is not None


def _numbers(given: Any) -> np.ndarray:
    raw = given.given.raw if isinstance(given, Outcomes) else given.raw
    return np.asarray(raw, float).ravel()
