"""The attention viewer by keyboard alone, wide and on a phone: its numbers are NumPy's, and 500 tokens fit."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attn_course.figures.explorable import whole_page
from attn_course.figures.viewer import attention_page, text_of, viewer
from attn_course.language.maps import TEXTS, smollm2_maps
from tests.browser.notebook_page import UNMOVED, NotebookPage, open_page, required_browser
from tests.browser.test_every_page import faults

pytestmark = pytest.mark.browser
SIZES = {1300: "light", 400: "dark"}
FOCUSED = "() => document.activeElement.dataset.box ?? `pick ${document.activeElement.dataset.pick}`"
ROWS = "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
SPOTS = """() => [...document.querySelectorAll('.view-map .view-cell, .view-heads .view-cell')].map(({ style, parentElement }) => {
    const [{ width, height }, share] = [parentElement.firstChild, (text) => parseFloat(text) / 100];
    return [share(style.left) * width, share(style.top) * height];
})"""
CLICK = """(canvas, [x, y]) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new MouseEvent('click', { clientX: left + x * width, clientY: top + y * height, bubbles: true }));
}"""
MIDDLE = """([kind, x, y]) => document.querySelector(`.view-${kind} canvas`).getContext('2d').getImageData(x, y, 1, 1).data[3]"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookPage]:
    with open_page(required_browser(), tmp_path_factory.mktemp("profile"), UNMOVED) as page:
        yield page


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real model's three texts, open at the head that finds the cat."""
    path = tmp_path_factory.mktemp("pages") / "real.html"
    card = viewer([text_of(**smollm2_maps(text)) for text in TEXTS], layer=13, head=8, query=4)
    path.write_text(whole_page("viewer", card._repr_html_()), encoding="utf-8")
    return path


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    for _ in range(12):
        page.keyboard.press(key)
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"no Tab leads to {name!r}")


def assert_shows(page: Page, text: int, layer: int, head: int, query: int, key: int) -> None:
    """The card shows this pair: in words, in the table with NumPy's numbers, and in both pictures."""
    tokens, weights, values = smollm2_maps(TEXTS[text]).values()
    row, norms = weights[layer, head, query], values[layer, head]
    terms = np.round(row, 4) * [float(f"{norm:.3g}") for norm in norms]
    shares = 100 * terms / terms.sum()
    names = [f"“{tokens[place].strip()}”" for place in (query, key)]
    said = f"the query {names[0]} gives the key {names[1]} the weight {row[key]:.3f}. Times the norm of its value, "
    where = rf"Layer {layer}, head {head}(, \d+\w\w of 270 for this pair)?: "
    assert re.match(where + re.escape(said), page.locator("[data-says]").inner_text())
    found = page.locator(".view-row tbody tr").evaluate_all(ROWS)
    shown = [int(cells[0].rpartition("(")[2].rstrip(")")) for cells in found if not cells[0].startswith("the other")]
    for place, (name, weight, norm, share) in zip(shown, found, strict=False):
        assert (name, weight) == (f"{tokens[place].strip()} ({place})", f"{row[place]:.3f}")
        assert float(norm) == float(f"{norms[place]:.3g}")
        # a letter of the script may be one ten-thousandth off
        assert share != "<1 %" or 0 < shares[place] < 0.51
        assert abs(int(share.replace("<1", "0").removesuffix(" %")) - shares[place]) < 0.51
    assert key in shown
    assert {*np.argsort(-row)[:3]} <= {*shown}
    gets, brings = (100 * numbers[1:, 0].mean() for numbers in (weights[layer, head], brought(weights[layer, head], norms)))
    gets, brings = ("<1" if 0 < share < 0.5 else f"{share:.0f}" for share in (gets, brings))
    sink = f"the first token gets {gets} % of this head’s weight, and is {brings} % of what they are brought."
    assert sink in page.locator("[data-says]").inner_text()
    selected = page.locator(".view-text [aria-selected=true]")
    assert (selected.count(), selected.inner_text()) == (1, tokens[query].removeprefix(" "))
    side = len(tokens) + 1
    np.testing.assert_allclose(page.evaluate(SPOTS), [[key, query], [layer * side, head * side]], atol=0.01)
    for kind, x, y in (("map", key, query), ("heads", layer * side + key, head * side + query)):
        assert abs(page.evaluate(MIDDLE, [kind, x, y]) - 255 * np.sqrt(max(row[key], 0.002 * (kind == "heads")))) < 2


def brought(weights: np.ndarray, norms: np.ndarray) -> np.ndarray:
    terms = weights * norms
    return terms / terms.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("width", SIZES)
def test_every_head_layer_and_token_is_reached_by_keyboard(browser: NotebookPage, real: Path, width: int):
    page, weights = browser.page, smollm2_maps(TEXTS[0])["weights"]
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=SIZES[width], reduced_motion="reduce")
    page.goto(real.as_uri())
    assert_shows(page, 0, 13, 8, 4, 1)
    page.get_by_role("button", name="Find heads").press("Enter")  # the best is there already
    assert_shows(page, 0, *divmod(int(np.argsort(-weights[..., 4, 1].ravel(), kind="stable")[1]), 9), 4, 1)
    expect(page.locator("[data-says] b")).to_contain_text(", 2nd of 270 for this pair")
    page.keyboard.press("Shift+B")
    assert_shows(page, 0, 13, 8, 4, 1)
    keys = page.get_by_role("button", name="Keyboard")
    for shown in (True, False):
        keys.press("Enter")
        expect(page.locator(".view-keys")).to_be_visible(visible=shown)
        expect(keys).to_have_attribute("aria-expanded", str(shown).lower())
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "text")
    expect(page.locator(".view-text")).to_have_css("outline-style", "solid")
    page.keyboard.press("h")
    assert_shows(page, 0, 14, 0, 4, 1)
    for key in ("Shift+H", "l", "l", "Shift+L"):
        page.keyboard.press(key)
    assert_shows(page, 0, 14, 8, 4, 1)
    page.keyboard.press("ArrowRight")
    assert_shows(page, 0, 14, 8, 5, int(weights[14, 8, 5].argmax()))
    for key in ("Shift+Home", "Shift+ArrowRight", "b"):
        page.keyboard.press(key)
    order = np.argsort(-weights[..., 5, 1].ravel(), kind="stable")
    assert_shows(page, 0, *divmod(int(order[0]), 9), 5, 1)
    page.keyboard.press("b")
    assert_shows(page, 0, *divmod(int(order[1]), 9), 5, 1)
    tab_to(page, "map")
    for key in ("ArrowUp", "ArrowLeft", "End", "ArrowLeft"):
        page.keyboard.press(key)
    assert_shows(page, 0, *divmod(int(order[1]), 9), 4, 6)
    tab_to(page, "heads")
    for key in ("Home", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    head = int(order[1]) % 9 - 1
    assert_shows(page, 0, 1, head, 4, 6)
    expect(page.get_by_role("status")).to_contain_text(f"Layer 1, head {head}: the query “it” gives the key “tired” the weight 0.000.")
    page.keyboard.press("v")
    shares = brought(weights[1, head], smollm2_maps(TEXTS[0])["values"][1, head])
    alphas = [page.evaluate(MIDDLE, ["map", key, 4]) for key in range(5)]
    np.testing.assert_allclose(alphas, 255 * np.sqrt(shares[4, :5]), atol=3)
    tab_to(page, "pick text", "Shift+Tab")
    for key in ("v", "ArrowDown"):
        page.keyboard.press(key)
    last = smollm2_maps(TEXTS[1])["weights"][1, head, -1]
    assert_shows(page, 1, 1, head, len(last) - 1, int(last.argmax()))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []


def test_a_click_chooses_what_is_under_it(browser: NotebookPage, real: Path):
    page = browser.page
    page.goto(real.as_uri())

    def click(kind: str, column: int, row: int, columns: int, rows: int) -> None:
        """Click into the middle of a cell, wherever it is on the page."""
        page.locator(f".view-{kind} canvas").evaluate(CLICK, [(column + 0.5) / columns, (row + 0.5) / rows])

    click("map", 2, 6, 8, 8)
    assert_shows(page, 0, 13, 8, 6, 2)
    click("heads", 29, 3, 30, 9)
    assert_shows(page, 0, 29, 3, 6, 2)
    page.locator(".view-text span").nth(0).dispatch_event("click", {"shiftKey": True})
    assert_shows(page, 0, 29, 3, 6, 0)
    page.locator(".view-text span").nth(5).dispatch_event("click")
    assert_shows(page, 0, 29, 3, 5, int(smollm2_maps(TEXTS[0])["weights"][29, 3, 5].argmax()))


def test_500_tokens_fit_in_sight_and_in_reach(browser: NotebookPage, tmp_path: Path):
    n = 500
    terms = np.tril(np.random.default_rng(0).exponential(size=(2, 2, n, n)) ** 4)
    weights = terms / terms.sum(axis=-1, keepdims=True)
    path = tmp_path / "long.html"
    path.write_text(attention_page([f" word{place}" for place in range(n)], weights), encoding="utf-8")
    assert list(faults(browser, path)) == []
    page = browser.page
    page.locator(".view-text").focus()
    page.keyboard.press("ArrowLeft")
    row = weights[0, 0, n - 2]
    order = np.argsort(-row)[:8]
    found = page.locator(".view-row tbody tr").evaluate_all(ROWS)
    assert found[:8] == [[f"word{place} ({place})", f"{row[place]:.3f}"] for place in order]
    assert found[8][0] == f"the other {n - 8}"
    assert float(found[8][1]) == pytest.approx(1 - row[order].sum(), abs=0.03)  # hundreds of weights of four digits
    chosen, box = page.locator(".view-text [aria-selected=true]").bounding_box(), page.locator(".view-text").bounding_box()
    assert chosen is not None
    assert box is not None
    assert box["y"] <= chosen["y"] <= box["y"] + box["height"] - chosen["height"]
