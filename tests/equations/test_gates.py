"""Each gate can fail: a toy registry that breaks one rule at a time."""

import numpy as np
import pytest
import sympy

from attn_course.equations import gates
from attn_course.equations.claims import Chain
from attn_course.equations.core import Equation, Registry
from attn_course.equations.errors import Malformed

x, y = sympy.symbols("x y", real=True)


@pytest.fixture
def toy() -> Registry:
    return Registry()


def register(registry: Registry, tag: str, statement, **options) -> Equation:
    return registry.equation(tag, "?", **{"rows": ["A1"], **options})(statement)


def expand_square():
    """Multiply out."""
    return (x + y) ** 2, x**2 + 2 * x * y + y**2


def test_an_equation_without_a_wrong_form_is_reported(toy: Registry):
    assert gates.wrong_form_problems(register(toy, "1.1", expand_square)) == ["Eq. (1.1) has no planted wrong form"]


def test_a_wrong_form_that_is_right_is_reported(toy: Registry):
    equation = register(toy, "1.1", expand_square)
    equation.wrong("factored")(lambda: ((x + y) ** 2, x * (x + 2 * y) + y**2))
    assert gates.wrong_form_problems(equation) == ['Eq. (1.1): the wrong form "factored" passes the check']


def test_a_wrong_form_that_merely_breaks_is_reported(toy: Registry):
    equation = register(toy, "1.1", expand_square)
    equation.wrong("a column")(lambda: ((x + y) ** 2, sympy.Matrix([x, y])))
    (problem,) = gates.wrong_form_problems(equation)
    assert problem.startswith('Eq. (1.1): the wrong form "a column" is not refuted but fails otherwise')


def test_a_check_that_misses_a_mutant_is_reported(toy: Registry):
    def only_an_upper_bound(rng):
        scores = rng.normal(size=5)
        yield Chain(np.tanh(scores), "<=", 3.0)

    problems = gates.mutant_problems(register(toy, "1.1", only_an_upper_bound, kind="numeric"))
    assert any("misses the mutant np.tanh(scores) -> scores" in problem for problem in problems)


EXPANDED = x**2 + 2 * x * y + y**2


def test_a_right_side_that_is_not_spelt_out_is_reported(toy: Registry):
    def hidden():
        return (x + y) ** 2, EXPANDED

    problems = gates.mutant_problems(register(toy, "1.1", hidden))
    assert problems == ["Eq. (1.1) has no mutant that means something else: spell out its right side"]


def test_sides_written_alike_are_reported_even_behind_local_names(toy: Registry):
    def the_same():
        total = x + y
        left = total**2
        right = (x + y) ** 2
        return left, right

    problems = gates.same_sides_problems(register(toy, "1.1", the_same))
    assert "Eq. (1.1): both sides are (x + y) ** 2" in problems


def test_sides_written_alike_are_reported_in_numeric_equations_and_chains(toy: Registry):
    def equal(rng):
        values = rng.normal(size=3)
        yield values.sum(), values.sum()

    def bounded(rng):
        values = rng.normal(size=3)
        yield Chain(values.max(), "<=", values.max())

    assert gates.same_sides_problems(register(toy, "1.1", equal, kind="numeric"))
    assert gates.same_sides_problems(register(toy, "1.2", bounded, kind="numeric"))


def test_sides_with_the_same_value_are_reported_unless_the_left_one_is_computed(toy: Registry):
    def automatic():
        return x * y / y, x

    def computed():
        return (x**2).diff(x), 2 * x

    (problem,) = gates.same_sides_problems(register(toy, "1.1", automatic))
    assert problem == "Eq. (1.1): both sides are the expression x; compute the left one independently"
    assert gates.same_sides_problems(register(toy, "1.2", computed)) == []


def test_sides_hidden_in_a_helper_are_malformed(toy: Registry):
    def sides():
        return x, x

    def hidden():
        return sides()

    with pytest.raises(Malformed, match="spells out its sides"):
        gates.same_sides_problems(register(toy, "1.1", hidden))


def squares_again():
    return x**2 + 2 * x * y + y**2, (x + y) * (y + x)


def test_an_equation_follows_the_one_whose_right_side_is_its_left_side(toy: Registry):
    register(toy, "1.1", expand_square)
    assert gates.follows_problems(register(toy, "1.2", squares_again, follows="1.1"), toy) == []


def test_following_another_expression_is_reported(toy: Registry):
    register(toy, "1.1", expand_square)
    register(toy, "1.3", lambda: (x, y))
    late = register(toy, "1.2", lambda: (x**2 + x * y + y**2, x), follows="1.1")
    assert "its left side is not the right side of that one" in gates.follows_problems(late, toy)[0]
    column = register(toy, "1.4", lambda: (sympy.Matrix([x, y]), sympy.Matrix([y, x])), follows="1.1")
    assert "1 entries (symbolic) against 2 (symbolic)" in gates.follows_problems(column, toy)[0]


def test_following_a_value_that_only_hard_algebra_can_match_is_reported(toy: Registry):
    register(toy, "1.1", lambda: (1 - sympy.cos(x) ** 2, sympy.sin(x) ** 2))
    equation = register(toy, "1.2", lambda: (1 - sympy.cos(x) ** 2, sympy.Integer(1)), follows="1.1")
    assert gates.follows_problems(equation, toy)


def test_numeric_equations_follow_by_value(toy: Registry):
    register(toy, "1.1", lambda rng: (np.ones(2), np.array([2.0, 3.0])), kind="numeric")
    good = register(toy, "1.2", lambda rng: (np.array([2.0, 3.0]), 0.0), kind="numeric", follows="1.1")
    bad = register(toy, "1.3", lambda rng: (np.array([2.0, 3.1]), 0.0), kind="numeric", follows="1.1")
    assert gates.follows_problems(good, toy) == []
    assert gates.follows_problems(bad, toy)


def test_following_or_using_an_unknown_or_later_equation_is_reported(toy: Registry):
    first = register(toy, "1.1", expand_square, follows="1.2", uses=["1.2", "1.9"])
    second = register(toy, "1.2", squares_again, follows="1.8", uses=["1.1"])
    assert gates.follows_problems(first, toy) == ["Eq. (1.1) follows Eq. (1.2), which does not come before it"]
    assert gates.follows_problems(second, toy) == [
        "Eq. (1.2) follows an unknown equation: there is no Eq. (1.8): the last equation of chapter 1 is (1.2)"
    ]
    unknown = "Eq. (1.1) uses an unknown equation: there is no Eq. (1.9): the last equation of chapter 1 is (1.2)"
    assert gates.reference_problems(first, toy) == ["Eq. (1.1) uses Eq. (1.2), which does not come before it", unknown]
    assert gates.reference_problems(second, toy)[:1] == ["Eq. (1.2) does not say why it holds: its statement has no docstring"]


def test_unknown_rows_and_traps_and_a_tag_in_the_latex_are_reported(toy: Registry):
    equation = toy.equation("1.1", r"x = y \tag{1.1}", rows=["Z9"])(expand_square)
    equation.wrong("a trap nobody knows", trap="X99")(lambda: (x, y))
    assert gates.reference_problems(equation, toy) == [
        "Eq. (1.1) names the unknown row 'Z9'",
        "Eq. (1.1) names the unknown trap 'X99'",
        "Eq. (1.1): the LaTeX holds its own \\tag; the lesson adds it",
    ]
    assert gates.reference_problems(register(toy, "1.2", expand_square, rows=[]), toy) == ["Eq. (1.2) serves no row of the mission"]


def test_a_gap_in_the_numbers_is_reported(toy: Registry):
    register(toy, "1.1", expand_square)
    register(toy, "1.4", expand_square)
    assert gates.numbering_problems(toy, 1) == ["chapter 1: its last equation is (1.4), but there is no (1.2), (1.3)"]
