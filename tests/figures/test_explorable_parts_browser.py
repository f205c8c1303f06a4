"""What the cards leave to explorable.js: play and steps, reset, axes, tried with a card that does nothing else."""

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.figures.explorable import explorable_html

pytestmark = pytest.mark.browser

MOVER = """<section><fieldset><legend>m</legend>
<label class="attn-slider"><span>n</span><input type="range" min="0" max="9" value="2" aria-label="n"><span class="attn-number"></span>
</label></fieldset>
<button type="button" data-play>Play</button>
<button type="button" data-step="-1">Back</button><button type="button" data-step="1">On</button>
<button type="button" data-reset>Reset</button><button type="button" class="fold" aria-pressed="false">Fold</button>
<svg class="attn-chart" viewBox="0 0 340 100"></svg><p class="attn-summary" role="status" aria-live="polite"></p></section>"""
MOVE = """function start(root) {
  const slider = root.querySelector("input");
  const draw = () => { showBeside(slider, slider.value); speak(root, `n is ${slider.value}`); };
  const move = (by) => {
    const before = slider.value;
    slider.value = Number(before) + by;
    draw();
    return slider.value !== before;
  };
  const fold = root.querySelector(".fold");
  fold.addEventListener("click", () => fold.setAttribute("aria-pressed", "true"));
  slider.addEventListener("input", draw);
  onReset(root, draw);
  play(root, { move, rewind() { slider.value = 0; draw(); }, every: 100 });
  const chart = root.querySelector("svg");
  const axes = [{ side: "bottom", span: [40, 330] }, { side: "left", span: [90, 10], log: true }];
  const common = { cross: 60, ticks: [1, [100, "much"]], label: "n (count)" };
  root.explorable = axes.map((axis) => [1, 10, 100].map(drawAxis(chart, { ...axis, ...common })));
  draw();
}"""


@pytest.fixture
def mover(stopped_page, tmp_path):
    for ending, text in {".html": MOVER, ".js": MOVE, ".css": "", "_words.html": "<p>words</p>"}.items():
        (tmp_path / f"mover{ending}").write_text(text, encoding="utf-8")
    page = stopped_page
    page.set_content(explorable_html(tmp_path / "mover", "mover"))
    return page


def shows(page, number: int) -> None:
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", str(number))


def test_play_goes_on_by_itself_ends_at_the_end_and_begins_anew(mover):
    play = mover.get_by_role("button", name="Play")
    play.click()
    mover.clock.run_for(1)
    shows(mover, 3)
    pause = mover.get_by_role("button", name="Pause")
    expect(mover.get_by_role("status")).to_have_attribute("aria-live", "off")
    mover.clock.run_for(250)
    shows(mover, 5)
    pause.press("Enter")
    mover.clock.run_for(1000)
    shows(mover, 5)
    expect(mover.get_by_role("status")).to_have_text("n is 5")
    expect(mover.get_by_role("status")).to_have_attribute("aria-live", "polite")
    play.click()
    mover.clock.run_for(2000)
    shows(mover, 9)
    play.click()
    shows(mover, 0)
    mover.clock.run_for(150)
    shows(mover, 1)


@pytest.mark.parametrize(
    "other",
    [
        lambda page: page.get_by_role("button", name="On").click(),
        lambda page: page.get_by_role("slider").press("ArrowRight"),
        lambda page: page.evaluate("document.querySelector('.attn-explorable').remove()"),
        lambda page: page.evaluate("document.querySelector('.attn-explorable').style.display = 'none'"),
    ],
    ids=["a button", "the slider", "the card leaves", "the card is hidden"],
)
def test_play_stops_for_any_other_control_and_when_the_card_is_gone(mover, other):
    root = mover.evaluate_handle("document.querySelector('.attn-explorable')")
    mover.get_by_role("button", name="Play").click()
    assert root.evaluate("root => root.hasAttribute('data-playing')")
    other(mover)
    mover.evaluate("() => new Promise(done => new IntersectionObserver(done).observe(document.body))")  # an observer has had its turn
    mover.clock.run_for(150)
    assert not root.evaluate("root => root.hasAttribute('data-playing')")


def test_who_asks_for_less_motion_gets_a_step_for_each_press(mover):
    mover.emulate_media(reduced_motion="reduce")
    for number in (3, 4):
        mover.get_by_role("button", name="Play").click()
        mover.clock.run_for(1000)
        shows(mover, number)


def test_steps_and_reset(mover):
    assert mover.get_by_role("button", name="Reset").count() == 0, "there is nothing to undo"
    mover.get_by_role("button", name="Back").press("Enter")
    shows(mover, 1)
    mover.get_by_role("button", name="On").press("Enter")
    mover.get_by_role("button", name="On").press("Enter")
    mover.get_by_role("button", name="Fold").click()
    shows(mover, 3)
    mover.get_by_role("button", name="Reset").press("Enter")
    shows(mover, 2)
    expect(mover.get_by_role("button", name="Fold")).to_have_attribute("aria-pressed", "false")


def test_axes_have_ticks_a_label_and_places(mover):
    bottom, left = mover.evaluate("document.querySelector('.attn-explorable').explorable")
    np.testing.assert_allclose(bottom, [40, 40 + 290 * 9 / 99, 330])
    np.testing.assert_allclose(left, [90, 50, 10])
    assert mover.locator(".attn-chart text").all_text_contents() == ["1", "much", "n (count)"] * 2
