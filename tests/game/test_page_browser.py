"""Break the machine in a real browser: the warm-up and three levels by keyboard, what a wrong guess is told, and how it looks anywhere."""

import functools
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from attn_course.figures.drawing import contrast
from attn_course.game import build as broken
from attn_course.game.card import break_the_machine, page_of_the_machine
from tests.figures.support import Shown
from tests.figures.test_explorable_browser import colour

pytestmark = pytest.mark.browser
whole_page = functools.cache(page_of_the_machine)  # once, and only where a test of this file runs
WIDTHS = (340, 400, 700, 1300)
FOCUSED = """() => {
    const { activeElement: focused, body } = document;
    return focused === body ? "" : (focused.getAttribute("aria-label") ?? focused.textContent);
}"""


@pytest.fixture
def game(page: Page) -> Page:
    page.set_viewport_size({"width": 1300, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    page.set_content(whole_page())
    return page


@pytest.fixture(scope="module")
def machine(browser: Browser) -> dict:
    page = browser.new_page()
    titles = "map(({ id, title }) => ({ id, title }))"
    held = page.evaluate(f"() => {{ {broken.javascript()}; return {{ twins: MACHINE.twins.{titles}, lamps: MACHINE.lamps.{titles} }}; }}")
    page.close()
    return {**held, "levels": broken.levels()}


def title(those: list[dict], name: str) -> str:
    return next(one["title"] for one in those if one["id"] == name)


def plain(text: str) -> str:
    """A text without the signs that set its letters lower or higher."""
    return re.sub(r"\b([WdHp])_(kv|ij|[a-zA-Z])\b", r"\1\2", text).replace("^T", "⊤").replace("`", "")


def capital(text: str) -> str:
    """A text as it begins a line."""
    return plain(text[0].upper() + text[1:])


def tab_to(page: Page, name: str) -> None:
    for _ in range(40):
        if name in page.evaluate(FOCUSED):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to {name!r}")


def walk_to(page: Page, matrix: str, cell: int) -> None:
    wanted = page.locator(f"[data-inputs] [data-part={matrix}] input").nth(cell)
    for _ in range(40):
        right, down = wanted.evaluate(
            """(cell) => {
                const [there, here] = [cell, document.activeElement].map((one) => one.getBoundingClientRect());
                return [there.left - here.left, there.top - here.top];
            }"""
        )
        if (right, down) == (0, 0):
            return
        across, along = "ArrowRight" if right > 0 else "ArrowLeft", "ArrowDown" if down > 0 else "ArrowUp"
        page.keyboard.press(across if abs(right) > 1 else along)
    raise AssertionError(f"the arrow keys do not lead to cell {cell} of {matrix}")


def begin(page: Page, level: int) -> None:
    page.locator("[data-nav] [aria-pressed=true]").focus()
    for _ in range(30):
        if page.evaluate(FOCUSED).startswith(f"Level {level + 1}:"):
            break
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")


def easy(machine: dict) -> list[int]:
    """Levels in which one number is enough, which is no choice."""
    return [n for n, level in enumerate(machine["levels"]) if [len(change["place"]) for change in level["answer"]] == [2]]


def expose(page: Page, level: dict) -> None:
    """Change the one number that shows the twin."""
    (change,) = level["answer"]
    i, j = change["place"]
    tab_to(page, "X, ")
    walk_to(page, change["name"], i * len(level["start"][change["name"]][0]) + j)
    page.keyboard.type(str(change["value"]))
    expect(page.locator("[aria-current=step]")).to_have_text("Prove it")


def test_the_warm_up_is_played_by_keyboard_and_says_what_query_key_and_value_do(game):
    expect(game.locator("[data-task]")).to_contain_text("Change a number until it gives cat more than 0.9.")
    expect(game.locator("[data-count]")).to_have_text("0.25it → cat")
    tab_to(game, "X, ")
    walk_to(game, "W_Q", 4)
    game.keyboard.type("2")
    expect(game.locator("[data-short]")).to_have_text("You have done it.", use_inner_text=True)
    expect(game.locator("[data-answer]")).to_contain_text("The query of it now has its largest score at the key of cat.")
    for title, matrix, cell, value, said in (
        ("2 of 6: A key is found", "W_K", 0, "-1", "Every word now gives cat less than 0.1"),
        ("3 of 6: A value is handed on", "W_V", 2, "3", "Query and key decide where a word looks."),
        ("4 of 6: The softmax shares out", "W_Q", 4, "0", "The sum of the row is still 1."),
    ):
        game.locator("[data-tools]").get_by_role("button", name="Go on").press("Enter")
        expect(game.locator("[data-name]")).to_be_focused()
        expect(game.locator("[data-name]")).to_have_text(title)
        if title.startswith("4"):
            expect(game.locator("[data-task]")).to_contain_text("The numbers are back at the start")
        tab_to(game, ", ")
        if title.startswith("3"):
            for other, place, why in (("X", 7, "X, WQ and WK make the weights."), ("W_V", 0, "must change by at least 0.1")):
                was = game.locator(f"[data-inputs] [data-part={other}] input").nth(place)
                was.fill("3")
                expect(game.locator("[data-answer]")).to_contain_text("Not yet: ")
                expect(game.locator("[data-answer]")).to_contain_text(why)
                was.press("Escape")
        walk_to(game, matrix, cell)
        game.keyboard.type(value)
        expect(game.locator("[data-answer]")).to_contain_text(said)
    game.locator("[data-next] button").press("Enter")
    expect(game.get_by_label("W_Q, open, q0")).to_have_value("0")  # as the fourth step left it
    game.locator("[data-option]").get_by_role("button", name="causal").press("Enter")
    expect(game.locator("[data-answer]")).to_contain_text("No word sees a later one now.")
    game.locator("[data-next] button").press("Enter")
    expect(game.locator("[data-option=mask] [aria-pressed=true]")).to_have_text("none")
    game.get_by_label("W_Q, open, q1").fill("2")
    expect(game.locator("[data-answer]")).to_have_text(
        "Not yet: it gives 0.50 to cat and 0.50 to sat. The weights of one head sum to 1: choose two."
    )
    game.locator("[data-option=heads]").get_by_role("button", name="2").press("Enter")
    expect(game.locator("[data-answer]")).to_contain_text("Each head has one column of queries, keys and values now")
    expect(game.locator("[data-next] button")).to_have_text("Done")
    expect(game.locator("[data-inputs] [data-part=W_O]")).to_be_visible()
    game.locator("[data-next] button").press("Enter")
    expect(game.locator("[data-name]")).to_have_text("That is attention")
    for part in ("W_O", "O", "Y"):
        expect(game.locator(f"[data-part={part}]")).to_be_visible()
    game.locator("[data-next] button").press("Enter")
    expect(game.locator("[aria-current=step]")).to_have_text("Find a difference")


@pytest.mark.parametrize("place", range(3))
def test_a_level_is_played_by_keyboard_to_the_story_and_the_test(game, machine, place):
    n = easy(machine)[place]
    level = machine["levels"][n]
    begin(game, n)
    expect(game.locator("[data-name]")).to_have_text(level["title"])
    expect(game.locator(".brk-cell[data-differs]")).to_have_count(0)
    expose(game, level)
    tab_to(game, title(machine["lamps"], level["lamp"]))
    game.keyboard.press("Enter")
    expect(game.locator("[data-about]")).to_contain_text("That proves it")
    expect(game.locator(f".brk-lamp[data-id={level['lamp']}]")).to_be_focused()
    tab_to(game, capital(title(machine["twins"], level["twin"])))
    game.keyboard.press("Enter")
    end = game.locator("[data-end]")
    expect(end).to_contain_text("You made 1 change: no fewer would do.")
    expect(end).to_contain_text(plain(level["story"]))
    test = end.get_by_label("The test, as Python").input_value()
    compile(test, "test", "exec")
    assert "assert_allclose" in test
    expect(game.get_by_role("button", name=re.compile(f"^Level {n + 1}:"))).to_have_attribute("data-solved", "")


def test_numbers_that_differ_are_marked_on_both_sides_and_counted_aloud(game, machine):
    begin(game, easy(machine)[0])
    expose(game, machine["levels"][easy(machine)[0]])
    marked = [game.locator(f".brk-side:nth-child({side}) .brk-cell[data-differs]").count() for side in (1, 2)]
    assert marked[0] == marked[1] > 0
    expect(game.get_by_role("status")).to_have_text(f"{marked[0]} number{'s differ' if marked[0] > 1 else ' differs'}.")
    mark = game.locator(".brk-cell[data-differs]").first.evaluate("cell => getComputedStyle(cell, '::after').borderTopStyle")
    assert mark == "solid", "the corner, which is no colour alone"
    game.locator(".brk-cell[data-differs]").first.focus()
    lines = game.locator("[data-about] p").all_inner_texts()
    assert [line.split()[0] for line in lines[1:]] == ["machine", "twin"]
    assert ["=" in line for line in lines[1:]] == [True, False], "how the twin made it would name the mistake"
    game.evaluate("() => { const desk = document.querySelector('[data-explorable]').explorable; desk.named = true; desk.refresh(); }")
    assert all("=" in line for line in game.locator("[data-about] p").all_inner_texts()[1:])
    game.evaluate("() => { const desk = document.querySelector('[data-explorable]').explorable; desk.named = false; desk.refresh(); }")
    game.get_by_role("button", name="Back to the start").press("Enter")
    expect(game.get_by_role("status")).to_have_text("No number differs.")


def test_what_proves_nothing_is_said_to_prove_nothing(game, machine):
    level = machine["levels"][easy(machine)[0]]
    begin(game, easy(machine)[0])
    lamps = game.locator(".brk-lamp")
    expect(game.locator("[data-lamps]")).to_be_hidden()
    expose(game, level)
    expect(game.locator("[data-lamps]")).to_be_visible()
    wanted = level["lamp"]
    for lamp in lamps.all():
        if lamp.get_attribute("data-id") != wanted:
            lamp.press("Enter")
            expect(game.locator(".brk-told")).not_to_be_empty()
            if game.locator(".brk-told").inner_text().startswith("That proves it"):
                break
            expect(game.locator(".brk-told")).to_have_text(re.compile("proves nothing|no rule that the machine keeps"))
            expect(game.locator("[data-choices]")).to_be_hidden()
    game.locator(f".brk-lamp[data-id={wanted}]").press("Enter")
    forms = game.locator(".brk-form")
    expect(forms).to_have_count(4)
    for form in forms.filter(has_not_text=capital(title(machine["twins"], level["twin"]))).all():
        form.press("Enter")
        expect(game.locator(".brk-told")).not_to_have_attribute("data-good", "")
        expect(game.locator(".brk-told")).to_have_text(re.compile("would be .* with that formula, and the twin|cannot tell that"))
    expect(game.locator("[aria-current=step]")).to_have_text("Name it")


def test_a_number_can_be_stepped_restored_and_left_half_typed(game):
    cell = game.get_by_label("W_Q, alive, q0")
    cell.focus()
    game.keyboard.press("PageUp")
    expect(cell).to_have_value("1")
    game.get_by_role("button", name="one more").click()
    game.get_by_role("button", name="one more").click()
    expect(cell).to_have_value("3")
    cell.focus()
    game.keyboard.press("Escape")
    expect(cell).to_have_value("0")
    game.keyboard.type("-")
    expect(cell).to_have_attribute("aria-invalid", "")
    game.keyboard.type("1,5")
    game.keyboard.press("Tab")
    expect(cell).to_have_value("−1.5")
    expect(cell).to_have_attribute("data-changed", "")


def test_each_order_makes_the_same_output_and_counts_its_bytes(game):
    game.get_by_role("button", name="The same numbers in four orders").press("Enter")
    expect(game.locator(".brk-meter")).to_have_count(0)
    expect(game.locator("[data-orders]")).not_to_contain_text("bytes.")
    game.locator("[data-orders] [aria-label=Guess] button").nth(1).press("Enter")
    expect(game.locator("[data-orders] [aria-label=Order] button").first).to_be_focused()
    for n in range(4):
        game.locator("[data-orders] [aria-label=Order] button").nth(n).press("Enter")
        slider = game.get_by_role("slider", name="step")
        totals = game.locator(".brk-meter .attn-number").all_inner_texts()
        assert totals.count("?") == 4 - n, "the total of an order appears once it has been played"
        before = game.locator(".brk-doing").inner_text()
        game.get_by_role("button", name="Play").press("Enter")  # one step, where motion is not wanted
        assert game.locator(".brk-doing").inner_text() != before
        expect(game.locator(".brk-same")).to_contain_text("0 of 4 rows of Z are finished.")
        assert game.locator(".brk-groove > div").nth(n).evaluate("bar => bar.offsetWidth") > 0, "the bar grows on the way"
        expect(game.locator("[data-orders] .brk-score")).to_have_text(f"You have played {n} of 4 orders to the end.")
        if n:
            slider.press("End")
        else:
            game.get_by_role("button", name="To its end").press("Enter")
        shown = game.locator(".brk-meter .attn-number").all_inner_texts()
        assert [(a, b) for a, b in zip(totals, shown, strict=True) if a != b] == [("?", shown[n])]
        expect(game.locator(".brk-same")).to_contain_text("4 of 4 rows of Z are finished.")
        compared = "0 of the 8 finished numbers differ from those of whole matrices."
        assert (compared in game.locator(".brk-same").inner_text()) == (n > 0), "nothing is compared with itself"
        assert "" not in game.locator("[data-orders] .brk-cell").all_inner_texts(), "the output is whole"
    expect(game.locator("[data-orders] .brk-score")).to_contain_text(
        "Answer: The order does not change the result. The fewest bytes, 344, are moved by one key after the other, "
        "and not by your guess, tiles of 2 by 2, with 408."
    )
    expect(game.locator("[data-orders] .brk-score")).to_contain_text(
        "tiles for two queries at a time (8 numbers for each head), one key after the other for all at once (16)."
    )
    expect(game.locator(".brk-meter").nth(1)).to_contain_text("tiles of 2 by 2 (your guess)")
    game.locator("[data-option=mask]").get_by_role("button", name="causal").press("Enter")
    expect(game.locator("[data-orders] .brk-score")).to_contain_text("With other numbers the orders begin again.")


TOO_WIDE = """(cells) => {
    const wide = (cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return cell.matches("input") ? cell.scrollWidth > cell.clientWidth : range.getBoundingClientRect().width > cell.clientWidth;
    };
    return cells.filter(wide).map((cell) => cell.getAttribute("aria-label"));
}"""


def test_only_what_leaves_the_machine_counts_as_found(game, machine):
    n = next(n for n, level in enumerate(machine["levels"]) if level["id"] == "heads-tiled")
    begin(game, n)
    tab_to(game, "X, ")
    walk_to(game, "W_K", 1)
    game.keyboard.type("3")
    expect(game.locator("[data-task]")).to_contain_text("K, S and P differ, but O does not yet")
    expect(game.locator("[data-short]")).to_contain_text("K, S and P differ, but O does not yet")
    expect(game.locator("[aria-current=step]")).to_have_text("Find a difference")
    pairs = [game.locator(f".brk-side:nth-child({side}) .brk-cell[data-differs]").all_inner_texts() for side in (1, 2)]
    assert all(machine != twin for machine, twin in zip(*pairs, strict=True)), "where two numbers differ, so do their digits"
    counted = game.locator("[data-count]").inner_text()
    game.get_by_role("button", name="Every step").press("Enter")
    expect(game.locator("[data-count]")).to_have_text(counted)
    game.get_by_role("button", name="Show fewer steps").press("Enter")
    walk = "(value) => { const desk = document.querySelector('[data-explorable]').explorable; desk.put('W_V', [0, 1], value); }"
    game.evaluate(walk, -1131)
    expect(game.locator("[aria-current=step]")).to_have_text("Prove it")
    cut = game.locator(".brk-cell:visible, [data-inputs] input").evaluate_all(TOO_WIDE)
    assert cut == []
    for box in game.locator(".brk-stage .brk-scroll").all():
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 1, "no head stands out of sight"
    game.get_by_role("button", name="Level 1:").click()
    game.evaluate("() => document.querySelector('[data-explorable]').explorable.put('X', [0, 0], 1.001)")
    expect(game.locator("[data-task]")).to_contain_text("O differs by too little to count")
    expect(game.locator("[aria-current=step]")).to_have_text("Find a difference")
    game.set_viewport_size({"width": 340, "height": 800})
    scrolled = game.locator("[data-board] [data-part=P] .brk-scroll").evaluate_all(
        """async ([one, other]) => {
            for (const box of [one, other]) box.style.width = "60px";
            one.scrollLeft = 9;
            await new Promise((done) => setTimeout(done, 100));
            return [one.scrollLeft, other.scrollLeft];
        }"""
    )
    assert scrolled == [9, 9]


def test_the_tab_key_goes_down_the_page_and_meets_each_group_once(game):
    stops = []
    for _ in range(9):
        game.keyboard.press("Tab")
        stops.append(game.evaluate(FOCUSED))
    assert stops[:7] == [
        "Meet it: Meet the machine",
        "Hint",
        "Back to the start",
        "Skip to the levels",
        "X, the, alive",
        "one less",
        "one more",
    ]
    assert stops[7].startswith("queries, the, 0: 0")
    marks = game.locator(".attn-live :is(input, button, select, textarea, [tabindex='0'])").evaluate_all(
        "elements => elements.map(element => element.getAttribute('data-lm-suppress-shortcuts'))"
    )
    assert set(marks) == {"true"}


MODES = {
    "meet": "Meet the machine",
    "level": re.compile("^Level 1:"),
    "free": "Any twin, any numbers",
    "orders": "The same numbers in four orders",
}
TEXTS = """() => [...document.querySelectorAll(".brk *")].flatMap((element) => {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim());
    const text = element.matches("input") ? element.value : own.join("");
    if (!text || element.matches("option, [type=range], .brk-quiet") || !element.checkVisibility()) return [];
    let back = element;
    while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
    const style = getComputedStyle(element);
    return [[text, element instanceof SVGElement ? style.fill : style.color, getComputedStyle(back).backgroundColor]];
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_and_nothing_sticks_out_at_any_width(game, theme):
    game.emulate_media(color_scheme=theme)
    for mode, name in MODES.items():
        game.get_by_role("button", name=name).press("Enter")
        if mode == "free":
            game.get_by_role("button", name="Random numbers").press("Enter")
        texts = game.evaluate(TEXTS)
        assert len(texts) > 60
        for text, front, back in texts:
            assert contrast(colour(front), colour(back)) > 4.5, f"{mode}, {theme}: {text!r} in {front} on {back}"
        for width in WIDTHS if theme == "light" else ():
            game.set_viewport_size({"width": width, "height": 800})
            assert game.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, f"{mode} at {width}"
        game.set_viewport_size({"width": 1300, "height": 900})


@pytest.fixture
def finger(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 400, "height": 800}, is_mobile=True, has_touch=True)
    yield context.new_page()
    context.close()


def test_the_first_screen_of_a_phone_holds_the_task_and_numbers_and_the_level_that_is_open(finger):
    finger.set_content(whole_page())
    expect(finger.locator("[data-task]")).to_be_in_viewport(ratio=1)
    dock = finger.locator(".brk-dock").bounding_box()["y"]
    for cell in ("X, the, alive", "X, cat, alive"):
        box = finger.get_by_label(cell).bounding_box()
        assert box["y"] + box["height"] <= dock
    finger.get_by_role("button", name="Level 11:").tap()
    expect(finger.get_by_role("button", name="Level 11:")).to_be_in_viewport(ratio=1)


def test_a_finger_finds_targets_of_44_pixels_and_the_next_step_at_hand(finger):
    finger.set_content(whole_page())
    cell = finger.get_by_label("W_Q, open, q0")
    cell.tap()
    for _ in range(2):
        finger.get_by_role("button", name="one more").tap()
    expect(cell).to_have_value("2")
    expect(finger.locator("[data-short]")).to_contain_text("The query of it now has its largest score at the key of cat.")
    expect(finger.locator("[data-short]")).to_be_in_viewport()
    finger.locator("[data-next] button").tap()
    expect(finger.locator("[data-name]")).to_have_text("2 of 6: A key is found")
    expect(finger.locator("[data-name]")).to_be_in_viewport()
    for name in MODES.values():
        finger.get_by_role("button", name=name).tap()
        small = finger.locator(".brk :is(button, input:not([type=range]), select, .brk-cell)").evaluate_all(
            """(all) => {
                const boxes = all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect());
                return boxes.filter((box) => box.width < 44 || box.height < 44).length;
            }"""
        )
        assert small == 0


def test_what_was_solved_is_known_the_next_time(browser: Browser, machine, tmp_path):
    written = tmp_path / "break.html"
    written.write_text(whole_page(), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(written.as_uri())
    page.evaluate("(first) => localStorage.setItem('attn-course-break', JSON.stringify({ [first]: 1 }))", machine["levels"][0]["id"])
    page.reload()
    expect(page.get_by_role("button", name="Level 1:")).to_have_attribute("data-solved", "")
    expect(page.get_by_role("button", name="Level 2:")).to_have_attribute("aria-pressed", "true")
    page.evaluate("() => localStorage.setItem('attn-course-break', 'not JSON')")
    page.reload()
    expect(page.get_by_role("button", name="Meet the machine")).to_have_attribute("aria-pressed", "true")
    context.close()


def test_the_page_is_small_and_a_lesson_opens_its_own_level(page, machine, shown: Shown):
    assert len(whole_page().encode()) < 400_000
    assert "http" not in whole_page().replace("http://www.w3.org/2000/svg", "")
    for level in (machine["levels"][2]["id"], 3):  # by its name, or by its number, which does not name the mistake
        break_the_machine(level)
        card = shown.pop()
        assert repr(card).startswith("[explorable] Two copies of a small attention")
        page.set_content(card._repr_html_())
        page.wait_for_selector("[data-alive=true]")
        expect(page.get_by_role("button", name="Level 3:")).to_have_attribute("aria-pressed", "true")


def test_a_difference_that_needs_many_digits_lengthens_no_cell_but_its_own(game, machine):
    n = next(n for n, level in enumerate(machine["levels"]) if level["id"] == "heads-tiled")
    begin(game, n)
    expose(game, machine["levels"][n])
    texts = game.locator(".brk-side:nth-child(1) [data-part=Z] .brk-cell").all_text_contents()
    assert [text for text in texts if len(text) > 8] == ["1.000000004"], "head 2, where the twin has 1.000000000"


def test_an_arrow_names_what_its_matrix_comes_from(game):
    labels = "labels => Object.fromEntries(labels.map((one) => [one.closest('figure').dataset.part, one.textContent]))"
    arrows = game.locator(".brk-side:first-child .brk-arrow span:visible")
    assert arrows.evaluate_all(labels) == {
        **{name: f"from X, W{name}" for name in "QKV"},
        "S": "from Q, K",
        "P": "from S",
        "Z": "from P, V",
    }


def test_a_second_number_takes_the_place_of_the_first(game):
    cell = game.get_by_label("W_Q, open, q0")
    for value in ("9", "1"):
        cell.click()
        game.keyboard.type(value)
        expect(cell).to_have_value(value)


def test_free_offers_no_twin_that_nothing_can_show(game):
    game.get_by_role("button", name="Any twin, any numbers").click()
    titles = game.locator("select option").all_inner_texts()
    assert len(titles) > 12
    assert not any("four heads" in one or "features" in one for one in titles)


def test_all_mistakes_found_lead_on_to_what_is_left(game, machine):
    game.evaluate(
        """(ids) => {
            const desk = document.querySelector("[data-explorable]").explorable;
            desk.solved = Object.fromEntries(ids.map((id) => [id, 1]));
        }""",
        [level["id"] for level in machine["levels"]],
    )
    begin(game, len(machine["levels"]) - 1)
    expose(game, machine["levels"][-1])
    game.evaluate("() => { const desk = document.querySelector('[data-explorable]').explorable; desk.named = true; desk.refresh(); }")
    expect(game.locator("[data-name]")).to_have_text("All 11 mistakes found")
    expect(game.locator("[data-end] .brk-main")).to_have_text(["Free", "Orders"])
    game.locator("[data-end] .brk-main").first.click()
    expect(game.locator("[data-name]")).to_have_text("Any twin, any numbers")


@pytest.mark.parametrize(("width", "height"), [(400, 800), (700, 900), (1300, 900)])
def test_what_is_pressed_stays_under_the_finger(game, machine, width, height):
    """A number that solves a task, and a lamp that proves: neither moves the page."""
    game.set_viewport_size({"width": width, "height": height})

    def pressed(name: str) -> float:
        """Press twice at the same place; how far that which was pressed has moved."""
        target = game.get_by_role("button", name=name)
        box = target.bounding_box()
        for _ in range(2):
            game.mouse.click(box["x"] + 20, box["y"] + 20)
        return abs(target.bounding_box()["y"] - box["y"])

    cell = game.get_by_label("W_Q, open, q0")
    cell.focus()
    game.evaluate("scrollBy(0, 60)")
    before = cell.bounding_box()["y"]
    assert pressed("one more") < 2
    expect(game.locator("[data-next] button")).to_have_text("Go on")
    assert abs(cell.bounding_box()["y"] - before) < 2
    said = game.get_by_text("The query of it now has its largest score", exact=False)
    expect(said.filter(visible=True)).to_have_count(1)  # said once
    game.get_by_role("button", name="Level 1:").click()
    expose(game, machine["levels"][0])
    lamp = game.locator(f".brk-lamp[data-id={machine['levels'][0]['lamp']}]")
    lamp.scroll_into_view_if_needed()
    assert pressed(lamp.locator("b").inner_text()) < 2
    expect(lamp).to_be_in_viewport(ratio=1)
    assert "That proves it" in game.locator("[data-about]").inner_text()
