"""The figures of lesson heads say what their numbers say."""

from functools import partial

import numpy as np
import pytest

from attn_course.lessons.heads import figures
from tests.figures.diagrams import assert_sound_diagram, svg_of
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
    (partial(figures.silenced, {"no head": [60.0, 80.0], "head 0": [2.0, 4.0]}), ["no head 70 % (60 to 80); head 0 3 % (2 to 4)"]),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
    (partial(figures.silenced, {}), "good must hold percentages"),
    (partial(figures.silenced, {"no head": [50.0, 101.0]}), "good must hold percentages"),
    (partial(figures.blocks, 7), "an even number from 2 to 10"),
    (partial(figures.blocks, 12), "an even number from 2 to 10"),
]

TestPictures = Pictures


@pytest.mark.parametrize("places", [2, 8, 10])
def test_the_tiles_stand_where_reshape_and_the_loop_put_them(shown, places):
    def draw():
        figures.blocks(places)
        drawn, _ = shown
        shown.clear()
        return drawn

    assert_sound_diagram(draw)
    svg = svg_of(draw())
    tiles = [(shape.get("fill"), text.text) for shape, text in zip(svg, [*svg][1:], strict=False) if "attn-box" in shape.get("class", "")]
    colours = [fill for fill, _ in tiles[:2]]
    stored = np.arange(2 * places)  # number of a place, number of a block
    wanted = np.concatenate([stored, stored.reshape(2, places).ravel(), stored.reshape(places, 2).T.ravel()])
    assert tiles == [(colours[number % 2], str(number // 2)) for number in wanted]


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
