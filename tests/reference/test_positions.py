"""Sinusoids and RoPE against loops and complex numbers."""

import math

import numpy as np
import pytest

from attn_course.reference import rope, sinusoidal_positions
from tests.reference.support import EPS, assert_same, assert_untouched

LAYOUTS = ("halves", "interleaved")


def pair_of(layout, i, d_k):
    return (i, i + d_k // 2) if layout == "halves" else (2 * i, 2 * i + 1)


def turned(row, position, layout, theta=10_000.0):
    """One rotated row: each pair is a complex number times e^(i t omega)."""
    out = np.zeros(len(row))
    for i in range(len(row) // 2):
        a, b = pair_of(layout, i, len(row))
        z = complex(row[a], row[b]) * complex(
            math.cos(position * theta ** (-2 * i / len(row))), math.sin(position * theta ** (-2 * i / len(row)))
        )
        out[a], out[b] = z.real, z.imag
    return out


# --- sinusoids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [1, 2, 7, 10])
@pytest.mark.parametrize("length", [0, 1, 63, 65])
def test_sines_and_cosines_interleave_as_the_formula_says(length, d_model):
    table = sinusoidal_positions(length, d_model)
    assert table.shape == (length, d_model)
    for t, j in np.ndindex(length, d_model):
        angle = t / 10_000 ** (2 * (j // 2) / d_model)
        assert table[t, j] == pytest.approx(math.cos(angle) if j % 2 else math.sin(angle), abs=1e-13)


# --- RoPE --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", EPS)
def test_rope_multiplies_each_pair_by_a_complex_number(layout, dtype):
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(2, 5, 6)).astype(dtype), np.array([3, 0, 71, -2, 3])
    got = assert_untouched(rope, x, positions, layout=layout, theta=100.0)
    wanted = np.array([[turned(x[b, t].astype(float), positions[t], layout, 100.0) for t in range(5)] for b in range(2)])
    assert_same(got, wanted, 4 * EPS[dtype], dtype)


def test_positions_broadcast_over_batch_and_heads():
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(3, 2, 5, 4)), rng.integers(0, 90, size=(3, 5))
    got = rope(x, positions[:, None, :])
    for b, h in np.ndindex(3, 2):
        assert_same(got[b, h], rope(x[b, h], positions[b]))
    many = rope(x[0, 0], positions)
    assert many.shape == (3, 5, 4)
    assert_same(many[1], rope(x[0, 0], positions[1]))


def test_far_positions_stay_accurate_in_float32():
    x = np.array([[1.0, 0.0]], dtype=np.float32)
    assert_same(rope(x, np.array([1_000_003])), [[math.cos(1_000_003), math.sin(1_000_003)]], 1e-6, "float32")
