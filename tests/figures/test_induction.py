"""The figures of lesson induction say what their numbers say."""

from functools import partial

from attn_course.lessons.induction import figures
from tests.figures.support import Pictures

RUN = {
    "way": {"step": [0, 10, 20], "copied": [0.1, 0.2, 0.93], "before": [0.1, 0.3, 0.9], "induction": [0.05, 0.25, 0.85]},
    "maps": {
        "0": [[[100], [30, 70], [10, 50, 40], [0, 0, 10, 90]], [[100], [50, 50], [40, 40, 20], [0, 20, 30, 50]]],
        "20": [[[100], [99, 1], [0, 90, 10], [0, 0, 90, 10]], [[100], [50, 50], [10, 80, 10], [10, 0, 90, 0]]],
    },
}
LOG = [(0, 0.1, 0.1, 0.05), (10, 0.2, 0.3, 0.25), (20, 0.95, 0.9, 0.85)]
FOUND = {"score": [[0.01, 0.9], [0.05, 0.02]], "name": [[0.0, 0.7], [0.45, 0.1]], "late": [1, 0], "eight": [[0, 1]]}
RANKS = {"as it is": [[900.0, 400.0, 1.0], [100.0, 100.0, 1.0]], "without": [[900.0, 900.0, 900.0]]}
DRAWN = [
    (
        partial(figures.arrival, LOG, RUN, 0.1),
        ["step 10: 0.20 right, 0.30 on the word before, score 0.25", "one layer, 0.10 right"],
    ),
    (
        partial(figures.missed, FOUND),
        ["A point for each of 4 heads", "Head (1, 0) has the score 0.05 and gives the name 0.45", "1 give it more than 0.40"],
    ),
    (partial(figures.depths, RANKS), ["as it is: 500 before the first layer, 1 at the end", "without: 900 before"]),
]
REFUSED = [(partial(figures.depths, {"as it is": [[2.0, 1.0]], "without": [[3.0, 2.0, 1.0]]}), "must have shape")]

TestPictures = Pictures
