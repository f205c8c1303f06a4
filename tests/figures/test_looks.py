"""The check of looks finds each fault, and nothing in a plain chart."""

import numpy as np
import pytest
from matplotlib.axes import Axes

from attn_course import figures
from attn_course.figures import base
from attn_course.figures.base import picture

WORDS = {"title": "What the picture says at once", "alt": "A picture with enough words to stand in for itself."}


def white_ground(ax: Axes) -> None:
    ax.figure.set_facecolor("white")


def black_words(ax: Axes) -> None:
    ax.text(0.5, 0.5, "black words", color="black")


def yellow_curve(ax: Axes) -> None:
    ax.plot([0, 1], [1, 0], color="#F0E442", label="yellow")


def marker_at_the_edge(ax: Axes) -> None:
    ax.plot([0, 0.5, 1], [0, 0.5, 1], "o-", color="#72777D", label="edge")
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1])


def ticks_beside_the_data(ax: Axes) -> None:
    ax.plot([0.1, 0.3, 0.7], [0, 0.5, 1], "o-", color="#72777D", clip_on=False)


def curves_without_names(ax: Axes) -> None:
    ax.plot([0, 1], [1, 0], color="#72777D", label="one")
    ax.plot([0, 1], [0, 1], color="#72777D", label="other")


def ticks_with_factors(ax: Axes) -> None:
    ax.plot([0, 1], [0.3, 0.9], color="#72777D")
    ax.set_ylim(0.3, 0.9)
    ax.set(yscale="log")


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (white_ground, "the picture has a ground of its own"),
        (black_words, "the text 'black words' has a contrast of 1"),
        (yellow_curve, "the curve 'yellow' is pale on a page"),
        (marker_at_the_edge, "a marker of 'edge' is clipped"),
        (ticks_beside_the_data, "stand at no measured point"),
        (ticks_with_factors, "is no plain number"),
        (curves_without_names, "the curve 'other' has its name nowhere"),
    ],
)
def test_each_fault_is_found(shown, spoil, fault):
    with picture(**WORDS) as (ax,):
        spoil(ax)
    assert any(fault in found for found in shown.faults), shown.faults


def test_a_plain_chart_has_none(shown):
    for points in (False, True):
        figures.lines([1, 2, 4], {"a": [0.1, 0.2, 0.9]}, x_label="x", y_label="y", y_log=True, points=points, **WORDS)
    figures.heatmap(np.arange(6.0).reshape(2, 3), **WORDS)
    assert shown.faults == []


@pytest.mark.parametrize(
    ("x", "names"),
    [
        ([1, 2, 4, 8], ["1", "2", "4", "8"]),
        ([256, 1024, 4096, 16384], ["2⁸", "2¹⁰", "2¹²", "2¹⁴"]),
        ([64, 90, 128], ["64", "90", "128"]),
        ([0, 1, 3], ["0", "1", "3"]),
    ],
)
def test_ticks_name_the_points_and_large_powers_of_two_are_powers(monkeypatch, x, names):
    named = []
    monkeypatch.setattr(base, "publish", lambda figure, alt: named.extend(label.get_text() for label in figure.axes[0].get_xticklabels()))
    figures.lines(x, {"a": np.arange(len(x))}, x_label="x", y_label="y", x_log=min(x) > 0, points=True, **WORDS)
    assert named == names


def test_leaders_are_thin_and_dotted_and_end_outside(monkeypatch):
    panels = []
    monkeypatch.setattr(base, "publish", lambda figure, alt: panels.append(figure.axes[0]))
    figures.lines([1, 2, 3], {"whole": [1, 2, 3], "near": [2, 2, 2.94], "half": [3, 2, np.nan]}, x_label="x", y_label="y", **WORDS)
    leaders = [line for line in panels[0].lines if line.get_label() == "_leader"]
    names = {text.get_text(): text for text in panels[0].texts}
    assert len(leaders) == 2
    assert names["half"].xy[0] < 1.0, "a leader through the whole plot looks like a curve"
    for line in leaders:
        assert line.get_linewidth() <= 0.8
        assert line.get_linestyle() == "--", "solid"  # matplotlib's name for a pattern of its own
        assert line.get_xdata()[-1] > 1.0
    figures.lines([1, 2, 3], {"whole": [1, 2, 3], "other": [3, 2, 1]}, x_label="x", y_label="y", **WORDS)
    assert not [line for line in panels[1].lines if line.get_label() == "_leader"], "a name at the end of its curve needs none"


@pytest.mark.parametrize(("last", "pieces"), [(3.0, 2), (1.0, 0)])
def test_where_ends_meet_a_piece_of_its_curve_stands_before_each_name(monkeypatch, last, pieces):
    panels = []
    monkeypatch.setattr(base, "publish", lambda figure, alt: panels.append(figure.axes[0]))
    figures.lines([1, 2, 3], {"one": [1, 2, 3], "other": [2, 1, last]}, x_label="x", y_label="y", **WORDS)
    curves = {line.get_color() for line in panels[0].lines if not line.get_label().startswith("_")}
    found = [line for line in panels[0].lines if line.get_label() == "_piece"]
    assert len(found) == pieces
    assert {line.get_color() for line in found} <= curves
