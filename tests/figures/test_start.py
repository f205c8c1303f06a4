"""The map and the two orientations say what their numbers say; the card of dialects counts as Python does."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course import figures
from attn_course.equations.links import chapter_map
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.notation import columns_from_rows
from attn_course.reference import attention
from tests.figures.support import assert_sound

QUERY = np.array([[1.2, -0.4, 0.6], [-0.8, 1.1, 0.3], [0.5, 0.9, -1.3], [1.6, 0.2, 0.7], [-0.3, -1.2, 0.8]])
KEY = np.array([[0.9, 0.1, -0.5], [-0.6, 1.4, 0.2], [0.4, -0.7, 1.1], [1.3, 0.8, -0.9], [-1.1, 0.3, 0.6], [0.2, -1.5, 0.4]])
VALUE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [2.0, 1.0], [-1.0, 2.0]])
DIALECTS = ("course", "points", "columns", "transformer", "torch")
TITLES = {1: "One", 2: "Two", 3: "Three", 4: "Four"}
WEIGHTS = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])


def draw_map(**options):
    figures.map_of_chapters({1: 5, 2: 7, 3: 2, 4: 9}, {(1, 2): 3, (1, 3): 1, (2, 3): 2}, TITLES, **options)


def draw_the_real_map(**options):
    graph = chapter_map()
    figures.map_of_chapters(graph.counts, graph.links, graph.titles, **options)


def draw_orientations(**options):
    figures.two_orientations(WEIGHTS, np.tril(np.ones((3, 3), dtype=bool)), **options)


def draw_unmasked(**options):
    figures.two_orientations([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]], **options)


FIGURES = [draw_map, draw_the_real_map, draw_orientations, draw_unmasked]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw, at_most=120_000)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_of_the_map_name_the_most_used_the_thickest_and_the_lonely(shown):
    draw_map()
    assert "Most used: 01 One (4 links), 02 Two (2 links)" in shown.words.alt
    assert "Thickest arc: from 01 One to 02 Two, 3 links." in shown.words.alt
    assert shown.words.alt.endswith("Without any link: 04 Four.")


def test_the_words_of_the_orientations_speak_of_a_triangle_only_if_there_is_one(shown):
    draw_orientations()
    assert "3 cells are hidden" in shown.words.alt
    assert shown.words.alt.endswith("each column sums to 1, and the hidden cells lie below the diagonal.")
    shown.clear()
    draw_unmasked()
    assert "0 cells are hidden. Left, 3 by 2" in shown.words.alt
    assert "diagonal" not in shown.words.alt


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match="links must lead from a chapter to a later one"):
        figures.map_of_chapters({1: 1, 2: 1}, {(2, 1): 1}, TITLES)
    with pytest.raises(ValueError, match=r"got \[\(1, 9\)\]"):
        figures.map_of_chapters({1: 1, 2: 1}, {(1, 9): 1}, TITLES)
    with pytest.raises(ValueError, match=r"titles must name every chapter; got none for \[7\]"):
        figures.map_of_chapters({1: 1, 7: 1}, {(1, 7): 1}, TITLES)
    with pytest.raises(ValueError, match="links must hold at least one link"):
        figures.map_of_chapters({1: 1, 2: 1}, {}, TITLES)
    with pytest.raises(ValueError, match="weights must sum to 1 in each row"):
        figures.two_orientations([[0.5, 0.6]])
    with pytest.raises(ValueError, match=r"mask must have the shape of weights, \(3, 3\)"):
        figures.two_orientations(WEIGHTS, np.ones((3, 2), dtype=bool))
    assert shown == []


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(dialect, q_len, kv_len, causal):
    """Weights (NaN where hidden) and output as the dialect has them, from the reference and the converters of the course."""
    mask = np.tril(np.ones((q_len, kv_len), dtype=bool)) if causal else np.ones((q_len, kv_len), dtype=bool)
    output, weights = attention(QUERY[:q_len], KEY[:kv_len], VALUE[:kv_len], mask=mask, return_weights=True)
    weights = np.where(mask, weights, np.nan)
    return (columns_from_rows(weights), columns_from_rows(output)) if dialect == "columns" else (weights, output)


def test_the_words_of_the_card_hold_the_shapes_it_starts_with():
    text = (PARTS / "notation_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    shapes = [[cell for cell in re.findall(r"<td>(.*?)</td>", cells) if re.fullmatch(r"\d × \d", cell)] for _, cells in rows]
    assert shapes == [["4 × 3", "4 × 5", "4 × 2"]] * 2 + [["3 × 4", "5 × 4", "2 × 4"]] + [["4 × 3", "4 × 5", "4 × 2"]] * 2


@pytest.mark.browser
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_numbers_of_the_card_are_those_of_python(page, dialect, causal):
    page.set_content(explorable_html("notation", "notation"))
    call = "([d, q, k, c]) => document.getElementById('attn-notation').explorable.describe(d, q, k, c)"
    for q_len in range(2, 6):
        for kv_len in range(2, 7):
            shown = page.evaluate(call, [dialect, q_len, kv_len, causal])
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
    page.set_content(explorable_html("notation", "notation"))
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
    page.get_by_role("slider", name="key of the pair").focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="Hide keys after the query").focus()
    page.keyboard.press("Space")
    assert cells(page) == as_shown(numbers_of("columns", 2, 5, True)[0])
    expect(page.get_by_role("status")).to_contain_text("The weight of key 4 for query 1: hidden, in row 4, column 1.")


@pytest.mark.browser
def test_every_dialect_names_its_formula_its_axis_and_its_mask(page):
    page.set_content(explorable_html("notation", "notation"))
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


@pytest.mark.browser
def test_jupyterlab_leaves_the_keys_of_every_control_to_the_card_and_nothing_sticks_out(page):
    page.set_content(explorable_html("notation", "notation"))
    focusable = page.locator(".attn-live :is(input, button, select, textarea, a, [tabindex])")
    marks = focusable.evaluate_all("elements => elements.map(element => element.getAttribute('data-lm-suppress-shortcuts'))")
    assert marks == ["true"] * 10
    for width in (340, 700, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
