"""The figures of lesson heads say what their numbers say."""

from functools import partial

import numpy as np
import pytest

from attn_course.lessons.heads import figures
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
    (
        partial(figures.ring, [6, 2, 0, 2]),
        ["clockwise 6, 2, 0 and 2.", "this one, 2, the colour before is 6, and the colour after is 0."],
    ),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
]

TestPictures = Pictures


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
