"""The registry: what it stores, what it refuses, and that the LaTeX alone decides."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attn_course import numbers
from attn_course.equations import EquationError, UnknownEquation, all_equations, lessons, verify, verify_lesson
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted
from attn_course.equations.verified import verified
from attn_course.formulas import subset, vector

SQUARE = "(x + y)^2 = x^2 + 2 x y + y^2"


def two_numbers(normal):
    return {"x": normal(), "y": normal()}


def some_numbers(normal, n):
    x = normal(n)
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
    registry.add("binomial", f"{SQUARE}\nwhere x, y real\nMultiply out.", two_numbers, serves="A1")
    return registry


def test_a_true_equation_prints_one_fixed_line(toy: Registry):
    assert [str(verified("binomial", registry=toy)) for _ in range(2)] == ["Eq. (7.1) holds as printed (12 draws)"] * 2


def test_several_equations_share_a_line_that_opens(toy: Registry):
    toy.add("freshman", f"{SQUARE}\nMultiply out.\n    no mixed term: 2 x y + ->", two_numbers)
    found = verified("binomial", "freshman", registry=toy)
    assert str(found) == "Eqs. (7.1) and (7.2) hold as printed on random numbers, and the wrong version we know of fails"
    summary, _, first, second, wrong, *_ = found._repr_markdown_().splitlines()
    assert summary == f"<details><summary>✓ {found}</summary>"
    assert (first, second) == ("- Eq. (7.1) holds as printed (12 draws).", "- Eq. (7.2) holds as printed (12 draws). It rejects:")
    assert wrong == "  - no mixed term: $(x + y)^2 = x^2 + y^2$"


def test_a_formula_of_ones_own_is_tried_with_the_numbers_of_an_equation(capsys):
    verify(r"\sigma(z)_i = \frac{e^{z_i + 1}}{\sum_{j=1}^{n} e^{z_j + 1}}", like="softmax")
    assert capsys.readouterr().out == f"your formula holds with the numbers of {numbers.eq('softmax')}\n"
    beginning = f"your formula is not confirmed with the numbers of {re.escape(numbers.eq('softmax'))}: "
    with pytest.raises(Refuted, match=rf"^{beginning}left [\d.]+, right [\d.]+ at i = 1$"):
        verify(r"\sigma(z)_i = \frac{e^{2 z_i}}{\sum_{j=1}^{n} e^{z_j}}", like="softmax")
    with pytest.raises(EquationError, match=rf"^{beginning}.*weaker"):
        verify(r"\sum_{i=1}^{n} \sigma(z)_i = 1", like="softmax")
    verify("Eq. (2.1)")
    assert capsys.readouterr().out.startswith("Eq. (2.1) holds as printed")
    with pytest.raises(EquationError, match=r"^verify wants one formula beside like='softmax'; got 2$"):
        verify("softmax", "log-softmax", like="softmax")


def test_a_lesson_is_verified_in_one_line(capsys):
    equations = all_equations("start")
    verify_lesson("start")
    wrong = sum(len(equation.wrongs) for equation in equations)
    line = (
        f"All {len(equations)} formulas of this lesson hold on random numbers, and each of the {wrong} wrong versions we know of fails.\n"
    )
    assert capsys.readouterr().out == line
    for nothing in ("nowhere", ""):
        with pytest.raises(EquationError, match=f"wants the name of a lesson with equations, such as 'softmax'; got '{nothing}'$"):
            verify_lesson(nothing)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"sizes": "n"}, "holds as printed (n = 3, 5, 6, 7)"),
        ({}, "holds as printed (n = 3, 5, 6, 7)"),  # the parameters of the function
        ({"sizes": "n", "kind": "definition"}, "holds as printed (definition, n = 3, 5, 6, 7)"),
        ({"sizes": "T d H d_k, d = H d_k"}, "holds as printed (T, d, H, d_k from 3 to 36)"),
        ({"kind": "transcribed", "unread": "a figure of a paper"}, "is transcribed, not read: a figure of a paper"),
    ],
)
def test_the_line_says_at_which_sizes_and_how(toy: Registry, options, line):
    equation = toy.add("freshman", "?", some_numbers, **options)
    assert equation.success_line == f"Eq. (7.2) {line}"


def test_an_equation_knows_its_place_and_its_reason(toy: Registry):
    equation = toy.get_equation("binomial")
    assert (equation.lesson, equation.number, equation.name, equation.why) == ("toy", (7, 1), "Binomial", "Multiply out.")
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
    toy.add("freshman", r"s = \sum_{i=1}^{n} x_i^2", some_numbers)
    with pytest.raises(Refuted, match=r"^Eq\. \(7\.2\) is not confirmed: left -?[\d.]+, right [\d.]+$"):
        verified("freshman", registry=toy)
    with pytest.raises(Refuted, match=r"left .*, right .* at i = [123]"):
        toy.get_equation("freshman").check("x_i = s / n")
    assert capsys.readouterr().out == ""


def maximum(rng, n, draw):
    # every entry is at most the largest; in the last draw all are alike
    x = np.full(n, rng.normal()) if draw == 2 else rng.normal(size=n)
    return {"x": vector(x), "m": max(x)}


@pytest.mark.parametrize(
    ("latex", "says"),
    [
        (r"x_i < m", r"left (.*), right \1 at i = .*wanted left < right"),
        (r"x_i \le m + 1", "the registered formula has a closer bound"),
        (r"x_i / 2 \le m / 2 + 1", "is attained in no draw of ours: a strict sign or a closer bound says more"),
        (r"\max_i x_i \le m", "is attained in every draw: = says more"),
    ],
)
def test_a_bound_is_as_sharp_as_it_is_printed(toy: Registry, latex, says):
    equation = toy.add("freshman", r"x_i \le m", maximum)
    equation.check()
    with pytest.raises(EquationError, match=says):
        equation.check(latex)
    if "no draw" in says:
        replace(equation, loose="for the sake of this test", registered=latex).check(latex)


def test_a_side_that_never_varies_tests_nothing(toy: Registry):
    equation = toy.add("freshman", "c = k", lambda: {"c": 2.0, "k": 2.0})
    with pytest.raises(Malformed, match="a side is 2 in every draw"):
        equation.check()
    toy.add("first", r"\sum_i x_i - s = 0", lambda normal, n: {"x": (x := normal(n)), "s": sum(x)}).check()


def test_a_premise_that_never_holds_tests_nothing(toy: Registry):
    def empty(rng, n):
        return {"x": vector(rng.normal(size=n)), "A": subset(np.zeros(n, bool))}

    equation = toy.add("freshman", r"i \in A \;\Rightarrow\; x_i = 0", empty)
    with pytest.raises(Malformed, match="nothing is tested"):
        equation.check()


def test_the_givens_are_the_same_in_every_run_and_differ_from_draw_to_draw(toy: Registry):
    one, two = (Registry().add("freshman", "?", some_numbers).draws() for _ in range(2))
    assert [len(draws) for draws in one] == [3, 3, 3, 3]
    assert all(np.array_equal(a["x"].raw, b["x"].raw) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True))
    assert len({draw["s"] for draws in one for draw in draws}) == 12
    assert [draws[0]["n"] for draws in one] == [3, 5, 7, 6]


def test_what_is_transcribed_is_held_to_what_was_measured(toy: Registry):
    facts = {"kind": "transcribed", "unread": "three samples"}
    toy.add("first", "?", lambda: {"the mean": (0.5, 0.4, 0.6)}, **facts).check()
    with pytest.raises(Refuted, match=r"the mean is 0\.7, not from 0\.4 to 0\.6"):
        toy.add("freshman", "?", lambda: {"the mean": (0.7, 0.4, 0.6)}, **facts).check()


def test_an_error_shows_one_line_in_a_notebook():
    assert Refuted("no")._render_traceback_() == ["Refuted: no"]
    assert UnknownEquation("no")._render_traceback_() == ["UnknownEquation: no"]


def test_an_equation_of_a_planned_lesson_is_verified_under_its_label(toy: Registry):
    toy.add("planned", SQUARE, two_numbers)
    assert str(verified("planned", registry=toy)) == "Eq. planned holds as printed (12 draws)"
    assert toy.get_equation("planned").number is None


@pytest.mark.parametrize("label", ["7", "7.1", "Binomial", "the_binomial", "one-two-three-four-five", "binomial ", "-binomial", "", 7])
def test_a_label_that_is_no_few_words_with_hyphens_cannot_be_registered(toy: Registry, label):
    with pytest.raises(ValueError, match="label wants at most four lower-case words joined by hyphens"):
        toy.add(label, SQUARE, two_numbers)


def test_a_label_cannot_be_taken_twice(toy: Registry):
    with pytest.raises(ValueError, match=r"label binomial is registered twice"):
        toy.add("binomial", SQUARE, two_numbers)


WRITTEN = r"""
    x^2 - y^2
        = (x - y) (x + y)
    where x, y real;
        not 0 ;; x > y
    Multiply out: the mixed terms cancel.
        the sign: - y^2 -> + y^2
        X1: told with a colon: the square:
            (x - y) (x + y) -> (x - y)^2
        X2: all minus: all y -> -
            y

    A remark
    of two lines.
"""


def test_a_docstring_says_formula_premises_reason_and_mistakes(toy: Registry):
    def make(normal):
        return {"x": normal(), "y": normal()}

    make.__doc__ = WRITTEN
    found = toy.claim("freshman", serves="A1 A2", rests_on="first binomial")(make)
    assert found is toy.get_equation("freshman")
    assert (found.latex, found.why) == ("x^2 - y^2 = (x - y) (x + y)", "Multiply out: the mixed terms cancel.")
    assert (found.assumes, found.topics, found.uses) == (("x, y real; not 0", "x > y"), ("A1", "A2"), ("first", "binomial"))
    assert found.traps == ("X1", "X2")
    assert [(wrong.trap, wrong.name, wrong.latex) for wrong in found.wrongs] == [
        (None, "the sign", "x^2 + y^2 = (x - y) (x + y)"),
        ("X1", "told with a colon: the square", "x^2 - y^2 = (x - y)^2"),
        ("X2", "all minus", "x^2 - - y^2 = (x - - y) (x + - y)"),
    ]


def test_a_function_takes_what_it_needs_to_draw(toy: Registry):
    taken = toy.add("freshman", "?", lambda rng, normal, draw, n: {"x": normal(n, 2), "y": rng.uniform(), "z": normal(), "draw": draw})
    assert taken.sizes == "n"
    for sizes, draws in zip(taken.size_sets(), taken.draws(), strict=True):
        assert [given["x"].shape for given in draws] == 3 * [(sizes["n"], 2)]
        assert [given["draw"] for given in draws] == [0, 1, 2]
        assert all(isinstance(given["z"], float) and 0 <= given["y"] < 1 for given in draws)


@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        ("", "Eq. freshman: wanted a docstring: the formula, below it why it holds, and indented the mistakes that people make"),
        (None, "Eq. freshman: wanted a docstring"),
        ("x = y\nWhy.\n    no form", "Eq. freshman: wanted `name: change` or `name: formula`, got `no form`"),
        ("x = y\nWhy.\n    no form:", "Eq. freshman: wanted `name: change` or `name: formula`, got `no form:`"),
        ("x = y\nWhy.\n    no z: z -> y", "Eq. freshman: the wrong form “no z” wanted `z` once (or all before it) in what it changes"),
        ("x = x\nWhy.\n    twice: x -> y", "Eq. freshman: the wrong form “twice” wanted `x` once"),
        ("x = y\nWhy.\n    the same: x -> x", "Eq. freshman: the wrong form “the same” changes nothing"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_label(toy: Registry, says, wanted):
    with pytest.raises(ValueError, match="^" + re.escape(wanted)):
        toy.add("freshman", says, two_numbers)


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("77.1", "no equation has the number 77.1 today; equations are asked for by name"),
        ("softmax-jacobean", "there is no equation 'softmax-jacobean'; is it softmax-jacobian"),
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
        toy.add(label, "?", two_numbers)
    assert [equation.label for equation in toy.all_equations()] == ["first", "binomial", "freshman", "planned"]
    assert [equation.label for equation in toy.all_equations("toy")] == ["binomial", "freshman"]


def test_an_equation_that_no_lesson_shows_yet_is_among_those_of_its_file(monkeypatch):
    known = numbers.tables()
    shown = {label: number for label, number in known["labels"]["softmax"].items() if label != "softmax-jacobian"}
    monkeypatch.setattr(numbers, "tables", lambda: {**known, "labels": {**known["labels"], "softmax": shown}})
    assert all_equations("softmax")[-1].label == "softmax-jacobian"
