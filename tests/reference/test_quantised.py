"""Rounded caches: each number off by half a step at most."""

import numpy as np
import pytest

from attn_course.reference import QuantisedCache, quantise
from tests.reference.support import assert_same


def drawn(*shape, seed=7):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize(("shared_by", "axis"), [("token", -1), ("channel", -2)])
def test_a_number_becomes_the_nearest_of_its_group_s_levels(bits, shared_by, axis):
    x = drawn(2, 5, 7) + 3
    quantised = quantise(x, bits, shared_by)
    for batch in range(2):
        for group in range(x.shape[-2 if axis == -1 else -1]):
            numbers = np.moveaxis(x, axis, -1)[batch, group]
            levels = np.linspace(numbers.min(), numbers.max(), 2**bits)
            nearest = [levels[np.argmin(abs(levels - number))] for number in numbers]
            assert_same(np.moveaxis(quantised.restored(), axis, -1)[batch, group], nearest)
    assert quantised.codes.dtype == (np.uint8 if bits <= 8 else np.uint16)
    assert (quantised.codes.min(), quantised.codes.max()) == (0, 2**bits - 1)


def test_equal_numbers_have_no_step_and_are_restored_exactly():
    for x in (np.full((3, 5), 2.7), np.zeros((3, 5))):
        quantised = quantise(x, 2, "channel")
        assert (quantised.step == 0).all()
        assert_same(quantised.restored(), x, 0)


@pytest.mark.parametrize("steps", [[1] * 13, [13], [4, 1, 7, 1]])
@pytest.mark.parametrize("group", [1, 3, 5, 32])
def test_a_cache_holds_whole_groups_by_channel_and_the_last_keys_in_full(steps, group):
    key, value, cache = drawn(2, 13, 3), drawn(2, 13, 5), QuantisedCache(bits=3, group=group)
    for step in steps:
        new = slice(len(cache), len(cache) + step)
        keys, values = cache.append(key[:, new], value[:, new])
    whole = 13 // group * group
    groups = [quantise(key[:, start : start + group], 3, "channel").restored() for start in range(0, whole, group)]
    assert_same(keys, np.concatenate([*groups, key[:, whole:]], axis=-2))
    assert_same(values, quantise(value, 3, "token").restored())
    assert_same(cache.waiting, key[:, whole:], 0)
