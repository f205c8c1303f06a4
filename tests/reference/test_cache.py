"""A cache holds exactly the past: decoding step by step is the full causal pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference import KeyValueCache, attention
from tests.reference.oracles import loop_attention
from tests.reference.support import assert_same, assert_untouched


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_decoding_in_steps_of_any_size_is_the_full_causal_pass(steps, seed):
    rng, length = np.random.default_rng(seed), sum(steps)
    query, key, value = rng.normal(size=(2, 4, length, 3)), rng.normal(size=(2, 2, length, 3)), rng.normal(size=(2, 2, length, 5))
    cache, outputs, done = KeyValueCache(), [], 0
    for step in steps:
        new, past = slice(done, done + step), len(cache)
        assert past == done
        keys, values = assert_untouched(cache.append, key[..., new, :], value[..., new, :])
        outputs.append(attention(query[..., new, :], keys, values, is_causal=True, q_offset=past, enable_gqa=True))
        done += step
    wanted, _, _ = loop_attention(query, key, value, is_causal=True, enable_gqa=True)
    assert_same(np.concatenate(outputs, axis=-2), wanted)


def test_the_cache_keeps_its_own_copy_and_lends_it_read_only():
    cache, key, value = KeyValueCache(), np.ones((2, 3)), np.ones((2, 1))
    keys, values = cache.append(key, value)
    key[:], value[:] = 7.0, 7.0
    np.testing.assert_array_equal(keys, np.ones((2, 3)))
    for array in (keys, values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0
    later, _ = cache.append(key, value)
    np.testing.assert_array_equal(later[:, 0], [1.0, 1.0, 7.0, 7.0])
    assert len(keys) == 2


def test_what_does_not_fit_leaves_the_cache_as_it_was():
    cache = KeyValueCache()
    cache.append(np.zeros((3, 2, 4)), np.zeros((3, 2, 5)))
    with pytest.raises(ValueError, match="value must have the shape of the past"):
        cache.append(np.zeros((3, 1, 4)), np.zeros((3, 1, 6)))
    assert len(cache) == 2
