"""The figures of lesson transformer say what their numbers say."""

from functools import partial

from attn_course.lessons.transformer import figures
from tests.figures.support import Pictures

GRADIENTS = {"norm first": [[2.0, 3.0, 1.0], [8.0, 3.0, 1.0]], "norm behind the sum": [[90.0, 9.0, 1.0], [40.0, 6.0, 1.0]]}
LOSSES, SHARES = {"ours": [0.34, 0.36], "a friend's": [0.0, 0.002]}, {"ours": [0.8, 0.9], "a friend's": [0.0, 0.0]}
DRAWN = [
    (partial(figures.training, [4.3, 0.5, 0.35], 0.33), ["from 4.30 to 0.35, and the floor at 0.33"]),
    (partial(figures.losses_and_stories, LOSSES, SHARES, 0.33), ["ours: loss 0.350, 0.85 of", "friend's: loss 0.001, 0.00 of"]),
    (partial(figures.gradients_by_block, GRADIENTS), ["norm first: 4.00 times in block 1, 1 in block 3", "sum: 60.00 times in block 1"]),
]
REFUSED = [
    (partial(figures.gradients_by_block, {"norm first": [[2.0, 1.0]], "norm behind the sum": [[3.0, 2.0, 1.0]]}), "must have shape"),
    (partial(figures.losses_and_stories, LOSSES, SHARES | {"ours": [0.8]}, 0.33), "must have shape"),
]

TestPictures = Pictures
