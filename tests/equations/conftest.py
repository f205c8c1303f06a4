"""A registry of its own for a made-up lesson."""

import pytest

from attn_course import numbers
from attn_course.equations.core import Registry
from tests.toy_numbers import toy_numbers


@pytest.fixture
def toy(monkeypatch) -> Registry:
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(toy=["first", "second", "third", "fourth"]))
    return Registry()
