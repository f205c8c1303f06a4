"""The figure of lesson absorption says what its numbers say."""

from functools import partial

import numpy as np

from attn_course.lessons.absorption import figures
from tests.figures.support import Pictures

ALONE = np.array([[0.5, -2.0], [1.0, 3.0]])
SCORES = {"turned": ALONE - [[0.0, 0.25], [-1.5, 0.0]], "alone": ALONE}

DRAWN = [(partial(figures.two_scores, SCORES, ["cat", "it"]), ["turned and alone", "The 2 scores on the diagonal", "by up to 1.5"])]
REFUSED = [(partial(figures.two_scores, {"alone": ALONE}, ["cat", "it"]), "scores must hold two tables; got 1")]

TestPictures = Pictures
