"""A bank of wrong and of right forms, written by readers who saw neither the planted wrong forms nor the changes that the gates try."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from attn_course.equations import EquationError, get_equation

pytestmark = pytest.mark.usefixtures("no_shape_check")  # half of the time; tests/reference checks the shapes
WHOLE = "ATTN_COURSE_WHOLE_BANK" in os.environ  # else every other right form is tried: what holds is evaluated to the end
BANK = json.loads((Path(__file__).parent / "bank.json").read_text(encoding="utf-8"))


def accepted(label: str, forms: list[str]) -> list[str]:
    """Those of an equation's forms that hold, and say as much as it does."""
    found = []
    for latex in forms:
        with contextlib.suppress(EquationError):
            get_equation(label).check(latex)
            found.append(latex)
    return found


@pytest.mark.parametrize("label", BANK["wrong"])
def test_wrong_forms_are_refused(label):
    assert accepted(label, BANK["wrong"][label]) == []


@pytest.mark.parametrize("label", BANK["right"])
def test_right_forms_are_not_refused(label):
    forms = BANK["right"][label]
    tried = forms if WHOLE else [latex for place, latex in enumerate(forms) if (place + len(label)) % 2]
    assert accepted(label, tried) == tried
