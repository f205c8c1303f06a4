"""What is true of a wrong formula: the small change of it that would make it right, found by trying them all on the learner's own tree."""

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas import Malformed, Node, alike, changes, write
from attn_course.tasks.compare import compare
from attn_course.tasks.core import Case, Task, Verdict
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.latex import KRONECKER, Line, Question
from attn_course.tasks.run import quiet

SEARCH_S = 1.5  # for the whole search; most changes take under a millisecond
WHOLE = ("name", "entry", "call", "big", "sum", "product", "power", "over")  # what a factor or a function may be missing at
NOTHING = Node("none")


def explained(task: Task, answer: Any, cases: Sequence[Case], verdict: Verdict) -> Verdict:
    """Return a verdict on a failed answer in LaTeX with the formula as it was read, and what would mend it if the mistake has no name."""
    question, givens = task.question, task.blank(cases)
    try:
        trees = [question.read(line) for line in latex_lines(answer, task.entry, several=bool(question.goal))]
    except (AnswerError, Malformed):
        return verdict
    if task.kind == "formula":
        verdict = replace(verdict, formula=f"{task.left} = {write(trees[0])}")
        if not verdict.counts or verdict.mistake or " would be right " in verdict.message or "Everywhere it is" in verdict.message:
            return verdict
        wanted = [Line(question, question.frame, case.inputs).array for case in cases]
        words = mended(question, trees[0], givens, wanted, task.tolerance)
        return replace(verdict, message=f"{verdict.message} It would be right {words}.") if words else verdict
    broken = _broken_step(verdict)
    if not broken or verdict.mistake:
        return verdict
    before = [Line(question, trees[broken - 2], one).array for one in givens]
    words = mended(question, trees[broken - 1], givens, before, task.tolerance)
    return replace(verdict, message=f"{verdict.message} It would follow {words}.") if words else verdict


def _broken_step(verdict: Verdict) -> int:
    """The number of the line that does not follow, or 0."""
    words = verdict.message.split()
    return int(words[1]) if words[2:5] == ["does", "not", "follow"] else 0


def mended(
    question: Question, tree: Node, givens: Sequence[Mapping[str, Any]], wanted: Sequence[np.ndarray], tolerance: float | None = None
) -> str:
    """Return the small change after which a tree has the wanted values in every case, in words; "" if none is found in time."""
    end = time.monotonic() + SEARCH_S

    def fits(changed: Node) -> bool:
        if changed.letters() - {KRONECKER, *question.letters}:
            return False
        try:
            with quiet():
                return all(
                    compare([Line(question, changed, one).array], [theirs], tolerance) is None
                    for one, theirs in zip(givens, wanted, strict=True)
                )
        except Malformed:
            return False

    for words, changed in _candidates(question, tree, givens[0]):
        if time.monotonic() > end:
            return ""
        if fits(changed):
            return words
    return ""


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
        yield f"with {words} `{change.before}`", change.tree
    atoms = [*dict.fromkeys(node for node in tree.walk() if node.kind in ("name", "entry"))]
    for node in atoms:
        yield f"with a transposition at `{write(node)}`", _put(tree, node, Node("transpose", (node,)))
    for node in (node for node in tree.walk() if node.kind in WHOLE):
        for factor in atoms:
            yield f"with one factor more at `{write(node)}`", _put(tree, node, Node("product", (node, factor)))
        for function in question.functions:
            yield f"with a function of `{write(node)}` in its place", _put(tree, node, Node("call", (NOTHING, node), function))


def _exchanged(tree: Node, kind: str, new: Mapping[str, str]) -> Node:
    return tree.map(lambda node: replace(node, value=new.get(node.value, node.value)) if node.kind == kind else node)


def _what(before: str, after: str) -> str:
    """What kind of change it was."""
    if before.count(r"\top") != after.count(r"\top"):
        return "one transposition less"
    if re.sub(r"[-+ ()]", "", before) == re.sub(r"[-+ ()]", "", after):
        return "another sign"
    return "one part left out" if len(after) < len(before) else "one change"


def _put(tree: Node, node: Node, other: Node) -> Node:
    """Put another node in the place of one."""
    if tree is node:
        return other
    return replace(tree, children=tuple(_put(child, node, other) for child in tree.children))
