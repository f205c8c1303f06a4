"""The map and the two orientations say what their numbers say; the cards of the sentence and of the dialects count as Python does."""

import re
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.equations.links import chapter_map
from attn_course.figures.broken import break_the_machine
from attn_course.lessons.start import figures
from attn_course.notation import columns_from_rows
from attn_course.reference import attention
from attn_course.sentence import CONTENT, TOKENS
from attn_course.sentence import KEY as KEY_OF_SENTENCE
from attn_course.sentence import QUERY as ASKED
from attn_course.sentence import VALUE as GIVEN
from tests.figures.diagrams import assert_sound_diagram
from tests.figures.support import Pictures, card_html, described, rows_of_card

QUERY = np.array([[1.2, -0.4, 0.6], [-0.8, 1.1, 0.3], [0.5, 0.9, -1.3], [1.6, 0.2, 0.7], [-0.3, -1.2, 0.8]])
KEY = np.array([[0.9, 0.1, -0.5], [-0.6, 1.4, 0.2], [0.4, -0.7, 1.1], [1.3, 0.8, -0.9], [-1.1, 0.3, 0.6], [0.2, -1.5, 0.4]])
VALUE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [2.0, 1.0], [-1.0, 2.0]])
DIALECTS = ("course", "points", "columns", "transformer", "torch")
TITLES = {1: "One", 2: "Two", 3: "Three", 4: "Four"}
WEIGHTS = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
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
    (
        partial(figures.two_orientations, WEIGHTS, np.tril(np.ones((3, 3), dtype=bool))),
        ["3 cells are hidden", "each column sums to 1, and the hidden cells lie below the diagonal."],
    ),
    (
        partial(figures.two_orientations, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]),
        ["0 cells are hidden. Left, 3 by 2", "row sums to 1. Right"],
    ),
]
REFUSED = [
    (partial(MAP, {1: 1, 2: 1}, {(2, 1): 1}, TITLES), "links must lead from a chapter to a later one"),
    (partial(MAP, {1: 1, 2: 1}, {(1, 9): 1}, TITLES), r"got \[\(1, 9\)\]"),
    (partial(MAP, {1: 1, 7: 1}, {(1, 7): 1}, TITLES), r"titles must name every chapter; got none for \[7\]"),
    (partial(MAP, {1: 1, 2: 1}, {}, TITLES), "links must hold at least one link"),
    (partial(figures.two_orientations, [[0.5, 0.6]]), "weights must sum to 1 in each row"),
    (partial(figures.two_orientations, WEIGHTS, np.ones((3, 2), dtype=bool)), r"mask must have the shape of weights, \(3, 3\)"),
]


class TestPictures(Pictures):
    """The map, a small one and the real one, and the orientations with a mask and without."""

    at_most = 120_000


# --- the sentence --------------------------------------------------------------------------------------

OUTPUT_OF_SENTENCE, WEIGHTS_OF_SENTENCE = attention(ASKED, KEY_OF_SENTENCE, GIVEN, return_weights=True)


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
            rows = page.locator(".attn-asked tbody tr")
            for j, name in enumerate(TOKENS):
                score = f"{ASKED[head, i] @ KEY_OF_SENTENCE[head, j]:.0f}".replace("-", "−")
                assert rows.nth(j).locator("th").inner_text() == name
                assert rows.nth(j).locator("td").all_inner_texts()[1:] == [score, f"{WEIGHTS_OF_SENTENCE[head, i, j]:.2f}"]
            wanted = ", ".join(f"{entry:.2f}" for entry in OUTPUT_OF_SENTENCE[head, i])
            expect(page.get_by_role("status")).to_contain_text(f"“{token}” looks most at")
            expect(page.get_by_role("status")).to_contain_text(f"takes home is ({wanted}).")
    expect(page.get_by_role("status")).to_contain_text("“was”, which gets the weight 0.71")
    page.get_by_role("slider").press("End")
    spread = attention(ASKED, KEY_OF_SENTENCE, GIVEN, scale=1 / 12, return_weights=True)[1][1, 6]
    assert page.locator(".attn-asked td:last-child").all_inner_texts() == [f"{weight:.2f}" for weight in spread]
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


def test_the_words_of_the_first_card_hold_both_ends_of_its_slider():
    assert rows_of_card("asks") == [("what somebody does", percentages(-2)), ("somebody alive", percentages(2))]


@pytest.mark.browser
def test_the_first_card_finds_the_cat_when_it_looks_for_somebody_alive(page, shown):
    figures.asks_explorable(KEY_OF_SENTENCE[0], ASKED[0, 4], TOKENS, asks=4)
    page.set_content(shown[0].html)
    slider, said = page.get_by_role("slider"), page.get_by_role("status")
    begun = page.locator(".attn-live svg").inner_html()
    for presses, wish, found in ((0, -2, "sat"), (16, 2, "cat")):
        for _ in range(presses):
            slider.press("ArrowRight")
        assert page.locator(".attn-percent").all_text_contents() == [f"{share} %" for share in percentages(wish)]
        widths = [float(path.get_attribute("stroke-width")) for path in page.locator("[data-lines] path").all()]
        np.testing.assert_allclose(widths, np.maximum(0.6, 16 * shares_of(wish)), atol=0.006)
        expect(said).to_contain_text(f"most at “{found}”, which gets {100 * shares_of(wish).max():.0f} %")
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


def test_a_folded_text_is_whole_in_a_terminal_and_behind_one_line_on_a_page(capsys):
    made = figures.Folded("Two signs", "a < b\n a & b")
    assert repr(made) == "Two signs\n\na < b\n a & b"
    assert "<summary>Two signs</summary>" in made._repr_html_()
    assert "a &lt; b\n a &amp; b</pre></details>" in made._repr_html_()
    figures.folded("Two signs", "a < b")
    assert capsys.readouterr().out == "Two signs\n\na < b\n"


# --- the card of dialects ------------------------------------------------------------------------------


def numbers_of(dialect, q_len, kv_len, causal):
    """Weights (NaN where hidden) and output as the dialect has them, from the reference and the converters of the course."""
    mask = np.tril(np.ones((q_len, kv_len), dtype=bool)) if causal else np.ones((q_len, kv_len), dtype=bool)
    output, weights = attention(QUERY[:q_len], KEY[:kv_len], VALUE[:kv_len], mask=mask, return_weights=True)
    weights = np.where(mask, weights, np.nan)
    return (columns_from_rows(weights), columns_from_rows(output)) if dialect == "columns" else (weights, output)


def test_the_words_of_the_card_hold_the_shapes_it_starts_with():
    shapes = [[cell for cell in cells if re.fullmatch(r"\d × \d", cell)] for _, cells in rows_of_card("notation")]
    assert shapes == [["4 × 3", "4 × 5", "4 × 2"]] * 2 + [["3 × 4", "5 × 4", "2 × 4"]] + [["4 × 3", "4 × 5", "4 × 2"]] * 2


@pytest.mark.browser
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_numbers_of_the_card_are_those_of_python(page, dialect, causal):
    page.set_content(card_html("notation"))
    for q_len in range(2, 6):
        for kv_len in range(2, 7):
            shown = described(page, "notation", dialect, q_len, kv_len, causal)
            weights, output = numbers_of(dialect, q_len, kv_len, causal)
            np.testing.assert_allclose(np.array(shown["weights"], dtype=float), weights, atol=1e-12)
            np.testing.assert_allclose(shown["output"], output, atol=1e-12)
            assert shown["shapes"]["weights"] == list(weights.shape)
            assert shown["shapes"]["output"] == list(output.shape)
            assert shown["shapes"]["query"] == ([3, q_len] if dialect == "columns" else [q_len, 3])


def cells(page) -> list[str]:
    return page.locator("[data-grid=weights] td:not(.attn-sum)").all_inner_texts()


def as_shown(weights) -> list[str]:
    return ["hidden" if np.isnan(weight) else f"{weight:.2f}" for weight in weights.ravel()]


@pytest.mark.browser
def test_by_keyboard_alone_the_dialect_turns_the_tables_and_the_pair_keeps_its_weight(page):
    page.set_content(card_html("notation"))
    assert cells(page) == as_shown(numbers_of("course", 4, 5, False)[0])
    pair = page.locator(".attn-pair")
    weight = pair.inner_text()
    for _ in range(3):
        page.keyboard.press("Tab")
    columns = page.get_by_role("button", name="Columns")
    expect(columns).to_be_focused()
    assert columns.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(columns).to_have_attribute("aria-pressed", "true")
    assert page.locator("[data-dialect][aria-pressed=true]").count() == 1
    assert cells(page) == as_shown(numbers_of("columns", 4, 5, False)[0])
    assert pair.inner_text() == weight
    assert page.locator("[data-shape=weights]").inner_text() == "5 × 4"
    expect(page.get_by_role("status")).to_have_text(
        re.compile(
            r"With columns as positions, scores and weights are 5 × 4, and each column sums to 1\. "
            rf"The weight of key 1 for query 2: {re.escape(weight)}, in row 1, column 2\."
        )
    )
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_role("slider", name="number of queries")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert cells(page) == as_shown(numbers_of("columns", 2, 5, False)[0])
    expect(page.get_by_role("slider", name="query of the pair")).to_have_attribute("aria-valuetext", "1")
    page.get_by_role("slider", name="key of the pair").press("End")
    page.get_by_role("button", name="Hide keys after the query").press("Space")
    assert cells(page) == as_shown(numbers_of("columns", 2, 5, True)[0])
    expect(page.get_by_role("status")).to_contain_text("The weight of key 4 for query 1: hidden, in row 4, column 1.")


@pytest.mark.browser
def test_a_click_on_a_weight_follows_its_pair_in_every_way_of_writing(page):
    page.set_content(card_html("notation"))
    page.locator("[data-grid=weights] tr").nth(4).locator("td").nth(3).click()
    sliders = [page.get_by_role("slider", name=f"{name} of the pair") for name in ("query", "key")]
    assert [slider.input_value() for slider in sliders] == ["3", "3"]
    page.get_by_role("button", name="Columns").click()
    page.locator("[data-grid=weights] tr").nth(5).locator("td").nth(0).click()
    assert [slider.input_value() for slider in sliders] == ["0", "4"]
    assert page.locator(".attn-pair").inner_text() == f"{numbers_of('course', 4, 5, False)[0][0, 4]:.2f}"


@pytest.mark.browser
def test_every_dialect_names_its_formula_its_axis_and_its_mask(page):
    page.set_content(card_html("notation"))
    said = {}
    for dialect in DIALECTS:
        page.locator(f"[data-dialect={dialect}]").click()
        said[dialect] = [page.locator(f"[data-fact={fact}]").inner_text() for fact in ("formula", "axis", "mask", "projection")]
        assert all(said[dialect])
        assert all(page.locator("[data-name]").all_inner_texts())
    assert "axis 0" in said["columns"][1]
    assert "BELOW" in said["columns"][2]
    assert all("above" in said[name][2] for name in ("course", "points", "transformer"))
    assert "HIDE" in said["torch"][2]
    assert len({facts[0] for facts in said.values()}) == 5
