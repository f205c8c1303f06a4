"""The figures of lesson additive say what their numbers say, and its card counts as Python does."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.additive import figures
from attn_course.reference import softmax
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

AXIS = np.linspace(-4, 4, 33)
Q, K = AXIS[:, None], AXIS[None, :]
KEYS = np.array([-2.0, -0.5, 1.0, 2.5])
LENGTHS = partial(figures.accuracy_by_length, [2, 4, 8, 16], longest_trained=8)

DRAWN = [
    (
        partial(figures.score_surfaces, AXIS, {"sum": 0.5 * Q - K, "tanh": np.tanh(Q + K), "product": Q * K}),
        [
            "sum: from −6.0 to 6.0; at q = k = 2 it is −1.0, at q = k = −2 1.0, at q = 2 and k = −2 3.0.",
            "product: from −16.0 to 16.0; at q = k = 2 it is 4.0, at q = k = −2 4.0, at q = 2 and k = −2 −4.0.",
        ],
    ),
    (
        partial(
            LENGTHS,
            {"fixed vector": [[1.0, 0.8, 0.4, 0.1], [1.0, 0.9, 0.5, 0.2]], "aligner": [[1.0, 1.0, 0.97, 0.3], [1.0, 1.0, 0.97, 0.3]]},
        ),
        [
            "sentences of 2, 4, 8 and 16 words, trained up to 8.",
            "fixed vector: 1.00, 0.85, 0.45 and 0.15. aligner: 1.00, 1.00, 0.97 and 0.30.",
        ],
    ),
    (
        partial(figures.right_key, {"with": np.linspace(0.4, 1.0, 13), "without": np.full(13, 0.25)}),
        ["over 13 steps. Mean of the last 2 steps: with 0.97, without 0.25."],
    ),
    (
        partial(figures.memory, [64, 512, 4096], [1.05, 67.1, 4295.0], [0.016, 1.05, 67.1]),
        ["from 64 to 4096", "64 times higher; at 4096 positions 4295 MB against 67 MB."],
    ),
    (
        partial(figures.spread_of_scores, [4, 16], {"unscaled dot": [2.0, 4.0], "additive": [0.75, 0.75]}),
        ["d = 4 and 16, ", "unscaled dot: 2.00 and 4.00. additive: 0.75 and 0.75."],
    ),
    (
        partial(figures.steps_until_learnt, (8, 64), {"additive": [142, 72], "dot": [298, 451]}),
        ["d_h = 8 and 64; ", "additive: 142 and 72. dot: 298 and 451."],
    ),
    (partial(figures.alignment, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]), ["of 2 words", "on source word 2, 1 and 1."]),
]
REFUSED = [
    (partial(figures.score_surfaces, AXIS, {"a": np.zeros((33, 32))}), r"maps\['a'\] must have shape \(33, 33\); got \(33, 32\)"),
    (partial(figures.score_surfaces, AXIS, {}), r"maps must hold at least one array of shape \(33, 33\); got none"),
    (partial(LENGTHS, {"a": [[1, 1, 1]]}), r"shares\['a'\] must have shape \(1, 4\); got \(1, 3\)"),
    (partial(LENGTHS, {"a": np.ones((2, 4)), "b": np.ones((1, 4))}), r"shares\['b'\] must have shape \(2, 4\); got \(1, 4\)"),
    (partial(LENGTHS, {}), "shares must hold at least one"),
    (partial(figures.right_key, {}), "curves must hold at least one"),
    (partial(figures.memory, [1, 2], [1.0], [1.0, 2.0]), r"hidden must have shape \(2,\); got \(1,\)"),
    (partial(figures.spread_of_scores, [4, 16], {"a": [1.0]}), r"spread\['a'\] must have shape \(2,\); got \(1,\)"),
    (partial(figures.steps_until_learnt, (8,), {"a": [1.0, 2.0]}), r"steps\['a'\] must have shape \(1,\); got \(2,\)"),
    (partial(figures.alignment, np.eye(2)), r"weights must have shape \(3, 2\); got \(2, 2\)"),
]


class TestPictures(Pictures):
    """Surfaces, curves and accuracies."""

    at_most = 80_000


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, bias, size) -> dict[str, np.ndarray]:
    """Scores, weights, bounds, and the steepest score by central differences."""

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
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(card_html("additive"))
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="query")
    assert slider.get_attribute("aria-valuetext") == "1.3"
    shown = [float(text) for text in page.locator('[data-side="additive"] [data-weight]').all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(1.3, 1.0, 2.0)["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 3").press("Enter")
    words = "the nearest key is key 3. Additive: key 3 has the largest weight, 0.756. Dot product: key 4 has the largest weight, 0.779."
    page.get_by_role("status").get_by_text(words).wait_for()
    page.get_by_role("button", name="No bias").click()
    page.get_by_role("status").get_by_text("Additive: all keys weigh the same, 0.250.").wait_for()
    page.get_by_role("button", name="Far away").click()
    page.get_by_role("status").get_by_text("Dot product: key 4 has the largest weight, 1.000.").wait_for()
