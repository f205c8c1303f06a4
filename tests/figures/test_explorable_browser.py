"""Cards in a real browser: by keyboard, in both themes, twice on a page, and the softmax card with numbers equal to Python's."""

import math
import re
from colorsys import rgb_to_hsv as hsv
from itertools import zip_longest

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from playwright.sync_api import expect

from attn_course.figures.drawing import contrast
from attn_course.figures.palette import ROLES
from attn_course.reference.softmax import softmax, softmax_jacobian
from tests.figures.support import CARDS, WITHOUT_SLIDERS, card_html, described

pytestmark = pytest.mark.browser
CARD = card_html("softmax")


def weights_shown(page, slug="softmax") -> list[str]:
    return page.locator(f"#attn-{slug} [data-weight]").all_inner_texts()


def expected_weights(*scores, temperature=1.0) -> list[str]:
    return [f"{weight:.3f}" for weight in softmax(np.array(scores, dtype=float), temperature=temperature)]


def theme_page(theme: str, body: str = CARD) -> str:
    return f'<!doctype html><html lang="en"><title>card</title><body data-jp-theme-light="{theme}">{body}</body></html>'


def test_the_arrow_keys_move_a_slider_and_every_number_follows(page):
    page.set_content(CARD)
    assert weights_shown(page) == expected_weights(2, 1, 0, -1)
    page.keyboard.press("Tab")
    slider = page.get_by_role("slider", name="score z 1")
    expect(slider).to_be_focused()
    assert slider.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "2.7")
    weights = softmax(np.array([2.7, 1.0, 0.0, -1.0]))
    jacobian = np.diag(weights) - np.outer(weights, weights)
    assert weights_shown(page) == expected_weights(2.7, 1, 0, -1)
    assert page.locator("[data-fact=entropy]").inner_text() == f"{-(weights * np.log(weights)).sum():.3f}"
    assert page.locator("[data-fact=largest]").inner_text() == f"{weights.max():.3f}"
    assert page.locator("[data-fact=norm]").inner_text() == f"{np.linalg.norm(jacobian, 2):.3f}"
    cells = [float(text.replace("−", "-")) for text in page.locator(".attn-cell").all_inner_texts()]
    np.testing.assert_allclose(np.reshape(cells, (4, 4)), jacobian, atol=5.01e-4)


def test_buttons_work_by_keyboard_and_show_their_cases(page):
    page.set_content(CARD)
    for name, numbers in (
        ("Uniform", ["0.250"] * 4),
        ("Tie", ["0.500", "0.500", "0.000", "0.000"]),
        ("Reset", expected_weights(2, 1, 0, -1)),
    ):
        page.get_by_role("button", name=name).press("Enter")
        assert weights_shown(page) == numbers
    page.get_by_role("button", name="Tie").click()
    expect(page.get_by_role("status")).to_contain_text("At T = 0.1 the weights are 0.500, 0.500, 0.000, 0.000; largest: s1 and s2.")
    assert page.locator("[data-fact=norm]").inner_text() == "0.500"
    assert page.locator("[data-fact=byScore]").inner_text() == "5.000"
    page.get_by_role("button", name="Uniform").click()
    assert page.locator("[data-fact=entropy]").inner_text() == f"{math.log(4):.3f}"


def test_a_hundred_added_to_every_score_changes_no_weight(page):
    page.set_content(CARD)
    before = weights_shown(page)
    toggle = page.get_by_role("button", name="+100 to all")
    toggle.press("Space")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("slider", name="score z 1")).to_have_attribute("aria-valuetext", "102.0")
    assert weights_shown(page) == before
    expect(page.get_by_role("status")).to_contain_text("With 100 added to every score the weights are the same.")
    page.keyboard.press("Space")
    expect(page.get_by_role("slider", name="score z 1")).to_have_attribute("aria-valuetext", "2.0")


def test_the_numbers_are_those_of_python(page):
    page.set_content(CARD)
    rng = np.random.default_rng(11)
    cases = [(rng.normal(scale=scale, size=4), t) for scale in (0.1, 1.0, 5.0, 500.0) for t in (0.05, 0.7, 1.0, 20.0)]
    cases += [
        (np.zeros(4), 1.0),
        (np.array([2.0, 2.0, 0.0, -1.0]), 0.05),
        (np.array([1e308, -1e308, 0.0, 1.0]), 1.0),
        (np.full(4, -800.0), 1.0),
    ]
    for scores, temperature in cases:
        shown = described(page, "softmax", scores.tolist(), temperature)
        weights = softmax(scores, temperature=temperature)
        positive = weights[weights > 0]
        jacobian = softmax_jacobian(weights)
        np.testing.assert_allclose(shown["weights"], weights, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(shown["jacobian"], jacobian, rtol=0, atol=1e-12)
        assert shown["entropy"] == pytest.approx(-(positive * np.log(positive)).sum(), abs=1e-12)
        assert shown["largest"] == pytest.approx(weights.max(), abs=1e-12)
        assert shown["norm"] == pytest.approx(np.linalg.norm(jacobian, 2), abs=1e-12)
        assert shown["byScore"] == pytest.approx(np.linalg.norm(jacobian, 2) / temperature, abs=1e-10)


def test_a_card_shown_again_by_a_front_end_comes_alive_again(page):
    page.set_content("<main></main>")
    again = """html => {
        const host = document.createElement("div");
        host.innerHTML = html;
        for (const dead of host.querySelectorAll("script")) {
            const script = document.createElement("script");
            script.textContent = dead.textContent;
            dead.replaceWith(script);
        }
        document.querySelector("main").append(host);
    }"""
    for count in (1, 2):
        page.evaluate(again, CARD)
        expect(page.locator("[data-alive] .attn-live")).to_have_count(count)
        expect(page.get_by_role("slider", name="temperature")).to_have_count(count)


def test_where_no_script_runs_to_its_end_the_words_stand_alone(browser):
    cards = {name: card_html(name) for name in CARDS}
    broken = {"a broken script": CARD.replace("data-temperature min", "data-renamed min"), "no data": card_html("asks")}
    for scripts, pages in ((False, cards), (True, broken)):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        for name, html in pages.items():
            page.set_content(html)
            expect(page.get_by_text("Scripts do not run here"), name).to_be_visible()
            expect(page.locator("input, button"), name).to_have_count(0)
        context.close()


def colour(text: str) -> tuple[float, ...]:
    """Read rgb(1, 2, 3) or color(srgb 0.1 0.2 0.3)."""
    numbers = tuple(float(part) for part in re.findall(r"[\d.]+", text.removeprefix("color(srgb"))[:3])
    return numbers if text.startswith("color(srgb") else tuple(number / 255 for number in numbers)


@pytest.mark.parametrize("theme", ["true", "false"])
def test_every_cell_can_be_read_in_both_themes(page, theme):
    page.set_content(theme_page(theme))
    for preset in ("Tie", "Reset", "Uniform"):
        page.get_by_role("button", name=preset).click()
        pairs = page.locator(".attn-cell").evaluate_all(
            "cells => cells.map(cell => [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor])"
        )
        assert len(pairs) == 16
        assert min(contrast(colour(front), colour(back)) for front, back in pairs) > 4.5


def test_a_page_without_a_theme_follows_the_system(page):
    page.set_content(CARD)
    papers = []
    for system in ("light", "dark"):
        page.emulate_media(color_scheme=system)
        papers.append(colour(page.locator(".attn-explorable").evaluate("element => getComputedStyle(element).backgroundColor")))
    assert papers[0] == (1.0, 1.0, 1.0)
    assert contrast(papers[1], "white") > 10


def test_bars_keep_their_room_at_any_width(page):
    page.set_content(theme_page("true"))
    for width in (340, 700, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        grooves = page.locator(".attn-groove").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
        assert min(grooves) > 80


# --- every card ----------------------------------------------------------------------------------------


def card(name: str, slug: str) -> str:
    """The card as a lesson shows it: those of asks, of heads and of looks are given their data."""
    looks = {"tokens": ["the", "cat", "it"], "first": 2, "weights": [[1, 0, 0], [0.3, 0.7, 0], [0.1, 0.7, 0.2]]}
    asks = {"tokens": ["the", "cat", "it"], "asks": 2, "still": [0, 0, -2], "moved": [0, 2, -1]}
    return card_html(name, slug, {"asks": asks, "looks": looks}.get(name))


SAID = """() => {
    document.querySelectorAll(".attn-summary").forEach((element) => element.hidden = true);
    return document.querySelector(".attn-live").innerText;
}"""
PUT = """(slope) => {
    [...document.querySelectorAll(".attn-live input[type=range]:enabled")].forEach((slider, m) => {
        if (!slider.checkVisibility()) return;
        slider.value = slider.min;
        slider.stepUp(Math.max(1, 3 + slope * m)); // no two are alike
        for (const kind of ["input", "change"]) slider.dispatchEvent(new Event(kind, { bubbles: true }));
    });
    return document.querySelectorAll(".attn-live input[type=range]").length;
}"""


def said(page) -> str:
    """All text of the living card, without the summary that comes a moment later."""
    return page.evaluate(SAID)


@pytest.mark.parametrize("name", sorted(CARDS.keys() - WITHOUT_SLIDERS))
def test_each_slider_of_each_card_answers_the_arrow_keys_in_words_and_numbers(page, name):
    page.set_content(card(name, name))
    sliders = page.locator(".attn-live input[type=range]")
    assert sliders.count() > 0
    for n in range(sliders.count()):
        slider = sliders.nth(n)
        slider.focus()
        assert slider.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
        spoken, before = slider.get_attribute("aria-valuetext"), said(page)
        page.keyboard.press("ArrowRight" if slider.evaluate("element => Number(element.value) < Number(element.max)") else "ArrowLeft")
        assert slider.get_attribute("aria-valuetext") != spoken
        after = said(page)
        assert sum(a != b for a, b in zip_longest(before.split(), after.split())) > 1, "the slider's own number, and another one"


@pytest.mark.parametrize("name", CARDS)
def test_each_button_of_each_card_works_by_keyboard(page, name):
    page.set_content(card(name, name))
    buttons = page.locator(".attn-live button")
    cells = buttons.evaluate_all("buttons => buttons.flatMap((button, n) => button.matches('[data-cell]') ? [n] : [])")
    for n in range(buttons.count()):
        if n not in cells[1:-1]:  # of a grid the first and the last: one function answers for all its cells
            assert any(does_something(page, buttons, n, slope) for slope in (1, -1)), f"button {n} changes nothing"


def does_something(page, buttons, n: int, slope: int) -> bool:
    """Whether a button, pressed with Enter, changes the card; a preset may be where the sliders were put."""
    if page.evaluate(PUT, slope) == 0:  # the reset button has something to undo here, too
        buttons.first.press("Enter")
    button, pressed = buttons.nth(n), "(button) => button.getAttribute('aria-pressed')"
    before = button.evaluate(pressed)
    if before == "true":  # one of several of which one is on: leave it first
        buttons.nth((n + 1) % buttons.count()).press("Enter")
        before = button.evaluate(pressed)
    before = said(page), before
    button.press("Enter")
    return (said(page), button.evaluate(pressed)) != before


@pytest.mark.parametrize("name", CARDS)
def test_each_card_can_be_read_in_both_themes_has_its_keys_to_itself_and_nothing_sticks_out(page, name):
    for theme in ("false", "true"):
        page.emulate_media(color_scheme="dark" if theme == "true" else "light")  # what the theme must overrule
        page.set_content(theme_page(theme, card(name, name)))
        every_text_can_be_read(page, theme)
    # without the mark on the focused element itself, an arrow key moves between JupyterLab's cells and "d d" deletes one
    focusable = page.locator(".attn-live :is(input, button, select, textarea, a, [tabindex])")
    marks = focusable.evaluate_all("elements => elements.map(element => element.getAttribute('data-lm-suppress-shortcuts'))")
    assert set(marks) == {"true"}
    for width in (340, 700, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def every_text_can_be_read(page, theme: str) -> None:
    """Letters stand out from the card, or from the cell they are written on."""
    paper = colour(page.locator(".attn-explorable").evaluate("element => getComputedStyle(element).backgroundColor"))
    assert (contrast(paper, "white") < 1.5) == (theme == "true")
    texts = page.locator(".attn-live :is(legend, label, caption, .attn-heading, .attn-number, dt, dd, th, .attn-title, .attn-summary)")
    fronts = texts.evaluate_all("elements => elements.map(element => getComputedStyle(element).color)")
    assert min(contrast(colour(front), paper) for front in fronts) > 4.5
    cells = page.locator(".attn-cell").evaluate_all(
        "cells => cells.map(cell => [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor])"
    )
    assert min([contrast(colour(front), colour(back)) for front, back in cells], default=21.0) > 4.5
    letters = page.locator(".attn-chart text").evaluate_all(
        """letters => letters.map(letter => {
            const behind = letter.matches("rect + .attn-on-cell") ? letter.previousElementSibling : null;
            return [getComputedStyle(letter).fill, behind && getComputedStyle(behind).fill];
        })"""
    )
    assert min([contrast(colour(front), colour(back) if back else paper) for front, back in letters], default=21.0) > 4.5


@pytest.mark.parametrize("name", sorted(CARDS.keys() - WITHOUT_SLIDERS))
def test_two_of_each_card_do_not_disturb_each_other(page, name):
    page.set_content(card(name, "one") + card(name, "two"))
    still = page.locator("#attn-two .attn-number").all_inner_texts()
    page.locator("#attn-one input[type=range]").first.press("ArrowRight")
    assert page.locator("#attn-one .attn-number").all_inner_texts() != still
    assert page.locator("#attn-two .attn-number").all_inner_texts() == still


# --- what cards share ------------------------------------------------------------------------------------


def test_under_a_finger_every_control_of_every_card_is_44_pixels_and_nothing_sticks_out(browser):
    context = browser.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    for name in CARDS:
        page.set_content(f'<meta name="viewport" content="width=device-width">{card(name, name)}')
        # only what can be seen, and not the cells of a grid, whose neighbours are the way to reach them
        small = page.locator(".attn-live :is(.attn-buttons button, .attn-slider input, select):visible").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).filter(({ width, height }) => Math.min(width, height) < 44).length"
        )
        assert small == 0, name
        assert page.evaluate("document.documentElement.scrollWidth <= 400"), name
    context.close()


@pytest.mark.parametrize("theme", ["true", "false"])
def test_the_colour_of_every_role_is_that_of_the_palette_and_stands_out_from_paper_and_track(page, theme):
    page.set_content(theme_page(theme))
    shown = page.evaluate(
        """names => names.map(name => {
            const root = document.querySelector(".attn-explorable");
            const probe = root.appendChild(document.createElement("i"));
            probe.style.color = `var(--attn-${name})`;
            return getComputedStyle(probe).color;
        })""",
        [*ROLES, "paper", "track"],
    )
    *roles, paper, track = map(colour, shown)
    for role, (name, wanted) in zip(roles, ROLES.items(), strict=True):
        assert min(contrast(role, paper), contrast(role, track)) > 3, name
        if name != "output":  # ink: black on white, light on dark
            assert abs(hsv(*role)[0] - hsv(*to_rgb(wanted))[0]) < 0.02, name
