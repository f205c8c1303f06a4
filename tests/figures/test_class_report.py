"""Figures about a class: the words hold every number, and no label is cut."""

import pytest

from attn_course.figures import class_report
from tests.figures.support import decode, ink_touches_the_edge

LONG = "2.9 a name that is far too long to stand beside a bar $x_i$ and needs to be cut somewhere"


def test_the_distribution_says_the_median_and_counts_everyone():
    picture = class_report.marks_distribution([0.0, 5.0, 55.0, 60.0, 100.0])
    assert picture.alt.startswith("Histogram of 5 students by percent of the points, in steps of ten. The median is 55 %")
    assert "In full: 2 reach 0 to 10 %, 1 reach 50 to 60 %, 1 reach 60 to 70 %, 1 reach 90 to 100 %." in picture.alt


def test_bars_say_each_name_with_its_number():
    alt = class_report.hardest_tasks(["2.9 The normaliser", "2.1 Softmax"], [12.5, 80.0]).alt
    assert alt.endswith("the hardest first: 2.9 The normaliser, 12 %; 2.1 Softmax, 80 %.")
    alt = class_report.common_mistakes(["2.1 no shift", "2.4 transposed"], [7, 2]).alt
    assert alt.endswith("the commonest first: 2.1 no shift, 7; 2.4 transposed, 2.")


@pytest.mark.parametrize(
    "picture",
    [
        lambda: class_report.marks_distribution([100.0]),
        lambda: class_report.marks_distribution([54.0] * 400),
        lambda: class_report.hardest_tasks([LONG] * 10, [0.0] * 5 + [100.0] * 5),
        lambda: class_report.hardest_tasks(["2.1 Softmax"], [100.0]),
        lambda: class_report.common_mistakes([LONG], [1]),
    ],
)
def test_no_label_is_cut_and_equal_data_give_equal_bytes(picture):
    first = picture()
    assert not ink_touches_the_edge(decode(first.png))
    assert len(first.png) < 60_000
    assert picture().png == first.png
