"""Every equation of the course: it is read and written back, what is written differently but means the same holds too, and so the bank.

The bank holds wrong and right forms, written by readers who saw neither the planted wrong forms nor the changes that the gates try;
wrong ones that proved to be one of these stand here no longer.
"""

import contextlib
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from attn_course import numbers
from attn_course.equations import EquationError, gates, lessons
from attn_course.equations.core import REGISTRY, Equation
from attn_course.formulas import FormulaError, Node, is_range, write
from attn_course.formulas.tree import bound_by

pytestmark = pytest.mark.usefixtures("no_shape_check")  # half of the time; tests/reference checks the shapes
WHOLE = "ATTN_COURSE_WHOLE_BANK" in os.environ
BANK = json.loads(Path(__file__).with_name("bank.json").read_text(encoding="utf-8"))


def renamed(tree: Node) -> Node:
    """The same formula with other letters for what its sums bind."""
    used = {node.value for node in tree.walk()}
    fresh = iter([letter for letter in "gwzuabcfoyABCDEFGHIJKLMNO" if not any(letter in value for value in used)])

    def go(node: Node, new: dict[str, str]) -> Node:
        if node.kind == "index":
            return replace(node, value=new.get(node.value, node.value))
        inner = {**new, **{letter: next(fresh) for letter in sorted(bound_by(node))}}
        return replace(node, children=tuple(go(child, inner) for child in node.children))

    return go(tree, {})


def backwards(node: Node) -> Node:
    return replace(node, children=node.children[::-1]) if node.kind in ("sum", "dot") else node


def left_or_right(size: re.Match[str]) -> str:
    return {"l": r"\left", "r": r"\right"}[size[1]]


def written_differently(equation: Equation, tree: Node) -> str:
    """Other letters for what is bound, terms the other way round, other fractions, all at once."""
    declared = any(is_range(given) for given in equation.draws()[0][0].values())  # a declared letter keeps its name
    return write((tree if declared else renamed(tree)).map(backwards)).replace(r"\frac", r"\tfrac")


def misread(equation: Equation, *, checked: bool) -> str:
    """What is wrong with how a formula is read, written back, and judged in another spelling, if it is; "" if nothing is."""
    tree = equation.read().tree
    for same in (write(tree), re.sub(r"\\[bB]igg?([lr])", left_or_right, equation.latex)):
        if equation.read(same).tree != tree:
            return f"{equation.label}: read otherwise: {same}"
    try:
        if checked:
            equation.check(written_differently(equation, tree))
    except EquationError as error:
        return f"{equation.label}: {error}"
    return ""


def is_accepted(equation: Equation, latex: str) -> bool:
    """Whether a form is read as the registered one, or holds and says as much."""
    with contextlib.suppress(EquationError, FormulaError):
        with contextlib.suppress(FormulaError):  # it may name more than is given
            if equation.read(latex).tree == equation.read().tree:
                return True
        equation.check(latex)
        return True
    return False


def misjudged(equation: Equation) -> list[str]:
    """The wrong forms of the bank that are accepted, and the right ones that are not; of these every third is tried, or all."""
    wrong, right = (BANK[kind].get(equation.label, []) for kind in ("wrong", "right"))
    tried = [latex for place, latex in enumerate(right) if WHOLE or (place + len(equation.label)) % 3 == 0]  # they are evaluated to the end
    holds = [f"{equation.label}: holds: {latex}" for latex in wrong if is_accepted(equation, latex)]
    return holds + [f"{equation.label}: refused: {latex}" for latex in tried if not is_accepted(equation, latex)]


@pytest.mark.parametrize("lesson", lessons())
def test_formulas_are_read_written_back_and_hold_in_other_words_and_the_bank_is_judged_rightly(lesson):
    """Every fourth is checked in another spelling, in this process's own time, which other work on the machine does not stretch."""
    start = time.process_time()
    equations = REGISTRY.all_equations(lesson)
    found = [misread(equation, checked=place % 4 == 0) for place, equation in enumerate(equations)]
    assert list(filter(None, found)) == []
    assert time.process_time() - start < 20
    assert [line for equation in equations for line in misjudged(equation)] == []


def test_what_is_read_otherwise_or_does_not_hold_is_named(monkeypatch):
    equation = REGISTRY.get_equation("softmax-derivative")
    false = replace(equation, latex=equation.latex.replace(r"\delta_{ij}", r"\delta_{ii}"))
    assert misread(equation, checked=True) == misread(false, checked=False) == ""
    assert misread(false, checked=True).startswith(f"softmax-derivative: {numbers.eq('softmax-derivative')} is not confirmed: left ")
    monkeypatch.setitem(BANK, "wrong", {"softmax-derivative": [false.latex, equation.latex]})
    monkeypatch.setitem(BANK, "right", {"softmax-derivative": 4 * [false.latex]})
    said = [line.partition(" ")[2].partition(":")[0] for line in misjudged(equation)]
    assert said == ["holds", "refused", "refused"]
    monkeypatch.setitem(globals(), "write", lambda tree: equation.latex.replace("- s_j", "- s_i"))
    assert misread(equation, checked=True).startswith("softmax-derivative: read otherwise: ")


def test_the_bank_knows_no_equation_that_the_course_does_not():
    assert {*BANK["wrong"], *BANK["right"]} <= {equation.label for equation in REGISTRY.all_equations()}


def test_few_are_definitions_or_transcribed_and_few_changes_are_excused():
    assert gates.share_problems() == []
