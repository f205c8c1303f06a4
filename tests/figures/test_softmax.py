"""The figures of lesson softmax say what their numbers say, in picture and words, and refuse numbers that contradict the words."""

from functools import partial

import numpy as np

from attn_course.figures.words import listed, short
from attn_course.lessons.softmax import figures
from tests.figures.support import Pictures

SHARE = np.array([0.2, 0.5, 0.8])
DRAWN = [
    (
        partial(figures.compromise, SHARE, {0.5: [1.0, 2.0, 3.0], 2.0: [1.0, 3.0, 2.0]}),
        ["T = 0.5, T = 2", "tops lie at the shares 0.80 and 0.50"],
    ),
    (
        partial(figures.bet, {"slow": [(1, 0.5), (7, 7.004), (9000, 2.0)], "kept": [(1, 0.5), (7, 7.004), (5, 2)]}, [0, 7, 12]),
        ["from the leads 0, 7 and 12", "slow: 1 to 0.50, 7 to 7.00, 9,000 to 2.00", "at most 7 each: kept."],
    ),
]
REFUSED = [
    (partial(figures.compromise, SHARE, {1.0: [1.0, 2.0]}), r"must have shape \(3,\); got \(2,\)"),
    (partial(figures.bet, {"mine": [(1, 2), (1, -1)]}, [0, 7]), r"runs\['mine'\] must be positive .*; got -1"),
]

TestPictures = Pictures


def test_numbers_in_prose():
    assert listed([1.0]) == "1.00"
    assert listed([1.0, -0.5], 1) == "1.0 and −0.5"
    assert [short(value) for value in (0.0, 0.5, -4.0, 2.04, 123.4, 4.26e-7)] == ["0", "0.5", "−4", "2", "123", "4.3 · 10⁻⁷"]
