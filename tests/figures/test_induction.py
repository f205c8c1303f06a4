"""The figures of lesson induction say what their numbers say."""

from functools import partial

from attn_course.lessons.induction import figures
from tests.figures.support import Pictures

WAY = {"step": [0, 25, 50], "copied": [0.1, 0.5, 0.93], "before": [0.2, 0.4, 0.7], "induction": [0.0, 0.4, 0.81]}
RANKS = {"as it is": [[900.0, 400.0, 1.0], [100.0, 100.0, 1.0]], "without": [[900.0, 900.0, 900.0]]}
DRAWN = [
    (partial(figures.arrival, WAY), ["right: 0.10 at first, 0.93 at the end", "one back: 0.20", "induction score: 0.00"]),
    (partial(figures.depths, RANKS), ["as it is: 500 before the first layer, 1 at the end", "without: 900 before"]),
]
REFUSED = [(partial(figures.depths, {"as it is": [[2.0, 1.0]], "without": [[3.0, 2.0, 1.0]]}), "must have shape")]

TestPictures = Pictures
