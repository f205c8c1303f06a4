"""Equations of the course on givens that are made independently: they hold as printed, and wrong forms of them do not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attn_course.formulas import FormulaError, Node, judge_draws, write
from attn_course.formulas.givens import Range, as_given
from attn_course.formulas.tree import bound_by
from tests.formulas.worked import WORKED, draws, formula_of, latex_of


@pytest.mark.parametrize("label", WORKED)
def test_a_formula_holds_as_printed_at_all_sizes(label):
    made = draws(label)
    found = judge_draws(formula_of(latex_of(label), made[0]), made)
    assert len(found) == 12
    assert all(judged for judged in found)


@pytest.mark.parametrize(("label", "old", "new"), [(label, old, new) for label, entry in WORKED.items() for old, new in entry.wrong])
def test_a_wrong_form_is_refuted_or_malformed(label, old, new):
    latex = latex_of(label)
    assert old in latex
    made = draws(label)
    with pytest.raises(FormulaError):
        judge_draws(formula_of(latex.replace(old, new), made[0]), made)


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


@pytest.mark.parametrize("label", WORKED)
def test_a_formula_that_is_written_differently_holds_too(label):
    made = draws(label)
    latex = latex_of(label)
    tree = formula_of(latex, made[0]).tree
    forms = {
        write(tree),
        write(tree.map(backwards)),
        latex.replace(r"\frac", r"\tfrac"),
        re.sub(r"\\[bB]igg?([lr])", _left_or_right, latex),
    }
    if not any(isinstance(as_given(given), Range) for given in made[0].values()):  # a declared letter keeps its name
        forms.add(write(renamed(tree)))
    for form in forms:
        judge_draws(formula_of(form, made[0]), made[::3])


def _left_or_right(size: re.Match[str]) -> str:
    return {"l": r"\left", "r": r"\right"}[size[1]]


def test_a_second_draw_is_another_draw():
    one, two = draws("softmax-jacobian")[:2]
    assert not np.array_equal(one["s"].raw, two["s"].raw)
