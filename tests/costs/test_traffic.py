"""Bytes moved: counted at a memory while tiled loops compute what attention is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course import costs, reference
from tests.costs.counting import Memory


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def allowed(q_len, kv_len, is_causal, q_offset, window):
    mask = reference.window_mask(q_len, kv_len, *(window or (None, None)), q_offset=q_offset)
    return mask & reference.causal_mask(q_len, kv_len, q_offset) if is_causal else mask


def blocks(length, size):
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def step(query, key, value, mask, row_max, row_sum, acc):
    scores = np.where(mask, query @ key.T / np.sqrt(query.shape[-1]), -np.inf)
    new_max = np.maximum(row_max, scores.max(axis=-1, initial=-np.inf))
    safe = np.where(np.isneginf(new_max), 0.0, new_max)
    rescale, terms = np.exp(row_max - safe), np.exp(scores - safe[:, None])
    return new_max, row_sum * rescale + terms.sum(axis=-1), acc * rescale[:, None] + terms @ value


def tiled_loops(query, key, value, mask, block_q, block_kv):
    memory, output, lse = Memory(), np.empty((len(query), value.shape[1])), np.empty(len(query))
    for rows in blocks(len(query), block_q):
        q = memory.read(query, rows)
        row_max, row_sum, acc = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros((len(q), value.shape[1]))
        for columns in blocks(len(key), block_kv):
            if mask[rows, columns].any():
                row_max, row_sum, acc = step(
                    q, memory.read(key, columns), memory.read(value, columns), mask[rows, columns], row_max, row_sum, acc
                )
        memory.write(output, rows, acc / np.where(row_sum == 0.0, 1.0, row_sum)[:, None])
        memory.write(lse, rows, row_max + np.log(np.where(row_sum == 0.0, 1.0, row_sum)))
    return memory, output


sides = st.none() | st.integers(0, 5)


@given(
    *(st.integers(least, most) for least, most in ((0, 12), (0, 12), (1, 5), (1, 5))),
    st.booleans(),
    st.integers(-14, 14),
    st.none() | st.tuples(sides, sides),
)
def test_tiles_move_what_a_counting_memory_counts(q_len, kv_len, block_q, block_kv, is_causal, q_offset, window):
    arrays = normal(q_len, 3), normal(kv_len, 3), normal(kv_len, 2)
    mask = {"is_causal": is_causal, "q_offset": q_offset, "window": window}
    memory, output = tiled_loops(*arrays, allowed(q_len, kv_len, **mask), block_q, block_kv)
    np.testing.assert_allclose(output, reference.attention(*arrays, **mask), atol=1e-13)
    sizes = {"block_q": block_q, "block_kv": block_kv, "bytes_per_number": 2, "bytes_per_statistic": 1000}
    assert costs.tiled_attention_bytes(q_len, kv_len, 3, 2, **sizes, **mask) == 2 * memory.numbers + 1000 * memory.statistics


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), [(5, 7, 3, 11), (1, 1, 1, 1), (0, 5, 2, 3), (5, 0, 2, 3)])
def test_stored_scores_are_moved_four_times(q_len, kv_len, d_k, d_v):
    memory = Memory()
    arrays = normal(q_len, d_k), normal(kv_len, d_k), normal(kv_len, d_v)
    scores, weights, output = np.empty((q_len, kv_len)), np.empty((q_len, kv_len)), np.empty((q_len, d_v))
    whole = slice(None)
    memory.write(scores, whole, memory.read(arrays[0]) @ memory.read(arrays[1]).T / np.sqrt(d_k))
    memory.write(weights, whole, reference.softmax(memory.read(scores)))
    memory.write(output, whole, memory.read(weights) @ memory.read(arrays[2]))
    np.testing.assert_allclose(output, reference.attention(*arrays), atol=1e-13)
    assert costs.materialised_attention_bytes(q_len, kv_len, d_k, d_v, bytes_per_number=4) == 4 * memory.numbers
