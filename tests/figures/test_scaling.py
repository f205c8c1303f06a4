"""The figures of lesson scaling say what their numbers say, and the card shows the numbers of Python."""

import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.reference import softmax
from tests.figures.support import decode, ink_touches_the_edge

X = np.linspace(-6, 6, 41)
NORMAL = np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi)
WIDTHS = [1, 16, 256]
DRAWS = np.array([1.6, 0.9, 0.5, 0.1, -0.2, -0.5, -0.9, -1.5]) / np.sqrt(6.98 / 8)


def two(scaled, unscaled):
    return {"scaled": scaled, "unscaled": unscaled}


def draw_normal():
    figures.towards_normal(X, {"d_k = 2": np.exp(-np.abs(X)) / 2}, NORMAL)


def draw_broken():
    figures.broken_assumptions(X, {"all hold": NORMAL, "q = k": NORMAL}, NORMAL, {"all hold": (0.0, 1.0), "q = k": (4.0, 2.0)})


def draw_spread():
    figures.spread_and_softmax(
        WIDTHS, two([3.7, 3.7, 3.7], [3.7, 1.4, 0.2]), two([0.1] * 3, [0.1, 0.6, 0.9]), two([0.1] * 3, [0.1, 0.3, 0.1]), n_keys=64
    )


def draw_trainings():
    fast, slow = np.tile(np.linspace(0.1, 1, 40), (3, 1)), np.tile(np.linspace(0.1, 0.5, 40), (3, 1))
    figures.two_trainings({"unit variance": two(fast, slow), "factor in W_Q": two(fast, fast)}, chance=1 / 16)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (draw_normal, "0.0012 for d_k = 2"),
        (draw_broken, "q = k: mean 4.0, variance 2.0."),
        (draw_spread, "entropy (nats): scaled from 3.70 to 3.70, unscaled from 3.70 to 0.20."),
        (draw_trainings, "unit variance: accuracy 0.33 scaled and 0.20 unscaled after a quarter of the steps."),
    ],
)
def test_the_words_hold_the_numbers_and_nothing_is_clipped(shown, draw, words):
    draw()
    assert words in shown.picture.alt
    assert shown.words.alt == shown.picture.alt
    assert not ink_touches_the_edge(decode(shown.picture.png))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.towards_normal(X, {"a": X[1:]}, NORMAL), r"densities\['a'\] must have shape \(41,\); got \(40,\)"),
        (lambda: figures.broken_assumptions(X, {"a": X}, X, {}), r"moments must have the names of densities, \['a'\]; got \[\]"),
        (
            lambda: figures.spread_and_softmax(WIDTHS, {}, {}, {}, n_keys=2),
            r"entropy must have the names \['scaled', 'unscaled'\]; got \[\]",
        ),
        (lambda: figures.two_trainings({"a": {}}, chance=0.5), r"curves must hold \['scaled', 'unscaled'\] for each start; got \['a'\]"),
    ],
)
def test_names_and_shapes_that_do_not_fit_are_refused(shown, draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
    assert shown == []


def test_the_words_of_the_card_hold_true_numbers():
    rows = re.findall(r"<td>(.*?)</td>", (PARTS / "scale_words.html").read_text(encoding="utf-8"))
    assert len(rows) == 9 * 4
    for index in range(9):
        width, deviation, largest, entropy = (float(text) for text in rows[4 * index : 4 * index + 4])
        weights = softmax(DRAWS * np.sqrt(width) / width ** (0.0, 0.5, 1.0)[index // 3])
        positive = weights[weights > 0]
        assert deviation == pytest.approx(np.sqrt(width) / width ** (0.0, 0.5, 1.0)[index // 3], abs=0.006)
        assert largest == pytest.approx(weights.max(), abs=6e-4)
        assert entropy == pytest.approx(-(positive * np.log(positive)).sum(), abs=6e-4)


@pytest.mark.browser
def test_the_card_is_moved_by_keys_and_shows_the_numbers_of_python(page):
    page.set_content(explorable_html("scale", "scale"))
    for power in (0, 0.5, 1):
        page.locator(f"[data-preset='{power:g}']").focus()
        page.keyboard.press("Enter")
        expected = [f"{weight:.3f}" for weight in softmax(DRAWS * 8 / 64**power)]
        assert page.locator("[data-weight]").all_inner_texts() == expected
    page.get_by_role("slider", name="number of entries d k").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-weight]").all_inner_texts() == [f"{w:.3f}" for w in softmax(DRAWS / np.sqrt(128))]
