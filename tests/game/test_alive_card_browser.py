"""The card of a formula that is alive: pointed at, typed into, tried with a mistake, by mouse and by keys."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from attn_course.figures.explorable import Explorable
from attn_course.game.alive import card, life_of
from tests.browser.script import scripted

LABELS = ("attention-weights", "attention", "causal-mask-in-columns", "log-softmax", "additive-score")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with scripted("") as page:
        page.set_viewport_size({"width": 400, "height": 800})
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    browser.set_content(f"<!doctype html><html><body>{''.join(card(life_of(label)) for label in LABELS)}</body></html>")
    return browser


def of(label: str) -> str:
    return f"#attn-alive-{label}"


WEIGHTS = of("attention-weights")


def text(page: Page, part: str, label: str = "attention-weights") -> str:
    return " ".join(page.locator(f"{of(label)} .alv-{part}").inner_text().split())


def mistake(page: Page, name: str, label: str = "attention-weights") -> None:
    page.locator(f"{of(label)} [data-form]", has_text=name).click()


def test_every_card_of_a_page_has_its_own_formula_and_hides_its_words(page: Page):
    assert page.locator("[data-alive=true] .alv-formula math").count() >= len(LABELS)
    assert page.locator(".attn-words:visible").count() == 0
    titles = page.locator(".attn-live .attn-title").all_inner_texts()
    assert len({*titles}) == len(LABELS)


def test_a_notebook_stores_it_packed_in_24_kilobytes_and_it_lives(browser: Page):
    stored = Explorable(card(life_of("attention")), "one card")._repr_html_()
    assert len(stored.encode()) <= 24_000
    assert not re.search(r"https?:|import\(|eval\(|new Function", stored)
    browser.set_content(f"<!doctype html><html><body>{stored}</body></html>")
    browser.wait_for_selector("#attn-alive-attention[data-alive=true]")
    assert "agree" in text(browser, "verdict", "attention")
    assert browser.locator("script").count() == 1  # the one it was stored with


def test_a_browser_that_cannot_unpack_it_shows_its_words(browser: Page):
    stored = Explorable(card(life_of("attention")), "one card")._repr_html_()
    browser.set_content(f"<!doctype html><html><body><script>DecompressionStream = undefined;</script>{stored}</body></html>")
    browser.wait_for_timeout(100)
    assert browser.locator("#attn-alive-attention .attn-words").is_visible()


def test_no_card_is_wider_than_a_phone(page: Page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator(f"{WEIGHTS} p.alv-layer").inner_text().startswith("Yours to change")


def test_on_a_phone_sides_that_agree_are_one_heading_over_one_table(page: Page):
    chain = page.locator(f"{of('log-softmax')} .alv-chain").first
    assert chain.inner_text().count("=") == chain.locator(".alv-side").count() - 1
    assert chain.locator("table:visible").count() == 1
    assert page.locator(f"{of('log-softmax')} .alv-some:visible").count() == 0, "there is nothing to show"


def test_a_formula_that_is_too_wide_ends_a_line_before_a_sign_and_fades_only_if_that_is_not_enough(browser: Page):
    wide = []
    for label in ("absorbed-attention-in-columns", "quantised-output-error"):
        browser.set_content(f"<!doctype html><html><body>{card(life_of(label))}</body></html>")
        browser.wait_for_timeout(100)
        forms = browser.locator(".alv-formula > div")
        wide.append(set(forms.evaluate_all("all => all.map((one) => one.scrollWidth > one.clientWidth)")))
        assert forms.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth || one.matches('.alv-wide'))")
    assert wide == [{False}, {False, True}]


def test_the_side_that_a_mistake_leaves_stays_where_it_is(browser: Page):
    browser.set_viewport_size({"width": 1000, "height": 800})
    browser.set_content(f"<!doctype html><html><body>{card(life_of('absorbed-attention-in-columns'))}</body></html>")
    where = "document.querySelector('.alv-chain table').getBoundingClientRect().x"  # in one go: the card writes its tables anew
    drawn = f"new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done({where}))))"
    left = [browser.evaluate(drawn)]
    for button in browser.locator("[data-mistake]").all():
        button.click()
        left.append(browser.evaluate(drawn))
    browser.set_viewport_size({"width": 400, "height": 800})
    assert len({*left}) == 1, left


def test_a_mistake_changes_the_formula_and_marks_what_differs(page: Page):
    printed = page.locator(f"{WEIGHTS} .alv-formula").inner_text()
    assert "agree in all 12 numbers" in text(page, "verdict")
    mistake(page, "normalised over the queries")
    assert page.locator(f"{WEIGHTS} .alv-formula").inner_text() != printed
    assert text(page, "named") == "Not the equation"
    assert text(page, "verdict").startswith("9 of 9 differ.")
    assert page.locator(f"{WEIGHTS} td.alv-bad").count() == 9
    assert page.locator(f"{WEIGHTS} .alv-sign").first.inner_text() == "≠"
    mistake(page, "as printed")
    assert text(page, "named") == "", "the button says it"
    assert page.locator(f"{WEIGHTS} .alv-sign").first.inner_text() == "="
    assert page.locator(f"{WEIGHTS} .alv-formula").inner_text() == printed
    assert page.locator(f"{WEIGHTS} td.alv-bad").count() == 0


def test_what_is_pressed_and_the_formula_stay_where_they_are(page: Page):
    places = "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.top + scrollY, box.height])"
    for label in LABELS:
        still, before = page.locator(f"{of(label)} :is([data-form], .alv-formula)"), None
        for button in page.locator(f"{of(label)} [data-form]").all()[::-1]:
            button.click()
            now = still.evaluate_all(places)
            assert now == (before := before or now), label


def test_a_table_has_the_same_decimals_everywhere_but_for_zero(page: Page):
    for key, number in zip(("Q,0,0", "Q,0,1", "Q,0,2", "V,0,0"), ("0", "0", "0", "0.5"), strict=True):
        page.locator(f"{of('attention')} [data-at='{key}']").fill(number)
    page.locator(f"{of('log-softmax')} input").first.fill("0")
    shown = page.locator(f"{of('attention')} .alv-side table").last.locator("td").all_inner_texts()
    assert {len(one.partition(".")[2]) for one in shown if one != "0"} == {3}, shown
    assert page.locator(f"{of('attention')} input").evaluate_all("all => all.map((one) => one.value)")[:3] == ["0"] * 3


def test_a_number_says_what_it_is_made_of_and_lights_where_that_stands(page: Page):
    page.locator(f"{WEIGHTS} td[data-cell='0,1,1,0']").hover()
    lit = page.locator(f"{WEIGHTS} td.alv-source [data-at], {WEIGHTS} td.alv-source[data-at]")
    assert sorted({one.get_attribute("data-at") for one in lit.all()}) == ["s,0,0", "s,0,1", "s,0,2"]
    said = text(page, "how")
    assert "exp(−2) / (exp(2) + exp(−2) + exp(−1)) = 0.017" in said
    mistake(page, "normalised over the queries")
    page.locator(f"{WEIGHTS} td[data-cell='0,1,1,0']").hover()
    assert sorted({one.get_attribute("data-at") for one in lit.all()}) == ["s,0,1", "s,1,1", "s,2,1"]
    assert "exp(−2) / (exp(−2) + exp(3) + exp(−2))" in text(page, "how")  # and what is printed beside it
    assert "exp(−2) / (exp(2) + exp(−2) + exp(−1))" in text(page, "how")


def test_rows_light_in_the_matrix_they_are_the_rows_of(page: Page):
    page.locator(f"{of('attention')} td[data-cell='0,2,0,0']").hover()
    lit = {one.get_attribute("data-at")[0] for one in page.locator(f"{of('attention')} .alv-source [data-at]").all()}
    assert lit == {"Q", "K", "V"}


def test_a_number_that_is_typed_changes_what_follows(page: Page):
    before, again = text(page, "sides"), page.locator(f"{WEIGHTS} .alv-again")
    assert not again.is_visible(), "there is nothing to go back to"
    page.locator(f"{WEIGHTS} [data-at='s,0,0']").fill("-3")
    page.keyboard.press("Enter")
    assert text(page, "sides") != before
    assert page.evaluate("document.activeElement.dataset.at") == "s,0,1", "Enter goes on to the next number"
    assert page.evaluate("getSelection().toString()") == page.locator(f"{WEIGHTS} [data-at='s,0,1']").input_value()
    assert "agree" in text(page, "verdict")
    for typed in ("1/3", "1e3"):
        page.locator(f"{WEIGHTS} [data-at='s,0,0']").fill(typed)
        page.keyboard.press("Enter")
        assert text(page, "verdict").endswith("takes a number, such as 0.5 or −2. All that is shown is still for −3.")
        assert page.locator(f"{WEIGHTS} [data-at='s,0,0']").get_attribute("aria-invalid") == "true"
    again.click()
    assert text(page, "sides") == before


def test_a_sign_stands_beside_the_middle_of_the_numbers(page: Page):
    mistake(page, "normalised over the queries")
    beside = page.evaluate(
        """(of) => document.querySelectorAll(`${of} .alv-side:not(.same + *):has(.alv-sign)`).values().map((side) => {
        const [sign, numbers] = ['.alv-sign', 'tbody'].map((part) => side.querySelector(part).getBoundingClientRect());
        return Math.abs(sign.top + sign.bottom - numbers.top - numbers.bottom) / 2;
    }).toArray()""",
        WEIGHTS,
    )
    assert beside
    assert max(beside) < 3


def test_all_zeros_typed_one_after_the_other_hide_a_mistake_in_a_product(page: Page):
    mistake(page, "scaled after the softmax", "attention")
    page.locator(f"{of('attention')} [data-at='V,0,0']").focus()
    for _ in range(9):
        page.keyboard.type("0")
        page.keyboard.press("Enter")
    assert text(page, "verdict", "attention").startswith("Found: on these numbers the mistake does not show. 0 of 9 differ")


def test_numbers_that_hide_a_mistake_are_found_and_said_to_be_no_test(page: Page):
    mistake(page, "normalised over the queries")
    page.locator(f"{WEIGHTS} [data-at='s,0,0']").focus()
    for row in range(3):
        for column in range(3):
            assert page.evaluate("document.activeElement.dataset.at") == f"s,{row},{column}"
            page.keyboard.press("Control+A")
            page.keyboard.type("2")
            page.keyboard.press("Tab")
    assert text(page, "verdict").startswith("Found: on these numbers the mistake does not show. 0 of 12 differ")
    assert page.evaluate("document.activeElement.tagName") == "TD", "what is drawn anew does not take the focus away"
    page.locator(f"{WEIGHTS} .alv-again").click()
    assert text(page, "verdict").startswith("9 of 9 differ.")
    page.locator(f"{WEIGHTS} .alv-some[aria-disabled=false]").click()
    assert text(page, "verdict").startswith("Found: ")
    assert page.locator(f"{WEIGHTS} .alv-some[aria-disabled=true]:focus").count() == 1


def test_a_question_is_asked_only_where_it_has_an_answer(page: Page):
    mistake(page, "normalised over the queries")
    expect(page.locator(f"{WEIGHTS} .alv-verdict")).to_contain_text("Can you find")
    mistake(page, "divided by lse", "log-softmax")  # of scores whose lse is 1 there are none among whole numbers
    expect(page.locator(f"{of('log-softmax')} .alv-verdict")).to_contain_text("It shows on all numbers tried")
    assert page.locator(f"{of('log-softmax')} .alv-some").get_attribute("aria-disabled") == "true"
    mistake(page, "tanh(q + k) itself", "additive-score")
    assert text(page, "verdict", "additive-score") == "This form never fits: left is a number, right is a column (3 x 1)."
    mistake(page, "the diagonal hidden too", "causal-mask-in-columns")
    assert "belong together" in text(page, "verdict", "causal-mask-in-columns")
    assert page.locator(f"{of('causal-mask-in-columns')} :is(.alv-some, .alv-again):visible").count() == 0


def test_what_agrees_by_rounding_is_not_said_to_be_the_same(page: Page):
    mistake(page, "normalised over the queries")
    for row, numbers in enumerate(((99, 0, 0), (0, 99, 0), (0, 0, 99))):  # the weights are 1 and 0, but for exp(-99)
        for column, number in enumerate(numbers):
            page.locator(f"{WEIGHTS} [data-at='s,{row},{column}']").fill(str(number + row))
    page.keyboard.press("Enter")
    assert text(page, "verdict").startswith("Equal to the digits shown, not the same")


def test_keys_go_through_the_numbers(page: Page):
    first = page.locator(f"{WEIGHTS} td[data-cell='0,1,0,0']")
    assert first.get_attribute("tabindex") == "0"
    first.focus()
    assert "p" in text(page, "how")
    for key, cell in (("ArrowRight", "0,1,1,0"), ("ArrowDown", "0,1,4,0"), ("ArrowLeft", "0,1,3,0"), ("ArrowUp", "0,1,0,0")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.cell") == cell
    page.locator(f"{WEIGHTS} [data-at='s,1,1']").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.at") == "s,2,1"


def test_what_is_shown_has_names_for_a_screen_reader(page: Page):
    assert page.locator(f"{WEIGHTS} [data-at='s,1,2']").get_attribute("aria-label") == "s, row 2, column 3"
    assert page.locator(f"{WEIGHTS} .alv-caption").count() == page.locator(f"{WEIGHTS} table").count()
    assert page.locator(f"{WEIGHTS} section").get_attribute("aria-labelledby") == "attn-alive-attention-weights-title"
    assert page.locator(f"{WEIGHTS} .alv-how").get_attribute("aria-live") == "polite"


def test_a_link_opens_a_card_at_a_mistake(browser: Page):
    browser.goto("about:blank#wrong=2")
    browser.set_content(f"<!doctype html><html><body>{card(life_of('attention-weights'))}</body></html>")
    assert browser.locator("[aria-pressed=true]").inner_text() == "normalised over the queries"
    browser.goto("about:blank")
