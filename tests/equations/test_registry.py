"""The registry: what it stores, what it refuses, and what it says."""

import time

import numpy as np
import pytest
import sympy

from attn_course.equations import EquationError, UnknownEquation, all_equations, chapters, get_equation, verify
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted

x, y = sympy.symbols("x y", real=True)


@pytest.fixture
def toy() -> Registry:
    registry = Registry()

    @registry.equation("7.1", "(x + y)^2 = x^2 + 2xy + y^2", rows=["A1"], assumes=["x, y real"], scope="any x, y")
    def binomial():
        """Multiply out."""
        return (x + y) ** 2, x**2 + 2 * x * y + y**2

    return registry


def test_a_true_equation_prints_one_fixed_line(toy: Registry, capsys):
    toy.verify("score-bias-is-factor")
    toy.verify("score-bias-is-factor")
    assert capsys.readouterr().out == "Eq. (7.1) holds (symbolic, any x, y)\n" * 2


def test_an_equation_knows_its_place_and_its_reason(toy: Registry):
    equation = toy.get_equation("score-bias-is-factor")
    assert (equation.chapter, equation.number, equation.name, equation.doc) == (7, 1, "binomial", "Multiply out.")
    assert (equation.rows, equation.assumes, equation.traps) == (("A1",), ("x, y real",), ())


def test_a_false_equation_is_refuted_with_a_counterexample_and_prints_nothing(toy: Registry, capsys):
    @toy.equation("7.2", "(x + y)^2 = x^2 + y^2", rows=["A1"])
    def freshman():
        return (x + y) ** 2, x**2 + y**2

    with pytest.raises(Refuted, match=r"^Eq\. \(7\.2\) is not confirmed: left side .*, right side .* where x = .*, y = "):
        toy.verify("minus-infinity-removes-key")
    assert capsys.readouterr().out == ""


def test_an_error_shows_one_line_in_a_notebook():
    assert Refuted("no")._render_traceback_() == ["Refuted: no"]
    assert UnknownEquation("no")._render_traceback_() == ["UnknownEquation: no"]


def test_a_trap_is_claimed_only_by_the_wrong_form_that_shows_it(toy: Registry):
    equation = toy.get_equation("score-bias-is-factor")
    equation.wrong("no middle term", trap="X1")(lambda: ((x + y) ** 2, x**2 + y**2))
    equation.wrong("the middle term once", trap="X1")(lambda: ((x + y) ** 2, x**2 + x * y + y**2))
    assert equation.traps == ("X1",)
    with pytest.raises(EquationError):
        equation.check(equation.wrongs[0].statement)


def test_a_statement_that_claims_nothing_is_malformed(toy: Registry):
    @toy.equation("7.2", "?", rows=["A1"], kind="numeric")
    def empty(rng):
        yield from ()

    with pytest.raises(Malformed, match="claims nothing"):
        toy.verify("minus-infinity-removes-key")


def test_numeric_statements_get_the_same_random_numbers_in_every_run(toy: Registry):
    seen = []

    @toy.equation("7.2", "x = x", rows=["A1"], kind="numeric")
    def draw(rng):
        seen.append(rng.normal())
        return np.ones(3), 1.0

    toy.verify("minus-infinity-removes-key")
    toy.verify("minus-infinity-removes-key")
    assert seen[0] == seen[1]


@pytest.mark.parametrize("tag", ["7", "7.01", "07.1", "7.0", "7.1a", "7.1 ", ""])
def test_a_tag_with_leading_zeros_or_other_text_cannot_be_registered(toy: Registry, tag: str):
    with pytest.raises(ValueError, match="tag wants chapter and number without leading zeros"):
        toy.equation(tag, "", rows=["A1"])


def test_a_tag_cannot_be_taken_twice(toy: Registry):
    with pytest.raises(ValueError, match=r"tag 7\.1 is registered twice"):
        toy.equation("7.1", "", rows=["A1"])


def test_an_unknown_kind_is_refused(toy: Registry):
    with pytest.raises(ValueError, match="kind wants one of symbolic, numeric, statistical; got 'proved'"):
        toy.equation("7.2", "", rows=["A1"], kind="proved")  # type: ignore[arg-type]


def test_a_bare_string_is_no_list_of_rows(toy: Registry):
    with pytest.raises(ValueError, match="rows wants a list of strings; got the string 'A1'"):
        toy.equation("7.2", "", rows="A1")


@pytest.mark.parametrize(
    ("tag", "says"),
    [
        ("2.99", r"there is no Eq\. \(2\.99\): the last equation of chapter 2 is \(2\.\d+\)"),
        ("77.1", r"there is no Eq\. \(77\.1\): chapter 77 has no equations"),
        ("2.01", "by its tag in quotes, such as \"2.7\"; got '2.01'"),
        ("(2.1)", "by its tag in quotes"),
        (2.2, 'by its tag in quotes, such as "2.7"; got 2.2'),
    ],
)
def test_an_unknown_tag_is_one_clear_line(tag, says: str):
    with pytest.raises(UnknownEquation, match=says) as caught:
        verify(tag)
    assert "\n" not in str(caught.value)


def test_the_chapters_are_those_on_disk_and_an_unknown_one_is_named():
    assert 2 in chapters()
    with pytest.raises(UnknownEquation, match=r"chapter 77 has no equations; those that have: (\d+, )*2\b"):
        all_equations(77)


def test_equations_come_in_the_order_of_their_numbers():
    numbers = [(equation.chapter, equation.number) for equation in all_equations()]
    assert numbers == sorted(numbers)
    assert get_equation("softmax").tag == "2.1"


def test_verifying_a_whole_chapter_takes_seconds():
    for chapter in chapters():
        start = time.perf_counter()
        for equation in all_equations(chapter):
            equation.check()
        assert time.perf_counter() - start < 20
