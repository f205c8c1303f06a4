"""The figures of lesson lookup say what their numbers say, and its card counts as Python does."""

import math
import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.lookup import figures
from tests.figures.support import Pictures, assert_described, card_html, described, rows_of_card

KEYS, VALUES = [6.0, 9.0, 12.0, 18.0], [8.0, 12.0, 18.0, 14.0]
X = np.arange(20.0)

DRAWN = [(partial(figures.nile_guesses, X, np.sin(X), {"narrow": np.sin(X), "wide": 0 * X}), ["20 points", "wide: from 0 to 0."])]
REFUSED = [
    (partial(figures.nile_guesses, [1, 2], [1], {"a": [1]}), "flow must have shape"),
    (partial(figures.nile_guesses, [1], [1], {}), "guesses must hold at least one"),
]

TestPictures = Pictures


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, width, twice=False) -> dict:
    similarities = [math.exp(-((query - key) ** 2) / (2 * width**2)) for key in KEYS]
    counted = [s * (2 if twice and key == 9.0 else 1) for s, key in zip(similarities, KEYS, strict=True)]
    weights = [s / sum(counted) for s in counted]
    return {"weights": weights, "answer": sum(w * v for w, v in zip(weights, VALUES, strict=True)), "similarity": max(similarities)}


def test_the_words_of_the_lookup_card_hold_true_numbers():
    rows = rows_of_card("lookup")
    assert len(rows) == 6
    for head, cells in rows:
        query, width, noted = re.fullmatch(r"([\d.]+), ([\d.]+)(.*)", head).groups()
        wanted = numbers_of(float(query), float(width), bool(noted))
        got = [float(cell) for cell in cells]
        np.testing.assert_allclose(got[:4], wanted["weights"], atol=5.01e-4)
        assert got[4] == pytest.approx(wanted["answer"], abs=5.01e-3)


@pytest.mark.browser
@pytest.mark.parametrize("twice", [False, True])
def test_the_numbers_of_the_lookup_card_are_those_of_python(page, twice):
    page.set_content(card_html("lookup"))
    for query, width in ((10.0, 2.0), (9.0, 0.3), (24.0, 1.0), (0.0, 40.0), (10.5, 1.0)):
        assert_described(page, "lookup", (query, width, twice), numbers_of(query, width, twice), atol=1e-9)


@pytest.mark.browser
@pytest.mark.parametrize("width", [0.2, 2.0, 2**5.3])
def test_the_answers_of_the_whole_day_are_those_of_python(page, width):
    page.set_content(card_html("lookup"))
    shown = page.evaluate("width => document.getElementById('attn-lookup').explorable.overTheDay(width, false)", width)
    np.testing.assert_allclose(shown, [numbers_of(hour, width)["answer"] for hour in np.arange(241) / 10], atol=1e-9)


@pytest.mark.browser
def test_a_wide_similarity_forgets_the_query(page):
    page.set_content(card_html("lookup"))
    page.get_by_role("button", name="Wide").click()
    wide = [numbers_of(hour, 2**5.3)["answer"] for hour in np.arange(241) / 10]
    words = f"Whatever hour you ask for, the answer lies between {min(wide):.2f} and {max(wide):.2f} degrees."
    page.get_by_role("status").get_by_text(words).wait_for()


@pytest.mark.browser
def test_a_query_far_from_all_keys_still_gets_weights_that_sum_to_1(page):
    page.set_content(card_html("lookup"))
    assert described(page, "lookup", 24, 0.1, False)["weights"] == [0, 0, 0, 1]


@pytest.mark.browser
def test_buttons_and_the_pointer_move_the_query_of_the_lookup(page):
    page.set_content(card_html("lookup"))
    shown = [float(text) for text in page.locator("[data-weight]").all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(10.0, 2.0)["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 9").press("Enter")
    page.get_by_role("button", name="Narrow").click()
    page.get_by_role("status").get_by_text(
        "At 9.0 o’clock with h = 0.25 the answer is 12.00 degrees; key 9 has the largest weight"
    ).wait_for()
    page.get_by_role("button", name="Far from all").click()
    page.get_by_role("status").get_by_text("key 18 has the largest weight, 1.000").wait_for()
    page.get_by_role("button", name="Note 9 o’clock twice").press("Space")
    page.get_by_role("status").get_by_text("The 9 o’clock pair is noted twice.").wait_for()
    page.locator("[data-pair] circle").nth(2).click()
    assert page.get_by_role("slider", name="query in hours").get_attribute("aria-valuetext") == "12.0 hours"
