"""The figures of lesson masking say what their masks say, and its card finds the leaks that Python finds."""

import math
import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.reference import leak_matrix
from tests.figures.support import assert_sound

TRIANGLE = np.tri(5) > 0


def draw_patterns(**options):
    masks = {"causal": TRIANGLE, "all": np.ones((5, 5), dtype=bool), "wide": np.tri(3, 5, k=2) > 0}
    figures.mask_patterns(masks, **{"title": "Three masks side by side", **options})


def draw_many(**options):
    figures.mask_patterns({f"mask {n}": np.tri(20, k=n) > 0 for n in range(6)}, **{"title": "Six masks in two rows", **options})


def draw_leaks(**options):
    influences = {"right": 0.3 * TRIANGLE, "wide": np.tri(5, k=1), "everywhere": np.full((5, 5), 1e-3)}
    figures.leak_maps(influences, TRIANGLE, **{"title": "Two of three layers leak", **options})


FIGURES = [draw_patterns, draw_many, draw_leaks]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_count_the_pairs_of_every_row(shown):
    draw_patterns()
    assert "causal: 15 of 25 pairs visible, by rows 1, 2, 3, 4, 5." in shown.words.alt
    assert "all: 25 of 25 pairs visible, 5 in each row." in shown.words.alt
    assert shown.words.alt.endswith("wide: 12 of 15 pairs visible, by rows 3, 4, 5.")


def test_the_words_count_the_leaks_and_what_is_too_small_is_none(shown):
    draw_leaks()
    assert shown.words.alt.endswith("of 10 pairs that must not influence each other do: right 0, wide 4, everywhere 10.")
    draw_leaks(at_least=0.01)
    assert shown[-1].alt.endswith("right 0, wide 4, everywhere 0.")


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match="masks must hold at least one pattern"):
        figures.mask_patterns({}, title="A title of four words")
    with pytest.raises(ValueError, match=r"masks\['a'\] must have 2 axes"):
        figures.mask_patterns({"a": [True]}, title="A title of four words")
    with pytest.raises(ValueError, match=r"influences must have the shape of allowed \(5, 5\); got \{'a': \(5, 4\)\}"):
        figures.leak_maps({"a": np.zeros((5, 4))}, TRIANGLE, title="A title of four words")
    with pytest.raises(ValueError, match="influences must hold at least one layer"):
        figures.leak_maps({}, TRIANGLE, title="A title of four words")
    assert shown == []


# --- the card ------------------------------------------------------------------------------------------

TOKENS = np.array([[1, 0.2], [-0.4, 1.1], [0.6, -0.8], [-1.2, -0.3], [0.3, 0.9], [0.9, -0.5]])
ROW, J = np.ogrid[:6, :6]
MASKS = {
    "causal": J <= ROW,
    "window": (J <= ROW) & (ROW - J <= 2),
    "padding": (J < 4) & (ROW >= 0),
    "both": (J <= ROW) & (J < 4),
    "transposed": J >= ROW,
    "wide": J <= ROW + 1,
    "empty": np.zeros((6, 6), dtype=bool),
}
NAMES = ["causal", "window of 2", "padding", "causal and padding", "transposed", "one column too wide", "all hidden"]


def naive_weights(x, mask, after=False, queries=False) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    weights = np.zeros((6, 6))
    for i, j in np.ndindex(6, 6):
        group = [(r, j) if queries else (i, r) for r in range(6)]
        terms = {pair: math.exp(x[pair[0]] @ x[pair[1]] / math.sqrt(2)) for pair in group if mask[pair] or after}
        weights[i, j] = terms.get((i, j), 0.0) / sum(terms.values()) if terms and mask[i, j] else 0.0
    return weights


def leaks_of(mask, **wrong) -> np.ndarray:
    return np.triu(leak_matrix(lambda x: naive_weights(x, mask, **wrong) @ x, TOKENS) > 1e-9, k=1)


def test_the_words_of_the_card_hold_true_counts():
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', (PARTS / "mask_words.html").read_text(encoding="utf-8"))
    assert [row[0] for row in rows] == NAMES
    for (_, cells), mask in zip(rows, MASKS.values(), strict=True):
        counts = [leaks_of(mask, **wrong).sum() for wrong in ({}, {"after": True}, {"queries": True})]
        assert [int(cell) for cell in re.findall(r"<td>(.*?)</td>", cells)] == counts


@pytest.mark.browser
@pytest.mark.parametrize("wrong", [{}, {"after": True}, {"queries": True}, {"after": True, "queries": True}])
def test_the_numbers_of_the_card_are_those_of_python(page, wrong):
    page.set_content(explorable_html("mask", "mask"))
    call = "([m, s, w]) => document.getElementById('attn-mask').explorable.describe(m, s, w)"
    painted = np.random.default_rng(7).random((6, 6)) < 0.5
    painted[2] = False
    for mask in (*MASKS.values(), painted):
        shown = page.evaluate(call, [mask.tolist(), 1.3, wrong])
        moved = TOKENS + np.array([1.3, 0.0]) * (np.arange(6) == 5)[:, None]
        weights = naive_weights(moved, mask, **wrong)
        np.testing.assert_allclose(shown["weights"], weights, atol=1e-12)
        np.testing.assert_allclose(shown["output"], weights @ moved, atol=1e-12)
        np.testing.assert_allclose(shown["sums"], weights.sum(axis=1), atol=1e-12)
        before = naive_weights(TOKENS, mask, **wrong) @ TOKENS
        np.testing.assert_allclose(shown["change"], np.linalg.norm(weights @ moved - before, axis=1), atol=1e-12)
        assert np.array_equal(shown["leaks"], leaks_of(mask, **wrong))


@pytest.mark.browser
def test_the_presets_are_what_they_are_called(page):
    page.set_content(explorable_html("mask", "mask"))
    presets = page.evaluate("() => document.getElementById('attn-mask').explorable.presets")
    assert {name: np.array(mask).tolist() for name, mask in presets.items()} == {name: mask.tolist() for name, mask in MASKS.items()}


@pytest.mark.browser
def test_arrows_walk_the_space_bar_paints_and_the_tab_key_enters_the_grid_once(page):
    page.set_content(explorable_html("mask", "mask"))
    cells = page.locator("[data-cell]")
    assert cells.evaluate_all("cells => cells.filter((cell) => cell.tabIndex === 0).length") == 1
    page.get_by_role("button", name="Softmax over the queries").focus()
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query 0, key 2: hidden"
    page.keyboard.press("Space")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    mask = MASKS["causal"].copy()
    mask[0, 2] = True
    assert label == f"query 0, key 2: visible, weight {naive_weights(TOKENS, mask)[0, 2]:.2f}, leak"
    assert page.locator("[data-fact=leaks]").inner_text() == "1"
    page.keyboard.press("Space")
    assert page.locator("[data-fact=leaks]").inner_text() == "0"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query 0, key 5: hidden"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"


@pytest.mark.browser
def test_the_buttons_tell_of_leaks_empty_rows_and_sums(page):
    page.set_content(explorable_html("mask", "mask"))
    status = page.get_by_role("status")
    status.get_by_text("No leak. Queries that see nothing: none.").wait_for()
    page.get_by_role("slider", name="move the last token").fill("1.5")
    status.get_by_text("Moving the last token by 1.5 moves the outputs 5.").wait_for()
    page.get_by_role("button", name="Mask after the softmax").click()
    status.get_by_text(
        "15 of 15 later pairs leak. Queries that see nothing: none. Moving the last token by 1.5 moves the outputs 0, 1, 2"
    ).wait_for()
    assert page.locator("[data-fact=sums]").inner_text() == "0, 1, 2, 3, 4"
    page.get_by_role("button", name="Mask after the softmax").click()
    page.get_by_role("button", name="All hidden").click()
    assert page.locator("[data-fact=empty]").inner_text() == "0, 1, 2, 3, 4, 5"
    page.get_by_role("button", name="One column too wide").click()
    assert page.locator("[data-leak]").count() == 5
    assert page.get_by_role("button", name="One column too wide").get_attribute("aria-pressed") == "true"


@pytest.mark.browser
def test_jupyterlab_leaves_the_keys_of_every_control_to_the_card(page):
    page.set_content(explorable_html("mask", "mask"))
    focusable = page.locator(".attn-live :is(input, button)")
    assert set(focusable.evaluate_all("elements => elements.map(element => element.dataset.lmSuppressShortcuts)")) == {"true"}


@pytest.mark.browser
def test_nothing_sticks_out_at_any_width(page):
    page.set_content(f'<!doctype html><body data-jp-theme-light="true">{explorable_html("mask", "mask")}</body>')
    for width in (340, 700, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
