"""Break the machine as somebody sees it: letters that are told, heads one at a time, rings and arrows that stand out, the strip."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect

from attn_course.figures.drawing import contrast
from attn_course.game import build as broken
from attn_course.game.card import page_of_the_machine
from attn_course.game.formulas import TWINS
from tests.figures.test_explorable_browser import colour

pytestmark = pytest.mark.browser
levels = cache(broken.levels)
WIDE = {"width": 1300, "height": 900}
CALL = "(call) => { const desk = document.querySelector('[data-explorable]').explorable; call(desk); desk.refresh(); }"
NAMES = {"Q", "K", "V", "X", "Y", "Z", "O", "M", "W", "e", "if", "or", "max"}  # matrices that are seen by their names, and common signs
FORMULAS = """(root) => [...root.querySelectorAll(".brk-formula")].filter((one) => one.checkVisibility()).map((one) => {
    const told = one.parentElement.querySelector(".brk-legend");
    return [one.innerHTML, one.textContent, [...(told?.querySelectorAll("i") ?? [])].map((sign) => sign.textContent)];
})"""


@pytest.fixture(scope="module")
def shown(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport=WIDE, reduced_motion="reduce")
    page.set_content(page_of_the_machine())
    yield page
    page.close()


@pytest.fixture
def game(shown: Page) -> Page:
    shown.set_viewport_size(WIDE)
    shown.emulate_media(color_scheme="light", reduced_motion="reduce")
    return shown


def level(page: Page, n: int, *, answered: bool = False, named: bool = False) -> None:
    """Begin a level, perhaps with its answer put in, or as somebody who has proved it or named it."""
    page.get_by_role("button", name=f"Level {n + 1}:").click()
    for change in levels()[n]["answer"] if answered else ():
        page.evaluate(
            "(change) => document.querySelector('[data-explorable]').explorable.put(change.name, change.place, change.value)", change
        )
    page.evaluate(f"({CALL})((desk) => {{ desk.proved = {str(answered).lower()}; desk.named = {str(named).lower()}; }})")


def untold(html: str, signs: list[str]) -> set[str]:
    """Return the letters of a formula that nothing beside it tells."""
    text = re.sub(r"<sup>⊤</sup>", " ", html).replace("H<sub>kv</sub>", " Hkv ")
    text = re.sub(r"([dT])<sub>k</sub>", r" \1k ", text)
    text = re.sub(r"W<sub>[QKVO]</sub>", " W ", text)
    words = re.findall(r"[^\W\d_]+", re.sub(r"<[^>]+>|&\w+;", " ", text).replace("Σ", " "))
    letters = {letter for word in words for letter in ([word] if word in NAMES | {"Hkv", "dk", "Tk"} else word)}
    return letters - NAMES - set(signs)


def test_the_letters_of_every_formula_are_told_beside_it_and_no_line_ends_inside_brackets(game):
    seen = 0
    for n in range(len(levels())):
        for named in (False, True):
            level(game, n, answered=True, named=named)
            for html, text, signs in game.locator(".brk-end" if named else ".brk-choices").first.evaluate(FORMULAS):
                seen += 1
                assert untold(html, signs) == set(), text
                depth = 0
                for sign in text:
                    depth += (sign in "([⌊") - (sign in ")]⌋")
                    assert not (depth and sign == " "), text
    assert seen > 60
    for n in (0, 5, 6):
        level(game, n)
        for cell in game.locator(".brk-side:first-child .brk-part:visible tr:nth-child(1) td:nth-child(2) .brk-cell:visible").all():
            cell.focus()
            ((html, text, signs),) = game.locator("[data-about]").evaluate(FORMULAS)
            assert untold(html, signs) == set(), text


def test_a_formula_of_a_level_without_mask_and_heads_has_neither(game):
    for n, one in enumerate(levels()):
        level(game, n, answered=True)
        formulas = [text for _, text, _ in game.locator(".brk-choices").first.evaluate(FORMULAS)]
        if one["start"]["mask"] == "none" and game.locator("[data-option=mask] [aria-pressed=true]").inner_text() == "none":
            assert not any(re.search(r"\bb|A|∈|−∞", text) for text in formulas), formulas
        others = game.locator(".brk-form").filter(has_not_text=re.compile(re.escape(one["id"])))
        if one["start"]["heads"] == 1 and one["id"] != "scaled-by-width":
            assert not any("H" in text for text in others.locator(".brk-formula").all_text_contents()), formulas
    level(game, 0)
    game.locator(".brk-side:first-child [data-part=K] .brk-cell").first.focus()
    expect(game.locator("[data-about] .brk-formula")).to_have_text("K = X WK")


def test_many_heads_are_shown_one_at_a_time_and_the_page_stays_short(game):
    level(game, 6)
    assert game.evaluate("document.documentElement.scrollHeight") < 1700
    tabs = game.locator("[data-tabs] button")
    expect(tabs).to_have_text(["head 0", "head 1", "head 2", "head 3"])
    queries = game.locator(".brk-side:first-child [data-part=Q] table")
    assert [table.is_visible() for table in queries.all()] == [True, False, False, False]
    tabs.nth(2).press("Enter")
    expect(tabs.nth(2)).to_be_focused()
    assert [table.is_visible() for table in queries.all()] == [False, False, True, False]
    level(game, 6, answered=True)
    inside = game.locator(".brk-side:nth-child(2) [data-part]:not([hidden], [data-part=O], [data-part=Y]) .brk-cell[data-differs]").count()
    differing = [int(count) for text in tabs.all_inner_texts() for count in re.findall(r": (\d+) differ", text)]
    assert sum(differing) == inside > 0
    game.set_viewport_size({"width": 700, "height": 900})
    same = game.locator(".brk-side:nth-child(2) [data-part=K] .brk-cell")
    expect(same.first).to_be_hidden()  # head 0 has the same keys
    tabs.nth(1).press("Enter")
    expect(same.locator("visible=true")).to_have_count(3)
    level(game, 0)
    expect(tabs).to_have_count(0)


def test_a_number_below_zero_looks_unlike_its_opposite(game):
    level(game, 0)
    looks = {}
    for value in (3, -3):
        game.evaluate(f"({CALL})((desk) => desk.put('W_V', [0, 0], {value}))")
        cell = game.locator(".brk-side:first-child [data-part=V] .brk-cell").first
        looks[cell.inner_text()] = cell.evaluate("cell => getComputedStyle(cell).backgroundImage")
    assert looks["3"] == "none" != looks["−3"]


RING = "one => { const style = getComputedStyle(one); return parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset); }"


def test_a_focus_ring_touches_no_neighbour(game):
    level(game, 0, answered=True)
    game.keyboard.press("Tab")  # rings are for keys
    for group, least in ((".brk-nav button", 3), (".brk-lamp", 3), ("[data-option] button", 3)):
        boxes = [one.bounding_box() for one in game.locator(group).all()]
        gaps = [b["x"] - a["x"] - a["width"] for a, b in pairwise(boxes) if abs(a["y"] - b["y"]) < 1]
        game.locator(group).first.focus()
        ring = game.locator(group).first.evaluate(RING)
        assert least <= ring <= min(gaps), group
    for cell in (game.locator("[data-inputs] input").first, game.locator(".brk-cell:visible").first):
        cell.focus()
        assert cell.evaluate("cell => getComputedStyle(cell).outlineStyle") == "solid"
        assert cell.evaluate(RING) <= 0, "drawn inside, where no scroller cuts it"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_arrows_stand_out(game, theme):
    game.emulate_media(color_scheme=theme)
    level(game, 0)
    paper = colour(game.locator(".attn-explorable").first.evaluate("card => getComputedStyle(card).backgroundColor"))
    arrow = game.locator(".brk-arrow:visible").nth(6).evaluate("arrow => getComputedStyle(arrow).backgroundColor")
    assert contrast(colour(arrow), paper) >= 3
    line = game.locator(".brk-looks path").first
    stroke, opacity = line.evaluate("line => [getComputedStyle(line).stroke, Number(getComputedStyle(line).opacity)]")
    drawn = tuple(opacity * front + (1 - opacity) * back for front, back in zip(colour(stroke), paper, strict=True))
    assert contrast(drawn, paper) >= 3


def test_what_is_pointed_at_stays_where_it_is(game):
    level(game, 0)
    cell = game.locator(".brk-side:first-child [data-part=P] .brk-cell").first
    before = cell.evaluate("cell => cell.getBoundingClientRect().top + scrollY")
    cell.hover()
    expect(game.locator("[data-about]")).to_contain_text("weights: the")
    assert cell.evaluate("cell => cell.getBoundingClientRect().top + scrollY") == before


def test_on_a_narrow_page_the_strip_compares_what_leaves_machine_and_twin(game):
    game.set_viewport_size({"width": 400, "height": 800})
    level(game, 0)
    expect(game.locator("[data-short]")).to_contain_text("Both give the same O.")
    level(game, 0, answered=True)
    game.locator("[data-inputs] input").first.scroll_into_view_if_needed()
    expect(game.locator("[data-short]")).to_contain_text("O of the: machine (0, 0.50), twin (0, 0.33).")
    expect(game.locator("[data-short]")).to_be_in_viewport(ratio=1)


CUT = "() => { const strip = document.querySelector('.brk-dock'); return strip.scrollHeight - strip.clientHeight; }"


def test_the_strip_of_a_telephone_cuts_nothing_that_a_lamp_says(game):
    game.set_viewport_size({"width": 400, "height": 800})
    for n in range(len(levels())):
        level(game, n, answered=True)
        assert game.evaluate(CUT) <= 0, "as it begins"
        game.evaluate(f"({CALL})((desk) => {{ desk.proved = false; }})")
        for place in range(game.locator(".brk-lamp").count()):
            game.locator(".brk-lamp").nth(place).evaluate("lamp => lamp.click()")
            expect(game.locator(".brk-told")).to_be_visible()
            assert game.evaluate(CUT) <= 0, game.locator(".brk-told").inner_text()


def test_the_masks_to_choose_from_are_in_sight_of_the_task(game):
    for width, height in ((1300, 900), (700, 900), (400, 800)):
        game.set_viewport_size({"width": width, "height": height})
        game.get_by_role("button", name="Meet the machine").click()
        game.evaluate(f"({CALL})((desk) => {{ desk.task = 4; }})")
        game.evaluate("scrollTo(0, 0)")
        choice = game.locator("[data-option=mask] button").last.bounding_box()
        assert choice["y"] + choice["height"] <= game.locator(".brk-dock").bounding_box()["y"]


def test_what_a_picture_of_two_heads_shows_is_told_and_a_twin_is_not_always_first_of_its_forms(game):
    game.get_by_role("button", name="Meet the machine").click()
    expect(game.locator(".brk-looks")).not_to_contain_text("mean")
    game.evaluate(f"({CALL})((desk) => desk.put('heads', [], 2))")
    expect(game.locator(".brk-looks")).to_contain_text("mean of2 heads")
    places = set()
    for n, one in enumerate(levels()):
        level(game, n, answered=True)
        title = next(twin.title for twin in TWINS if twin.id == one["twin"])
        forms = [re.sub(r"\W|_", "", text).lower() for text in game.locator(".brk-form .brk-says").all_inner_texts()]
        places.add(forms.index(re.sub(r"\W|_", "", title).lower()))
    assert len(places) > 2


def test_orders_are_played_a_second_a_step(browser: Browser):
    page = browser.new_page(viewport=WIDE)
    page.clock.install(time=0)
    page.set_content(page_of_the_machine())
    page.get_by_role("button", name="The same numbers in four orders").click()
    page.locator("[aria-label=Guess] button").first.click()
    page.clock.pause_at(60_000)
    page.get_by_role("button", name="Play").click()
    for after_ms, step in ((900, 1), (200, 2), (900, 3)):
        page.clock.run_for(after_ms)
        expect(page.locator(".brk-doing")).to_contain_text(f"Step {step} of 4")
    page.close()


OUTLINED = "cells => cells.filter((cell) => cell.checkVisibility()).map((cell) => cell.getAttribute('aria-label').split(':')[0])"


@pytest.mark.parametrize(
    ("n", "part", "cell", "outlined"),
    [
        (2, "S", 1, ["queries, cat, 0", "queries, cat, 1", "keys, the, 0", "keys, the, 1"]),  # the keys ask
        (
            3,
            "Z",
            0,
            [*(f"values, {word}, 0" for word in ("the", "cat", "sat")), *(f"weights, {word} to the" for word in ("the", "cat", "sat"))],
        ),
        (0, "P", 1, ["scores, the to cat", "scores, cat to cat"]),  # the softmax runs over the queries
    ],
)
def test_what_is_outlined_is_what_the_twin_reads(game, n, part, cell, outlined):
    level(game, n, answered=True)
    pointed = game.locator(f".brk-side:nth-child(2) [data-part={part}] .brk-cell").nth(cell)
    pointed.hover()
    assert game.locator("[data-used]").evaluate_all(OUTLINED) == outlined
    expect(pointed).to_have_attribute("data-at", "")


@pytest.mark.parametrize("n", [4, 5])
def test_a_twin_shows_no_matrix_that_it_does_not_use(game, n):
    """A mask after the softmax, and one that subtracts 10000: neither twin ever has a score of minus infinity."""
    level(game, n, answered=True)
    sides = [game.locator(f".brk-side:nth-child({side}) [data-part=B]") for side in (1, 2)]
    expect(sides[0].locator(".brk-cell").first).to_be_visible()
    expect(sides[1].locator(".brk-cell").first).to_be_hidden()
    note = sides[1].locator("figcaption").evaluate("caption => getComputedStyle(caption, '::after').content")
    assert note == '"not used"'
    sides[0].locator(".brk-cell").nth(1).hover()
    expect(game.locator("[data-about] p").last).to_have_text("twin does not use this")


def test_the_strip_of_a_telephone_takes_a_fifth_of_it(game):
    game.set_viewport_size({"width": 400, "height": 800})
    level(game, 0, answered=True)
    assert game.locator(".brk-dock").bounding_box()["height"] <= 160
    for part in ("S", "P", "Z"):
        game.locator(f".brk-side:nth-child(2) [data-part={part}] .brk-cell").nth(1).focus()
        assert game.evaluate(CUT) <= 0, part
