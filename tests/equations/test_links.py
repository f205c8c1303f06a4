"""The map of chapters counts what equations say they use and follow."""

from attn_course.equations.core import Registry
from attn_course.equations.links import SHORT_TITLES, chapter_map


def registry() -> Registry:
    new = Registry()
    for tag, uses, follows in (
        ("1.1", [], None),
        ("1.2", ["1.1"], None),
        ("2.1", ["1.1", "1.2"], "1.2"),
        ("3.1", ["2.1"], "1.1"),
        ("3.2", ["2.1", "3.1"], None),
    ):
        new.equation(tag, "x = y", rows=["A1"], uses=uses, follows=follows)(lambda: (0, 0))
    return new


def test_links_between_chapters_are_counted_once_each_and_those_inside_left_out():
    graph = chapter_map(registry())
    assert graph.counts == {1: 2, 2: 1, 3: 2}
    assert graph.links == {(1, 2): 2, (1, 3): 1, (2, 3): 2}


def test_every_chapter_of_the_course_has_a_short_title_and_links_lead_onwards():
    graph = chapter_map()
    assert set(graph.counts) <= set(SHORT_TITLES)
    assert all(used < user for used, user in graph.links)
    assert max(map(len, SHORT_TITLES.values())) <= 22, "longer ones run into the numbers of the map"
