"""Corners of reading and evaluating that only a mutant of the engine has shown: see tests/mutants."""

import numpy as np
import pytest

from attn_course.formulas import Formula, Malformed, Refuted, column, judge, names_of, read, vector

X = np.array([2.0, 3.0, 5.0])


def check(latex, **givens):
    return judge(Formula.of(latex, names_of(givens)), givens)


@pytest.mark.parametrize(
    ("latex", "said"),
    [
        ("a = " + "b" * 1997, "a formula has at most 2,000 characters; this one has 2,001"),
        ("a = b / c / d", "/ and / stand side by side: put one of them in parentheses"),
        (r"a = b, \qquad c = d: \qquad", "expected what holds under the premise"),
    ],
)
def test_what_cannot_be_read_says_why(latex, said):
    with pytest.raises(Malformed) as caught:
        read(latex, "abcd")
    assert said in str(caught.value)


def test_diag_of_a_matrix_is_its_diagonal_as_a_column():
    table = np.arange(6.0).reshape(2, 3)
    check(r"\mathrm{diag}(A A^\top) = v", A=table, v=column(np.array([5.0, 50.0])))
    with pytest.raises(Malformed, match="diag of a 2 x 3 matrix has no meaning"):
        check(r"\mathrm{diag}(A) = A", A=table)


def test_a_star_in_braces_of_its_own_and_an_accent_belong_to_a_name():
    assert read("W^{*} = 1", ["W^*"]) == read("W^* = 1", ["W^*"])
    check(r"\hat{y}_i = x_i + 1, \qquad \hat y_i - 1 = x_i", x=X)


def test_ones_are_no_symbol_that_a_formula_defines():
    check(r"\mathbf{1} = x", x=column(np.ones(3)))
    with pytest.raises(Refuted):
        check(r"\mathbf{1} = x", x=column(X))


def test_the_powers_of_an_index_are_no_whole_numbers_of_so_many_bits():
    check("x_i = i^i", x=np.arange(1.0, 21.0) ** np.arange(1.0, 21.0))


def test_the_rank_does_not_depend_on_the_unit():
    check(r"\text{rank}(A) = 2", A=1e-14 * np.eye(2))


def test_the_identity_is_as_large_as_its_neighbour_if_that_is_square():
    with pytest.raises(Malformed, match="I is square, and its neighbour is a 2 x 3 matrix"):
        check("A + I = A", A=np.ones((2, 3)))


def test_where_no_case_holds_there_is_no_number():
    latex = r"x_i = \begin{cases} 2 & i = 1 \\ 3 & i = 2 \end{cases}"
    check(latex, x=X[:2])
    with pytest.raises(Refuted):
        check(latex, x=np.array([2.0, 3.0, 0.0]))


def test_a_factor_that_a_condition_leaves_out_is_one():
    check(r"y_i = \prod_{j \ne i} x_j", x=X, y=np.array([15.0, 10.0, 6.0]))


def test_the_largest_are_all_that_differ_by_round_off():
    check(r"1 \in \arg\max_j x_j, \qquad 2 \in \arg\max_j x_j, \qquad 3 \notin \arg\max_j x_j", x=np.array([0.1 + 0.2, 0.3, 0.2]))


def test_a_sum_ends_at_a_whole_number():
    with pytest.raises(Malformed, match="the bounds of an index are whole numbers"):
        check(r"s = \sum_{j=1}^{n / 2} j", s=1.0, n=3)


def test_of_states_the_shortest_says_how_many_there_are():
    check("a_t = b_t", a=vector(X, states=True), b=vector(X[:2], states=True))


def test_an_evaluation_takes_so_many_steps_and_no_more(monkeypatch):
    check("x_1 + 1 = 3", x=X)
    monkeypatch.setattr("attn_course.formulas.scope.MOST_STEPS", 3)
    with pytest.raises(Malformed, match="this takes more than 3 steps"):
        check("x_1 + 1 = 3", x=X)


def test_a_bound_may_be_attained_but_for_round_off_and_what_is_no_number_differs_from_none():
    check(r"x \le y, \qquad y \ge x, \qquad \min(x, 2) = y", x=0.1 + 0.2, y=0.3)
    with pytest.raises(Refuted):
        check(r"x \ne y", x=np.nan, y=1.0)


def test_strictly_lower_leaves_the_diagonal_out():
    check(r"\text{strictly lower}(A) = B", A=np.array([[2.0, 3.0], [5.0, 7.0]]), B=np.array([[0.0, 0.0], [5.0, 0.0]]))


def test_an_arrow_to_both_sides_is_judged_from_both():
    check(r"x_i > 0 \iff 2 x_i > 0", x=X - 4)
    with pytest.raises(Refuted):
        check(r"x_i > 2 \iff x_i > 1", x=X)


def test_a_letter_of_the_premise_alone_stands_for_all_its_values():
    check(r"x_i > 2 \Rightarrow s > 0", x=X, s=-1.0)
    with pytest.raises(Refuted):
        check(r"x_i > 1 \Rightarrow s > 0", x=X, s=-1.0)


def test_what_is_differentiated_depends_on_the_given_also_through_a_definition():
    check(r"m = x_1 x_2, \qquad 2 m = 12, \qquad \frac{\partial m}{\partial x_1} = 3", x=X)
    with pytest.raises(Malformed, match="what is differentiated does not depend on x"):
        check(r"\frac{\partial y}{\partial x_1} = 0", x=X, y=2.0)


def test_the_least_value_is_found_of_squares_and_of_what_is_none_also_at_a_kink():
    for body in (r"\sum_i (w_i - x_i)^2", r"\sum_i \cosh(w_i - x_i)", r"\sum_i |w_i - x_i|", r"(\|w - x\| + \|w + x\| / 2)"):
        check(rf"\arg\min_w {body} = x", x=X, w=np.ones(3))
    check(r"\arg\min_w (w - \ln w) = x", x=1.0, w=0.3)  # a step of 1 leads to where it has no value
    with pytest.raises(Refuted):
        check(r"\arg\min_w (\|w - x\| / 2 + \|w + x\|) = x", x=X, w=np.ones(3))
    for body in (r"(1 - \sum_i (w_i - x_i)^2)", r"\sum_i w_i", "(w_1 + w_2 - 3)^4"):
        with pytest.raises(Malformed, match="the least value is not found"):
            check(rf"\arg\min_w {body} = x", x=X, w=np.ones(3))
