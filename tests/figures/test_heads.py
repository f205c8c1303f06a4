"""The figures of lesson heads say what their numbers say."""

from functools import partial

import numpy as np
import pytest

from attn_course.lessons.heads import figures
from tests.figures.diagrams import assert_sound_diagram, on_border, rectangles, svg_of
from tests.figures.support import Pictures, card_html, described, rows_of_card

MAPS = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]])
HEAD_MAPS = partial(figures.head_maps, title="Two heads look at different keys")

DRAWN = [
    (
        partial(HEAD_MAPS, MAPS),
        [
            "head 0: the keys with the largest weight, query by query, are 0 and 2.",
            "head 1: the keys with the largest weight, query by query, are 2 and 0.",
        ],
    ),
    (
        partial(figures.ring_maps, [(np.roll(np.eye(4), -1, 1) + np.roll(np.eye(4), 1, 1)) / 2, np.roll(np.eye(4), -1, 1), np.eye(4)]),
        ["the single head 0.50 and 0.50; first of two 1.0 and 0.0; second of two 0.0 and 0.0"],
    ),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
    (partial(figures.path, ["a", "b", "c", "b", "a"]), "the last two as the first two"),
    (partial(figures.path, ["a", "b", "a", "b"]), "words must be at least 5"),
    (partial(figures.path, ["a", "because", "c", "a", "because"]), "at most 5 letters"),
]

TestPictures = Pictures


@pytest.mark.parametrize("words", [["river", "green", "paper", "seven", "river", "green"], ["a", "b", "c", "a", "b"]])
def test_the_path_leads_from_the_last_word_to_the_third_and_from_there_one_back(shown, words):
    def draw():
        figures.path(words)
        drawn, told = shown
        assert told.alt == drawn.alt
        shown.clear()
        return drawn

    assert_sound_diagram(draw)
    drawn = draw()
    second, third = words[1:3]
    assert f"An arrow of head 0 of layer 16 leads from {third} to {second}" in drawn.alt
    assert f"one of a head of layer 17 from the last {second} to {third}" in drawn.alt
    boxes = rectangles(svg_of(drawn), "attn-box")
    tips = [shape.get("points").split(" ")[0].split(",") for shape in svg_of(drawn) if "attn-tip" in shape.get("class", "")]
    points = [(float(x), float(y)) for x, y in tips]
    assert [[on_border(point, box) for box in boxes].index(True) for point in points] == [1, 2]


# --- the card ------------------------------------------------------------------------------------------


def gaps(before: float) -> list[list[float] | None]:
    """Where a threshold tells the colour before, and after, found by trying a thousand."""
    colours = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
    mixtures = colours @ [before, 1 - before]
    tried = np.arange(1000) / 1000 + 0.0005
    told = [[t for t in tried if np.array_equal(mixtures > t, colours[:, place] == 1)] for place in (0, 1)]
    return [[round(good[0], 3), round(good[-1], 3)] if good else None for good in told]


def test_the_words_of_the_mixture_card_hold_true_numbers():
    for head, cells in rows_of_card("mixture"):
        assert [cell == "none" for cell in cells] == [gap is None for gap in gaps(float(head))]
        for cell, gap in zip(cells, gaps(float(head)), strict=True):
            if gap:
                np.testing.assert_allclose([float(end) for end in cell.split(" to ")], gap, atol=2e-3)


@pytest.mark.browser
def test_the_thresholds_of_the_mixture_card_are_those_of_python(page):
    page.set_content(card_html("mixture"))
    for before in (0.0, 0.15, 0.45, 0.5, 0.65, 1.0):
        shown = described(page, "mixture", before)
        for gap, wanted in zip((shown["before"], shown["after"]), gaps(before), strict=True):
            assert (gap is None) == (wanted is None)
            if gap:
                np.testing.assert_allclose(gap, wanted, atol=2e-3)
