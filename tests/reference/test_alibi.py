"""Linear biases against loops and the authors' recursion."""

import math

import numpy as np
import pytest

from attn_course.reference import alibi_bias, alibi_slopes
from tests.reference.support import assert_same, assert_untouched


def recursive(n):
    """The rule of the authors' code: those of the power of two below, then every second one of twice as many heads."""
    if n & (n - 1) == 0:
        ratio = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [ratio ** (h + 1) for h in range(n)]
    below = 2 ** (n.bit_length() - 1)
    return recursive(below) + recursive(2 * below)[0::2][: n - below]


@pytest.mark.parametrize("n_heads", [*range(1, 18), 40, 71])
def test_slopes_of_any_number_of_heads_follow_the_authors_code(n_heads):
    assert_same(alibi_slopes(n_heads), recursive(n_heads), 1e-14)
    assert len(np.unique(alibi_slopes(n_heads).round(12))) == n_heads


@pytest.mark.parametrize(("q_len", "kv_len", "q_offset"), [(5, 7, 0), (3, 7, 4), (1, 3, 2), (0, 3, 0), (2, 0, 0)])
def test_penalties_are_minus_slope_times_distance(q_len, kv_len, q_offset):
    got = alibi_bias(3, q_len, kv_len, q_offset)
    assert got.shape == (3, q_len, kv_len)
    for h, i, j in np.ndindex(got.shape):
        assert got[h, i, j] == -alibi_slopes(3)[h] * abs(i + q_offset - j)


def test_every_sequence_may_have_its_own_offset():
    offsets = np.array([[4, 0, 9], [2, 2, 1]])
    got = assert_untouched(lambda q_offset: alibi_bias(5, 2, 7, q_offset), offsets)
    assert got.shape == (2, 3, 5, 2, 7)
    for b in np.ndindex(offsets.shape):
        assert_same(got[b], alibi_bias(5, 2, 7, int(offsets[b])))
