"""The figures of lesson scaling say what their numbers say, and the card shows the numbers of Python."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.scaling import figures
from attn_course.reference import softmax
from tests.figures.support import Pictures, card_html, words_of_card

X = np.linspace(-6, 6, 41)
NORMAL = np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi)
WIDTHS = [1, 16, 256]
DRAWS = np.array([1.6, 0.9, 0.5, 0.1, -0.2, -0.5, -0.9, -1.5]) / np.sqrt(6.98 / 8)
FAST, SLOW = (np.tile(np.linspace(0.1, end, 40), (3, 1)) for end in (1, 0.5))


def two(scaled, unscaled):
    return {"scaled": scaled, "unscaled": unscaled}


DRAWN = [
    (partial(figures.towards_normal, X, {"d_k = 2": np.exp(-np.abs(X)) / 2}, NORMAL), ["0.0012 for d_k = 2"]),
    (
        partial(
            figures.broken_assumptions,
            X,
            {"all hold": NORMAL, "q = k": NORMAL},
            NORMAL,
            {"all hold": (0.0, 1.0), "q = k": (4.0, 2.0)},
        ),
        ["q = k: mean 4.0, variance 2.0."],
    ),
    (
        partial(
            figures.spread_and_softmax,
            WIDTHS,
            two([3.7, 3.7, 3.7], [3.7, 1.4, 0.2]),
            two([0.1] * 3, [0.1, 0.6, 0.9]),
            two([0.1] * 3, [0.1, 0.3, 0.1]),
            n_keys=64,
        ),
        ["entropy (nats): scaled from 3.70 to 3.70, unscaled from 3.70 to 0.20."],
    ),
    (
        partial(figures.two_trainings, {"unit variance": two(FAST, SLOW), "factor in W_Q": two(FAST, FAST)}, chance=1 / 16, d_k=256),
        ["unit variance: accuracy 0.33 scaled and 0.20 unscaled after a quarter of the steps."],
    ),
    (
        partial(figures.initial_variances, ["small", "large"], [0.04, 0.25], [0.05, 0.2]),
        ["small: 0.04 by the formula, 0.05 measured. large: 0.25 by the formula, 0.20 measured."],
    ),
]
REFUSED = [
    (partial(figures.initial_variances, ["small", "large"], [0.04], [0.05, 0.2]), r"expected must have shape \(2,\); got \(1,\)"),
    (partial(figures.towards_normal, X, {"a": X}, NORMAL, title="Softmax"), "title must be a text of at least 3 words"),
    (partial(figures.towards_normal, X, {"a": X[1:]}, NORMAL), r"densities\['a'\] must have shape \(41,\); got \(40,\)"),
    (partial(figures.broken_assumptions, X, {"a": X}, X, {}), r"moments must have the names of densities, \['a'\]; got \[\]"),
    (
        partial(figures.spread_and_softmax, WIDTHS, {}, {}, {}, n_keys=2),
        r"entropy must have the names \['scaled', 'unscaled'\]; got \[\]",
    ),
    (
        partial(figures.two_trainings, {"a": {}}, chance=0.5, d_k=4),
        r"curves must hold \['scaled', 'unscaled'\] for each start; got \['a'\]",
    ),
]


class TestPictures(Pictures):
    """Densities, spreads and trainings."""


def test_the_words_of_the_card_hold_true_numbers():
    rows = re.findall(r"<td>(.*?)</td>", words_of_card("scale"))
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
    page.set_content(card_html("scale"))
    for power in (0, 0.5, 1):
        page.locator(f"[data-preset='{power:g}']").press("Enter")
        expected = [f"{weight:.3f}" for weight in softmax(DRAWS * 8 / 64**power)]
        assert page.locator("[data-weight]").all_inner_texts() == expected
    page.get_by_role("slider", name="number of entries d k").press("ArrowRight")
    assert page.locator("[data-weight]").all_inner_texts() == [f"{w:.3f}" for w in softmax(DRAWS / np.sqrt(128))]
