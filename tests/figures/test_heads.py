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
        partial(figures.ring_maps, [(np.roll(np.eye(4), -1, 1) + np.roll(np.eye(4), 1, 1)) / 2, np.roll(np.eye(4), -1, 1), np.eye(4)]),
        ["the only head 0.50 and 0.50; first of two 1.0 and 0.0; second of two 0.0 and 0.0"],
    ),
    (
        partial(figures.two_heads, [np.eye(2), *3 * [[[1, 0], [0.8, 0.2]]]], ["The", " cat"]),
        ["head 0: the keys with the largest weight, query by query, are 0 and 1.", "head 3: the keys with", "are 0 and 0."],
    ),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
]

TestPictures = Pictures
