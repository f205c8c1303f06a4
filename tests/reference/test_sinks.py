"""Sinks, gates and windows that keep the first keys, and the cache that forgets: against loops and plain attention."""

import math

import numpy as np
import pytest

from attn_course.reference import RollingCache, attention, gate_output, sink_attention, sink_window_mask
from tests.reference.support import assert_same, attention_arrays, drawn


def test_a_sink_is_one_more_logit_of_each_row_whose_column_is_dropped():
    query, key, value = attention_arrays()
    logits = drawn(3) * 3
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(7)
    column = np.broadcast_to(logits[:, None, None], (*scores.shape[:-1], 1))
    exponentials = np.exp(np.concatenate([scores, column], axis=-1))
    weights = (exponentials / exponentials.sum(axis=-1, keepdims=True))[..., :-1]
    assert_same(sink_attention(query, key, value, logits), weights @ value)


@pytest.mark.parametrize("options", [{"is_causal": True}, {"window": (2, 0)}, {"mask": np.zeros((5, 11), dtype=bool)}, {"softcap": 3.0}])
def test_without_a_sink_it_is_attention(options):
    query, key, value = attention_arrays()
    assert_same(sink_attention(query, key, value, np.array(-np.inf), **options), attention(query, key, value, **options))


def test_each_query_head_has_its_own_sink_where_heads_share_keys():
    query, key, value = drawn(2, 6, 5, 3), drawn(2, 2, 7, 3), drawn(2, 2, 7, 5)
    got = sink_attention(query, key, value, np.arange(6.0), enable_gqa=True)
    for head in range(6):
        one = sink_attention(query[:, head], key[:, head // 3], value[:, head // 3], np.array(float(head)))
        assert_same(got[:, head], one)


@pytest.mark.parametrize(("logit", "left"), [(1e4, 0.0), (-1e4, 1.0)])
def test_a_sink_of_any_size_neither_overflows_nor_is_clipped(logit, left):
    query, key, value = attention_arrays()
    assert_same(sink_attention(query, key, value, np.array(logit)), left * attention(query, key, value))
    thirty = sink_attention(query, key, value, np.array(30.0)) / attention(query, key, value)
    assert thirty.max() < 1e-9  # a share clipped at e^-20 would be 2e-9


def test_a_row_without_keys_gives_all_to_the_sink():
    got = sink_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 1)), np.array(0.0), mask=np.array([[False, False], [True, False]]))
    assert got[0, 0] == 0.0 < got[1, 0]


def test_gates():
    output, scores = drawn(2, 5, 7), drawn(2, 5, 7, seed=8) * 40
    wanted = [z / (1 + math.exp(-x)) for z, x in zip(output.ravel(), scores.ravel(), strict=True)]
    np.testing.assert_allclose(gate_output(output, scores), np.reshape(wanted, output.shape), rtol=1e-14)  # each, however small its gate
    assert_same(gate_output(output, np.full((5, 1), np.inf)), output)
    assert_same(gate_output(output, np.full((5, 1), -np.inf)), 0 * output)


@pytest.mark.parametrize(("n_sinks", "left", "offset"), [(0, 2, 0), (3, 2, 0), (2, 0, 5), (5, 1, -2), (1, 30, 4)])
def test_the_window_keeps_its_first_keys(n_sinks, left, offset):
    mask = sink_window_mask(7, 13, n_sinks, left, offset)
    for i in range(7):
        for j in range(13):
            at = i + offset
            assert mask[i, j] == (j <= at and (j < n_sinks or at - j <= left))


@pytest.mark.parametrize("steps", [[1] * 17, [5, 1, 1, 7, 3], [17], [0, 2, 0, 15]])
@pytest.mark.parametrize(("left", "n_sinks"), [(3, 0), (0, 0), (3, 2), (5, 7), (16, 0), (40, 3), (2, 1)])
def test_a_rolling_cache_gives_what_the_window_over_everything_gives(steps, left, n_sinks):
    query, key, value = attention_arrays(q_len=17, kv_len=17)
    whole = attention(query, key, value, mask=sink_window_mask(17, 17, n_sinks, left))
    cache, parts = RollingCache(left, n_sinks), []
    for step in steps:
        new = slice(len(cache), len(cache) + step)
        keys, values, mask = cache.append(key[..., new, :], value[..., new, :])
        parts.append(attention(query[..., new, :], keys, values, mask=mask))
        assert cache.slots[0].shape[-2] == len(cache.positions) == min(len(cache), n_sinks + left + 1)
    assert_same(np.concatenate(parts, axis=-2), whole)


def test_each_slot_holds_the_key_of_its_position():
    cache = RollingCache(left=4, n_sinks=3)
    for t in range(29):
        cache.append(np.full((1, 1), float(t)), np.full((1, 1), -float(t)))
        assert_same(cache.slots[0].ravel(), cache.positions)
        assert all(slot == place if place < 3 else (place - 3) % 5 == slot - 3 for slot, place in enumerate(cache.positions))
