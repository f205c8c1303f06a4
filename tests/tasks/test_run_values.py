"""Expressions of derive tasks, and numbers of predict and figure tasks."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from sympy.utilities.lambdify import implemented_function

from tests.tasks.runs import S_I, S_J, run_expression, run_value

BORROWED = type("log", (sympy.Function,), {"_numpycode": lambda self, printer: "1.0"})


class Made(sympy.Number):
    """A number that says what it likes."""

    def __new__(cls):
        return sympy.Basic.__new__(cls)

    def _numpycode(self, printer, **_):
        return "1.0"

    def __float__(self):
        return 1.0

    __eq__, __hash__ = object.__eq__, object.__hash__


@pytest.mark.parametrize(
    ("expression", "held"),
    [
        (BORROWED(S_I), "a log that is not SymPy's own"),
        (S_J * implemented_function("log", np.log)(S_I), "a log that is not SymPy's own"),
        (Made(), "Made"),
    ],
)
def test_a_class_that_is_derived_from_sympys_is_none_of_sympys(expression, held):
    result = run_expression(expression, functions=("log",))
    assert result.problem == f"my_e must be made of arithmetic and log; it holds {held}"


def test_every_kind_of_number_that_sympy_makes_counts():
    expression = (
        sympy.Rational(2, 3) + sympy.Float(0.5) - sympy.E / 7 + sympy.pi * S_I**-2 - sympy.sqrt(2) * sympy.log(S_J) + sympy.EulerGamma
    )
    s_i, s_j = np.array([0.25, 0.5, 0.75]), np.array([0.5, 0.1, 0.2])
    right = 2 / 3 + 0.5 - math.e / 7 + math.pi / s_i**2 - math.sqrt(2) * np.log(s_j) + np.euler_gamma
    np.testing.assert_allclose(run_expression(expression, functions=("log",)).arrays[0], right)


@pytest.mark.parametrize("assumptions", [{}, {"positive": True}])
def test_a_symbol_of_the_same_name_counts_whatever_it_assumes(assumptions):
    for own in (sympy.Symbol("s_i", **assumptions), sympy.Dummy("s_i", **assumptions)):
        np.testing.assert_allclose(run_expression(own + S_I * S_J).arrays[0], [0.375, 0.55, 0.9])


@pytest.mark.parametrize("constant", [2, 2.5, np.float64(2.5), sympy.Rational(1, 3), sympy.pi, sympy.sqrt(2)])
def test_a_constant_is_spread_over_all_points(constant):
    np.testing.assert_allclose(run_expression(constant).arrays[0], np.full(3, float(constant)), strict=True)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (sympy.Derivative(S_I**2, S_I), "Derivative"),
        (sympy.Integral(S_I, (S_I, 0, S_J)), "Integral"),
        (sympy.Limit(S_I / S_J, S_J, 0), "Limit"),
        (sympy.Subs(S_I**2, S_I, S_J), "Subs"),
        (sympy.Derivative(sympy.Function("f")(sympy.Symbol("z")), sympy.Symbol("z")), "Derivative"),
    ],
)
def test_restating_the_question_is_no_answer(expression, name):
    assert run_expression(expression).problem == f"my_e holds a {name}: that restates the question; write the result in s_i, s_j"


def test_a_foreign_symbol_is_named():
    assert run_expression(S_I * sympy.Symbol("z_k")).problem == "my_e must use no symbols but s_i, s_j; it holds z_k"


@pytest.mark.parametrize(
    ("expression", "functions", "allowed", "name"),
    [
        (sympy.log(S_I), (), "sums, products and powers", "log"),
        (sympy.exp(S_I), ("log",), "arithmetic and log", "exp"),
        (sympy.KroneckerDelta(0, sympy.Symbol("s_i", integer=True)), (), "sums, products and powers", "KroneckerDelta"),
        (sympy.Sum(S_I, (S_J, 0, 3)), (), "sums, products and powers", "Sum"),
        (sympy.Piecewise((S_I, S_J > 0), (0, True)), (), "sums, products and powers", "Piecewise"),
        (S_I * sympy.I, (), "sums, products and powers", "ImaginaryUnit"),
    ],
)
def test_anything_but_what_the_task_allows_is_named(expression, functions, allowed, name):
    assert run_expression(expression, functions).problem == f"my_e must be made of {allowed}; it holds {name}"


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ("s_i - s_j", "str 's_i - s_j'"),
        (S_I > S_J, "StrictGreaterThan"),
        (sympy.Matrix([S_I]), "MutableDenseMatrix"),
        (True, "bool True"),
        (np.array([0.5]), "numpy.ndarray"),
        (1j, "complex"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_expression_is_named(answer, got):
    assert run_expression(answer).problem == f"my_e must be a SymPy expression in s_i, s_j; got {got}"


@pytest.mark.parametrize("expression", [sympy.sqrt(-S_I), S_I * sympy.cbrt(-2), sympy.sqrt(S_I - S_J), sympy.nan])
def test_a_value_that_is_not_real_is_named(expression):
    assert run_expression(expression).problem == "my_e is not a real number for some values of its symbols"


def test_a_division_by_zero_at_a_point_is_infinite_and_no_crash():
    (array,) = run_expression(1 / (S_I - 0.5)).arrays
    np.testing.assert_array_equal(np.isinf(array), [False, True, False])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.5, 0.5),
        (np.int64(3), 3.0),
        (Fraction(1, 2), 0.5),
        (Decimal("0.5"), 0.5),
        (sympy.log(2), np.log(2)),
        (torch.tensor(0.5, requires_grad=True), 0.5),
        (torch.tensor([0.5, 1.0], requires_grad=True), [0.5, 1.0]),
        ((torch.tensor(0.5, requires_grad=True), 2), [0.5, 2.0]),
        ((1, 2.5), [1.0, 2.5]),
        (np.array([1, 2]), [1.0, 2.0]),
        (((1, 2), (3, 4)), [[1.0, 2.0], [3.0, 4.0]]),
        (10**30, 1e30),
    ],
    ids=str,
)
def test_numbers_of_any_kind_are_taken(value, wanted):
    np.testing.assert_array_equal(run_value(value).arrays[0], np.asarray(wanted), strict=True)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("0.5", "str '0.5'"),
        (True, "bool True"),
        (np.True_, "numpy.bool" if np.__version__ >= "2" else "numpy.bool_"),
        ((1.0, True, None), "tuple"),
        (["1", "2"], "list"),
        ([0.5, None], "list"),
        ((..., ...), "tuple"),
        ([[1.0], [1.0, 2.0]], "list"),
        (1j, "complex"),
        (np.array([1j]), "numpy.ndarray"),
        (S_I, "Symbol"),
        (lambda: 0.5, "function"),
        (torch.tensor(True), "torch.Tensor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_number_is_named(value, got):
    assert run_value(value).problem == f"my_n must be a number or a tuple of numbers; got {got}"
