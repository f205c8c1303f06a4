"""The difference of two maps against the weights themselves."""

import numpy as np
import pytest

from attn_course.reference import attention, differential_attention, differential_start
from tests.reference.support import assert_same, attention_arrays


def two():
    one, other = attention_arrays(7), attention_arrays(8)
    return (one[0], other[0]), (one[1], other[1]), one[2]


@pytest.mark.parametrize("options", [{}, {"is_causal": True, "q_offset": 6}, {"scale": 0.3, "window": (2, 1)}])
def test_it_is_the_difference_of_the_weights_times_the_values(options):
    query, key, value = two()
    factor = np.array([0.2, 0.5, 0.9])
    one, other = (attention(q, k, value, **options, return_weights=True)[1] for q, k in zip(query, key, strict=True))
    weights = one - factor[:, None, None] * other
    assert_same(differential_attention(query, key, value, factor, **options), weights @ value)
    seen = one.sum(axis=-1) > 0
    assert_same(weights.sum(axis=-1), np.where(seen, 1 - factor[:, None], 0))


def test_lambda_starts_at_a_fifth_and_nears_four_fifths():
    assert differential_start(1) == pytest.approx(0.2)
    assert differential_start(2) == pytest.approx(0.8 - 0.6 * np.exp(-0.3))
    assert differential_start(100) == pytest.approx(0.8)
