"""The figures of lesson softmax say what their numbers say, in picture and words, and refuse numbers that contradict the words."""

from functools import partial

import numpy as np
import pytest

from attn_course.figures.words import listed, short
from attn_course.lessons.softmax import figures
from tests.figures.support import Pictures, ink_touches_the_edge, on_page

SHARE = np.array([0.2, 0.5, 0.8])
DRAWN = [
    (
        partial(figures.compromise, SHARE, {0.5: [1.0, 2.0, 3.0], 2.0: [1.0, 3.0, 2.0]}),
        ["T = 0.5, T = 2", "tops lie at the shares 0.80 and 0.50"],
    ),
    (partial(figures.race, {"one": [0.1, 0.3, 0.6], "two": [0.01] * 40 + [0.5]}), ["logarithmic axis", "one: 3 steps, two: 41 steps"]),
    (
        partial(figures.covariance, [[0.5, 0.3, 0.2], [0.0, 0.5, 0.5]], [1.0, 0.0, -1.0], [[2.0, 4.0, 0.0]] * 2),
        [
            "2 panels with a dot for each token, at the rates 1.0, 0.0 and −1.0",
            "Weights 0.50, 0.30 and 0.20: the cross is at 0.30 and 2.20, the areas are −0.14, −0.54 and 2.86, and",
            "the cross is at −0.50 and 2.00, the areas are 0.00, 1.00 and 1.00, and their weighted average is 1.00.",
        ],
    ),
]
REFUSED = [
    (partial(figures.compromise, SHARE, {1.0: [1.0, 2.0]}), r"must have shape \(3,\); got \(2,\)"),
    (partial(figures.covariance, [[0.5, 0.5]], [1.0], [[1.0, 2.0]]), r"rates must have shape \(2,\); got \(1,\)"),
    (partial(figures.covariance, [[0.5, 0.4]], [1.0, 2.0], [[1.0, 2.0]]), r"weights must sum to 1; got 0.900"),
]

TestPictures = Pictures


@pytest.mark.parametrize("numbers", [[1.0, 2.0, 5.0], [5.0, 2.0, 1.0], [2.0, 5.0, 1.0]])
def test_labels_stay_in_the_picture_wherever_the_dots_lie(shown, numbers):
    figures.covariance([[0.9, 0.05, 0.05]], [0.0, 1.0, 2.0], [numbers])
    assert not ink_touches_the_edge(on_page(shown.pixels))


def test_numbers_in_prose():
    assert listed([1.0]) == "1.00"
    assert listed([1.0, -0.5], 1) == "1.0 and −0.5"
    assert [short(value) for value in (0.0, 0.5, -4.0, 2.04, 123.4, 4.26e-7)] == ["0", "0.5", "−4", "2", "123", "4.3 · 10⁻⁷"]
