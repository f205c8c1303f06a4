"""The formula index and what it says about the syllabus."""

import json

import pytest

from attn_course import numbers
from attn_course.equations import UnknownEquation, all_equations
from attn_course.equations.core import Registry
from attn_course.equations.index import coverage, formulas_table
from attn_course.equations.rows import ROWS, TRAPS
from tests.toy_numbers import toy_numbers


def test_the_index_lists_every_equation_as_plain_data():
    table = formulas_table()
    assert [formula["label"] for formula in table] == [equation.label for equation in all_equations()]
    assert json.loads(json.dumps(table))[0]["latex"] == all_equations()[0].latex


def test_an_assumption_that_names_an_equation_is_shown_with_its_number(monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(early=["first", "second"]))
    registry = Registry()
    registry.add("second", "x = y\nwhere x real ;; y as in {eq}`first`", dict, serves="A2")
    (formula,) = formulas_table(registry=registry)
    assert formula["assumes"] == ("x real", "y as in Eq. (1.1)")


def test_no_role_is_left_in_the_index_of_the_course():
    shown = json.dumps([{**formula, "latex": ""} for formula in formulas_table()], ensure_ascii=False)
    assert numbers.ROLE.findall(shown) == []


def test_a_chapter_a_row_and_a_trap_narrow_the_index():
    assert [formula["label"] for formula in formulas_table("softmax")] == numbers.names("labels", "softmax")
    assert all("B1" in formula["topics"] for formula in formulas_table(topic="B1"))
    assert [formula["label"] for formula in formulas_table(topic="x16")] == ["softmax-inside-the-simplex"]
    assert formulas_table(lesson="softmax", topic="B2")
    assert len(formulas_table(topic="B1")) < len(formulas_table(lesson="softmax"))


@pytest.mark.parametrize(
    ("options", "says"), [({"topic": "Z9"}, "no topic or trap 'Z9'"), ({"lesson": "nowhere"}, "there are no equations of 'nowhere'")]
)
def test_an_unknown_row_or_chapter_is_one_clear_line(options, says: str):
    with pytest.raises(UnknownEquation, match=says):
        formulas_table(**options)


def test_the_softmax_rows_and_traps_are_covered():
    covered = {entry["id"]: entry["equations"] for entry in coverage() if entry["state"] == "covered"}
    assert covered.keys() >= {"B1", "B2", "X16", "X21", "X24"}
    assert covered["X24"] == ("softmax",)


def test_a_row_is_missing_only_once_all_of_its_lessons_exist(monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(lookup=["pairs"]))
    registry = Registry()
    registry.add("pairs", "x = y", dict, serves="A2")
    states = {entry["id"]: entry["state"] for entry in coverage(registry)}
    assert (states["A2"], states["A3"], states["A1"], states["B1"]) == ("covered", "missing", "later", "later")


def test_rows_and_traps_name_lessons_of_the_course():
    assert all(set(lessons) <= set(numbers.lessons()) and lessons and about for lessons, about in (ROWS | TRAPS).values())
