"""Fixtures of the figure tests."""

import pytest

from attn_course.figures import base
from tests.figures.support import Shown


@pytest.fixture
def shown(monkeypatch) -> Shown:
    """Collect what is displayed instead of displaying it."""
    seen = Shown()
    monkeypatch.setattr(base, "display", seen.append)
    return seen
