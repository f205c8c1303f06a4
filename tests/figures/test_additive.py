"""The figures of lesson additive say what their numbers say, and its card counts as Python does."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.additive import figures
from attn_course.reference import softmax
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

KEYS = np.array([-2.0, -0.5, 1.0, 2.5])

DRAWN = [
    (
        partial(figures.steps_until_learnt, (8, 64), {"additive": [142, 72], "dot": [298, 451]}),
        ["d_h = 8 and 64; ", "additive: 142 and 72. dot: 298 and 451."],
    ),
]
REFUSED = [(partial(figures.steps_until_learnt, (8,), {"a": [1.0, 2.0]}), r"steps\['a'\] must have shape \(1,\); got \(2,\)")]


class TestPictures(Pictures):
    """Bars."""

    at_most = 80_000


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, bias, size) -> dict[str, np.ndarray]:
    def scores(q):
        return size * (np.tanh(q - KEYS + bias) - np.tanh(q - KEYS - bias))

    return {
        "scores": scores(query),
        "dots": query * KEYS,
        "weights": softmax(scores(query)),
        "dotWeights": softmax(query * KEYS),
        "bound": 2 * size,
        "ceiling": softmax(np.array([2.0, -2.0, -2.0, -2.0]) * size)[0],
        "slope": np.abs(scores(query + 1e-6) - scores(query - 1e-6)).max() / 2e-6,
    }


def test_the_words_of_the_card_hold_true_numbers():
    rows = rows_of_card("additive")
    assert len(rows) == 4
    for place, cells in rows:
        wanted = numbers_of(*map(float, re.fullmatch(r"q = (.*), b = (.*), a = (.*)", place).groups()))
        got = [float(cell) for cell in cells]
        np.testing.assert_allclose(got, [*wanted["weights"], *wanted["dotWeights"]], atol=5.01e-4)


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("additive"))
    for place in ([1.0, 1.0, 2.0], [6.0, 1.0, 2.0], [1.0, 0.0, 2.0], [-3.3, 2.1, 4.7], [0.0, 3.0, 0.0]):
        assert_described(page, "additive", place, numbers_of(*place), atol=1e-8)


@pytest.mark.browser
def test_buttons_move_the_card(page):
    page.set_content(card_html("additive"))
    shown = [float(text) for text in page.locator('[data-side="additive"] [data-weight]').all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(1.0, 1.0, 2.0)["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 3").press("Enter")
    words = "the nearest key is key 3. Additive: key 3 has the largest weight, 0.756. Dot product: key 4 has the largest weight, 0.779."
    page.get_by_role("status").get_by_text(words).wait_for()
    page.get_by_role("button", name="No bias").click()
    page.get_by_role("status").get_by_text("Additive: all keys weigh the same, 0.250.").wait_for()
    page.get_by_role("button", name="Far away").click()
    page.get_by_role("status").get_by_text("Dot product: key 4 has the largest weight, 1.000.").wait_for()
