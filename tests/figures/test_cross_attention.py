"""The figures of lesson cross_attention say what their numbers say."""

from functools import partial

import numpy as np

from attn_course.lessons.cross_attention import figures
from tests.figures.support import Pictures

WEIGHTS = np.array([[0.1, 0.8, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]])
SOURCE = ["9", "May", "1998"]
ALIGNMENTS = partial(figures.alignments, SOURCE, "05-9", title="May is read twice")

DRAWN = [
    (
        partial(ALIGNMENTS, {"head 0": WEIGHTS, "head 1": WEIGHTS[::-1]}),
        ["head 0: 0 → May 80 %, 5 → May 100 %, - → 1998 40 %, 9 → 9 90 %."],
    ),
    (partial(figures.three_alignments, SOURCE, "05-9", [WEIGHTS, WEIGHTS, WEIGHTS[::-1]]), ["training 3: 0 → 9 90 %"]),
    (partial(figures.own_alignment, SOURCE, "05-9", WEIGHTS), ["yours: 0 → May 80 %, 5 → May 100 %"]),
]
REFUSED = [
    (partial(ALIGNMENTS, {}), "weights must hold at least one"),
    (partial(ALIGNMENTS, {"a": WEIGHTS.T}), r"weights\['a'\] must have shape \(4, 3\); got \(3, 4\)"),
    (partial(ALIGNMENTS, {"a": 100 * WEIGHTS}), r"weights\['a'\] must lie in \[0, 1\]"),
    (partial(figures.own_alignment, SOURCE, "05-9", WEIGHTS.T), r"weights\['yours'\] must have shape \(4, 3\)"),
]

TestPictures = Pictures
