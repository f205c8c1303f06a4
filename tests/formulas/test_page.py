"""The page docs/formulas.md: each of its examples becomes what is said behind it, and the formulas room imports in one direction."""

import ast
import re
from graphlib import TopologicalSorter

import numpy as np
import pytest

from attn_course import formulas
from attn_course.formulas import Formula, Malformed, Refuted, judge, names_of
from attn_course.formulas.evaluate import Evaluation


def blocks(root, language):
    page = (root / "docs" / "formulas.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def outcome(latex, givens):
    """What becomes of a formula, in which those givens count that stand in it."""
    try:
        formula = Formula.of(latex, names_of(givens), ["h"])
        named = formula.named | Evaluation(formula, givens).needed(formula.named)
        judge(formula, {name: given for name, given in givens.items() if name in named})
    except Malformed as error:
        return f"malformed: {error}"
    except Refuted:
        return "refuted"
    return "holds"


def wrong_examples(text, givens):
    pairs = [re.split(r"\s*% ", line) for line in text.splitlines()]
    found = [(latex, wanted, outcome(latex, givens)) for latex, wanted in pairs]
    return [one for one in found if one[1].split(": ")[0] != one[2].split(": ")[0] or one[1].partition(": ")[2] not in one[2]]


@pytest.fixture(scope="module")
def givens(root):
    names = {**vars(formulas), "np": np}
    known = {*names}
    exec(blocks(root, "python")[0], names)
    return {name.replace("W__h", "W^{(h)}"): given for name, given in names.items() if name not in known and name != "__builtins__"}


def test_every_example_becomes_what_the_page_says(root, givens):
    assert [wrong for text in blocks(root, "latex") for wrong in wrong_examples(text, givens)] == []


def test_an_example_that_does_not_is_found(givens):
    assert len(wrong_examples("c = 1  % holds\nc = 1.5  % refuted\nc + = 1  % malformed: no such words\nc = 1.5  % holds", givens)) == 3


def test_no_file_of_the_room_imports_one_that_imports_it(root):
    graph = {}
    for path in (root / "attn_course" / "formulas").glob("[a-z]*.py"):
        imports = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
        names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
        graph[path.stem] = {parts[2] for name in names if (parts := name.split("."))[:2] == ["attn_course", "formulas"]}
    assert len(graph) > 10
    assert [*TopologicalSorter(graph).static_order()]
