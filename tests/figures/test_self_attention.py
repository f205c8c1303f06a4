"""The figures of lesson self_attention say what their numbers say, and its card turns as the reference does."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.self_attention import figures
from attn_course.reference import rope
from tests.figures.support import Pictures, card_html, described, words_of_card

QUERY = np.array([[1.0, 0.0, 0.8, 0.5, 0.6, 0.8]])
KEY = np.array([[0.9, 0.3, 1.0, 0.0, 0.3, 0.9]])

ROWS = {"free": [0.1, 0.7, 0.2, *6 * [0.0]], "words": [*6 * [0.0], 0.05, 0.0, 0.95]}

DRAWN = [
    (
        partial(figures.looks_back, {"trained": [0.0, 0.7, 0.1, 0.0, 0.0], "half speed": [0.0, 0.1, 0.5, 0.3, 0.0]}),
        ["trained: 0.00, 0.70, 0.10, 0.00 and 0.00. half speed: 0.00, 0.10, 0.50, 0.30 and 0.00."],
    ),
    (partial(figures.rows_of_it, ROWS), ["free: 0.70 at place 1; words: 0.95 at place 8."]),
]
REFUSED = [
    (partial(figures.looks_back, {"trained": [0.5, 0.5]}), r"weights\['trained'\] must have shape \(5,\); got \(2,\)"),
    (partial(figures.looks_back, {}), "weights must hold at least one"),
    (partial(figures.rows_of_it, {"a": [0.5, 0.5]}), r"rows\['a'\] must have shape \(9,\); got \(2,\)"),
    (partial(figures.rows_of_it, {"a": np.full(9, 0.1)}), r"rows\['a'\] must sum to 1; got 0.90"),
    (partial(figures.rows_of_it, {}), "rows must hold at least one"),
]

TestPictures = Pictures


# --- the card ------------------------------------------------------------------------------------------


def turned(pairs, position):
    return rope(pairs, np.array([position]), theta=100.0, layout="interleaved")[0]


def score(t, u) -> float:
    return float(turned(QUERY, t) @ turned(KEY, u) / np.sqrt(6))


def test_the_words_of_the_card_hold_true_numbers():
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", words_of_card("rope"))
    assert len(rows) == 5
    for row in rows:
        t, u, distance, shown_score = (float(text.replace("−", "-")) for text in row)
        assert distance == u - t
        assert shown_score == pytest.approx(score(t, u), abs=5.01e-4)


@pytest.mark.browser
@pytest.mark.parametrize("places", [(9, 4), (0, 0), (40, 0), (3, 31)])
def test_the_numbers_of_the_card_are_those_of_the_reference(page, places):
    page.set_content(card_html("rope"))
    shown = described(page, "rope", *places, False)
    np.testing.assert_allclose(np.ravel(shown["query"]), turned(QUERY, places[0]), atol=1e-12)
    np.testing.assert_allclose(np.ravel(shown["key"]), turned(KEY, places[1]), atol=1e-12)
    assert shown["score"] == pytest.approx(score(*places), abs=1e-12)
    assert sum(shown["parts"]) == pytest.approx(shown["score"] * np.sqrt(6), abs=1e-12)
    still = described(page, "rope", *places, True)
    assert still["score"] == pytest.approx(score(0, 0), abs=1e-12)


@pytest.mark.browser
def test_buttons_move_the_tokens(page):
    page.set_content(card_html("rope"))
    status = page.get_by_role("status")
    query, key = (page.get_by_role("slider", name=f"position {name}") for name in ("t of the query", "u of the key"))
    page.get_by_role("button", name="Both one on").press("Enter")
    assert (query.get_attribute("aria-valuetext"), key.get_attribute("aria-valuetext")) == ("10", "5")
    assert page.locator('[data-fact="score"]').inner_text() == f"{score(10, 5):.3f}".replace("-", "−")
    status.get_by_text("Query at 10, key at 5: distance −5").wait_for()
    page.get_by_role("button", name="Exchange").click()
    assert page.locator('[data-fact="distance"]').inner_text() == "5"
    assert page.locator('[data-fact="score"]').inner_text() == f"{score(5, 10):.3f}".replace("-", "−")
    page.get_by_role("button", name="Same place").click()
    assert page.locator('[data-fact="distance"]').inner_text() == "0"
    page.get_by_role("button", name="Stop the clocks").press("Space")
    status.get_by_text("The clocks stand still: the score is the same for all places.").wait_for()


@pytest.mark.browser
def test_play_moves_both_at_one_distance_to_the_end_and_then_from_the_start(stopped_page):
    page = stopped_page
    page.set_content(card_html("rope"))
    query, key = (page.get_by_role("slider", name=f"position {name}") for name in ("t of the query", "u of the key"))
    query.fill("39")
    key.fill("32")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(2_000)
    assert page.locator("[data-play]").inner_text() == "Play", "at the end it stops by itself"
    assert (query.get_attribute("aria-valuetext"), key.get_attribute("aria-valuetext")) == ("40", "33")
    page.get_by_role("button", name="Both one on").click()
    assert query.get_attribute("aria-valuetext") == "40"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(600)
    page.get_by_role("button", name="Pause").click()
    distance = page.locator('[data-fact="distance"]')
    assert (query.get_attribute("aria-valuetext"), distance.inner_text()) == ("8", "−7")
    page.get_by_role("button", name="Both one back").click()
    page.get_by_role("button", name="Both one back").click()
    assert query.get_attribute("aria-valuetext") == "7", "the key stands at the start"


@pytest.mark.browser
def test_the_hands_point_where_the_reference_turns_them(page):
    page.set_content(card_html("rope"))
    page.emulate_media(reduced_motion="reduce")
    for name, pairs, position in (("query", QUERY, 9), ("key", KEY, 4)):
        tips = page.locator(f"[data-hand={name}]").evaluate_all(
            """hands => hands.map(hand => {
                const matrix = new DOMMatrix(getComputedStyle(hand).transform);
                return [matrix.a * hand.getAttribute("x2"), -matrix.b * hand.getAttribute("x2")];
            })"""
        )
        np.testing.assert_allclose(np.ravel(tips), turned(pairs, position), atol=1e-4)
