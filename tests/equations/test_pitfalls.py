"""docs/pitfalls.md: each mistake stands as a wrong form in the registry."""

import re
from pathlib import Path

import pytest

from attn_course.equations.core import REGISTRY

ROW = re.compile(r"^\| .+ \| .+#\d+.* \| `([a-z0-9-]+)`: (.+) \|$", re.MULTILINE)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pitfalls.md"
PLANTED = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_row_of_the_page_cites_a_thread_and_names_a_wrong_form():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(PLANTED) == len(rows) - 1 > 15  # the head of the table


@pytest.mark.parametrize(("label", "form"), PLANTED)
def test_the_wrong_form_is_planted(label, form):
    (found,) = [equation for equation in REGISTRY.all_equations() if equation.label == label]
    assert form in {wrong.name for wrong in found.wrongs}
