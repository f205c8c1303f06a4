"""What several devices send and wait for, counted by moving blocks and looking at every pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course import costs, reference

ORDERS = ("contiguous", "striped", "zigzag")


@given(st.integers(0, 23), st.integers(1, 6), st.sampled_from(ORDERS), st.booleans())
def test_the_pairs_of_each_step_are_those_counted_one_by_one(length, n, order, is_causal):
    places = reference.device_places(length, n, order)
    counted = [
        [sum(1 for i in places[rank] for j in places[(rank - step) % n] if j <= i or not is_causal) for rank in range(n)]
        for step in range(n)
    ]
    assert costs.ring_step_pairs(length, n, order=order, is_causal=is_causal) == counted
    assert sum(map(sum, counted)) == costs.attended_pairs(length, length, is_causal=is_causal)


@pytest.mark.parametrize(("length", "n"), [(13, 1), (13, 3), (12, 4), (2, 5)])
def test_a_ring_sends_what_moving_blocks_counts(length, n):
    """Each block is one array of keys, values; where it is handed on its bytes are added up."""
    blocks = [np.zeros((2, len(held), 3 + 5), np.float16) for held in reference.device_places(length, n)]
    forward = sum(blocks[(rank - step) % n].nbytes for step in range(n - 1) for rank in range(n))
    home = sum(2 * blocks[(rank - step) % n].nbytes for step in range(1, n) for rank in range(n))  # float32
    assert costs.ring_attention_bytes(length, n, 2, 3, 5) == forward
    assert costs.ring_attention_bytes(length, n, 2, 3, 5, with_backward=True) == 2 * forward + home


@pytest.mark.parametrize(("length", "n"), [(13, 1), (13, 2), (7, 4)])
def test_heads_over_devices_send_what_is_neither_here_nor_there(length, n):
    """A number travels unless the device that has its position computes its head."""
    home = {int(place): rank for rank, held in enumerate(reference.device_places(length, n)) for place in held}
    counted = 0
    for heads, width in ((8, 3), (4, 3), (4, 5), (8, 5)):
        counted += sum(width for head in range(heads) for place in range(length) if home[place] != head * n // heads)
    assert costs.head_parallel_bytes(length, n, 8, 3, 5, n_kv_heads=4, bytes_per_number=1) == counted
    assert costs.head_parallel_bytes(length, n, 8, 3, 5, n_kv_heads=4, with_backward=True) == 4 * counted
