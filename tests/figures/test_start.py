"""The map says what its numbers say; the cards count as Python does."""

from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.equations.links import chapter_map
from attn_course.game.card import break_the_machine
from attn_course.language.model import LanguageModel
from attn_course.lessons.start import figures
from attn_course.reference import attention, softmax
from attn_course.sentence import CONTENT, KEY, QUERY, TOKENS, VALUE
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


# --- the two cards ------------------------------------------------------------------------------------

MODEL = LanguageModel(None, None)  # its stored answers
PIECES = MODEL.tokens("The cat sat because it was tired.")
REAL_HEAD = MODEL.maps("The cat sat because it was tired.")[13, 8]
SAID = [token.strip() for token in PIECES]


def test_the_words_of_the_card_name_whom_each_word_looks_at_most():
    wanted = [(token, [SAID[row.argmax()], f"{row.max():.2f}"]) for token, row in zip(SAID, REAL_HEAD, strict=True)]
    assert rows_of_card("looks") == wanted


@pytest.mark.browser
def test_the_card_of_the_real_head_shows_every_weight_of_the_word_that_asks(page, shown):
    figures.looks_explorable(REAL_HEAD, PIECES, first=4)
    page.set_content(shown[0].html)
    said = page.get_by_role("status")
    expect(said).to_contain_text("“it” looks most at “cat”, which gets 94 % of its attention.")
    for i, token in enumerate(SAID):
        page.get_by_role("button", name=token, exact=True).click()
        shares = page.locator("[data-names] small").all_text_contents()
        assert shares[i + 1 :] == [""] * (len(SAID) - i - 1)
        whole = [int(share.removesuffix(" %").replace("<1", "0")) for share in shares[: i + 1]]
        assert sum(whole) <= 100
        np.testing.assert_allclose(whole, 100 * REAL_HEAD[i, : i + 1], atol=1)
        widths = [float(path.get_attribute("stroke-width")) for path in page.locator("path.attn-chosen").all()]
        np.testing.assert_allclose(widths, 16 * REAL_HEAD[i], atol=0.006)
        expect(said).to_contain_text(f"“{token}” looks most at “{SAID[REAL_HEAD[i].argmax()]}”")


BADGES, WISH = KEY[0], QUERY[0, 4]


def shares_of(wish):
    powers = np.exp(BADGES @ np.array([wish, 0, -2.0, wish]) / 2)
    return powers / powers.sum()


def percentages(wish):
    return [f"{100 * share:.0f}" for share in shares_of(wish)]


def test_the_words_of_the_first_card_hold_both_ends_and_the_middle_of_its_slider():
    wishes = {"somebody alive": 2, "neither": 0, "what somebody does": -2}
    assert rows_of_card("asks") == [(name, percentages(wish)) for name, wish in wishes.items()]


@pytest.mark.browser
def test_the_first_card_finds_the_cat_then_five_words_equally_and_then_sat(page, shown):
    figures.asks_explorable(BADGES, WISH, TOKENS, asks=4)
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
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".attn-live svg").inner_html() == begun


def test_a_word_gives_the_weights_that_the_first_head_of_the_sentence_gives():
    _, weights = attention(QUERY, KEY, VALUE, return_weights=True)
    words = CONTENT[:, :3]
    w_query = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, -1, 1]])  # as the lesson types it
    badges = np.column_stack([words, words[:, 0] - words[:, 1]])
    np.testing.assert_allclose(softmax(words @ w_query @ badges.T / 2), weights[0], atol=1e-12)


def test_the_game_says_in_the_first_lesson_that_it_begins_with_a_warm_up(shown):
    break_the_machine()
    assert "warm-up of six trials" in repr(shown[0])


FIRST = partial(figures.asks_explorable, query=WISH, tokens=TOKENS)
LOOKS = partial(figures.looks_explorable, REAL_HEAD)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (partial(FIRST, BADGES, asks=7), "asks must be the number of a word, 0 to 6; got 7"),
        (partial(FIRST, BADGES[:6], asks=4), r"key must have shape \(7, 4\); got \(6, 4\)"),
        (partial(LOOKS, PIECES, first=8), "first must be the number of a word, 0 to 7; got 8"),
        (partial(LOOKS, PIECES[:7], first=0), r"weights must have shape \(7, 7\); got \(8, 8\)"),
    ],
)
def test_numbers_that_do_not_fit_their_words_are_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
