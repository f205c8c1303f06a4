"""The figures of lesson cross_attention say what their numbers say, and the card shows the data that it was given."""

import json
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.figures.compact import compact_script
from attn_course.lessons.cross_attention import figures
from tests.figures.support import Pictures, card_html

WEIGHTS = np.array([[0.1, 0.8, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]])
SOURCE = ["9", "May", "1998"]
ALIGNMENTS = partial(figures.alignments, SOURCE, "05-9", title="May is read twice")
BATCH = np.array([[[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
EXAMPLE = {"text": "9 May 98", "pieces": ["9", "May", "9", "8"], "written": "1998-05-09"}
ROWS = [[10 * n, 90 - 10 * n, 5, 5] for n in range(10)]

DRAWN = [
    (
        partial(ALIGNMENTS, {"head 0": WEIGHTS, "head 1": WEIGHTS[::-1]}),
        ["head 0: 0 → May 80 %, 5 → May 100 %, - → 1998 40 %, 9 → 9 90 %."],
    ),
    (partial(figures.recurrent_alignment, SOURCE, "05-9", WEIGHTS), ["additive: 0 → May 80 %, 5 → May 100 %"]),
    (partial(figures.head_alignments, SOURCE, "05-9", [WEIGHTS, WEIGHTS[::-1]]), ["head 1: 0 → 9 90 %"]),
    (
        partial(figures.padded_batch, BATCH, [[[True, True, True]], [[True, False, False]]], [1, 2]),
        ["example 0 has 1 padded rows, and hides no piece; example 1 has 0 padded rows, and hides pieces 1 and 2 in every row."],
    ),
    (
        partial(figures.decoding_cost, [1, 2, 3, 4], [5.0, 10.0, 15.0, 20.0], [2.0, 3.0, 4.0, 5.0]),
        ["Projected again: from 5 to 20. Projected once: from 2 to 5."],
    ),
    (
        partial(figures.exact_translations, ["a", "b"], {"new dates": [99.0, 31.25], "new years": [98.5, 20.0]}),
        ["a: new dates 99.0, new years 98.5. b: new dates 31.2, new years 20.0."],
    ),
]
REFUSED = [
    (partial(ALIGNMENTS, {}), "weights must hold at least one"),
    (partial(ALIGNMENTS, {"a": WEIGHTS.T}), r"weights\['a'\] must have shape \(4, 3\); got \(3, 4\)"),
    (partial(ALIGNMENTS, {"a": 100 * WEIGHTS}), r"weights\['a'\] must lie in \[0, 1\]"),
    (partial(figures.recurrent_alignment, SOURCE, "05-9", WEIGHTS.T), r"weights\['additive'\] must have shape \(4, 3\)"),
    (partial(figures.head_alignments, SOURCE, "05-9", []), "weights must hold at least one"),
    (partial(figures.padded_batch, BATCH, np.ones((2, 3)), [1, 2]), "visible and lengths must fit weights"),
    (partial(figures.decoding_cost, [1, 2], [1.0, 2.0], [1.0]), "once must have shape"),
    (partial(figures.exact_translations, ["a", "b"], {"new dates": [99.0]}), r"shares\['new dates'\] must have shape"),
]


class TestPictures(Pictures):
    """Alignments, padding, costs and shares."""


def translators(rows=ROWS):
    return {name: [{**EXAMPLE, "rows": rows} for _ in range(6)] for name in ("a", "b", "c")}


def card_data():
    return [{"name": name, "examples": examples} for name, examples in translators().items()]


def test_the_card_holds_its_data_and_ends_no_script_early(shown):
    figures.alignment_explorable(translators())
    html = shown[0].html
    assert f"const DATA={compact_script(json.dumps(card_data(), ensure_ascii=False))};" in html
    assert card_html("alignment", "x", ["</script>"]).count("</script>") == 1


@pytest.mark.parametrize("broken", [{"a": []}, translators(rows=[[1, 2]])])
def test_a_card_whose_data_do_not_fit_is_refused(shown, broken):
    with pytest.raises(ValueError, match="translators"):
        figures.alignment_explorable(broken)
    assert shown == []


@pytest.mark.browser
class TestInABrowser:
    """By keyboard and by pointer."""

    def test_the_slider_moves_the_weights(self, page):
        page.set_content(card_html("alignment", "x", card_data()))
        slider = page.get_by_role("slider", name="sign that is being written")
        assert page.locator(".attn-piece").all_inner_texts() == ["9\n0 %", "May\n90 %", "9\n5 %", "8\n5 %"]
        expect(slider).to_have_attribute("aria-valuetext", "1 of 10, 1")
        expect(page.get_by_role("status")).to_have_text(
            'While it writes sign 1 of 1998-05-09, "1", the translator puts 90 % of the weight on "May" of "9 May 98".'
        )
        for _ in range(6):
            slider.press("ArrowRight")
        assert page.locator(".attn-piece").all_inner_texts() == ["9\n60 %", "May\n30 %", "9\n5 %", "8\n5 %"]
        assert page.locator(".attn-readings td").all_inner_texts() == [*"1998-05", *["May"] * 5, "9", "9"]
        expect(page.get_by_role("status")).to_contain_text("So far the place it reads most has jumped backwards once.")

    def test_pointing_at_a_sign_and_pressing_buttons_work(self, page):
        page.set_content(card_html("alignment", "x", card_data()))
        page.locator(".attn-sign").nth(9).hover()
        assert page.locator(".attn-piece").first.inner_text() == "9\n90 %"
        button = page.get_by_role("button", name="no recurrence, head 1")
        button.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("button", name="recurrent", exact=True)).to_have_attribute("aria-pressed", "false")
        expect(page.get_by_role("button", name="9 May 98")).to_have_count(6)

    def test_play_writes_the_date_sign_by_sign_and_from_the_end_begins_anew(self, stopped_page):
        page = stopped_page
        page.set_content(card_html("alignment", "x", card_data()))
        signs = page.locator(".attn-sign")
        page.get_by_role("slider", name="sign that is being written").press("End")
        page.get_by_role("button", name="One sign back").click()
        expect(signs.nth(9)).to_have_attribute("data-time", "later")
        page.get_by_role("button", name="Play").click()
        expect(signs.nth(9)).to_have_attribute("data-time", "now")
        page.clock.run_for(2_000)
        page.get_by_role("button", name="Play").click()  # it had stopped at the end
        page.clock.run_for(1_000)
        page.get_by_role("button", name="Pause").click()
        expect(signs.nth(1)).to_have_attribute("data-time", "now")
        page.get_by_role("button", name="One sign on").click()
        expect(signs.nth(2)).to_have_attribute("data-time", "now")
        page.get_by_role("button", name="Reset").click()
        expect(signs.nth(0)).to_have_attribute("data-time", "now")
