"""The figures of lesson kernels say what their numbers say."""

from functools import partial

import pytest

from attn_course.lessons.kernels import figures
from tests.figures.support import Pictures

DRAWN = [
    (partial(figures.schedule, 2, 1, tiles=3), ["With overlap: products from 0 to 2, 2 to 4, 4 to 6"]),
    (partial(figures.schedule, 3, 2, tiles=2, overlap=False), ["products from 0 to 3, 5 to 8; exponentials from 3 to 5, 8 to 10"]),
    (partial(figures.causal_tiles, 10, 14, 4, 3, q_offset=4), ["Whole, without a mask: 8. At the edge: 4. Skipped: 3"]),
]
REFUSED = [
    (partial(figures.schedule, 0, 1), "must be positive; got 0"),
    (partial(figures.causal_tiles, 3, 3, 0, 1), "sizes must be positive"),
]

TestPictures = Pictures


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("t_1", "t_2"), [(2, 1), (1, 3), (1, 1)])
def test_a_schedule_ends_when_the_formula_says(overlap, t_1, t_2):
    end = figures.starts(t_1, t_2, 5, overlap)[-1][1] + t_2
    assert end == (t_1 + 4 * max(t_1, t_2) + t_2 if overlap else 5 * (t_1 + t_2))
