"""Gates that each registered equation passes; a later lesson joins by existing."""

import pytest

from attn_course import numbers
from attn_course.equations import all_equations, gates, verify
from attn_course.equations.core import REGISTRY, Equation

EVERY = pytest.mark.parametrize("equation", [pytest.param(equation, id=equation.label) for equation in all_equations()])


@EVERY
def test_it_is_verified_in_one_line(equation: Equation, capsys: pytest.CaptureFixture[str]):
    verify(equation.label)
    assert capsys.readouterr().out == f"{numbers.eq(equation.label)} holds ({equation.kind}, {equation.scope})\n"


@EVERY
@pytest.mark.parametrize("gate", gates.EQUATION_GATES.values(), ids=gates.EQUATION_GATES)
def test_its_check_can_fail(equation: Equation, gate):
    assert gate(equation) == []


@EVERY
@pytest.mark.parametrize("gate", gates.REFERENCE_GATES.values(), ids=gates.REFERENCE_GATES)
def test_it_points_to_what_exists(equation: Equation, gate):
    assert gate(equation, REGISTRY) == []
