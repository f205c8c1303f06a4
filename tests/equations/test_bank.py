"""A bank of wrong and of right forms, written by readers who saw neither the planted wrong forms nor the changes that the gates try."""

import json
from pathlib import Path

import pytest

from attn_course.equations import EquationError, get_equation

BANK = json.loads((Path(__file__).parent / "bank.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("label", "latex"), [(label, latex) for label, forms in BANK["wrong"].items() for latex in forms])
def test_a_wrong_form_is_refused(label, latex):
    with pytest.raises(EquationError):
        get_equation(label).check(latex)


@pytest.mark.parametrize(("label", "latex"), [(label, latex) for label, forms in BANK["right"].items() for latex in forms])
def test_a_right_form_is_not_refused(label, latex):
    get_equation(label).check(latex)
