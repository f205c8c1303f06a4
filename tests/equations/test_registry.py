"""The registry: what it stores, what it refuses, and that the LaTeX alone decides."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from attn_course import numbers
from attn_course.equations import EquationError, UnknownEquation, all_equations, get_equation, lessons, verify
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted
from attn_course.equations.verified import verified
from attn_course.formulas import subset, vector

SQUARE = "(x + y)^2 = x^2 + 2 x y + y^2"


def two_numbers(rng):
    """Multiply out."""
    return {"x": rng.normal(), "y": rng.normal()}


def some_numbers(rng, n):
    """Numbers and their sum."""
    x = rng.normal(size=n)
    return {"x": vector(x), "s": sum(x), "n": n}


@pytest.fixture
def toy(monkeypatch) -> Registry:
    counted = {
        "labels": {"early": {"first": "3.1"}, "toy": {"binomial": "7.1", "freshman": "7.2"}, "later": {"planned": None}},
        "tasks": {},
        "slugs": {slug: {"number": number, "title": slug} for slug, number in (("early", 3), ("toy", 7), ("later", None))},
    }
    monkeypatch.setattr(numbers, "tables", lambda: counted)
    registry = Registry()
    registry.equation("binomial", SQUARE, topics=["A1"], assumes=["x, y real"])(two_numbers)
    return registry


def test_a_true_equation_prints_one_fixed_line(toy: Registry):
    assert [str(verified("binomial", registry=toy)) for _ in range(2)] == ["Eq. (7.1) holds as printed (12 draws)"] * 2


def test_several_equations_share_a_line_that_opens(toy: Registry):
    toy.equation("freshman", SQUARE, topics=["A1"], wrong={"no mixed term": "(x + y)^2 = x^2 + y^2"})(two_numbers)
    found = verified("binomial", "freshman", registry=toy)
    assert str(found) == "Eqs. (7.1) and (7.2) hold as printed on random numbers; 1 known mistake does not"
    summary, _, first, second, wrong, *_ = found._repr_markdown_().splitlines()
    assert summary == f"<details><summary>✓ {found}</summary>"
    assert (first, second) == ("- Eq. (7.1) holds as printed (12 draws).", "- Eq. (7.2) holds as printed (12 draws). It rejects:")
    assert wrong == "  - no mixed term: $(x + y)^2 = x^2 + y^2$"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"sizes": "n"}, "holds as printed (n = 3, 5, 6, 7)"),
        ({}, "holds as printed (n = 3, 5, 6, 7)"),  # the parameters of the function
        ({"sizes": "n", "kind": "definition"}, "holds as printed (definition, n = 3, 5, 6, 7)"),
        ({"sizes": "T d H d_k, d = H d_k"}, "holds as printed (T, d, H, d_k from 3 to 36)"),
        ({"kind": "transcribed", "why": "a figure of a paper"}, "is transcribed, not read: a figure of a paper"),
    ],
)
def test_the_line_says_at_which_sizes_and_how(toy: Registry, options, line):
    equation = toy.equation("freshman", "?", topics=["A1"], **options)(some_numbers)
    assert equation.success_line == f"Eq. (7.2) {line}"


def test_an_equation_knows_its_place_and_its_reason(toy: Registry):
    equation = toy.get_equation("binomial")
    assert (equation.lesson, equation.number, equation.name, equation.doc) == ("toy", (7, 1), "two numbers", "Multiply out.")
    assert (equation.topics, equation.assumes, equation.traps) == (("A1",), ("x, y real",), ())


@pytest.mark.parametrize(
    "wrong", ["(x + y)^2 = x^2 + y^2", "(x + y)^2 = x^2 - 2 x y + y^2", "(x + y)^2 = 2 x + y", "(x + y)^2 = z^2", "(x + y"]
)
def test_the_latex_alone_decides(toy: Registry, wrong):
    equation = toy.get_equation("binomial")
    replace(equation, latex=r"x^2 + y^2 + 2 y x = (y + x)^2").check()
    with pytest.raises(EquationError, match=r"^Eq\. \(7\.1\) is not confirmed: "):
        replace(equation, latex=wrong).check()
    with pytest.raises(EquationError):
        equation.check(wrong)
    equation.check()


def test_a_counterexample_is_in_the_symbols_of_the_formula(toy: Registry, capsys):
    toy.equation("freshman", r"s = \sum_{i=1}^{n} x_i^2", topics=["A1"], sizes="n")(some_numbers)
    with pytest.raises(Refuted, match=r"^Eq\. \(7\.2\) is not confirmed: left -?[\d.]+, right [\d.]+$"):
        verified("freshman", registry=toy)
    with pytest.raises(Refuted, match=r"left .*, right .* at i = [123]"):
        toy.get_equation("freshman").check("x_i = s / n")
    assert capsys.readouterr().out == ""


def maximum(rng, n, draw):
    """Every entry is at most the largest; in the last draw all are alike."""
    x = np.full(n, rng.normal()) if draw == 2 else rng.normal(size=n)
    return {"x": vector(x), "m": max(x)}


@pytest.mark.parametrize(
    ("latex", "says"),
    [
        (r"x_i < m", r"left (.*), right \1 at i = .*wanted left < right"),
        (r"x_i \le m + 1", "is attained in no draw: the strict sign says more"),
        (r"\max_i x_i \le m", "is attained in every draw: = says more"),
    ],
)
def test_a_bound_is_as_sharp_as_it_is_printed(toy: Registry, latex, says):
    equation = toy.equation("freshman", r"x_i \le m", topics=["A1"], sizes="n")(maximum)
    equation.check()
    with pytest.raises(EquationError, match=says):
        equation.check(latex)
    if "no draw" in says:
        replace(equation, loose="for the sake of this test", registered=latex).check(latex)


def test_a_side_that_never_varies_tests_nothing(toy: Registry):
    equation = toy.equation("freshman", "c = k", topics=["A1"])(lambda rng: {"c": 2.0, "k": 2.0})
    with pytest.raises(Malformed, match=r"a side is always 2\.0"):
        equation.check()
    toy.equation("first", r"\sum_i x_i - s = 0", topics=["A1"], sizes="n")(
        lambda rng, n: {"x": (x := rng.normal(size=n)), "s": sum(x)}
    ).check()


def test_a_premise_that_never_holds_tests_nothing(toy: Registry):
    def empty(rng, n):
        return {"x": vector(rng.normal(size=n)), "A": subset(np.zeros(n, bool))}

    equation = toy.equation("freshman", r"i \in A \;\Rightarrow\; x_i = 0", topics=["A1"], sizes="n")(empty)
    with pytest.raises(Malformed, match="nothing is tested"):
        equation.check()


def test_the_givens_are_the_same_in_every_run_and_differ_from_draw_to_draw(toy: Registry):
    one, two = (Registry().equation("freshman", "?", topics=["A1"], sizes="n")(some_numbers).draws() for _ in range(2))
    assert [len(draws) for draws in one] == [3, 3, 3, 3]
    assert all(np.array_equal(a["x"].raw, b["x"].raw) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True))
    assert len({draw["s"] for draws in one for draw in draws}) == 12
    assert [draws[0]["n"] for draws in one] == [3, 5, 7, 6]


def test_what_is_transcribed_is_held_to_what_was_measured(toy: Registry):
    equation = toy.equation("freshman", "?", topics=["A1"], kind="transcribed", why="three samples")
    equation(lambda rng: {"the mean": (0.5, 0.4, 0.6)}).check()
    with pytest.raises(Refuted, match=r"the mean is 0\.7, not from 0\.4 to 0\.6"):
        equation(lambda rng: {"the mean": (0.7, 0.4, 0.6)}).check()


def test_an_error_shows_one_line_in_a_notebook():
    assert Refuted("no")._render_traceback_() == ["Refuted: no"]
    assert UnknownEquation("no")._render_traceback_() == ["UnknownEquation: no"]


def test_a_trap_is_claimed_only_by_the_wrong_form_that_shows_it(toy: Registry):
    wrong = {"X1: no middle term": "(x + y)^2 = x^2 + y^2", "X1: the middle term once": "2 x y -> x y"}
    equation = toy.equation("freshman", SQUARE, topics=["A1"], wrong={**wrong, "the sign": "(x + y)^2 = -x^2 + y^2"})(two_numbers)
    assert equation.traps == ("X1",)
    assert [form.name for form in equation.wrongs] == ["no middle term", "the middle term once", "the sign"]


def test_an_equation_of_a_planned_lesson_is_verified_under_its_label(toy: Registry):
    toy.equation("planned", SQUARE, topics=["A1"])(two_numbers)
    assert str(verified("planned", registry=toy)) == "Eq. planned holds as printed (12 draws)"
    assert toy.get_equation("planned").number is None


@pytest.mark.parametrize("label", ["7", "7.1", "Binomial", "the_binomial", "one-two-three-four-five", "binomial ", "-binomial", "", 7])
def test_a_label_that_is_no_few_words_with_hyphens_cannot_be_registered(toy: Registry, label):
    with pytest.raises(ValueError, match="label wants at most four lower-case words joined by hyphens"):
        toy.equation(label, "", topics=["A1"])


def test_a_label_cannot_be_taken_twice(toy: Registry):
    with pytest.raises(ValueError, match=r"label binomial is registered twice"):
        toy.equation("binomial", "", topics=["A1"])


def test_a_bare_string_is_no_list_of_topics(toy: Registry):
    with pytest.raises(ValueError, match="topics wants a list of strings; got the string 'A1'"):
        toy.equation("freshman", "", topics="A1")


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
        toy.equation(label, "?", topics=["A1"])(two_numbers)
    assert [equation.label for equation in toy.all_equations()] == ["first", "binomial", "freshman", "planned"]
    assert [equation.label for equation in toy.all_equations("toy")] == ["binomial", "freshman"]


def test_verifying_a_whole_lesson_takes_seconds():
    """Of this process's own time, which other work on the machine does not stretch; this is the slowest lesson."""
    start = time.process_time()
    for equation in all_equations("cross_attention"):
        equation.check()
    assert time.process_time() - start < 20


def test_an_equation_that_no_lesson_shows_yet_is_among_those_of_its_file(monkeypatch):
    known = numbers.tables()
    shown = {label: number for label, number in known["labels"]["softmax"].items() if label != "softmax-jacobian"}
    monkeypatch.setattr(numbers, "tables", lambda: {**known, "labels": {**known["labels"], "softmax": shown}})
    assert all_equations("softmax")[-1].label == "softmax-jacobian"


@pytest.mark.parametrize(
    ("label", "old", "new"),
    [
        ("softmax-jacobian", r"s\,s^\top", r"s\,s"),
        ("softmax-derivative", "- s_j", "- s_i"),
        ("softmax-derivative", r"\delta_{ij}", "1"),
        ("gradients-through-weighted-sum", r"P^\top dO", "P dO"),
        ("cross-entropy-gradient", r"\delta_{iy}", "1"),
    ],
)
def test_a_false_formula_of_the_course_is_rejected_whatever_the_lesson_says(label, old, new):
    equation = get_equation(label)
    assert old in equation.latex
    with pytest.raises(EquationError):
        replace(equation, latex=equation.latex.replace(old, new)).check()
