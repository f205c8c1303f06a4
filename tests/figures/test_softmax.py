"""The figures of lesson softmax say what their numbers say, in picture and words, and refuse numbers that contradict the words."""

import math
from functools import partial

import numpy as np
import pytest

from attn_course.figures.words import listed, short
from attn_course.lessons.softmax import figures
from tests.figures.support import Pictures, ink_touches_the_edge, on_page

X = np.linspace(-4, 4, 41)
LSE = np.array([math.log(math.exp(x) + 1) for x in X])
FIRST = [0.25, 0.5]
LINES = [[p * x - p * math.log(p) - (1 - p) * math.log(1 - p) for x in X] for p in FIRST]

DRAWN = [
    (
        partial(figures.envelope, X, LINES, FIRST, LSE),
        ["from −4 to 4", "2 straight lines with the slopes 0.2 and 0.5", "at x = −1.1 and 0.0"],
    ),
    (
        partial(figures.covariance, [0.5, 0.3, 0.2], [1.0, 0.0, -1.0], [2.0, 4.0, 0.0]),
        ["3 tokens", "averages, 0.30 and 2.20", "areas −0.14, −0.54 and 2.86", "weighted average is 0.34"],
    ),
]
REFUSED = [
    (partial(figures.envelope, X, LINES, FIRST, LSE[1:]), r"lse must have shape \(41,\); got \(40,\)"),
    (partial(figures.envelope, X, LINES, FIRST[1:], LSE), r"lines must have shape \(1, 41\); got \(2, 41\)"),
    (
        partial(figures.envelope, X, LINES, FIRST, LSE - 0.25),
        r"lines must not rise above lse; got one 0.250 above it",
    ),  # the words would lie
    (partial(figures.covariance, [0.5, 0.5], [1.0], [1.0, 2.0]), r"rates must have shape \(2,\); got \(1,\)"),
    (partial(figures.covariance, [0.5, 0.4], [1.0, 2.0], [1.0, 2.0]), r"weights must sum to 1; got 0.900"),
]


class TestPictures(Pictures):
    """Log-sum-exp and its lines, a covariance."""


@pytest.mark.parametrize("numbers", [[1.0, 2.0, 5.0], [5.0, 2.0, 1.0], [2.0, 5.0, 1.0]])
def test_labels_stay_in_the_picture_wherever_the_dots_lie(shown, numbers):
    figures.covariance([0.9, 0.05, 0.05], [0.0, 1.0, 2.0], numbers)
    assert not ink_touches_the_edge(on_page(shown.pixels))


def test_numbers_in_prose():
    assert listed([1.0]) == "1.00"
    assert listed([1.0, -0.5], 1) == "1.0 and −0.5"
    assert [short(value) for value in (0.0, 0.5, -4.0, 2.04, 123.4, 4.26e-7)] == ["0", "0.5", "−4", "2", "123", "4.3 · 10⁻⁷"]
