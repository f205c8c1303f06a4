"""The two orientations say what their numbers say; the card of the dialects counts as Python does."""

import re
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.figures.folded import Folded, folded
from attn_course.lessons.notation import figures
from attn_course.notation import columns_from_rows
from attn_course.reference import attention
from tests.figures.support import Pictures, card_html, described, rows_of_card

QUERY = np.array([[1.2, -0.4, 0.6], [-0.8, 1.1, 0.3], [0.5, 0.9, -1.3], [1.6, 0.2, 0.7], [-0.3, -1.2, 0.8]])
KEY = np.array([[0.9, 0.1, -0.5], [-0.6, 1.4, 0.2], [0.4, -0.7, 1.1], [1.3, 0.8, -0.9], [-1.1, 0.3, 0.6], [0.2, -1.5, 0.4]])
VALUE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [2.0, 1.0], [-1.0, 2.0]])
DIALECTS = ("course", "points", "columns", "transformer", "torch")
WEIGHTS = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])

DRAWN = [
    (
        partial(figures.two_orientations, WEIGHTS, np.tril(np.ones((3, 3), dtype=bool))),
        ["3 cells are hidden", "each column sums to 1, and the hidden cells lie below the diagonal."],
    ),
    (
        partial(figures.two_orientations, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]),
        ["0 cells are hidden. Left, 3 by 2", "row sums to 1. Right"],
    ),
    (partial(figures.two_orientations, [[0.25, 0.75], [0.5, 0.5]], tokens=("she", "laughs")), ["0 cells are hidden. Left, 2 by 2"]),
]
REFUSED = [
    (partial(figures.two_orientations, WEIGHTS, tokens=("she", "laughs")), r"tokens must be as many as queries and keys, \(3, 3\); got 2"),
    (partial(figures.two_orientations, [[0.5, 0.6]]), "weights must sum to 1 in each row"),
    (partial(figures.two_orientations, WEIGHTS, np.ones((3, 2), dtype=bool)), r"mask must have the shape of weights, \(3, 3\)"),
]

TestPictures = Pictures


def test_a_folded_text_is_whole_in_a_terminal_and_behind_one_line_on_a_page(capsys):
    made = Folded("Two signs", "a < b\n a & b")
    assert repr(made) == "Two signs\n\na < b\n a & b"
    assert "<summary>Two signs</summary>" in made._repr_html_()
    assert "a &lt; b\n a &amp; b</pre></details>" in made._repr_html_()
    folded("Two signs", "a < b")
    assert capsys.readouterr().out == "Two signs\n\na < b\n"


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
def test_the_dialect_turns_the_tables_and_the_pair_keeps_its_weight(page):
    page.set_content(card_html("notation"))
    assert cells(page) == as_shown(numbers_of("course", 4, 5, False)[0])
    weight = page.locator(".attn-pair").inner_text()
    page.get_by_role("button", name="Columns").press("Enter")
    assert page.locator("[data-dialect][aria-pressed=true]").all_inner_texts() == ["Columns"]
    assert cells(page) == as_shown(numbers_of("columns", 4, 5, False)[0])
    assert page.locator(".attn-pair").inner_text() == weight
    assert page.locator("[data-shape=weights]").inner_text() == "5 × 4"
    expect(page.get_by_role("status")).to_have_text(
        re.compile(
            r"With columns as positions, scores and weights are 5 × 4, and each column sums to 1\. "
            rf"The weight of key 1 for query 2: {re.escape(weight)}, in row 1, column 2\."
        )
    )
    page.get_by_role("slider", name="number of queries").press("Home")
    assert cells(page) == as_shown(numbers_of("columns", 2, 5, False)[0])
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
