"""What no call of a formula shows of the shared edges: signed weights that meet infinities, and numbers at the ends of a range."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference.arrays import require_integer, weighted_sum, within_range
from tests.reference.support import assert_same

entries = st.sampled_from([0.0, 1.5, -2.0, np.nan, np.inf, -np.inf])


@given(st.data())
def test_a_weight_of_zero_forgets_its_row_and_the_rest_adds_up_as_ieee_says(data):
    m, n, f = (data.draw(st.integers(0, 3)) for _ in range(3))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, -1.0]), min_size=m * n, max_size=m * n))).reshape(m, n)
    rows = np.array(data.draw(st.lists(entries, min_size=n * f, max_size=n * f))).reshape(n, f)
    wanted = np.zeros((m, f))
    with np.errstate(invalid="ignore"):
        for i, j, k in np.ndindex(m, n, f):
            if weights[i, j] != 0.0:
                wanted[i, k] += weights[i, j] * rows[j, k]
    assert_same(weighted_sum(weights, rows), wanted)
    np.testing.assert_array_equal(weighted_sum(np.array([[np.nan, 0.0], [1.0, 0.0]]), np.array([[1.0], [np.inf]])), [[np.nan], [1.0]])


def test_integers_of_numpy_are_integers_and_numbers_in_range_neither_zero_nor_infinite():
    for value in (5e-324, 0.25, 1e300):
        assert 0.0 < np.float32(within_range(value, np.dtype("float32"))) < np.inf
    assert type(require_integer("n", np.int8(2), 2)) is int
