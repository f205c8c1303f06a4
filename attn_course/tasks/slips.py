"""The small change that would make a wrong formula right, found by trying them all on the learner's own tree.

Like `latex`, it needs nothing of the course but formulas' reader and evaluator and files like itself, and may run in a confined process.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from attn_course.formulas.changes import changes
from attn_course.formulas.errors import Malformed
from attn_course.formulas.givens import alike
from attn_course.formulas.tree import Node, bound_by, write
from attn_course.formulas.values import FORM_AXES
from attn_course.tasks.compare import compare
from attn_course.tasks.latex import KRONECKER, Line, Question
from attn_course.tasks.run import quiet
from attn_course.tasks.time_limit import TimeIsUp, time_limit

MOST_QUOTED = 80  # characters of a part of the formula that is named
CUT = " ... "  # in place of its middle, if it is longer
NUMBER = "a number"  # as an evaluation says what a part is
WHOLE = ("sum", "product", "odot", "dot", "big", "over", "call", "power", "transpose", "entry", "name", "number")  # what may lack something
NOTHING, E, ONE, TWO = Node("none"), Node("constant", (), "e"), Node("number", (), "1"), Node("number", (), "2")


def slip(
    question: Question,
    line: str,
    givens: Sequence[Mapping[str, Any]],
    wanted: Sequence[np.ndarray],
    tolerance: float | None = None,
    *,
    limit_s: float,
) -> str:
    """Return the small change after which a line has the wanted values in every case, in words; "" if there is none, or no time for it."""
    try:
        with quiet(), time_limit(limit_s, of_work=True):
            return _mended(question, question.read(line), givens, wanted, tolerance)
    except (Malformed, TimeIsUp, RecursionError, MemoryError):
        return ""


def _mended(
    question: Question, tree: Node, givens: Sequence[Mapping[str, Any]], wanted: Sequence[np.ndarray], tolerance: float | None
) -> str:
    def fits(changed: Node) -> bool:
        if changed.letters() - {KRONECKER, *question.letters}:
            return False
        try:
            return all(
                compare([Line(question, changed, one).array], [theirs], tolerance) is None
                for one, theirs in zip(givens, wanted, strict=True)
            )
        except Malformed:
            return False

    return next((words for words, changed in _candidates(question, tree, givens[0]) if fits(changed)), "")


def _candidates(question: Question, tree: Node, givens: Mapping[str, Any]) -> Iterator[tuple[str, Node]]:
    """Yield changed trees and what was done to them: two symbols exchanged, then every small change, then what was forgotten."""

    def likes(name: str) -> list[str]:
        return [other for other in question.symbols if other != name and alike(givens[name], givens[other])]

    symbols = {kind: sorted({node.value for node in tree.walk() if node.kind == kind} - {KRONECKER}) for kind in ("index", "name")}
    for kind, values in symbols.items():
        for one, other in itertools.combinations(values, 2):
            if kind == "index" or other in likes(one):
                yield f"with {one} and {other} exchanged", _exchanged(tree, kind, {one: other, other: one})
    for change in changes(tree, likes):
        is_symbol = change.before in symbols["index"] or change.before in symbols["name"]
        words = "another symbol in place of" if is_symbol else f"{_what(change.before, change.after)} in"
        yield f"with {words} `{_short(change.before)}`", change.tree
    places = [*_places(question, tree, givens)]
    for at in (at for at in places if not at.is_number):
        yield f"with a transposition at `{at.said}`", _put(tree, at.node, Node("transpose", (at.node,)))
    for at in places:
        yield f"with another sign at `{at.said}`", _put(tree, at.node, Node("neg", (at.node,)))
        if at.node.kind == "number":
            less = replace(at.node, value=f"{float(at.node.value) - 1:g}")
            yield f"with another number in place of `{at.said}`", _put(tree, at.node, less)
    for at in places:
        powers = [Node("power", (E, at.node)), Node("power", (at.node, TWO))]
        for applied in [*(Node("call", (NOTHING, at.node), name) for name in question.functions), *powers]:
            yield f"with a function of `{at.said}` in its place", _put(tree, at.node, applied)
    for at in places:
        written = [*_symbols(question, givens, at.letters)]
        for factor in _factors(at, written):
            yield f"with one factor more at `{at.said}`", _put(tree, at.node, factor)
        for total in _totals(at, written):
            yield f"with one term more at `{at.said}`", _put(tree, at.node, total)


class Place(NamedTuple):
    """A part of a tree at which something may be missing, as it is named, with the indices in force there."""

    node: Node
    said: str
    letters: frozenset[str]
    is_number: bool


def _places(question: Question, tree: Node, givens: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the parts of a tree, from the whole to the smallest; what has no value of its own, as a bound, is taken for a number."""
    shapes = Line(question, tree, givens).shapes

    def within(node: Node, letters: frozenset[str]) -> Iterator[Place]:
        if node.kind in WHOLE:
            yield Place(node, _short(write(node)), letters, shapes.get(id(node), NUMBER).startswith(NUMBER))
        inner = letters | bound_by(node)
        named = node.kind == "entry" and node.children[0].kind == "name"
        for child in node.children[1:] if named else node.children:
            yield from within(child, inner)

    return within(tree, frozenset(question.letters))


def _factors(at: Place, symbols: Sequence[tuple[Node, bool]]) -> Iterator[Node]:
    """Yield a part with each symbol as one factor more, before or behind it."""
    for symbol, is_number in symbols:
        if is_number or not at.is_number:
            yield Node("product", (at.node, symbol))
        if not (is_number or at.is_number):
            for other in (symbol, Node("transpose", (symbol,))):
                yield Node("product", (other, at.node))
                yield Node("odot", (other, at.node))


def _totals(at: Place, symbols: Sequence[tuple[Node, bool]]) -> Iterator[Node]:
    """Yield a part with each symbol, or 1, as one term more, of either sign."""
    added = [symbol for symbol, is_number in symbols if is_number == at.is_number]
    added += [ONE] if at.is_number else [Node("transpose", (symbol,)) for symbol in added]
    terms = at.node.children if at.node.kind == "sum" else (at.node,)
    for term in added:
        yield Node("sum", (*terms, term))
        yield Node("sum", (*terms, Node("neg", (term,))))


def _symbols(question: Question, givens: Mapping[str, Any], letters: frozenset[str]) -> Iterator[tuple[Node, bool]]:
    """Yield every symbol, with different indices in force on all of its axes, or on those of its list alone; and whether it is a number."""
    for name in question.symbols:
        given, symbol = givens[name], Node("name", (), name)
        lists = given.raw.ndim + (given.form in ("row", "column")) - FORM_AXES[given.form]
        for count in sorted({lists, given.raw.ndim}):
            for chosen in itertools.permutations(sorted(letters), count):
                indices = (Node("index", (), letter) for letter in chosen)
                yield (Node("entry", (symbol, *indices)) if count else symbol), count == given.raw.ndim


def _exchanged(tree: Node, kind: str, new: Mapping[str, str]) -> Node:
    return tree.map(lambda node: replace(node, value=new.get(node.value, node.value)) if node.kind == kind else node)


def _what(before: str, after: str) -> str:
    """What kind of change it was."""
    if before.count(r"\top") != after.count(r"\top"):
        return "one transposition less"
    if re.sub(r"[-+ ()]", "", before) == re.sub(r"[-+ ()]", "", after):
        return "another sign"
    return "one part left out" if len(after) < len(before) else "one change"


def _short(latex: str) -> str:
    """A part of a formula, without its middle if it is long."""
    return latex if len(latex) <= MOST_QUOTED else f"{latex[: MOST_QUOTED // 2]}{CUT}{latex[-MOST_QUOTED // 2 :]}"


def _put(tree: Node, node: Node, other: Node) -> Node:
    """Put another node in the place of one."""
    if tree is node:
        return other
    return replace(tree, children=tuple(_put(child, node, other) for child in tree.children))
