"""The figures of lesson cross_attention say what their numbers say, and the card shows the data that it was given."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course import figures
from attn_course.figures.explorable import explorable_html
from tests.figures.support import assert_sound

SOURCE, WRITTEN = ["9", "May", "1998"], "05-9"
WEIGHTS = np.array([[0.1, 0.8, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]])
EXAMPLE = {"text": "9 May 98", "pieces": ["9", "May", "9", "8"], "written": "1998-05-09"}
ROWS = [[10 * n, 90 - 10 * n, 5, 5] for n in range(10)]


def draw(**options):
    figures.alignments(SOURCE, WRITTEN, {"head 0": WEIGHTS, "head 1": WEIGHTS[::-1]}, title="May is read twice", **options)


def translators(rows=ROWS):
    return {name: [{**EXAMPLE, "rows": rows} for _ in range(6)] for name in ("a", "b", "c")}


def card_data():
    return [{"name": name, "examples": examples} for name, examples in translators().items()]


def test_it_is_small_whole_not_blank_and_the_same_every_time(shown):
    assert_sound(shown, draw)


def test_the_words_name_the_piece_each_sign_reads_most(shown):
    draw()
    assert "head 0: 0 → May 80 %, 5 → May 100 %, - → 1998 40 %, 9 → 9 90 %." in shown[0].alt


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "weights must hold at least one alignment"),
        ({"a": WEIGHTS.T}, r"weights\['a'\] must have shape \(4, 3\); got \(3, 4\)"),
        ({"a": 100 * WEIGHTS}, r"weights\['a'\] must lie in \[0, 1\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(shown, weights, message):
    with pytest.raises(ValueError, match=message):
        figures.alignments(SOURCE, WRITTEN, weights, title="May is read twice")
    assert shown == []


def test_the_card_holds_its_data_and_ends_no_script_early(shown):
    figures.alignment_explorable(translators())
    html = shown[0].html
    data = re.search(r"const DATA = (.*);\n", html)
    assert data is not None
    assert json.loads(data[1]) == card_data()
    assert explorable_html("alignment", "x", ["</script>"]).count("</script>") == 1


@pytest.mark.parametrize("broken", [{"a": []}, translators(rows=[[1, 2]])])
def test_a_card_whose_data_do_not_fit_is_refused(shown, broken):
    with pytest.raises(ValueError, match="translators"):
        figures.alignment_explorable(broken)
    assert shown == []


@pytest.mark.browser
class TestInABrowser:
    """By keyboard and by pointer."""

    def test_the_slider_moves_the_weights(self, page):
        page.set_content(explorable_html("alignment", "x", card_data()))
        slider = page.get_by_role("slider", name="sign that is being written")
        assert page.locator(".attn-piece").all_inner_texts() == ["9\n60 %", "May\n30 %", "9\n5 %", "8\n5 %"]
        slider.focus()
        page.keyboard.press("Home")
        assert page.locator(".attn-piece").all_inner_texts() == ["9\n0 %", "May\n90 %", "9\n5 %", "8\n5 %"]
        expect(slider).to_have_attribute("aria-valuetext", "1 of 10, 1")
        expect(page.get_by_role("status")).to_have_text(
            'While it writes sign 1 of 1998-05-09, "1", the translator puts 90 % of the weight on "May" of "9 May 98".'
        )

    def test_pointing_at_a_sign_and_pressing_buttons_work(self, page):
        page.set_content(explorable_html("alignment", "x", card_data()))
        page.locator(".attn-sign").nth(9).hover()
        assert page.locator(".attn-piece").first.inner_text() == "9\n90 %"
        button = page.get_by_role("button", name="no recurrence, head 1")
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("button", name="recurrent", exact=True)).to_have_attribute("aria-pressed", "false")
        expect(page.get_by_role("button", name="9 May 98")).to_have_count(6)

    def test_without_data_the_words_stay(self, browser):
        context = browser.new_context()
        page = context.new_page()
        page.set_content(explorable_html("alignment", "x"))
        expect(page.get_by_text("Scripts do not run here")).to_be_visible()
        expect(page.locator("input, button")).to_have_count(0)
        context.close()
