"""The figures of lesson heads say what their numbers say."""

from functools import partial

import numpy as np

from attn_course.lessons.heads import figures
from tests.figures.support import Pictures

MAPS = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]])
HEAD_MAPS = partial(figures.head_maps, title="Two heads look at different keys")

DRAWN = [
    (
        partial(HEAD_MAPS, MAPS),
        [
            "head 0: the keys with the largest weight, query by query, are 0 and 2.",
            "head 1: the keys with the largest weight, query by query, are 2 and 0.",
        ],
    ),
    (
        partial(figures.looking_back, [[[[1, 0], [0, 1]], [[1, 0], [0.8, 0.2]]]], ["The", " cat"]),
        ["a grid of 2 cells", "Above 0.65: 1 of them. The largest is 0.80, of head 1 in layer 0", "query by query, are 0 and 0."],
    ),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
]


class TestPictures(Pictures):
    """Maps and answers."""
