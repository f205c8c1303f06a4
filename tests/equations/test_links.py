"""The map of chapters counts what equations say they use."""

import pytest

from attn_course import numbers
from attn_course.equations.core import Registry
from attn_course.equations.links import chapter_map
from tests.toy_numbers import toy_numbers


@pytest.fixture
def registry(monkeypatch) -> Registry:
    counted = toy_numbers(early=["ones", "twos"], middle=["sums"], late=["means", "spreads"])
    monkeypatch.setattr(numbers, "tables", lambda: counted)
    new = Registry()
    for label, uses in (
        ("ones", ""),
        ("twos", "ones"),
        ("sums", "ones twos"),
        ("means", "sums ones"),
        ("spreads", "sums means"),
    ):
        new.add(label, "x = y", dict, rests_on=uses)
    return new


def test_links_between_chapters_are_counted_once_each_and_those_inside_left_out(registry):
    graph = chapter_map(registry)
    assert graph.counts == {1: 2, 2: 1, 3: 2}
    assert graph.titles == {1: "Early", 2: "Middle", 3: "Late"}
    assert graph.links == {(1, 2): 2, (1, 3): 1, (2, 3): 2}


def test_every_chapter_of_the_course_has_a_title_and_links_lead_onwards():
    graph = chapter_map()
    assert set(graph.counts) == set(graph.titles)
    assert all(used < user for used, user in graph.links)
