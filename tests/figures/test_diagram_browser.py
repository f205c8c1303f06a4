"""Diagrams in a real browser: legible in both themes, no wider than their page, and their words alone where styles are dropped."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.figures.drawing import contrast
from attn_course.figures.machines.whole import machine_drawing

pytestmark = pytest.mark.browser
MACHINE = machine_drawing("attention", {"T": 4, "d_k": 3, "d_v": 2}).html
GROUND = {"light": "#ffffff", "dark": "#111111"}

# Of each text: its words, its colour, the colour and opacity of the box behind it if there is one, and its size on the page.
TEXTS = """() => {
  const boxes = [...document.querySelectorAll('.attn-box, .attn-node')];
  const within = (inner, outer) =>
    inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
  return [...document.querySelectorAll('svg text')].map((text) => {
    const box = boxes.find((box) => within(text.getBoundingClientRect(), box.getBoundingClientRect()));
    const behind = box && getComputedStyle(box);
    const sizes = [text, ...text.children].map((part) => parseFloat(getComputedStyle(part).fontSize));
    return {
      words: text.textContent, colour: getComputedStyle(text).fill, behind: behind && behind.fill, opacity: behind && behind.fillOpacity,
      size: Math.min(...sizes) * text.getScreenCTM().a,
    };
  });
}"""


def page_with(theme: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}"><title>t</title><body style="background:{GROUND[theme]}">{body}</body></html>'
    )


def channels(colour: str) -> np.ndarray:
    """Return red, green and blue of what a browser calls rgb(...), from 0 to 1."""
    return np.array([float(number) for number in re.findall(r"[\d.]+", colour)[:3]]) / 255


@pytest.mark.parametrize("theme", GROUND)
@pytest.mark.parametrize("width", [400, 700, 1300])
def test_every_text_is_large_and_dark_enough_and_the_page_is_no_wider_than_the_window(page, theme, width):
    page.set_viewport_size({"width": width, "height": 700})
    page.set_content(page_with(theme, MACHINE))
    ground = np.array([int(GROUND[theme][start : start + 2], 16) for start in (1, 3, 5)]) / 255
    texts = page.evaluate(TEXTS)
    assert len(texts) == MACHINE.count("<text")
    assert sum(bool(text["behind"]) for text in texts) == 4
    for text in texts:
        share = float(text["opacity"]) if text["behind"] else 0.0
        below = share * channels(text["behind"]) + (1 - share) * ground if text["behind"] else ground
        assert contrast(channels(text["colour"]), below) >= 4.5, text
        assert text["size"] >= 12, text
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_its_style_only_the_caption_is_left(page):
    page.set_content(page_with("light", MACHINE))
    expect(page.get_by_role("img", name="The machine with its attention lit")).to_be_visible()
    page.set_content(page_with("light", re.sub("<style>.*?</style>", "", MACHINE, flags=re.DOTALL)))
    expect(page.locator("svg")).to_be_hidden()
    expect(page.get_by_text("queries meet keys")).to_be_visible()
    assert re.search(r'hidden="[^"]+"', MACHINE), "JupyterLab takes an attribute without a value away"
