"""How a symbol of an equation follows from others: by an equality of the course, or as the rows or columns of a matrix."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from attn_course.equations.core import REGISTRY, Equation
from attn_course.formulas import Formula, FormulaError, Malformed, Node
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.javascript import JavaScript, letter_of
from attn_course.formulas.tree import write
from attn_course.game.sides import defined_in, formula_with, made_of, named_by, runs_of, symbols_of, without_space


@dataclass(frozen=True)
class Recipe:
    """An equality that gives a symbol, or a function: `left` is the symbol, or it with its letters, and `latex` says all of it."""

    name: str
    left: Node
    latex: str
    needs: frozenset[str]

    def value(self, givens: Mapping[str, Any], functions: Mapping[str, str]) -> np.ndarray:
        """Return the array that it gives, in the place of the one that is given; raises Malformed or ValueError."""
        formula, claim, side = self._read(givens, functions)
        inner = Evaluation(formula, givens).here()
        letters = [node.value for node in claim.children[0].children[1:]] if claim.children[0].kind == "entry" else []
        for letter in inner.ordered(letters, claim):
            inner.enter(letter, claim)
        found = inner.value(side).indexed
        axes = [formula.letters[letter] for letter in letters]
        wide = {axis: inner.letters[letter].data.size for axis, letter in zip(axes, letters, strict=True)}
        found = np.broadcast_to(found, [wide.get(axis, size) for axis, size in enumerate(found.shape)])
        return np.moveaxis(found, axes, range(len(axes))).reshape(np.shape(givens[self.name].raw)).astype(float)

    def source(self, givens: Mapping[str, Any], functions: Mapping[str, str]) -> str:
        """Return the same as JavaScript."""
        formula, claim, side = self._read(givens, functions)
        source = JavaScript(formula, symbols_of(made_of(formula, givens)), runs=runs_of(formula, givens)).written(side)
        if claim.children[0].kind != "entry":
            return source
        given, letters = givens[self.name], [node.value for node in claim.children[0].children[1:]]
        starts, shape = given.value(0).starts, np.shape(given.raw)
        for axis in reversed(range(len(letters))):
            first = starts[axis] if axis < len(starts) else 1
            source = f"n.run({first}, {first + shape[axis] - 1}).map(({letter_of(letters[axis])}) => {source})"
            if given.form == "column" and axis == len(shape) - 1:
                source = f"({{ column: {source} }})"
        return source

    def _read(self, givens: Mapping[str, Any], functions: Mapping[str, str]) -> tuple[Formula, Node, Node]:
        formula = formula_with(self.latex, givens, functions)
        for claim in formula.claims:
            if claim.kind == "chain" and claim.children[0] == self.left:
                return formula, claim, claim.children[2]
        raise Malformed(f"{self.name} is not given by this")


def recipes(equation: Equation) -> tuple[Recipe, ...]:
    """Return what an equation says of symbols and of functions of symbols."""
    is_registered = registered().get(equation.label) is equation
    return _recipes(equation.label) if is_registered else tuple(_recipes_in(equation))


@lru_cache(maxsize=1)
def registered() -> dict[str, Equation]:
    """Return all equations by their labels."""
    return {equation.label: equation for equation in REGISTRY.all_equations()}


def known(name: str, equation: Equation) -> Iterator[Recipe]:
    """Yield how a symbol of an equation follows from others: by that equation, by those it uses, by any other."""
    used = [REGISTRY.get_equation(label) for label in equation.uses]
    rest = [one for one in registered().values() if one.kind != "transcribed" and any(map(gives(name), SIGN.split(one.latex)))]
    for one in {one.label: one for one in [equation, *used, *rest]}.values():
        yield from (recipe for recipe in recipes(one) if recipe.name == name)


SIGN = re.compile(r"=|,\s*\\q?quad|:\s*\\q?quad")


def gives(name: str) -> Callable[[str], bool]:
    """Return whether a side of a formula, as it is printed, can be one symbol with its letters, or a function of symbols."""
    symbol = re.compile(rf"\W*{re.escape(name)}(?![A-Za-z])[^=]{{0,40}}")
    return lambda side: symbol.fullmatch(side) is not None


@lru_cache(maxsize=1024)
def _recipes(label: str) -> tuple[Recipe, ...]:
    return tuple(_recipes_in(REGISTRY.get_equation(label)))


def _recipes_in(equation: Equation) -> Iterator[Recipe]:
    try:
        formula = equation.read()
    except FormulaError:
        return
    for statement in map(without_space, formula.tree.children):
        if statement.kind != "chain" or {sign.value for sign in statement.children[1::2]} != {"="}:
            continue
        sides = statement.children[::2]
        pairs = [*itertools.permutations(sides, 2), *itertools.starmap(_without_common, itertools.permutations(sides, 2))]
        for left, right in pairs:
            name = named_by(left)
            needs = formula.names_beneath(right)
            if not name or name in needs or name in formula.definitions or (left.kind == "call" and left is not sides[0]):
                continue
            beside = [rf"{write(one)}" for one in formula.tree.children if defined_in(one) & needs & formula.definitions.keys()]
            yield Recipe(name, left, r", \qquad ".join([f"{write(left)} = {write(right)}", *beside]), needs - formula.definitions.keys())


def _without_common(left: Node, right: Node) -> tuple[Node, Node]:
    """Return two products without the factors at their ends that they have in common: P V = softmax(S) V tells P."""
    one, two = (list(side.children) if side.kind == "product" else [side] for side in (left, right))
    while len(one) > 1 and len(two) > 1 and one[-1] == two[-1]:
        one.pop(), two.pop()
    while len(one) > 1 and len(two) > 1 and one[0] == two[0]:
        one.pop(0), two.pop(0)
    return _product(one), _product(two)


def _product(factors: Sequence[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Node("product", tuple(factors))


@dataclass(frozen=True)
class Alias:
    """A symbol that is another one, such as the rows q of Q; `turned`: its transpose, as columns of a matrix are."""

    name: str
    base: str
    turned: bool

    def value(self, givens: Mapping[str, Any]) -> np.ndarray:
        """Return the array of the symbol."""
        raw = np.asarray(givens[self.base].raw)
        return raw.T if self.turned else raw

    def source(self, givens: Mapping[str, Any], keys: Mapping[str, str]) -> str:
        """Return the same as JavaScript."""
        base, form, axes = f"$.{keys[self.base]}", givens[self.name].form, np.ndim(givens[self.name].raw)
        if givens[self.base].form == "column":
            base = f"{base}.map((x) => x.column)" if axes > 1 else f"{base}.column"
        if self.turned:
            base = f"n.transpose({base})"
        return (f"{base}.map((column) => ({{ column }}))" if axes > 1 else f"({{ column: {base} }})") if form == "column" else base
