"""Figures about a class: the words hold every number, and no label is cut."""

from itertools import cycle

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from attn_course.figures import class_report
from attn_course.figures.base import WIDTH_INCHES
from tests.figures.support import ink_touches_the_edge, on_page

LONG = "2.9 a name that is far too long to stand beside a bar $x_i$ and needs to be cut somewhere"


def test_the_distribution_says_the_median_and_counts_everyone():
    picture = class_report.marks_distribution([0.0, 5.0, 55.0, 60.0, 100.0])
    assert picture.alt.startswith("Histogram of 5 students by percent of the points, in steps of ten. The median is 55 %")
    assert "In full: 2 reach 0 to 10 %, 1 reaches 50 to 60 %, 1 reaches 60 to 70 %, 1 reaches 90 to 100 %." in picture.alt


def test_one_student_is_no_plural():
    alt = class_report.marks_distribution([54.0]).alt
    assert alt == "Histogram of 1 student by percent of the points, in steps of ten: 54 %."
    assert titles(class_report.marks_distribution, [54.0]) == "The only student reaches 54 % of the points"


def test_bars_say_each_name_with_its_number_and_of_how_many():
    alt = class_report.hardest_tasks(["2.9 The normaliser", "2.1 Softmax"], [1, 4], [8, 5]).alt
    assert alt.startswith("Horizontal bars, the share of the notebooks handed in that passed each task")
    assert alt.endswith("the hardest first: 2.9 The normaliser, 1 of 8; 2.1 Softmax, 4 of 5.")
    alt = class_report.common_mistakes(["2.1 no `s_i`", "2.4 transposed"], [7, 2]).alt
    assert alt == "Horizontal bars, how many students made each known mistake, the commonest first: 2.1 no sᵢ, 7; 2.4 transposed, 2."


@pytest.mark.parametrize(
    ("passed", "asked", "title"),
    [
        ([7] * 12 + [14], [14] * 13, "Hardest: 12 tasks, each passed in 50 % of the notebooks"),
        ([7] * 6 + [2] * 7, [14] * 6 + [4] * 7, "Hardest: all 13 tasks, each passed in 50 % of the notebooks"),
        ([1] + [2] * 12, [14] * 13, "Hardest: task 2.1 Softmax, passed in 1 of 14 notebooks"),
        ([0] + [1] * 12, [1] * 13, "Hardest: task 2.1 Softmax, not passed in the only notebook"),
        ([3] * 13, [3] * 13, "Whoever handed a notebook in passed all its tasks"),
    ],
)
def test_the_title_counts_the_hardest_tasks_that_are_not_drawn_too(passed, asked, title):
    names = ["2.1 Softmax", *(f"2.{n} Task" for n in range(2, 14))]
    assert titles(class_report.hardest_tasks, names, passed, asked) == title
    alt = class_report.hardest_tasks(names, passed, asked).alt
    assert "the hardest first (10 of 13 tasks): 2.1 Softmax" in alt
    assert alt.count(";") == 9


@pytest.mark.parametrize(
    ("counts", "title"),
    [
        ([1] * 11, "Commonest: 11 mistakes, each made by 1 student"),
        ([4, 3, 1], "Commonest mistake: 2.1 a, made by 4 students"),
    ],
)
def test_the_title_counts_the_commonest_mistakes_by_students(counts, title):
    assert titles(class_report.common_mistakes, ["2.1 a", *(f"2.2 {n}" for n in counts[1:])], counts) == title


def titles(draw, *data):
    """The title that a figure gets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_report, "_drawn", lambda title, *_: title)
        return draw(*data)


def crossed(percents, monkeypatch):
    """The labels of bars that the line of the median passes through."""
    monkeypatch.setattr(class_report, "_drawn", lambda title, alt, height, draw: draw)
    figure = Figure(figsize=(WIDTH_INCHES, 3.2), layout="constrained")
    ax = figure.subplots()
    class_report.marks_distribution(percents)(ax)
    FigureCanvasAgg(figure).draw()
    (line,) = (line for line in ax.lines if line.get_linestyle() == "--")
    at = line.get_window_extent().x0
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts if text.get_text().isdigit()}
    assert boxes
    return [label for label, box in boxes.items() if box.x0 - 1 < at < box.x1 + 1]


MEDIANS = [0.0, 51.0, 53.0, 54.0, 55.0, 55.5, 56.0, 58.0, 60.0, 96.0, 100.0]


@pytest.mark.parametrize(("median", "count"), [*zip(MEDIANS, cycle([1, 37, 400]), strict=False), (55.0, 37), (55.0, 400)])
def test_the_line_of_the_median_crosses_no_label(median, count, monkeypatch):
    assert crossed([median] * count, monkeypatch) == []


def test_the_check_for_crossed_labels_can_fail(monkeypatch):
    monkeypatch.setattr(class_report, "_keep_clear", lambda label, median: None)
    assert crossed([55.0] * 37, monkeypatch) == ["37"]


@pytest.mark.parametrize(
    "picture",
    [
        lambda: class_report.marks_distribution([100.0]),
        lambda: class_report.marks_distribution([54.0] * 400),
        lambda: class_report.marks_distribution([55.0] * 400),
        lambda: class_report.hardest_tasks([LONG] * 12, [0] * 5 + [1000] * 7, [1000] * 12),
        lambda: class_report.hardest_tasks(["2.1 Softmax"], [3], [3]),
        lambda: class_report.common_mistakes([LONG], [1]),
    ],
)
def test_no_label_is_cut_and_equal_data_give_equal_bytes(shown, picture):
    first = picture()
    assert not ink_touches_the_edge(on_page(shown.pixels))
    assert len(first.svg) < 60_000
    assert picture().svg == first.svg
