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
]

TestPictures = Pictures


def test_arrows_lead_to_the_neighbours_that_have_the_weight(shown):
    def draw():
        figures.looks([0.5, 0.98, 0.0], [0.46, 0.0, 0.98])
        drawn, _ = shown
        shown.clear()
        return drawn

    assert_sound_diagram(draw)
    boxes, ends = [], []
    for shape in svg_of(draw()):
        if "attn-box" in shape.get("class", ""):
            boxes.append([float(shape.get(side)) + 10 for side in ("x", "y")])
        elif "attn-tip" in shape.get("class", ""):
            ends.append((len(boxes) - 1, [float(at) for at in shape.get("points").split(" ")[0].split(",")]))
    reached = [(start, int(np.linalg.norm(np.array(boxes) - tip, axis=1).argmin())) for start, tip in ends]
    wanted = [
        (8 * ring + place, 8 * ring + (place + step) % 8)
        for ring, steps in enumerate(((-1, 1), (-1,), (1,)))
        for place in range(8)
        for step in steps
    ]
    assert reached == wanted


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
