"""What mathematicians tried beyond small changes, by kind, and other ways in which they write the same.

What is wrong is false only where something is empty, tied, zero or small, or says nothing, or less.
"""

import json
from pathlib import Path

import pytest

from attn_course.equations.core import REGISTRY
from tests.equations.test_course import is_accepted

pytestmark = pytest.mark.usefixtures("no_shape_check")
OUTSIDE = json.loads(Path(__file__).with_name("outside.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", OUTSIDE["wrong"])
def test_forms_that_are_false_where_no_draw_went_or_that_say_less_are_refused(kind):
    forms = [(REGISTRY.get_equation(label), latex) for label, some in OUTSIDE["wrong"][kind].items() for latex in some]
    assert [f"{equation.label}: {latex}" for equation, latex in forms if is_accepted(equation, latex)] == []


def test_what_mathematicians_write_for_the_same_is_accepted():
    forms = [(REGISTRY.get_equation(label), latex) for label, some in OUTSIDE["right"].items() for latex in some]
    assert [f"{equation.label}: {latex}" for equation, latex in forms if not is_accepted(equation, latex)] == []
