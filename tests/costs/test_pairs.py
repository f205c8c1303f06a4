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


@given(st.integers(1, 6), st.integers(1, 6), st.booleans(), st.integers(-8, 8))
def test_the_count_is_that_of_two_loops(q_len, kv_len, is_causal, q_offset):
    count = sum(1 for i in range(q_len) for j in range(kv_len) if not is_causal or j <= i + q_offset)
    assert attended_pairs(q_len, kv_len, is_causal=is_causal, q_offset=q_offset) == count


def test_a_causal_sequence_has_half_of_the_pairs_and_half_of_the_diagonal():
    assert [attended_pairs(n, n, is_causal=True) for n in (0, 1, 2, 3, 11)] == [0, 1, 3, 6, 66]


def test_both_alignments_of_a_causal_mask():
    assert attended_pairs(3, 7, is_causal=True) == 1 + 2 + 3
    assert attended_pairs(3, 7, is_causal=True, q_offset=7 - 3) == 5 + 6 + 7


def test_steps_of_decoding_add_up_to_the_full_causal_pass():
    steps = [attended_pairs(1, past + 1, is_causal=True, q_offset=past) for past in range(13)]
    assert sum(steps) == attended_pairs(13, 13, is_causal=True)


def test_a_window_makes_the_count_linear():
    pairs = [attended_pairs(n, n, is_causal=True, window=(4, None)) for n in (100, 200, 300)]
    assert pairs[1] - pairs[0] == pairs[2] - pairs[1] == 100 * 5


def test_lengths_of_billions_are_exact_at_once():
    n = 3_000_000_019
    assert attended_pairs(n, n, is_causal=True) == n * (n + 1) // 2
    assert attended_pairs(np.int32(70_001), np.int32(70_003)) == 70_001 * 70_003
