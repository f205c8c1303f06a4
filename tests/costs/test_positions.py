"""What positions cost, counted by turning pairs and adding penalties."""

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Tally, values

SIZES = [(5, 3, 4), (1, 2, 6), (0, 3, 2), (7, 1, 0)]  # length, n_heads, d_rotated


@pytest.mark.parametrize(("length", "n_heads", "d_rotated"), SIZES)
def test_rotations_take_what_loops_take(length, n_heads, d_rotated):
    rng, tally, n_pairs = np.random.default_rng(7), Tally(), d_rotated // 2
    x, frequencies = rng.normal(size=(n_heads, length, d_rotated + 3)), reference.rope_frequencies(d_rotated)
    got = x.copy()
    for h, t, i in np.ndindex(n_heads, length, n_pairs):
        cos, sin = np.cos(t * frequencies[i]), np.sin(t * frequencies[i])
        turn, pair = tally.numbers(np.array([[cos, -sin], [sin, cos]])), tally.numbers(x[h, t, [i, i + n_pairs]])
        got[h, t, [i, i + n_pairs]] = values(turn @ pair)
    np.testing.assert_allclose(got, reference.rotate_pairs(x, np.arange(length), frequencies), atol=1e-13)
    assert tally.flops == costs.rotation_flops(length, n_heads, d_rotated)


@pytest.mark.parametrize(("q_len", "kv_len", "n_heads"), [(5, 5, 3), (2, 7, 8), (0, 3, 1)])
def test_penalties_take_what_loops_take(q_len, kv_len, n_heads):
    tally, offset, slopes = Tally(), kv_len - q_len, reference.alibi_slopes(n_heads)
    got, wanted = np.zeros((n_heads, q_len, kv_len)), reference.alibi_bias(n_heads, q_len, kv_len, offset)
    for h, i, j in np.ndindex(got.shape):
        if j <= i + offset:
            slope, distance, score = tally.numbers(np.array([-slopes[h], i + offset - j, 0.0]))
            got[h, i, j] = float(score + slope * distance)
    np.testing.assert_array_equal(got, np.where(reference.causal_mask(q_len, kv_len, offset), wanted, 0.0))
    pairs = costs.attended_pairs(q_len, kv_len, is_causal=True, q_offset=offset)
    assert tally.flops == costs.alibi_flops(pairs, n_heads)
    for dtype in (np.float16, np.float32):
        stored = wanted.astype(dtype).nbytes
        assert costs.alibi_bias_bytes(q_len, kv_len, n_heads, bytes_per_number=np.dtype(dtype).itemsize) == stored
