"""Every public function of the reference says which checked equation it computes."""

from types import ModuleType

import pytest

import attn_course.reference
from attn_course.equations import all_equations
from tests.project.formula_references import named_equations, without_equation

KNOWN = [equation.label for equation in all_equations()]


def test_every_public_function_of_the_reference_names_a_registered_equation():
    assert without_equation(attn_course.reference, KNOWN) == []


def test_a_function_that_loses_its_equations_is_named():
    room = ModuleType("toy_room")
    room.__all__ = attn_course.reference.__all__
    for name in room.__all__:
        stripped = ModuleType("toy_function")
        stripped.__doc__ = (getattr(attn_course.reference, name).__doc__ or "").replace("Eq", "See")
        setattr(room, name, stripped)
    assert sorted(without_equation(room, KNOWN)) == sorted(room.__all__)


@pytest.mark.parametrize("label", KNOWN[:1] + KNOWN[-1:])
def test_an_equation_that_is_not_registered_does_not_count(label):
    room, thing = ModuleType("toy_room"), ModuleType("toy_function")
    thing.__doc__ = f"Return the answer, Eq. {label}."
    room.__all__, room.answer = ["answer"], thing
    assert without_equation(room, KNOWN) == []
    assert without_equation(room, [known for known in KNOWN if known != label]) == ["answer"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("Add, Eq. sum.", ["sum"]),
        ("Add, Eqs. first-sum, sum-2 and last.", ["first-sum", "last", "sum-2"]),
        ("Add.\n\nWithout decay it is Eq. sum, with\nit Eqs. a\nand b-c.", ["a", "b-c", "sum"]),
        ("Add, Eq. 8 of the paper.", []),
        ("Add.\n\n`x`: Eq. a.\n\nAs in Eq. b.", []),
    ],
)
def test_equations_count_where_the_docstring_says_what_is_computed(text, labels):
    thing = ModuleType("toy_function")
    thing.__doc__ = text
    assert named_equations(thing) == labels
