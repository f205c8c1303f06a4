"""attended_pairs counts what the masks of the reference leave."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attn_course.costs import attended_pairs
from attn_course.reference import causal_mask, window_mask

lengths = st.integers(0, 9)
sides = st.none() | st.integers(0, 11)


@given(lengths, lengths, st.booleans(), st.integers(-12, 12), st.none() | st.tuples(sides, sides))
def test_the_count_is_that_of_the_mask(q_len, kv_len, is_causal, q_offset, window):
    mask = np.ones((q_len, kv_len), dtype=bool)
    if is_causal:
        mask &= causal_mask(q_len, kv_len, q_offset)
    if window is not None:
        mask &= window_mask(q_len, kv_len, *window, q_offset=q_offset)
    assert attended_pairs(q_len, kv_len, is_causal=is_causal, q_offset=q_offset, window=window) == mask.sum()


def test_lengths_of_billions_are_exact_at_once():
    n = 3_000_000_019
    assert attended_pairs(n, n, is_causal=True) == n * (n + 1) // 2
    assert attended_pairs(np.int32(70_001), np.int32(70_003)) == 70_001 * 70_003
