"""The figures of lesson transformer say what their numbers say."""

from functools import partial

from attn_course.lessons.transformer import figures
from tests.figures.support import Pictures

GRADIENTS = {"norm first": [[2.0, 3.0, 1.0], [8.0, 3.0, 1.0]], "norm behind the sum": [[90.0, 9.0, 1.0], [40.0, 6.0, 1.0]]}
DRAWN = [
    (partial(figures.gradients_by_block, GRADIENTS), ["norm first: 4.00 times in block 1, 1 in block 3", "sum: 60.00 times in block 1"]),
]
REFUSED = [(partial(figures.gradients_by_block, {"norm first": [[2.0, 1.0]], "norm behind the sum": [[3.0, 2.0, 1.0]]}), "must have shape")]

TestPictures = Pictures
