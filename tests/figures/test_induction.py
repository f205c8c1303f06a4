"""The figures of lesson induction say what their numbers say."""

from functools import partial

import numpy as np

from attn_course.lessons.induction import figures
from tests.figures.support import Pictures

RUN = {
    "way": {"step": [0, 25], "copied": [0.1, 0.93]},
    "maps": {
        "0": [[[100], [30, 70], [10, 50, 40], [0, 0, 10, 90]], [[100], [50, 50], [40, 40, 20], [0, 20, 30, 50]]],
        "25": [[[100], [99, 1], [0, 90, 10], [0, 0, 90, 10]], [[100], [50, 50], [10, 80, 10], [10, 0, 90, 0]]],
    },
}
LAYERS = np.stack([np.eye(4, k=-1), np.diag([0, 0, 1.0], -1)])[:, None, None]
RANKS = {"as it is": [[900.0, 400.0, 1.0], [100.0, 100.0, 1.0]], "without": [[900.0, 900.0, 900.0]]}
DRAWN = [
    (
        partial(figures.stripes, RUN),
        ["at the steps 0, 25", "on the word before 0.30, 0.93", "1 places below the diagonal: induction score 0.35, 0.85"],
    ),
    (
        partial(figures.maps, LAYERS),
        ["layer 0, head 0: 1.00 on the word before", "layer 1, head 0: 0.33 on the word before, induction score"],
    ),
    (partial(figures.depths, RANKS), ["as it is: 500 before the first layer, 1 at the end", "without: 900 before"]),
]
REFUSED = [(partial(figures.depths, {"as it is": [[2.0, 1.0]], "without": [[3.0, 2.0, 1.0]]}), "must have shape")]

TestPictures = Pictures
