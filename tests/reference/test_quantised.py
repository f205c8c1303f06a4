"""Rounded caches: each number off by half a step at most, outputs by no more than the bound."""

import numpy as np
import pytest

from attn_course.reference import QuantisedCache, attention, quantisation_error_bound, quantise
from tests.reference.support import assert_same, drawn


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


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("scale", [None, 0.9, -0.2])
def test_no_output_is_off_by_more_than_the_bound(bits, scale):
    for seed in range(20):
        query, key, value = 2 * drawn(3, 5, 7, seed=seed), drawn(3, 11, 7, seed=seed + 50), drawn(3, 11, 13, seed=seed + 90)
        keys, values = quantise(key, bits, "channel"), quantise(value, bits, "token")
        off = attention(query, keys.restored(), values.restored(), scale=scale) - attention(query, key, value, scale=scale)
        bound = quantisation_error_bound(query, keys, values, scale)
        assert bound.shape == (3, 5)
        assert (np.abs(off).max(axis=-1) <= bound + 1e-12).all()


def test_the_bound_is_that_of_the_formula():
    query, keys, values = drawn(2, 3), quantise(drawn(5, 3), 2, "channel"), quantise(drawn(5, 4), 3, "token")
    restored = values.restored()
    for q, got in zip(query, quantisation_error_bound(query, keys, values), strict=True):
        moved = max(sum(abs(q[c]) * keys.step[0, c] for c in range(3)) / 2 / np.sqrt(3) for _ in range(5))
        spread = max(restored[:, c].max() - restored[:, c].min() for c in range(4))
        assert abs(got - (values.step.max() / 2 + np.tanh(moved / 2) * spread)) < 1e-12


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
