"""A settled figure begins where the text does, has level labels, and ends where its panels end; on a phone its panels are stacked."""

import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures import base
from attn_course.figures.ticks import tick_decades

WORDS = {"title": "What the picture says at once", "alt": "A picture with enough words to stand in for itself."}


@pytest.fixture
def settled(monkeypatch):
    seen = []
    monkeypatch.setattr(base, "publish", lambda figure, alt: seen.append(figure) or base.settle(figure))
    return seen


@pytest.mark.parametrize("words", [list("abc"), ["because", "tired", "chased"]])
def test_all_stands_to_the_left_with_level_labels_and_nothing_is_empty_below(settled, words):
    figures.heatmap(np.eye(3), rows=words, columns=words, **WORDS)
    figures.lines([0, 1], {"a": [0, 3]}, x_label="x", y_label="a rather long measure", **WORDS)
    for figure in settled:
        (panel,), (title,) = figure.axes, figure.texts
        label, box = panel.yaxis.label, panel.get_tightbbox()
        assert label.get_rotation() == 0
        assert label.get_window_extent().y0 > panel.bbox.y1
        assert abs(box.x0 - title.get_window_extent().x0) < 3
        assert abs(label.get_window_extent().x0 - box.x0) < 3
        assert 0 < box.y0 < 8


def test_names_of_columns_are_turned_only_where_they_have_no_room(settled):
    for words in (["a", "b", "c"], ["rather long", "names of these", "columns that meet"]):
        figures.heatmap(np.eye(3), columns=words, **WORDS)
    turns = [{name.get_rotation() for name in figure.axes[0].get_xticklabels()} for figure in settled]
    assert turns == [{0.0}, {45.0}]


def test_on_a_phone_three_panels_are_stacked_and_keep_their_labels(shown):
    with base.picture(columns=3, sharey=True, **WORDS) as axes:
        for ax in axes:
            ax.plot([0, 1, 3])
            ax.set_xlabel("the step")
        axes[0].set_ylabel("how far")
    narrow = shown.picture.narrow
    width, height = (int(re.search(rf'{side}="(\d+)"', narrow)[1]) for side in ("width", "height"))
    assert (width, height > width) == (403, True)
    assert (narrow.count("how far"), narrow.count("the step")) == (2, 3), "at the left of both rows, and below each"


def test_on_a_phone_two_panels_stand_below_each_other_if_words_in_one_need_room(shown):
    heights = []
    for words in ("k", "a long name"):
        with base.picture(columns=2, sharey=True, **WORDS) as axes:
            axes[0].text(0.1, 0.5, words)
            axes[0].set(xticks=[0.5], yticks=[0.5])
            axes[1].set(xticks=[0.5])
        heights.append(int(re.search(r'height="(\d+)"', shown.picture.narrow)[1]))
        shown.clear()
    assert heights[1] > 1.5 * heights[0]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ((0.6, 1500), ["1", "10", "100", "1,000"]),
        ((0.5, 6), ["0.5", "1", "2", "5"]),
        ((2, 5e7), ["10¹", "10²", "10³", "10⁴", "10⁵", "10⁶", "10⁷"]),
    ],
)
def test_powers_of_ten_are_numerals_unless_an_axis_goes_far(settled, limits, said):
    with base.picture(**WORDS) as (ax,):
        ax.plot(limits, limits)
        ax.set(xscale="log", xlim=limits)
        tick_decades(ax.xaxis)
    (panel,) = settled[0].axes
    ticks = zip(panel.get_xticks(), panel.get_xticklabels(), strict=True)
    assert [name.get_text() for at, name in ticks if limits[0] <= at <= limits[1]] == said


def test_of_several_bars_each_has_its_name_in_the_first_group_and_no_legend(settled):
    figures.bars(["a", "b"], {"one": [1, 2], "two": [3, 4]}, x_label="letter", y_label="size", digits=0, **WORDS)
    (panel,) = settled[0].axes
    assert [text.get_text() for text in panel.texts] == ["1  one", "2", "3  two", "4"]
    assert panel.get_legend() is None


def test_names_of_curves_that_end_early_make_a_stair_where_they_have_no_room(settled):
    gone = np.nan
    curves = {
        "this curve ends before all others": [1, 2, gone, gone, gone],
        "ends second": [1, 1, 2, gone, gone],
        "goes on": [1, 1, 1, 1, 1],
    }
    figures.lines(range(5), curves, x_label="x", y_label="y", **WORDS)
    texts = {text.get_text(): text for text in settled[0].axes[0].texts}
    high, low = (texts[name].get_window_extent() for name in [*curves][:2])
    assert not high.overlaps(low)
    assert high.y0 > low.y0
