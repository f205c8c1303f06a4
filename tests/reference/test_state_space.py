"""One decay for all features: the matrix, entry by entry."""

import math

import numpy as np
import pytest

from attn_course.reference import decay_matrix


@pytest.mark.parametrize("length", [0, 1, 2, 13])
def test_each_entry_is_the_product_of_the_decays_in_between(length):
    log_decay = -np.random.default_rng(7).exponential(0.5, size=(2, length))
    found = decay_matrix(log_decay)
    assert found.shape == (2, length, length)
    for b, i, j in np.ndindex(found.shape):
        assert found[b, i, j] == pytest.approx(math.exp(sum(log_decay[b, j + 1 : i + 1])) if j <= i else 0.0)


def test_forgetting_cuts_the_matrix_and_neither_overflows_nor_cancels():
    log_decay = np.array([-1.0, -1e4, -2.0, -np.inf, -0.5, -3.0])
    found = decay_matrix(log_decay)
    np.testing.assert_allclose(found[2], [0, np.exp(-2.0), 1, 0, 0, 0], rtol=1e-15)
    np.testing.assert_allclose(found[5], [0, 0, 0, np.exp(-3.5), np.exp(-3.0), 1], rtol=1e-15)
