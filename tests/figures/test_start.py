"""The map says what its numbers say; the cards of the sentence count as Python does."""

import re
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.equations.links import chapter_map
from attn_course.game.card import break_the_machine
from attn_course.lessons.start import figures
from attn_course.reference import attention
from attn_course.sentence import CONTENT, TOKENS
from attn_course.sentence import KEY as KEY_OF_SENTENCE
from attn_course.sentence import QUERY as ASKED
from attn_course.sentence import VALUE as GIVEN
from tests.figures.diagrams import assert_sound_diagram
from tests.figures.support import Pictures, rows_of_card

TITLES = {1: "One", 2: "Two", 3: "Three", 4: "Four"}
REAL = chapter_map()
MAP = figures.map_of_chapters

DRAWN = [
    (
        partial(MAP, {1: 5, 2: 7, 3: 2, 4: 9}, {(1, 2): 3, (1, 3): 1, (2, 3): 2}, TITLES),
        [
            "Most used: 01 One (4 links), 02 Two (2 links)",
            "Thickest arc: from 01 One to 02 Two, 3 links. Without any link: 04 Four.",
        ],
    ),
    (partial(MAP, REAL.counts, REAL.links, REAL.titles), [f"Map of {len(REAL.counts)} lessons"]),
]
REFUSED = [
    (partial(MAP, {1: 1, 2: 1}, {(2, 1): 1}, TITLES), "links must lead from a chapter to a later one"),
    (partial(MAP, {1: 1, 2: 1}, {(1, 9): 1}, TITLES), r"got \[\(1, 9\)\]"),
    (partial(MAP, {1: 1, 7: 1}, {(1, 7): 1}, TITLES), r"titles must name every chapter; got none for \[7\]"),
    (partial(MAP, {1: 1, 2: 1}, {}, TITLES), "links must hold at least one link"),
]


class TestPictures(Pictures):
    """The map, a small one and the real one."""

    at_most = 120_000


# --- the sentence --------------------------------------------------------------------------------------

OUTPUT_OF_SENTENCE, WEIGHTS_OF_SENTENCE = attention(ASKED, KEY_OF_SENTENCE, GIVEN, return_weights=True)
ROWS = "rows => rows.map((row) => ['th', 'td:nth-of-type(2)', 'td:nth-of-type(3)'].map((cell) => row.querySelector(cell).innerText))"


def test_the_words_of_the_card_name_whom_each_word_looks_at_most():
    for i, (asks, cells) in enumerate(rows_of_card("looks")):
        assert asks == TOKENS[i]
        for weights, found, weight in zip(WEIGHTS_OF_SENTENCE[:, i], cells[::2], cells[1::2], strict=True):
            best = [token for token, share in zip(TOKENS, weights, strict=True) if share > weights.max() - 1e-9]
            assert found == ("all alike" if len(best) == len(TOKENS) else ", ".join(best))
            assert weight == f"{weights.max():.2f}"


@pytest.mark.browser
def test_the_card_of_the_sentence_shows_every_score_weight_and_average(page, shown):
    figures.looks_explorable(ASKED, KEY_OF_SENTENCE, GIVEN, TOKENS, first=4)
    page.set_content(shown[0].html)
    caption = page.locator(".attn-asked caption")
    assert caption.inner_text() == "The query of “it” is (2, 0, −2, 2)"
    expect(page.get_by_role("status")).to_contain_text("“it” looks most at “cat”")
    begun = page.locator(".attn-live").inner_html()
    for head, title in enumerate(("Head 1: who is meant", "Head 2: one word back")):
        page.get_by_role("button", name=title).press("Enter")
        for i, token in enumerate(TOKENS):
            page.locator(f"[data-word='{i}']").click()
            scores = [f"{score:.0f}".replace("-", "−") for score in KEY_OF_SENTENCE[head] @ ASKED[head, i]]
            weights = [f"{weight:.2f}" for weight in WEIGHTS_OF_SENTENCE[head, i]]
            rows = page.locator(".attn-asked tbody tr").evaluate_all(ROWS)
            assert rows == [list(row) for row in zip(TOKENS, scores, weights, strict=True)]
            wanted = ", ".join(f"{entry:.2f}" for entry in OUTPUT_OF_SENTENCE[head, i])
            expect(page.get_by_role("status")).to_contain_text(f"“{token}” looks most at")
            expect(page.get_by_role("status")).to_contain_text(f"Its output is ({wanted}).")
    expect(page.get_by_role("status")).to_contain_text("“was”, which gets the weight 0.71")
    page.locator("[data-word='1']").click()
    assert page.locator(".attn-name.attn-chosen").all_text_contents() == ["the", "cat", "tired"], "all that it looks at most"
    page.locator("[data-asks='3']").click()
    assert caption.inner_text() == "The query of “because” is (−2, 2, 2, 2)"
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_role("status")).to_contain_text("“it” looks most at “cat”, which gets the weight 0.95")
    assert page.locator(".attn-live").inner_html() == begun


def shares_of(wish):
    powers = np.exp(KEY_OF_SENTENCE[0] @ np.array([wish, 0.0, -2.0, wish]) / 2)
    return powers / powers.sum()


def percentages(wish):
    return [f"{100 * share:.0f}" for share in shares_of(wish)]


def test_the_words_of_the_first_card_hold_both_ends_and_the_middle_of_its_slider():
    wishes = {"somebody alive": 2, "neither": 0, "what somebody does": -2}
    assert rows_of_card("asks") == [(name, percentages(wish)) for name, wish in wishes.items()]


@pytest.mark.browser
def test_the_first_card_finds_the_cat_then_five_words_equally_and_then_sat(page, shown):
    figures.asks_explorable(KEY_OF_SENTENCE[0], ASKED[0, 4], TOKENS, asks=4)
    page.set_content(shown[0].html)
    slider, said = page.get_by_role("slider"), page.get_by_role("status")
    begun = page.locator(".attn-live svg").inner_html()
    five = "“cat”, “sat”, “because”, “was”, “tired”, each of which"
    for presses, wish, found in ((0, 2, "“cat”, which"), (8, 0, five), (8, -2, "“sat”, which")):
        for _ in range(presses):
            slider.press("ArrowRight")
        assert page.locator(".attn-percent").all_text_contents() == [f"{share} %" for share in percentages(wish)]
        widths = [float(path.get_attribute("stroke-width")) for path in page.locator("[data-lines] path").all()]
        np.testing.assert_allclose(widths, np.maximum(0.6, 16 * shares_of(wish)), atol=0.006)
        expect(said).to_contain_text(f"most at {found} gets {100 * shares_of(wish).max():.0f} %")
    np.testing.assert_allclose(shares_of(2), WEIGHTS_OF_SENTENCE[0, 4], atol=1e-12)
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".attn-live svg").inner_html() == begun


BEFORE, GIVEN_BY_HEAD, SHARES = CONTENT[:, :3], GIVEN[0], WEIGHTS_OF_SENTENCE[0, 4]
AFTER = BEFORE[4] + OUTPUT_OF_SENTENCE[0, 4] * [1, 1, -1]
STEP = partial(figures.one_step, value=GIVEN_BY_HEAD, before=BEFORE, after=AFTER, tokens=TOKENS, asks=4, found=1)
FIRST = partial(figures.asks_explorable, query=ASKED[0, 4], tokens=TOKENS)
SINGLE = partial(figures.one_step, [1.0], [[0, 0, -2]], [[0, 0, -1]], [0, 0, 1], ["because"], asks=0, found=0)


@pytest.mark.parametrize(
    ("draw", "fact"),
    [
        (partial(STEP, SHARES), "cat (2, 0, 2) with 0.95, sat (0, 2, 0) with 0.00, because"),
        (partial(STEP, SHARES), "makes (1.91, 0.05, 0.10). Beside it stands 'cat', (2, 0, 0)."),
        (SINGLE, "because (0, 0, −2) with 1.00; the average is (0.00, 0.00, −2.00)"),
    ],
)
def test_the_drawing_of_one_step_is_sound_and_its_lines_are_as_thick_as_the_weights(shown, draw, fact):
    def drawn():
        shown.clear()
        draw()
        return shown[0]

    assert_sound_diagram(drawn)
    assert fact in shown[0].alt
    wires = [float(width) for width in re.findall(r"stroke-width:([\d.]+)", shown[0].html.partition("<svg")[2])]
    np.testing.assert_allclose(wires, np.maximum(0.6, 16 * np.asarray(draw.args[0])), atol=0.06)


def test_the_game_says_in_the_first_lesson_that_it_begins_with_a_warm_up(shown):
    break_the_machine()
    assert "warm-up of six trials" in repr(shown[0])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (partial(STEP, SHARES, tokens="abcdefgh"), "tokens must be 1 to 7 words; got 8"),
        (partial(STEP, SHARES / 2), "weights must sum to 1; got 0.5"),
        (partial(FIRST, KEY_OF_SENTENCE[0], asks=7), "asks must be the number of a word, 0 to 6; got 7"),
        (partial(FIRST, KEY_OF_SENTENCE[0, :6], asks=4), r"key must have shape \(7, 4\); got \(6, 4\)"),
    ],
)
def test_a_step_that_does_not_fit_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ASKED, KEY_OF_SENTENCE, GIVEN[:, :6], TOKENS, 0), "value must have a row for each of 7 words; got 6"),
        ((ASKED, KEY_OF_SENTENCE, GIVEN, TOKENS, 7), "first must be the number of a word, 0 to 6; got 7"),
    ],
)
def test_a_sentence_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        figures.looks_explorable(*arguments)
