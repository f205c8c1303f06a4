"""The figures of lesson masking say what their masks say."""

from functools import partial

import numpy as np

from attn_course.lessons.masking import figures
from tests.figures.support import Pictures

TRIANGLE = np.tri(5) > 0
PATTERNS, LEAKS = figures.combined, figures.leak_maps
INFLUENCES = {"right": 0.3 * TRIANGLE, "wide": np.tri(5, k=1), "everywhere": np.full((5, 5), 1e-3)}

DRAWN = [
    (
        partial(PATTERNS, {"causal": TRIANGLE, "all": np.ones((5, 5), dtype=bool), "wide": np.tri(3, 5, k=2) > 0}),
        [
            "causal: 15 of 25 pairs visible, by rows 1, 2, 3, 4, 5. all: 25 of 25 pairs visible, 5 in each row. ",
            "wide: 12 of 15 pairs visible, by rows 3, 4, 5.",
        ],
    ),
    (partial(PATTERNS, {f"mask {n}": np.tri(20, k=n) > 0 for n in range(6)}), ["mask 5: 295 of 400 pairs visible"]),
    (partial(LEAKS, INFLUENCES, TRIANGLE), ["of 10 pairs that must not influence each other do: right 0, wide 4, everywhere 10."]),
    (partial(LEAKS, INFLUENCES, TRIANGLE, at_least=0.01), ["right 0, wide 4, everywhere 0."]),
]
REFUSED = [
    (partial(PATTERNS, {}), "masks must hold at least one pattern"),
    (partial(PATTERNS, {"a": [True]}), r"masks\['a'\] must have 2 axes"),
    (partial(LEAKS, {"a": np.zeros((5, 4))}, TRIANGLE), r"influences\['a'\] must have shape \(5, 5\); got \(5, 4\)"),
    (partial(LEAKS, {}, TRIANGLE), "influences must hold at least one"),
]

TestPictures = Pictures
