"""The figures of lesson lookup say what their numbers say, and its card counts as Python does."""

import math
import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.lookup import figures
from tests.figures.support import Pictures, assert_described, card_html, described, rows_of_card

KEYS, VALUES = [6.0, 9.0, 12.0, 18.0], [8.0, 12.0, 18.0, 14.0]
CORNERS = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 3.0], [0.0, 3.0]])
X = np.arange(20.0)
RECALL = partial(figures.recall_at_distance, most_steps=1000)
NAMES = ["Ann", "Bob", "Eve"]

DRAWN = [
    (
        partial(
            RECALL,
            [2, 8, 32],
            {"attention": [50, 50, 50], "RNN": [100, 300, 1000]},
            [2, 8, 32, 64],
            {"attention": [0.2, 0.1, 0.05, 0.02], "RNN": [0.5, 0.1, 0.01, 1e-6]},
        ),
        [
            "with 2, 8 and 32 distractions. attention: 50, 50 and 50. RNN: 100, 300 and not learnt.",
            "RNN: from 0.5 to 1.0 · 10⁻⁶.",
        ],
    ),
    (
        partial(figures.exchanged_roles, NAMES, [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], np.full((3, 3), 1 / 3)),
        ["left: Ann 0.80 on Bob; Bob 0.80 on Eve; Eve 0.80 on Ann. Right", "Eve 0.33 on Ann, Bob and Eve."],
    ),
    (
        partial(figures.sides, np.kron(np.full((3, 3), 0.5), np.eye(2)), np.kron(np.eye(3), [[1.0, 2.0], [3.0, -4.0]]), features=2),
        [
            "Left, 12 of 24 entries between different positions and 0 of 18 entries between different features are not zero.",
            "Right, 0 of 24 entries between different positions and 6 of 18 entries",
        ],
    ),
    (
        partial(figures.dial, KEYS[:2], 7.0, [0.1, 1.0, 4.0], [[1.0, 0.0], [0.75, 0.25], [0.5, 0.5]]),
        ["keys 6 and 9 for the query 7", "from 1.00 and 0.00 to 0.50 and 0.50; at 4 hours the largest is one half."],
    ),
    (partial(figures.nile_fits, X, np.sin(X), X, {"narrow": np.sin(X), "wide": 0 * X}), ["wide: from 0 to 0."]),
    (
        partial(figures.outputs_in_hull, CORNERS, [[1.0, 1.0], [2.0, 2.5]], outside=[-1.0, 1.0]),
        [
            "A polygon with 4 values as corners and 2 outputs inside it, at (1.0, 1.0); (2.0, 2.5). ",
            "One point with negative weights lies at (−1.0, 1.0).",
        ],
    ),
]
REFUSED = [
    (partial(RECALL, [2], {"a": [1]}, [2], {"b": [1]}), "steps and norms must name the same models"),
    (partial(RECALL, [2], {}, [2], {}), "steps must hold at least one"),
    (partial(figures.exchanged_roles, NAMES, np.eye(3), np.eye(2)), r"must have shape \(3, 3\); got \(2, 2\)"),
    (partial(figures.sides, np.eye(4), np.eye(6), features=2), r"must have shape \(4, 4\); got \(6, 6\)"),
    (partial(figures.sides, np.eye(4), np.eye(4), features=3), "features must divide 4 entries; got 3"),
    (partial(figures.dial, KEYS, 7.0, [1.0, 2.0], np.eye(3)), r"shares must have shape \(2, 4\)"),
    (partial(figures.nile_fits, [1, 2], [1], [1], {"a": [1]}), "flow must have shape"),
    (partial(figures.nile_fits, [1], [1], [1], {}), "fits must hold at least one"),
    (partial(figures.outputs_in_hull, CORNERS[[0, 2, 1, 3]], CORNERS), "values must be the corners of a convex polygon"),
    (partial(figures.outputs_in_hull, np.zeros((4, 3)), CORNERS), "must be points of the plane"),
]


class TestPictures(Pictures):
    """Recall, maps, fits and the hull."""


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, width, twice=False) -> dict:
    """Loops over math.exp: the oracle of the card."""
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
def test_arrow_keys_buttons_and_the_pointer_move_the_query_of_the_lookup(page):
    page.set_content(card_html("lookup"))
    page.keyboard.press("Tab")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="query in hours")
    assert slider.get_attribute("aria-valuetext") == "10.5 hours"
    assert page.get_by_role("slider", name="width in hours").get_attribute("aria-valuetext") == "2.00 hours"
    shown = [float(text) for text in page.locator("[data-weight]").all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(10.5, 2.0)["weights"], atol=5.01e-4)
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
    assert slider.get_attribute("aria-valuetext") == "12.0 hours"
