"""The figures of lesson additive say what their numbers say, and its card counts as Python does."""

import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.reference import softmax
from tests.figures.support import assert_sound

AXIS = np.linspace(-4, 4, 33)
KEYS = np.array([-2.0, -0.5, 1.0, 2.5])
LENGTHS = [2, 4, 8, 16]


def draw_surfaces(**options):
    q, k = AXIS[:, None], AXIS[None, :]
    figures.score_surfaces(AXIS, {"sum": 0.5 * q - k, "tanh": np.tanh(q + k), "product": q * k}, **options)


def draw_lengths(**options):
    spread = {"fixed vector": [[1.0, 0.8, 0.4, 0.1], [1.0, 0.9, 0.5, 0.2]]}
    curves = {"fixed vector": [1.0, 0.85, 0.45, 0.15], "aligner": [1.0, 1.0, 0.97, 0.3]}
    figures.accuracy_by_length(LENGTHS, curves, longest_trained=8, spread=spread, **options)


FIGURES = [draw_surfaces, draw_lengths]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw, at_most=80_000)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_of_the_surfaces_name_scores_on_and_off_the_diagonal(shown):
    draw_surfaces()
    assert "sum: from −6.0 to 6.0; at q = k = 2 it is −1.0, at q = k = -2 1.0, at q = 2 and k = -2 3.0." in shown.words.alt.replace(
        "= −2", "= -2"
    )
    assert "product: from −16.0 to 16.0; at q = k = 2 it is 4.0, at q = k = -2 4.0, at q = 2 and k = -2 −4.0." in shown.words.alt.replace(
        "= −2", "= -2"
    )


def test_the_words_of_the_lengths_name_every_share(shown):
    draw_lengths()
    assert "sentences of 2, 4, 8 and 16 words, trained up to 8." in shown.words.alt
    assert "fixed vector: 1.00, 0.85, 0.45 and 0.15. aligner: 1.00, 1.00, 0.97 and 0.30." in shown.words.alt


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match=r"maps must hold arrays of shape \(33, 33\); got {'a': \(33, 32\)}"):
        figures.score_surfaces(AXIS, {"a": np.zeros((33, 32))})
    with pytest.raises(ValueError, match=r"maps must hold arrays of shape \(33, 33\); got none"):
        figures.score_surfaces(AXIS, {})
    with pytest.raises(ValueError, match=r"shares\['a'\] must have shape \(4,\); got \(3,\)"):
        figures.accuracy_by_length(LENGTHS, {"a": [1, 1, 1]}, longest_trained=8)
    with pytest.raises(ValueError, match="shares must hold at least one model"):
        figures.accuracy_by_length(LENGTHS, {}, longest_trained=8)
    with pytest.raises(ValueError, match=r"spread \(2, 4\) for some of these"):
        figures.accuracy_by_length(LENGTHS, {"a": [1, 1, 1, 1]}, longest_trained=8, spread={"b": np.zeros((2, 4))})
    assert shown == []


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
    text = (PARTS / "additive_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">q = (.*?), b = (.*?), a = (.*?)</th>(.*?)</tr>', text)
    assert len(rows) == 4
    for *place, cells in rows:
        wanted = numbers_of(*(float(number) for number in place))
        got = [float(cell) for cell in re.findall(r"<td>(.*?)</td>", cells)]
        np.testing.assert_allclose(got, [*wanted["weights"], *wanted["dotWeights"]], atol=5.01e-4)


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(explorable_html("additive", "additive"))
    call = "(place) => document.getElementById('attn-additive').explorable.describe(...place)"
    for place in ([1.0, 1.0, 2.0], [6.0, 1.0, 2.0], [1.0, 0.0, 2.0], [-3.3, 2.1, 4.7], [0.0, 3.0, 0.0]):
        shown = page.evaluate(call, place)
        for name, wanted in numbers_of(*place).items():
            np.testing.assert_allclose(shown[name], wanted, atol=1e-8, err_msg=name)


@pytest.mark.browser
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(explorable_html("additive", "additive"))
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="query")
    assert slider.get_attribute("aria-valuetext") == "1.3"
    shown = [float(text) for text in page.locator('[data-side="additive"] [data-weight]').all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(1.3, 1.0, 2.0)["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 3").focus()
    page.keyboard.press("Enter")
    words = "the nearest key is key 3. Additive: key 3 has the largest weight, 0.756. Dot product: key 4 has the largest weight, 0.779."
    page.get_by_role("status").get_by_text(words).wait_for()
    page.get_by_role("button", name="No bias").click()
    page.get_by_role("status").get_by_text("Additive: all keys weigh the same, 0.250.").wait_for()
    page.get_by_role("button", name="Far away").click()
    page.get_by_role("status").get_by_text("Dot product: key 4 has the largest weight, 1.000.").wait_for()
