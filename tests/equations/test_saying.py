r"""An equality that holds whatever is given says nothing, and another wording says as much as the registered formula."""

from dataclasses import replace

import numpy as np
import pytest

from attn_course.equations import get_equation
from attn_course.equations.core import Registry
from attn_course.equations.errors import EquationError, Malformed
from attn_course.equations.saying import made
from attn_course.formulas import function, of, row
from tests.equations.test_special import jacobian

pytestmark = pytest.mark.usefixtures("no_shape_check")


def test_a_given_is_made_if_it_comes_from_another_and_was_not_drawn():
    def make(rng):
        q, k = rng.normal(size=(2, 3))
        far = 2 * rng.normal(size=3)
        return {"q": row(q), "k": row(k), "s": q @ k, "f": function(np.exp), "L": of(np.sum, "q"), "far": far, "n": 3, "mean": far.mean()}

    assert made(make) == {"s", "f", "L", "far", "mean"}  # far: what mean comes from, too


@pytest.mark.parametrize(
    "wrong",
    [
        r"(J - J)\, \mathbf{1} = 0, \qquad J_{ij} = J_{ji}, \qquad s_i = s_i + J_{ij} - J_{ij}",
        r"\sum_j J_{ij} = 0, \qquad s_i - s_i = 0",
        r"\sum_j J_{ij} = 0, \qquad \frac{s_i}{s_i} = 1",
    ],
)
def test_what_holds_whatever_is_given_says_nothing(toy: Registry, wrong):
    equation = toy.add("first", r"\sum_j J_{ij} = 0, \qquad \sum_i s_i = 1", jacobian)
    equation.check()
    with pytest.raises(Malformed, match=r"whatever (J|s) is, this holds: it says nothing of"):
        equation.check(wrong)
    with pytest.raises(Malformed, match="whatever"):
        toy.add("second", wrong, jacobian).check()


def test_an_identity_may_hold_whatever_a_given_is_if_it_says_why(toy: Registry):
    def make(rng):
        return {"f": function(lambda x: x**3), "a": rng.normal(), "b": rng.normal()}

    latex = r"(f(a) + b)^2 = f(a)^2 + 2 f(a) b + b^2"
    with pytest.raises(Malformed, match="whatever f is"):
        toy.add("first", latex, make).check()
    toy.add("second", latex, make, whatever={"f": "squares of sums do not ask of what"}).check()


def test_a_function_that_every_formula_knows_must_matter_where_a_side_is_printed(toy: Registry):
    equation = toy.add("first", r"\sum_i \sigma(z)_i = 1", lambda normal, n: {"z": normal(n)})
    equation.check()
    with pytest.raises(Malformed, match=r"whatever \\sigma is, this holds"):
        equation.check(r"\frac{\sigma(z)_i}{\sigma(z)_i} = 1")


def test_another_wording_says_as_much_as_the_registered_formula(toy: Registry):
    def make(rng, n):
        x = rng.normal(size=n)
        return {"x": x, "s": sum(x), "m": max(x), "n": n}

    equation = toy.add("first", r"s = \sum_{i=1}^{n} x_i, \qquad x_i \le m, \qquad m = \max_i x_i", make)
    replace(equation, latex=r"0 = \sum_{i=1}^{n} x_i - s, \qquad m \ge x_i, \qquad \max_j x_j = m").check()
    for less, says in (
        (r"s = \sum_{i=1}^{n} x_i, \qquad m = \max_i x_i", "3 relations are wanted, as in the registered formula; here are 2"),
        (r"s = \sum_{i=1}^{n} x_i, \qquad x_i \le m, \qquad \max_i x_i - m \le 0", "attained in every draw"),
        (r"s - 9 < \sum_{i=1}^{n} x_i, \qquad x_i \le m, \qquad m = \max_i x_i", "with another s this holds too"),
    ):
        with pytest.raises(Malformed, match=says):
            replace(equation, latex=less).check()


@pytest.mark.parametrize(
    ("label", "old", "new"),
    [
        ("linear-and-softmax-slopes", r"S^\top \quad \text{(linear)}", r"S^\top \quad \text{(softmax)}"),
        ("attention-backward-flops", r", \qquad d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2}", ""),
        ("additive-memory-overhead", r"= T_q\, T_k\, d_h", ""),
        ("output-of-a-query", r"z_i = \sum_", r"\sum_i z_i = \sum_i \sum_"),
        ("attention-weights", "} p_{ij} = 1", "} (p_{ij} - p_{ij}) = 0"),
        ("recurrent-linear-attention", r"S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \qquad", ""),
    ],
)
def test_less_than_an_equation_of_the_course_is_refused(label, old, new):
    equation = get_equation(label)
    assert old in equation.latex
    with pytest.raises(EquationError, match=r"registered|nowhere used|whatever"):
        replace(equation, latex=equation.latex.replace(old, new)).check()


@pytest.mark.parametrize(
    "same", [r"2 (A B) C = 2 A (B C)", r"((A B) C)^\top = (A (B C))^\top", r"(A B) C - A (B C) = 0", r"C^\top (A B)^\top = (A (B C))^\top"]
)
def test_the_same_change_on_both_sides_of_an_identity_says_something_else(toy: Registry, same):
    def make(rng, n):
        return dict(zip("ABC", rng.normal(size=(3, n, n)), strict=True))

    equation = toy.add("first", "(A B) C = A (B C)", make)
    equation.check(same)
    for other in (r"(A^\top B) C = A^\top (B C)", "(A C) B = A (C B)", "(A B) C^2 = A (B C^2)", "(A B) A C = A (B A C)"):
        with pytest.raises(Malformed, match="no side of the registered formula stands in it"):
            equation.check(other)


def test_a_factor_or_an_exponent_that_may_be_any_number_is_refused():
    shift = get_equation("softmax-shift-invariance")
    for form in (r"\sigma(z + c^2\,\mathbf{1}) = \sigma(z)", r"\sigma(z + 2 c\,\mathbf{1}) = \sigma(z)"):
        with pytest.raises(Malformed, match=r"in the place of 2 it holds in every draw too|says it of every c"):
            shift.check(form)
    shift.check(r"2 \sigma(z + c\,\mathbf{1}) = 2 \sigma(z)")


@pytest.mark.parametrize(
    ("label", "weak", "said"),
    [
        ("softmax-derivative", r"\frac{\partial s_i}{\partial z_j} = -s_i s_j \quad (i \ne j)", "the condition leaves out cases"),
        ("causal-mask-hides-future", r"\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i + 1)", "the condition leaves out cases"),
        (
            "masked-exponential-is-zero",
            r"e^{s_j + M_j} \le e^{s_j}, \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases}",
            "claims an equality, and here stands a bound",
        ),
    ],
)
def test_what_holds_in_fewer_cases_or_as_a_bound_only_is_refused(label, weak, said):
    with pytest.raises(Malformed, match=said):
        get_equation(label).check(weak)


def test_cases_may_be_shared_out_and_two_bounds_are_an_equality():
    equation = get_equation("softmax-derivative")
    both = r"\frac{\partial s_i}{\partial z_i} = s_i (1 - s_i), \qquad \frac{\partial s_i}{\partial z_j} = -s_i s_j \quad (i \ne j)"
    equation.check(both)
    equation.check(both.replace(r"z_i} = s_i (1 - s_i)", r"z_j} = s_i (1 - s_i) \quad (i = j)"))


@pytest.mark.parametrize(
    ("label", "same"),
    [
        ("softmax", r"\sigma(z)_u = \frac{e^{z_u}}{\sum_v e^{z_v}}"),  # the lengths say where the sum ends
        ("online-softmax-update", r"\max(m, x) = m', \qquad e^{x - m'} + \ell\, e^{m - m'} = \ell'"),
        ("grouped-query-attention", r"\mathrm{attention}(Q_h, K_r, V_r) = Z_h, \qquad \lfloor h / g \rfloor = r, \qquad H / H_{kv} = g"),
        ("attention-flops", r"\text{FLOPs} - 2\, T_q T_k (d_k + d_v) = 0"),
        ("interference-lower-bound", r"\sum_i \sum_{i \ne j} (k_i \cdot k_j)^2 \ge \frac{n^2}{d_k} - n"),
        ("reach-of-stacked-windows", r"(B_{L w})_{ij} = [((B_w)^L)_{ij} \ge 1], \qquad (B_w)_{ij} = [0 \le i - j \le w]"),
        (
            "attention-backward-flops",
            r"d_v = d_k:\; 2\, F_{\mathrm{backward}} = 5\, F, \qquad F_{\mathrm{backward}} = 6\, T_q T_k\, d_k + 4\, T_q T_k\, d_v",
        ),
    ],
)
def test_a_right_wording_is_accepted_however_it_is_spelled(label, same):
    get_equation(label).check(same)
