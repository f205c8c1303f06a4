"""The small change that would make a wrong formula right, found by trying them all on the learner's own tree.

Like `latex`, it needs nothing of the course but formulas' reader and evaluator and files like itself, and may run in a confined process.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas.changes import changes
from attn_course.formulas.errors import Malformed
from attn_course.formulas.givens import alike
from attn_course.formulas.tree import Node, write
from attn_course.tasks.compare import compare
from attn_course.tasks.latex import KRONECKER, Line, Question
from attn_course.tasks.run import quiet
from attn_course.tasks.time_limit import TimeIsUp, time_limit

MOST_QUOTED = 80  # characters of a part of the formula that is named
CUT = " ... "  # in place of its middle, if it is longer
WHOLE = ("sum", "product", "big", "over", "call", "power", "entry", "name")  # what a factor or a function may be missing at
NOTHING = Node("none")


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
        with quiet(), time_limit(limit_s):
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
    atoms = [*dict.fromkeys(node for node in tree.walk() if node.kind in ("name", "entry"))]
    for node in atoms:
        yield f"with a transposition at `{_short(write(node))}`", _put(tree, node, Node("transpose", (node,)))
    factors = [*dict.fromkeys([*atoms, *_entries(question, givens)])]
    for node in (node for node in tree.walk() if node.kind in WHOLE):
        for factor in factors:
            yield f"with one factor more at `{_short(write(node))}`", _put(tree, node, Node("product", (node, factor)))
        for function in question.functions:
            yield f"with a function of `{_short(write(node))}` in its place", _put(tree, node, Node("call", (NOTHING, node), function))


def _entries(question: Question, givens: Mapping[str, Any]) -> Iterator[Node]:
    """Yield every entry of every symbol that the indices of the left side can point to."""
    for name in question.symbols:
        axes = givens[name].raw.ndim
        for letters in itertools.product(question.letters, repeat=axes):
            symbol = Node("name", (), name)
            yield Node("entry", (symbol, *(Node("index", (), letter) for letter in letters))) if axes else symbol


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
