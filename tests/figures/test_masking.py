"""The figures of lesson masking say what their masks say, and its card finds the leaks that Python finds."""

import math
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.masking import figures
from attn_course.reference import leak_matrix
from attn_course.sentence import TOKENS, X
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

TRIANGLE = np.tri(5) > 0
PATTERNS, LEAKS = figures.combined, figures.leak_maps
INFLUENCES = {"right": 0.3 * TRIANGLE, "wide": np.tri(5, k=1), "everywhere": np.full((5, 5), 1e-3)}

DRAWN = [
    (
        partial(PATTERNS, {"causal": TRIANGLE, "all": np.ones((5, 5), dtype=bool), "wide": np.tri(3, 5, k=2) > 0}),
        [
            "causal: 15 of 25 pairs visible, by rows 1, 2, 3, 4, 5. all: 25 of 25 pairs visible, 5 in each row. ",
            "wide: 12 of 15 pairs visible, by rows 3, 4, 5.",
        ],
    ),
    (partial(PATTERNS, {f"mask {n}": np.tri(20, k=n) > 0 for n in range(6)}), ["mask 5: 295 of 400 pairs visible"]),
    (
        partial(LEAKS, INFLUENCES, TRIANGLE),
        ["of 10 pairs that must not influence each other do: right 0, wide 4, everywhere 10."],
    ),
    (partial(LEAKS, INFLUENCES, TRIANGLE, at_least=0.01), ["right 0, wide 4, everywhere 0."]),
    (
        partial(figures.aligned, {"top left": np.tri(2, 6) > 0, "bottom right": np.tri(2, 6, k=4) > 0}),
        ["top left: 3 of 12 pairs visible, by rows 1, 2. bottom right: 11 of 12 pairs visible, by rows 5, 6."],
    ),
    (
        partial(figures.reach, {"L = 1": np.tri(5) - np.tri(5, k=-2) > 0, "L = 4": TRIANGLE}),
        ["L = 1: 9 of 25 pairs visible, by rows 1, 2, 2, 2, 2. L = 4: 15 of 25 pairs visible"],
    ),
    (
        partial(figures.told_and_written, ["right", "after the softmax"], [0.12, 0.25], [1.0, 0.5]),
        ["Bars for 2 masks, ", "right 0.12 and 1.00; after the softmax 0.25 and 0.50."],
    ),
]
REFUSED = [
    (partial(PATTERNS, {}), "masks must hold at least one pattern"),
    (partial(PATTERNS, {"a": [True]}), r"masks\['a'\] must have 2 axes"),
    (partial(LEAKS, {"a": np.zeros((5, 4))}, TRIANGLE), r"influences\['a'\] must have shape \(5, 5\); got \(5, 4\)"),
    (partial(LEAKS, {}, TRIANGLE), "influences must hold at least one"),
    (partial(figures.told_and_written, ["right"], [1.0, 0.5], [1.0]), r"told must have shape \(1,\); got \(2,\)"),
]


class TestPictures(Pictures):
    """Masks and leaks."""


# --- the card ------------------------------------------------------------------------------------------

ROW, J = np.ogrid[:7, :7]
SHIFT = 1.3 * np.outer(np.arange(7) == 6, [0.7, -0.4, 0.3, 0.5, -0.6])
MASKS = {
    "causal": J <= ROW,
    "window": (J <= ROW) & (ROW - J <= 2),
    "padding": (J < 5) & (ROW >= 0),
    "both": (J <= ROW) & (J < 5),
    "transposed": J >= ROW,
    "wide": J <= ROW + 1,
    "empty": np.zeros((7, 7), dtype=bool),
}
NAMES = ["causal", "window of 2", "padding", "causal and padding", "transposed", "one column too wide", "all hidden"]


def naive_weights(x, mask, after=False, queries=False) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    weights = np.zeros((7, 7))
    for i, j in np.ndindex(7, 7):
        group = [(r, j) if queries else (i, r) for r in range(7)]
        terms = {pair: math.exp(x[pair[0]] @ x[pair[1]] / math.sqrt(5)) for pair in group if mask[pair] or after}
        weights[i, j] = terms.get((i, j), 0.0) / sum(terms.values()) if terms and mask[i, j] else 0.0
    return weights


def leaks_of(mask, **wrong) -> np.ndarray:
    return np.triu(leak_matrix(lambda x: naive_weights(x, mask, **wrong) @ x, X) > 1e-9, k=1)


def test_the_words_of_the_card_hold_true_counts():
    rows = rows_of_card("mask")
    assert [name for name, _ in rows] == NAMES
    for (_, cells), mask in zip(rows, MASKS.values(), strict=True):
        counts = [leaks_of(mask, **wrong).sum() for wrong in ({}, {"after": True}, {"queries": True})]
        assert [int(cell) for cell in cells] == counts


@pytest.mark.browser
@pytest.mark.parametrize("wrong", [{}, {"after": True}, {"queries": True}, {"after": True, "queries": True}])
def test_the_numbers_of_the_card_are_those_of_python(page, wrong):
    page.set_content(card_html("mask"))
    painted = np.random.default_rng(7).random((7, 7)) < 0.5
    painted[2] = False
    for mask in (*MASKS.values(), painted):
        moved = X + SHIFT
        weights = naive_weights(moved, mask, **wrong)
        change = np.linalg.norm(weights @ moved - naive_weights(X, mask, **wrong) @ X, axis=1)
        wanted = {
            "weights": weights,
            "output": weights @ moved,
            "sums": weights.sum(axis=1),
            "change": change,
            "leaks": leaks_of(mask, **wrong),
        }
        assert_described(page, "mask", (mask.tolist(), 1.3, wrong), wanted, atol=1e-12)


@pytest.mark.browser
def test_rows_are_the_tokens_and_the_presets_what_they_are_called(page):
    page.set_content(card_html("mask"))
    assert page.evaluate("() => document.getElementById('attn-mask').explorable.names") == list(TOKENS)
    assert page.locator("[data-grid] th[scope=row]").all_inner_texts() == list(TOKENS)
    presets = page.evaluate("() => document.getElementById('attn-mask').explorable.presets")
    assert {name: np.array(mask).tolist() for name, mask in presets.items()} == {name: mask.tolist() for name, mask in MASKS.items()}


@pytest.mark.browser
def test_arrows_walk_the_space_bar_paints_and_the_tab_key_enters_the_grid_once(page):
    page.set_content(card_html("mask"))
    cells = page.locator("[data-cell]")
    assert cells.evaluate_all("cells => cells.filter((cell) => cell.tabIndex === 0).length") == 1
    page.get_by_role("button", name="Softmax over the queries").press("Tab")
    page.keyboard.press("Tab")  # past Reset
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query the, key sat: hidden"
    page.keyboard.press("Space")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    mask = MASKS["causal"].copy()
    mask[0, 2] = True
    assert label == f"query the, key sat: visible, weight {naive_weights(X, mask)[0, 2]:.2f}, leak"
    assert page.locator("[data-fact=leaks]").inner_text() == "1"
    page.keyboard.press("Space")
    assert page.locator("[data-fact=leaks]").inner_text() == "0"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query the, key tired: hidden"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"


@pytest.mark.browser
def test_the_buttons_tell_of_leaks_empty_rows_and_sums(page):
    page.set_content(card_html("mask"))
    status = page.get_by_role("status")
    status.get_by_text("The mask stands before the softmax: no leak. Queries that see nothing: none.").wait_for()
    page.get_by_role("slider", name="move the last token").fill("1.5")
    status.get_by_text("Moving “tired” by 1.5 moves the outputs of: tired.").wait_for()
    page.get_by_role("button", name="Mask after the softmax").click()
    status.get_by_text(
        "after the softmax: 21 of 21 later pairs leak. Queries that see nothing: none. "
        "Moving “tired” by 1.5 moves the outputs of: the, cat, sat, "
    ).wait_for()
    assert page.locator("[data-fact=sums]").inner_text() == ", ".join(TOKENS[:6])
    page.get_by_role("button", name="Mask after the softmax").click()
    page.get_by_role("button", name="All hidden").click()
    assert page.locator("[data-fact=empty]").inner_text() == ", ".join(TOKENS)
    page.get_by_role("button", name="One column too wide").click()
    assert page.locator("[data-leak]").count() == 6
    assert page.get_by_role("button", name="One column too wide").get_attribute("aria-pressed") == "true"
