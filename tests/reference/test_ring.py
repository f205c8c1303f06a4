"""A ring of devices that are entries of a list: what it gives is attention, for any number of them and any order."""

import numpy as np
import pytest

from attn_course import reference as ref
from tests.reference.support import assert_same, assert_untouched, attention_arrays

ORDERS = ("contiguous", "striped", "zigzag")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("length", "n"), [(0, 2), (3, 5), (13, 1), (13, 4), (24, 3)])
def test_every_position_is_on_one_device_and_each_holds_its_own_in_order(length, n, order):
    places = ref.device_places(length, n, order)
    assert len(places) == n
    assert sorted(np.concatenate(places)) == list(range(length))
    assert all((np.diff(held) > 0).all() for held in places)
    assert max(map(len, places)) - min(map(len, places)) <= 1 + (order == "zigzag")


def test_the_orders_by_hand():
    assert [held.tolist() for held in ref.device_places(5, 2, "contiguous")] == [[0, 1, 2], [3, 4]]
    assert [held.tolist() for held in ref.device_places(5, 2, "striped")] == [[0, 2, 4], [1, 3]]
    assert [held.tolist() for held in ref.device_places(12, 3, "zigzag")] == [[0, 1, 10, 11], [2, 3, 8, 9], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("n", "order", "is_causal"),
    [*((5, order, True) for order in ORDERS), (1, "striped", True), (13, "zigzag", True), (2, "zigzag", False), (13, "contiguous", False)],
)
def test_a_ring_gives_attention(n, order, is_causal):
    query, key, value = attention_arrays(q_len=11, kv_len=11)
    got = assert_untouched(ref.ring_attention, query, key, value, n_devices=n, order=order, is_causal=is_causal, scale=0.7)
    assert_same(got, ref.attention(query, key, value, is_causal=is_causal, scale=0.7))
