"""Gates that each registered equation passes; a later chapter joins by existing."""

import pytest

from attn_course.equations import all_equations, chapters, gates, verify
from attn_course.equations.core import REGISTRY, Equation

EVERY = pytest.mark.parametrize("equation", [pytest.param(equation, id=equation.tag) for equation in all_equations()])


@EVERY
def test_it_is_verified_in_one_line(equation: Equation, capsys: pytest.CaptureFixture[str]):
    verify(equation.tag)
    assert capsys.readouterr().out == f"Eq. ({equation.tag}) holds ({equation.kind}, {equation.scope})\n"


@EVERY
@pytest.mark.parametrize("gate", gates.EQUATION_GATES.values(), ids=gates.EQUATION_GATES)
def test_its_check_can_fail(equation: Equation, gate):
    assert gate(equation) == []


@EVERY
@pytest.mark.parametrize("gate", gates.REFERENCE_GATES.values(), ids=gates.REFERENCE_GATES)
def test_it_points_to_what_exists(equation: Equation, gate):
    assert gate(equation, REGISTRY) == []


@pytest.mark.parametrize("chapter", chapters())
def test_the_numbers_of_a_chapter_have_no_gaps(chapter: int):
    assert gates.numbering_problems(REGISTRY, chapter) == []
