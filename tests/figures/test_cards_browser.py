"""Each card asks the question that the lesson asks just before it, and its reset undoes whatever was moved."""

import re

import pytest

from tests.figures.support import CARDS, LESSONS, card_html

LESSON_TEXTS = LESSONS.parents[1] / "notebooks" / "src"
ASKING = {
    "additive": ["additive"],
    "asks": ["start"],
    "lookup": ["lookup"],
    "looks": ["start"],
    "memory": ["linear"],
    "notation": ["notation"],
    "rope": ["self_attention"],
    "softmax": ["softmax"],
    "steps": ["gradients"],
}


@pytest.mark.parametrize(("name", "lesson"), [(name, lesson) for name, lessons in ASKING.items() for lesson in lessons])
def test_the_question_of_a_card_stands_in_the_cell_before_it(name, lesson):
    heading = re.search(r'class="attn-title"[^>]*>(.*?)</p>', CARDS[name].with_suffix(".html").read_text(encoding="utf-8"))
    cells = re.split(r"^# %%", (LESSON_TEXTS / f"{lesson}.py").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (place,) = [n for n, cell in enumerate(cells) if f"{name}_explorable(" in cell]
    before = " ".join(re.sub(r"^# ", "", cells[place - 1], flags=re.MULTILINE).split())
    assert heading is not None
    assert heading[1].endswith("?")
    assert heading[1] in re.sub(r"[$*]", "", before)


@pytest.mark.browser
@pytest.mark.parametrize("name", sorted(ASKING.keys() - {"asks", "looks"}))  # these have data, and their own tests
def test_reset_undoes_what_sliders_and_buttons_did(page, name):
    page.set_content(card_html(name))
    live = page.locator(".attn-live")
    before = live.evaluate(STATE)
    for slider in live.locator("input[type=range]").all():
        slider.press("Home")
    for button in live.locator("button:not([data-reset], [data-play], [data-cell])").all():
        button.click()
    assert live.evaluate(STATE) != before
    page.get_by_role("button", name="Reset").click()
    assert live.evaluate(STATE) == before


STATE = """live => {
    const copy = live.cloneNode(true);
    copy.querySelector(".attn-summary").remove(); // it comes a moment later
    const pressed = [...live.querySelectorAll("[aria-pressed]")].map(button => button.getAttribute("aria-pressed"));
    return [copy.innerText.replace(/\\s+/g, " "), ...pressed];
}"""
