"""A bank of wrong and of right forms, written by readers who saw neither the planted wrong forms nor the changes that the gates try."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from attn_course import numbers
from attn_course.equations import EquationError, get_equation, lessons

pytestmark = pytest.mark.usefixtures("no_shape_check")  # half of the time; tests/reference checks the shapes
WHOLE = "ATTN_COURSE_WHOLE_BANK" in os.environ
BANK = json.loads((Path(__file__).parent / "bank.json").read_text(encoding="utf-8"))


def accepted(label: str, forms: list[str]) -> list[str]:
    """Those of an equation's forms that hold, and say as much as it does."""
    found = []
    for latex in forms:
        with contextlib.suppress(EquationError):
            get_equation(label).check(latex)
            found.append(latex)
    return found


@pytest.mark.parametrize("lesson", lessons())
def test_wrong_forms_are_refused_and_right_ones_are_not(lesson):
    """Every second right form is tried, or all of them: what holds is evaluated to the end."""
    labels = numbers.names("labels", lesson)
    wrong = {label: accepted(label, BANK["wrong"].get(label, [])) for label in labels}
    right = {
        label: [latex for place, latex in enumerate(BANK["right"].get(label, [])) if WHOLE or (place + len(label)) % 2] for label in labels
    }
    refused = {label: [*set(forms) - {*accepted(label, forms)}] for label, forms in right.items()}
    assert {label: forms for label, forms in wrong.items() if forms} == {}
    assert {label: forms for label, forms in refused.items() if forms} == {}


def test_the_bank_knows_no_equation_that_the_course_does_not():
    assert {*BANK["wrong"], *BANK["right"]} <= {label for lesson in lessons() for label in numbers.names("labels", lesson)}
