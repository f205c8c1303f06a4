"""`attn-course formulas`: the index, its LaTeX, and the check of each equation."""

import re

import pytest
from rich.cells import cell_len

from attn_course import numbers
from attn_course.equations import Equation, all_equations, get_equation
from attn_course.equations.errors import Refuted
from attn_course.equations.index import formulas_table


def listed(out):
    """The number and the label of each topic."""
    return [tuple(line.split()[:2]) for line in out.splitlines() if re.match(r" *\(\d+\.\d+\) ", line)]


def test_the_index_names_every_equation(attn_course):
    said = attn_course("formulas")
    assert said.code == 0
    equations = all_equations()
    numbered = [equation for equation in equations if equation.number]
    assert listed(said.out) == [("({}.{})".format(*equation.number), equation.label) for equation in numbered]
    planned = {equation.label for equation in equations if not equation.number}  # they stand without a number
    assert planned <= {line.split()[0] for line in said.out.splitlines() if line.strip()}
    assert f"{len(equations)} equations" in said.out
    assert max(map(cell_len, said.out.splitlines())) <= 80  # a bar over a letter takes no cell
    assert "J = diag(s) - s s^T" in said.out


@pytest.mark.parametrize("name", ["softmax", numbers.lesson_number("softmax")])
def test_a_chapter_is_chosen(name, attn_course):
    shown = [label for _, label in listed(attn_course("formulas", "--chapter", name).out)]
    assert shown == [equation.label for equation in all_equations("softmax")]


def test_a_topic_or_a_trap_is_chosen_in_either_case(attn_course):
    said = attn_course("formulas", "--topic", "b1", "--latex")
    wanted = [equation for equation in all_equations() if "B1" in equation.topics]
    assert said.out.splitlines() == [f"{equation.latex} \\label{{{equation.label}}}" for equation in wanted]
    trap = attn_course("formulas", "--topic", "X24", "--latex").out
    assert "\\label{softmax}" in trap


def test_one_equation_is_no_equations_and_is_really_checked(attn_course):
    shown = attn_course("formulas", "--topic", "x24").out
    assert [label for _, label in listed(shown)] == ["softmax"]
    assert shown.splitlines()[-1] == "1 equation; --latex prints it, --verify checks it"
    verified = attn_course("formulas", "--topic", "X24", "--verify")
    assert (verified.code, verified.out.splitlines()) == (0, [get_equation("softmax").success_line, "1 of 1 equation holds"])


def test_the_index_decides_what_belongs_to_a_topic(attn_course, monkeypatch):
    monkeypatch.setattr("attn_course.equations.index.formulas_table", lambda chapter, topic: formulas_table(chapter, topic)[:2])
    assert attn_course("formulas", "--chapter", "softmax", "--topic", "b1").out.splitlines()[-1].startswith("2 equations; ")


def test_verify_prints_the_line_of_each_and_their_number_and_names_one_that_does_not_hold(attn_course, monkeypatch):
    fails = []

    def check(self, latex=None):
        if self.label in fails:
            raise Refuted("Eq. (2.1) is not confirmed: the sides differ")

    monkeypatch.setattr(Equation, "check", check)
    monkeypatch.setattr("attn_course.equations.gates.wrong_form_problems", lambda equation: [])
    said = attn_course("formulas", "--verify")
    assert said.code == 0
    assert get_equation("softmax").success_line in said.out.splitlines()
    assert said.out.splitlines()[-1] == f"{len(all_equations())} of {len(all_equations())} equations hold"
    fails.append("softmax")
    said = attn_course("formulas", "--chapter", "softmax", "--verify")
    assert said.code == 1
    number = len(all_equations("softmax"))
    assert "Eq. (2.1) is not confirmed: the sides differ" in said.out.splitlines()
    assert said.out.splitlines()[-1] == f"{number - 1} of {number} equations hold"


def test_one_equation_is_shown_with_all_that_is_known_of_it_and_checked_and_an_unknown_one_is_one_line(attn_course):
    said = attn_course("formulas", "softmax-jacobian")
    equation = get_equation("softmax-jacobian")
    assert said.code == 0
    assert said.out.splitlines()[0] == f"{numbers.eq('softmax-jacobian')} {equation.name}"
    why = f"{numbers.eq('softmax-derivative')} for all i and j at once."
    for part in (equation.latex, why, *equation.uses, *(wrong.name for wrong in equation.wrongs), equation.checked, "Used by"):
        assert part in said.out
    assert said.out.splitlines()[1].strip() == "J = diag(s) - s s^T"
    assert "a product of scalars: J = diag(s) - (s^T s) I\n" in said.out
    assert "Topics      softmax in practice: shift invariance" in said.out
    assert numbers.ROLE.findall(said.out) == []
    number = numbers.eq("softmax-jacobian")
    for written in (number, number.removeprefix("Eq. "), number[5:-1]):
        assert attn_course("formulas", written).out == said.out
    verified = attn_course("formulas", "softmax-jacobian", "--verify")
    assert (verified.code, verified.out.splitlines()[-1]) == (0, "1 of 1 equation holds")
    unknown = attn_course("formulas", "softmax-jacobean")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "is it softmax-jacobian" in unknown.err
