"""The registry: what it stores, what it refuses, and what it says."""

import re
import time

import numpy as np
import pytest
import sympy

from attn_course import numbers
from attn_course.equations import EquationError, UnknownEquation, all_equations, lessons, verify
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted

x, y = sympy.symbols("x y", real=True)


@pytest.fixture
def toy(monkeypatch) -> Registry:
    counted = {
        "labels": {"early": {"first": "3.1"}, "toy": {"binomial": "7.1", "freshman": "7.2"}, "later": {"planned": None}},
        "tasks": {},
        "slugs": {slug: {"number": number, "title": slug} for slug, number in (("early", 3), ("toy", 7), ("later", None))},
    }
    monkeypatch.setattr(numbers, "tables", lambda: counted)
    registry = Registry()

    @registry.equation("binomial", "(x + y)^2 = x^2 + 2xy + y^2", rows=["A1"], assumes=["x, y real"], scope="any x, y")
    def binomial():
        """Multiply out."""
        return (x + y) ** 2, x**2 + 2 * x * y + y**2

    return registry


def test_a_true_equation_prints_one_fixed_line(toy: Registry, capsys):
    toy.verify("binomial")
    toy.verify("binomial")
    assert capsys.readouterr().out == "Eq. (7.1) holds (symbolic, any x, y)\n" * 2


def test_an_equation_knows_its_place_and_its_reason(toy: Registry):
    equation = toy.get_equation("binomial")
    assert (equation.lesson, equation.number, equation.name, equation.doc) == ("toy", (7, 1), "binomial", "Multiply out.")
    assert (equation.rows, equation.assumes, equation.traps) == (("A1",), ("x, y real",), ())


def test_a_false_equation_is_refuted_with_a_counterexample_and_prints_nothing(toy: Registry, capsys):
    @toy.equation("freshman", "(x + y)^2 = x^2 + y^2", rows=["A1"])
    def freshman():
        return (x + y) ** 2, x**2 + y**2

    with pytest.raises(Refuted, match=r"^Eq\. \(7\.2\) is not confirmed: left side .*, right side .* where x = .*, y = "):
        toy.verify("freshman")
    assert capsys.readouterr().out == ""


def test_an_error_shows_one_line_in_a_notebook():
    assert Refuted("no")._render_traceback_() == ["Refuted: no"]
    assert UnknownEquation("no")._render_traceback_() == ["UnknownEquation: no"]


def test_a_trap_is_claimed_only_by_the_wrong_form_that_shows_it(toy: Registry):
    equation = toy.get_equation("binomial")
    equation.wrong("no middle term", trap="X1")(lambda: ((x + y) ** 2, x**2 + y**2))
    equation.wrong("the middle term once", trap="X1")(lambda: ((x + y) ** 2, x**2 + x * y + y**2))
    assert equation.traps == ("X1",)
    with pytest.raises(EquationError):
        equation.check(equation.wrongs[0].statement)


def test_a_statement_that_claims_nothing_is_malformed(toy: Registry):
    @toy.equation("freshman", "?", rows=["A1"], kind="numeric")
    def empty(rng):
        yield from ()

    with pytest.raises(Malformed, match="claims nothing"):
        toy.verify("freshman")


def test_numeric_statements_get_the_same_random_numbers_in_every_run(toy: Registry):
    seen = []

    @toy.equation("freshman", "x = x", rows=["A1"], kind="numeric")
    def draw(rng):
        seen.append(rng.normal())
        return np.ones(3), 1.0

    toy.verify("freshman")
    toy.verify("freshman")
    assert seen[0] == seen[1]


def test_an_equation_of_a_planned_lesson_is_verified_under_its_label(toy: Registry, capsys):
    @toy.equation("planned", "x = x", rows=["A1"], kind="numeric", scope="one")
    def planned(rng):
        return np.ones(2), 1.0

    toy.verify("planned")
    assert capsys.readouterr().out == "Eq. planned holds (numeric, one)\n"
    assert toy.get_equation("planned").number is None


@pytest.mark.parametrize("label", ["7", "7.1", "Binomial", "the_binomial", "one-two-three-four-five", "binomial ", "-binomial", "", 7])
def test_a_label_that_is_no_few_words_with_hyphens_cannot_be_registered(toy: Registry, label):
    with pytest.raises(ValueError, match="label wants at most four lower-case words joined by hyphens"):
        toy.equation(label, "", rows=["A1"])


def test_a_label_cannot_be_taken_twice(toy: Registry):
    with pytest.raises(ValueError, match=r"label binomial is registered twice"):
        toy.equation("binomial", "", rows=["A1"])


def test_an_unknown_kind_is_refused(toy: Registry):
    with pytest.raises(ValueError, match="kind wants one of symbolic, numeric, statistical; got 'proved'"):
        toy.equation("freshman", "", rows=["A1"], kind="proved")  # type: ignore[arg-type]


def test_a_bare_string_is_no_list_of_rows(toy: Registry):
    with pytest.raises(ValueError, match="rows wants a list of strings; got the string 'A1'"):
        toy.equation("freshman", "", rows="A1")


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("2.21", "2.21 is a number, as in the first version of the course; equations are asked for by name now"),
        ("softmax-jacobean", "there is no equation 'softmax-jacobean'; is it softmax-jacobian"),
        ("(2.1)", "there is no equation '(2.1)'"),
        (2.2, "there is no equation 2.2"),
    ],
)
def test_an_unknown_label_is_one_clear_line(label, says: str):
    with pytest.raises(UnknownEquation, match="^" + re.escape(says)) as caught:
        verify(label)
    assert "\n" not in str(caught.value)


def test_the_lessons_are_those_on_disk_and_an_unknown_one_is_named():
    assert "softmax" in lessons()
    with pytest.raises(UnknownEquation, match=r"there are no equations of 'nowhere'; lessons that have some: start, "):
        all_equations("nowhere")


def test_equations_come_in_the_order_of_the_course(toy: Registry):
    for label in ("freshman", "planned", "first"):
        toy.equation(label, "?", rows=["A1"])(lambda: (0, 0))
    assert [equation.label for equation in toy.all_equations()] == ["first", "binomial", "freshman", "planned"]
    assert [equation.label for equation in toy.all_equations("toy")] == ["binomial", "freshman"]


@pytest.mark.parametrize("lesson", lessons())
def test_verifying_a_whole_lesson_takes_seconds(lesson):
    """Of this process's own time, which other work on the machine does not stretch; the slowest lesson took 3 s when this was written."""
    start = time.process_time()
    for equation in all_equations(lesson):
        equation.check()
    assert time.process_time() - start < 20


def test_an_equation_that_no_lesson_shows_yet_is_among_those_of_its_file(monkeypatch):
    known = numbers.tables()
    shown = {label: number for label, number in known["labels"]["softmax"].items() if label != "softmax-jacobian"}
    monkeypatch.setattr(numbers, "tables", lambda: {**known, "labels": {**known["labels"], "softmax": shown}})
    assert all_equations("softmax")[-1].label == "softmax-jacobian"
