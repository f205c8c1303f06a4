"""Symbolic claims: a counterexample first, then a proof; anything else is malformed."""

import pytest
import sympy
from sympy import Derivative, Function, Integral, Matrix, exp, log

from attn_course.equations.claims import Chain, Equal, claims_of
from attn_course.equations.errors import Malformed, Refuted, Unproved
from attn_course.equations.symbolic import judge, proves_zero

x, y = sympy.symbols("x y", real=True)
t = sympy.Symbol("t", positive=True)
n = sympy.Symbol("n", integer=True, positive=True)
f = Function("f")


def holds(left, right) -> bool:
    for claim in claims_of((left, right)):
        judge(claim)
    return True


def test_identities_of_exponentials_and_logarithms_are_proved():
    assert holds(log(exp(x) + exp(y)), x + log(1 + exp(y - x)))
    assert holds(exp(x) / (exp(x) + exp(y)), 1 / (1 + exp(y - x)))
    assert holds(sympy.tanh(x), (exp(2 * x) - 1) / (exp(2 * x) + 1))
    assert holds(t * log(exp(x / t) * 2), x + t * log(2))


def test_derivatives_integrals_sums_and_limits_are_carried_out():
    k = sympy.Symbol("k", integer=True)
    assert holds(Derivative(x**3, x), 3 * x**2)
    assert holds(Integral(2 * y, (y, 0, x)), x**2)
    assert holds(sympy.Sum(k, (k, 1, n)), n * (n + 1) / 2)
    assert holds(sympy.Limit((1 + x / t) ** t, t, sympy.oo), exp(x))


def test_statements_about_any_function_are_proved_for_any_function():
    assert holds(Derivative(f(x) * f(y), x), f(y) * f(x).diff(x))
    with pytest.raises(Refuted):
        holds(f(x + y), f(x) * f(y))


def test_a_moment_table_makes_moment_algebra_a_symbolic_statement():
    q, k = sympy.symbols("q_1:4"), sympy.symbols("k_1:4")
    square = sympy.expand(sympy.Add(*[a * b for a, b in zip(q, k, strict=True)]) ** 2)
    moments = {0: 1, 1: 0, 2: 1}  # mean 0, variance 1, independent
    polynomial = sympy.Poly(square, *q, *k)
    mean = sum(coefficient * sympy.prod([moments[power] for power in powers]) for powers, coefficient in polynomial.terms())
    assert holds(mean, sympy.Integer(3))


def test_matrices_are_compared_entry_by_entry():
    assert holds(Matrix([x + x, y]), Matrix([2 * x, y]))
    with pytest.raises(Refuted, match=r"at entry \(1, 0\) where x = .*, y = "):
        holds(Matrix([x, y]), Matrix([x, -y]))


def test_a_line_with_two_equations_needs_both():
    assert holds((x + x, y - y), (2 * x, 0))
    with pytest.raises(Refuted):
        holds((x + x, y), (2 * x, 0))


def test_points_respect_what_the_symbols_assume():
    assert holds(abs(t), t)
    assert holds((-1) ** (2 * n), 1)
    with pytest.raises(Refuted):
        holds(abs(x), x)


def test_what_differs_in_the_tenth_digit_is_refuted():
    with pytest.raises(Refuted):
        holds(x, x + sympy.Rational(1, 10**10))


def test_a_difference_that_cannot_be_simplified_is_unproved_not_passed(monkeypatch):
    monkeypatch.setattr("attn_course.equations.symbolic.proves_zero", lambda difference: False)
    with pytest.raises(Unproved, match="no counterexample found"):
        holds((x + 1) ** 2, x**2 + 2 * x + 1)


def test_a_nonzero_difference_is_never_proved_zero():
    assert not proves_zero(exp(x) - exp(y))
    assert not proves_zero(log(1 + exp(x)) - x)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (Matrix([x, y]), Matrix([[x, y]]), r"differ in shape: \(2, 1\) and \(1, 2\)"),
        (Matrix([x]), x, r"differ in shape: \(1, 1\) and scalar"),
        (sympy.true, sympy.true, "an expression or a matrix"),
        ((x, y), x, "as many right sides as left sides"),
        ((x, y), (x, y, x), "as many right sides as left sides"),
        (sympy.oo * t, sympy.oo, "no points were found"),
    ],
)
def test_what_is_no_equation_is_malformed(left, right, says: str):
    with pytest.raises(Malformed, match=says):
        holds(left, right)


def test_bounds_are_no_symbolic_claim_and_a_lone_value_is_no_claim():
    with pytest.raises(Malformed, match=r"gives \(left, right\); got Chain"):
        judge(Chain(x, "<=", x))
    with pytest.raises(Malformed, match="a statement gives"):
        list(claims_of(x))
    assert list(claims_of((x, y))) == [Equal(x, y)]
