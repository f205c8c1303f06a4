"""A cache in blocks is a cache: whatever is appended, forked and freed, each sequence reads what a cache of its own would hold."""

import numpy as np
import pytest

from attn_course.reference import PagedCache, attention, paged_attention
from tests.reference.support import assert_same, assert_says


def held(cache):
    """How many tables hold each block, counted from the tables."""
    return [sum(table.count(block) for table in cache.tables.values()) for block in range(len(cache.holders))]


@pytest.mark.parametrize(("block_size", "seed"), [(1, 0), (3, 1), (3, 2), (5, 3), (5, 4), (64, 0)])
def test_any_order_of_calls_leaves_each_sequence_what_it_wrote(block_size, seed):
    rng, cache, alone = np.random.default_rng(seed), PagedCache(64, block_size), {}
    for number in range(40):
        known = sorted(alone)
        act = rng.choice(["append", "append", "fork", "free"]) if known else "append"
        if act == "append":
            name = str(rng.choice([*known, f"new {number}"]))
            new = rng.normal(size=(2, int(rng.integers(0, 5)), 3)), rng.normal(size=(2, 0, 7))
            new = new[0], rng.normal(size=(2, new[0].shape[1], 7))
            if sum(holders == 0 for holders in cache.holders) < 6:
                continue
            cache.append(name, *new)
            old = alone.get(name, (np.zeros((2, 0, 3)), np.zeros((2, 0, 7))))
            alone[name] = tuple(np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))
        elif act == "fork":
            name = str(rng.choice(known))
            cache.fork(name, f"fork {number}")
            alone[f"fork {number}"] = alone[name]
        else:
            name = str(rng.choice(known))
            cache.free(name)
            del alone[name]
        assert cache.holders == held(cache)
        for name, pair in alone.items():
            if pair[0].shape[-2]:
                for got, wanted in zip(cache.read(name), pair, strict=True):
                    assert_same(got, wanted, 0)


@pytest.mark.parametrize("block_size", [2, 5, 64])
@pytest.mark.parametrize("q_len", [1, 4, 11])
def test_attention_where_the_blocks_lie_is_attention_to_a_cache_in_one_piece(block_size, q_len):
    rng, cache = np.random.default_rng(7), PagedCache(20, block_size)
    key, value, query = rng.normal(size=(2, 11, 3)), rng.normal(size=(2, 11, 5)), rng.normal(size=(6, q_len, 3))
    cache.append("other", key[:, :3], value[:, :3])
    for start in range(0, 11, 2):
        cache.append("this", key[:, start : start + 2], value[:, start : start + 2])
        cache.append("other", 9 * key[:, :1], value[:, :1])
    for options in ({}, {"window": (3, 0)}, {"scale": 0.3, "softcap": 2.0}):
        wanted = attention(query, key, value, is_causal=True, q_offset=11 - q_len, enable_gqa=True, **options)
        assert_same(paged_attention(query, cache, "this", enable_gqa=True, **options), wanted)


def test_a_fork_copies_nothing_and_a_write_copies_one_block():
    cache, rows = PagedCache(9, 4), np.arange(10.0)[:, None]
    cache.append("a", rows, rows)
    cache.fork("a", "b")
    assert cache.tables["a"] == cache.tables["b"]
    assert cache.holders[:4] == [2, 2, 2, 0]
    cache.append("b", np.array([[-1.0]]), np.array([[-1.0]]))
    assert cache.tables == {"a": [0, 1, 2], "b": [0, 1, 3]}
    assert cache.read("a")[0].ravel().tolist() == list(range(10))
    assert cache.read("b")[0].ravel().tolist() == [*range(10), -1]
    cache.append("a", rows[:1], rows[:1])  # alone now: no copy
    assert cache.tables["a"] == [0, 1, 2]
    cache.free("a")
    assert cache.holders[:4] == [1, 1, 0, 1]


def test_too_few_blocks_are_told_before_anything_is_written():
    cache, rows = PagedCache(3, 2), np.ones((5, 1))
    cache.append("a", rows, rows)
    cache.fork("a", "b")
    before = cache.tables, cache.lengths, cache.holders, [part.copy() for part in cache.pool]
    assert_says(MemoryError, "sequence 'b' must get 1 more blocks; got 0 that are free", cache.append, "b", rows[:1], rows[:1])
    assert_says(MemoryError, "sequence 'c' must get 2 more blocks; got 0 that are free", cache.append, "c", rows[:3], rows[:3])
    after = cache.tables, cache.lengths, cache.holders, [part.copy() for part in cache.pool]
    assert before[:3] == after[:3]
    assert all(np.array_equal(one, two) for one, two in zip(before[3], after[3], strict=True))
