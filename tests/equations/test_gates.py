"""Each gate can fail: a toy registry that breaks one rule at a time."""

import numpy as np
import pytest
import sympy

from attn_course import numbers
from attn_course.equations import gates
from attn_course.equations.claims import Chain
from attn_course.equations.core import Equation, Registry
from attn_course.equations.errors import Malformed
from tests.toy_numbers import toy_numbers

x, y = sympy.symbols("x y", real=True)


@pytest.fixture
def toy(monkeypatch) -> Registry:
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(toy=["first", "second", "third", "fourth"]))
    return Registry()


def register(registry: Registry, label: str, statement, **options) -> Equation:
    return registry.equation(label, "?", **{"rows": ["A1"], "scope": "any x, y", **options})(statement)


def expand_square():
    """Multiply out."""
    return (x + y) ** 2, x**2 + 2 * x * y + y**2


def test_an_equation_without_a_wrong_form_is_reported(toy: Registry):
    assert gates.wrong_form_problems(register(toy, "first", expand_square)) == ["Eq. first has no planted wrong form"]


def test_a_wrong_form_that_is_right_is_reported(toy: Registry):
    equation = register(toy, "first", expand_square)
    equation.wrong("factored")(lambda: ((x + y) ** 2, x * (x + 2 * y) + y**2))
    assert gates.wrong_form_problems(equation) == ['Eq. first: the wrong form "factored" passes the check']


def test_a_wrong_form_that_merely_breaks_is_reported(toy: Registry):
    equation = register(toy, "first", expand_square)
    equation.wrong("a column")(lambda: ((x + y) ** 2, sympy.Matrix([x, y])))
    (problem,) = gates.wrong_form_problems(equation)
    assert problem.startswith('Eq. first: the wrong form "a column" is not refuted but fails otherwise')


def test_a_check_that_misses_a_mutant_is_reported(toy: Registry):
    def only_an_upper_bound(rng):
        scores = rng.normal(size=5)
        yield Chain(np.tanh(scores), "<=", 3.0)

    problems = gates.mutant_problems(register(toy, "first", only_an_upper_bound, kind="numeric"))
    assert any("misses the mutant np.tanh(scores) -> scores" in problem for problem in problems)


EXPANDED = x**2 + 2 * x * y + y**2


def test_a_right_side_that_is_not_spelt_out_is_reported(toy: Registry):
    def hidden():
        return (x + y) ** 2, EXPANDED

    problems = gates.mutant_problems(register(toy, "first", hidden))
    assert problems == ["Eq. first has no mutant that means something else: spell out its right side"]


def test_sides_written_alike_are_reported_even_behind_local_names(toy: Registry):
    def the_same():
        total = x + y
        left = total**2
        right = (x + y) ** 2
        return left, right

    problems = gates.same_sides_problems(register(toy, "first", the_same))
    assert "Eq. first: both sides are (x + y) ** 2" in problems


def test_sides_written_alike_are_reported_in_numeric_equations_and_chains(toy: Registry):
    def equal(rng):
        values = rng.normal(size=3)
        yield values.sum(), values.sum()

    def bounded(rng):
        values = rng.normal(size=3)
        yield Chain(values.max(), "<=", values.max())

    assert gates.same_sides_problems(register(toy, "first", equal, kind="numeric"))
    assert gates.same_sides_problems(register(toy, "second", bounded, kind="numeric"))


def test_sides_with_the_same_value_are_reported_unless_the_left_one_is_computed(toy: Registry):
    def automatic():
        return x * y / y, x

    def computed():
        return (x**2).diff(x), 2 * x

    (problem,) = gates.same_sides_problems(register(toy, "first", automatic))
    assert problem == "Eq. first: both sides are the expression x; compute the left one independently"
    assert gates.same_sides_problems(register(toy, "second", computed)) == []


def test_sides_hidden_in_a_helper_are_malformed(toy: Registry):
    def sides():
        return x, x

    def hidden():
        return sides()

    with pytest.raises(Malformed, match="spells out its sides"):
        gates.same_sides_problems(register(toy, "first", hidden))


def squares_again():
    return x**2 + 2 * x * y + y**2, (x + y) * (y + x)


def test_an_equation_follows_the_one_whose_right_side_is_its_left_side(toy: Registry):
    register(toy, "first", expand_square)
    assert gates.follows_problems(register(toy, "second", squares_again, follows="first"), toy) == []


def test_following_another_expression_is_reported(toy: Registry):
    register(toy, "first", expand_square)
    register(toy, "third", lambda: (x, y))
    late = register(toy, "second", lambda: (x**2 + x * y + y**2, x), follows="first")
    assert "its left side is not the right side of that one" in gates.follows_problems(late, toy)[0]
    column = register(toy, "fourth", lambda: (sympy.Matrix([x, y]), sympy.Matrix([y, x])), follows="first")
    assert "1 entries (symbolic) against 2 (symbolic)" in gates.follows_problems(column, toy)[0]


def test_following_a_value_that_only_hard_algebra_can_match_is_reported(toy: Registry):
    register(toy, "first", lambda: (1 - sympy.cos(x) ** 2, sympy.sin(x) ** 2))
    equation = register(toy, "second", lambda: (1 - sympy.cos(x) ** 2, sympy.Integer(1)), follows="first")
    assert gates.follows_problems(equation, toy)


def test_numeric_equations_follow_by_value(toy: Registry):
    register(toy, "first", lambda rng: (np.ones(2), np.array([2.0, 3.0])), kind="numeric")
    good = register(toy, "second", lambda rng: (np.array([2.0, 3.0]), 0.0), kind="numeric", follows="first")
    bad = register(toy, "third", lambda rng: (np.array([2.0, 3.1]), 0.0), kind="numeric", follows="first")
    assert gates.follows_problems(good, toy) == []
    assert gates.follows_problems(bad, toy)


def test_following_or_using_an_unknown_or_later_equation_is_reported(toy: Registry):
    first = register(toy, "first", expand_square, follows="second", uses=["second", "nowhere"])
    second = register(toy, "second", squares_again, follows="unknown", uses=["first"])
    assert gates.follows_problems(first, toy) == ["Eq. first follows Eq. second, which does not come before it"]
    assert gates.follows_problems(second, toy) == ["Eq. second follows an unknown equation: there is no equation 'unknown'"]
    unknown = "Eq. first uses an unknown equation: there is no equation 'nowhere'"
    assert gates.reference_problems(first, toy) == ["Eq. first uses Eq. second, which does not come before it", unknown]
    assert gates.reference_problems(second, toy)[:1] == ["Eq. second does not say why it holds: its statement has no docstring"]


def test_unknown_rows_and_traps_and_a_tag_in_the_latex_are_reported(toy: Registry):
    equation = toy.equation("first", r"\bigl( x = y \tag{1.1}", rows=["Z9"])(expand_square)
    equation.wrong("a trap nobody knows", trap="X99")(lambda: (x, y))
    assert gates.reference_problems(equation, toy) == [
        "Eq. first names the unknown topic 'Z9'; topics go from A1 to N1",
        "Eq. first names the unknown trap 'X99'",
        "Eq. first: the LaTeX holds its own \\tag or \\label; the lesson adds it",
        "Eq. first does not say what exactly is checked: it has no scope",
        r"Eq. first: the LaTeX opens and closes \bigl \bigr unequally often",
    ]
    assert gates.reference_problems(register(toy, "second", expand_square, rows=[]), toy) == [
        "Eq. second serves no topic: wanted one or more in rows=[...]"
    ]


def test_an_equation_that_does_not_hold_is_reported_and_no_more_is_asked_of_its_check(toy: Registry):
    """Multiply out, wrongly."""
    freshman = register(toy, "first", lambda: ((x + y) ** 2, x**2 + y**2))
    undefined = register(toy, "second", lambda: (nowhere, x))
    freshman.statement.__doc__ = undefined.statement.__doc__ = "Multiply out."
    (problem,) = gates.equation_problems(freshman, toy)
    assert problem.startswith("Eq. (1.1) is not confirmed: left side ")
    assert gates.equation_problems(undefined, toy) == ["Eq. second cannot be evaluated: NameError: name 'nowhere' is not defined"]


def test_everything_that_is_wrong_with_an_equation_is_said(toy: Registry):
    equation = register(toy, "first", expand_square, rows=["Z9"], follows="second")
    assert gates.equation_problems(equation, toy) == [
        "Eq. first names the unknown topic 'Z9'; topics go from A1 to N1",
        "Eq. first has no planted wrong form",
        "Eq. first follows an unknown equation: there is no equation 'second'",
    ]


def test_a_topic_that_no_equation_of_its_lessons_deals_with_is_owed_by_each(monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(softmax=["weights"]))
    registry = Registry()
    registry.equation("weights", "x = y", rows=["B1"])(lambda: (0, 1))
    owed = gates.coverage_problems("softmax", registry)
    assert owed[0].startswith("no equation deals with B2 (softmax in practice: ")
    assert gates.coverage_problems("lookup", registry) == []
