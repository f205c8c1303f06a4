"""Heatmaps, lines and bars show their numbers where the reader looks for them."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attn_course import figures
from attn_course.figures import palette
from attn_course.figures.base import course_look
from attn_course.figures.drawing import colour_scale, draw_heatmap, number, spread_apart
from tests.figures.looks import on_pages
from tests.figures.support import ink_touches_the_edge, on_page

WORDS = {"title": "What the picture says at once", "alt": "A picture with enough words to stand in for itself."}
AXES = {"x_label": "x", "y_label": "y"}


def cell_pixels(matrix, mask, row, column, **options) -> np.ndarray:
    """Draw a heatmap and cut out the inside of one cell: (height, width, 4) uint8."""
    with course_look():
        figure = Figure(figsize=(5, 5), dpi=100)
        canvas = FigureCanvasAgg(figure)
        ax = figure.subplots()
        draw_heatmap(ax, np.asarray(matrix, dtype=float), mask=mask, **options)
        canvas.draw()
    (left, top), (right, bottom) = ax.transData.transform([(column - 0.4, row - 0.4), (column + 0.4, row + 0.4)]).round().astype(int)
    picture = np.asarray(canvas.buffer_rgba())[::-1]
    return picture[bottom:top, left:right]


def share_of(pixels: np.ndarray, colour: str) -> float:
    return float((np.abs(pixels[..., :3].astype(float) - 255 * np.array(to_rgb(colour))).max(axis=-1) <= 12).mean())


def test_masked_cells_are_hatched_and_others_are_not():
    matrix, mask = np.full((3, 5), 0.25), np.ones((3, 5), dtype=bool)
    mask[1, 3] = False
    masked = cell_pixels(matrix, mask, 1, 3, annotate=False)
    free = cell_pixels(matrix, mask, 1, 2, annotate=False)
    assert (masked[..., 3] == 0).mean() > 0.5, "the page is hidden"
    assert share_of(masked, palette.INK) > 0.02, "no stripes"
    assert free[..., 3].any()
    assert len(np.unique(free.reshape(-1, 4), axis=0)) == 1


def test_rows_run_downwards_and_columns_to_the_right():
    matrix = np.zeros((3, 5))
    matrix[2, 1] = 1.0
    full, empty = cell_pixels(matrix, None, 2, 1, annotate=False), cell_pixels(matrix, None, 1, 2, annotate=False)
    assert share_of(full, palette.WEIGHT_TINT) > 0.99
    assert (full[..., 3] == 255).all()
    assert not empty[..., 3].any()


def test_a_signed_matrix_is_the_page_at_zero_and_equally_strong_on_both_sides():
    cells = [cell_pixels([[-0.5, 0.0, 2.0, -2.0]], None, 0, column, annotate=False, signed=True) for column in range(4)]
    assert cells[1][..., 3].max() < 3
    red, green, blue, _ = cells[2][0, 0].astype(int)
    assert blue > red > green, "positive is purple"
    red, green, blue, _ = cells[3][0, 0].astype(int)
    assert red > green > blue, "negative is orange"
    assert [cell[..., 3].mean().round() for cell in (cells[2], cells[3])] == [255, 255]
    assert 60 < cells[0][..., 3].mean() < 68, "a quarter as strong"


@pytest.mark.parametrize("signed", [False, True])
def test_numbers_on_cells_can_be_read_on_every_colour_of_both_maps(signed):
    ax = Figure().subplots()
    numbers = np.linspace(-1.0 if signed else 0.0, 1.0, 41)
    drawn = draw_heatmap(ax, numbers[None], signed=signed, annotate=True)
    assert len(ax.texts) == len(numbers)
    for text, value in zip(ax.texts, numbers, strict=True):
        assert on_pages(text.get_color(), drawn.to_rgba(value)) >= 4.5


def test_masked_cells_may_hold_infinities_and_visible_ones_may_not(shown):
    matrix = [[1.0, -np.inf], [0.5, np.nan]]
    figures.heatmap(matrix, mask=[[True, False], [True, False]], **WORDS)
    assert len(shown) == 2
    with pytest.raises(ValueError, match="matrix must be finite wherever the mask allows; got nan at row 1, column 1"):
        figures.heatmap(matrix, mask=[[True, False], [True, True]], **WORDS)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.heatmap([1.0, 2.0], **WORDS), r"matrix must have 2 axes, none of them empty; got shape \(2,\)"),
        (lambda: figures.heatmap(np.zeros((0, 3)), **WORDS), r"matrix must have 2 axes, none of them empty; got shape \(0, 3\)"),
        (lambda: figures.heatmap(np.eye(3), mask=np.ones((2, 3), dtype=bool), **WORDS), r"mask must have the shape of the matrix \(3, 3\)"),
        (lambda: figures.heatmap(np.eye(3), rows=["a"], **WORDS), "rows must name 3 of them; got 1"),
        (lambda: figures.lines([0, 1], {"a": [0, 1, 2]}, **WORDS, **AXES), r"series\['a'\] must have shape \(2,\); got \(3,\)"),
        (lambda: figures.lines([0, 1], {}, **WORDS, **AXES), r"series must hold at least one array of shape \(2,\); got none"),
        (lambda: figures.bars(["a"], {"w": [1, 2]}, **WORDS, **AXES), r"series\['w'\] must have shape \(1,\); got \(2,\)"),
        (lambda: figures.bars(["a"], {}, **WORDS, **AXES), r"series must hold at least one array of shape \(1,\); got none"),
    ],
)
def test_arguments_that_do_not_fit_are_named(shown, draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
    assert shown == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.heatmap(np.eye(7), rows=["a rather long name"] * 7, **WORDS),
        lambda: figures.heatmap(np.random.default_rng(0).random((29, 67)), **WORDS),
        lambda: figures.heatmap([[0.5]], **WORDS),
        lambda: figures.lines(np.arange(1, 9), {f"curve number {i}": np.full(8, 0.5) for i in range(6)}, x_log=True, **WORDS, **AXES),
        lambda: figures.lines([0, 1, 2], {"gap": [0, np.nan, 1]}, references={"a bound": 1.5}, points=True, **WORDS, **AXES),
        lambda: figures.bars(list("abcde"), {f"series {i}": np.arange(5) - i for i in range(3)}, **WORDS, **AXES),
    ],
)
def test_nothing_is_clipped(shown, draw):
    draw()
    assert not ink_touches_the_edge(on_page(shown.pixels))
    assert len(shown.picture.svg) < 60_000


def test_names_at_the_ends_are_pushed_apart_but_keep_their_order():
    moved = spread_apart([0.9, 0.5, 0.5, 0.52, 0.1], 0.1)
    assert np.diff(np.sort(moved)).min() >= 0.0999
    assert list(np.argsort(moved, kind="stable")) == [4, 1, 2, 3, 0]


def test_numbers_have_no_negative_zero_and_a_real_minus():
    assert [number(-0.001), number(-1.5, 1), number(12.0, 0)] == ["0.00", "−1.5", "12"]


def test_colours_of_signed_numbers_reach_as_far_below_zero_as_above():
    scale = colour_scale(np.array([-1.0, np.nan, 3.0]), True, None)
    assert scale([-3.0, 0.0, 3.0]).tolist() == [0.0, 0.5, 1.0]
