"""Diagrams in a real browser: legible in both themes, no wider than their page, and their words alone where styles are dropped."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.figures.drawing import contrast
from attn_course.figures.machines.aligner import aligner
from attn_course.figures.machines.latent import latent_flow
from attn_course.figures.machines.masked import masked
from attn_course.figures.machines.memory import memory
from attn_course.figures.machines.orders import orders
from attn_course.figures.machines.paddings import paddings
from attn_course.figures.machines.paths import paths
from attn_course.figures.machines.whole import PLACES, machine, machine_drawing
from attn_course.sentence import KEY, QUERY, TOKENS

pytestmark = pytest.mark.browser
MACHINE = machine_drawing("attention", {"T": 4, "d_k": 3, "d_v": 2}).html
GROUND = {"light": "#ffffff", "dark": "#111111"}

# Of each text: its words, its colour, the colour and opacity of the box behind it if there is one, and its size on the page.
TEXTS = """() => {
  const turn = (shape) => shape.closest('.attn-turn');
  const boxes = [...document.querySelectorAll('.attn-box, .attn-node')].map((box) => [box, turn(box), box.getBoundingClientRect()]);
  const within = (inner, outer) =>
    inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
  return [...document.querySelectorAll('svg text')].map((text) => {
    const area = text.getBoundingClientRect();
    const [box] = boxes.find(([, seen, around]) => (!seen || seen === turn(text)) && within(area, around)) || [];
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
    return np.array([float(number) for number in re.findall(r"[\d.]+", colour)[:3]]) / 255


@pytest.fixture
def drawings(shown) -> str:
    machine("attention", {"T": 4, "d_k": 3, "d_v": 2})
    machine("two-inputs")
    paths(TOKENS, 1)
    paddings(["9", "May", "1998"], ["19", "98"], (5, 4))
    latent_flow(absorbed=False)
    latent_flow(absorbed=True)
    orders(6, 2)
    memory(3, 4, (2, 3))
    aligner()
    masked(TOKENS, QUERY[0] @ KEY[0].T, np.tri(7), query=4)
    return "".join(drawn.html for drawn in shown[::2])


@pytest.mark.parametrize("theme", GROUND)
def test_every_text_is_large_and_dark_enough_and_the_page_is_no_wider_than_the_window(page, drawings, theme):
    page.set_content(page_with(theme, drawings))
    ground = np.array([int(GROUND[theme][start : start + 2], 16) for start in (1, 3, 5)]) / 255
    for width in (400, 700, 1300):
        page.set_viewport_size({"width": width, "height": 700})
        texts = page.evaluate(TEXTS)
        assert len(texts) == drawings.count("<text")
        assert any(text["behind"] for text in texts)
        for text in texts:
            share = float(text["opacity"]) if text["behind"] else 0.0
            below = share * channels(text["behind"]) + (1 - share) * ground if text["behind"] else ground
            assert contrast(channels(text["colour"]), below) >= 4.5, text
            assert text["size"] >= 12, text
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


TURNS = "turns => turns.map(turn => [getComputedStyle(turn).visibility, getComputedStyle(turn).animationName])"


def test_steps_play_only_when_asked_and_not_where_motion_is_unwanted(page, drawings):
    page.set_content(page_with("light", drawings))
    turns = page.locator("#attn-memory-2-3 .attn-turn")
    still = [["hidden", "none"], ["hidden", "none"], ["visible", "none"], ["hidden", "none"]]
    assert turns.evaluate_all(TURNS) == still
    play = page.locator("#attn-memory-2-3").get_by_label("play it step by step")
    assert play.locator("..").bounding_box()["height"] >= 44
    play.focus()
    page.keyboard.press("Space")
    assert [name for _, name in turns.evaluate_all(TURNS)] == [f"attn-{turn}-{turn}-of-4" for turn in range(1, 5)]
    page.evaluate("document.getAnimations().forEach(move => { move.pause(); move.currentTime = 1.5 * 1100; })")
    assert [look for look, _ in turns.evaluate_all(TURNS)] == ["hidden", "visible", "hidden", "hidden"]
    assert page.locator("#attn-paths-7-1 .attn-turn").evaluate_all(TURNS) == [["hidden", "none"]] * 8
    page.emulate_media(reduced_motion="reduce")
    assert turns.evaluate_all(TURNS) == still
    expect(play).to_be_hidden()


def test_each_part_of_the_linked_machine_can_be_clicked_and_reached_by_keyboard_in_its_order(page):
    links = {place: (f"#{place}", f"to {place}") for place in PLACES}
    page.set_content(page_with("dark", machine_drawing("whole", links=links).html))
    for place in PLACES:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=f"to {place}", exact=True)).to_be_focused()
    page.get_by_role("link", name="to softmax").click()
    assert page.url.endswith("#softmax")
    word, frame = page.locator("text", has_text="softmax").bounding_box(), page.get_by_role("link", name="to softmax").bounding_box()
    assert frame["x"] < word["x"] < word["x"] + word["width"] < frame["x"] + frame["width"]
    assert frame["y"] < word["y"] < word["y"] + word["height"] < frame["y"] + frame["height"]


def test_without_its_style_only_the_caption_is_left(page):
    page.set_content(page_with("light", MACHINE))
    expect(
        page.get_by_role("img", name="The machine with its query, key, value, scores, scale, softmax, weights and output lit")
    ).to_be_visible()
    page.set_content(page_with("light", re.sub("<style>.*?</style>", "", MACHINE, flags=re.DOTALL)))
    expect(page.locator("svg")).to_be_hidden()
    expect(page.get_by_text("queries meet keys")).to_be_visible()
    page.set_content(page_with("light", MACHINE + re.sub("<style>.*?</style>|</?svg[^>]*>", "", MACHINE, flags=re.DOTALL)))
    expect(page.locator(".attn-frame").first).to_be_visible()
    expect(page.locator(".attn-frame").last).to_be_hidden()
    assert re.search(r'hidden="[^"]+"', MACHINE), "JupyterLab takes an attribute without a value away"
