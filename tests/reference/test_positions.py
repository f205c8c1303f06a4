"""Sinusoids against loops, and RoPE against rotations by any frequencies."""

import math

import numpy as np
import pytest

from attn_course.reference import rope, rope_frequencies, rotate_pairs, sinusoidal_positions
from tests.reference.support import EPS, assert_same

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


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("dtype", EPS)
def test_rope_turns_each_pair_by_its_usual_frequency(layout, dtype):
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(2, 5, 6)).astype(dtype), np.array([3, 0, 71, -2, 3])
    wanted = rotate_pairs(x.astype(float), positions, rope_frequencies(6, 100.0), layout)  # held to complex numbers in test_rotary.py
    assert_same(rope(x, positions, layout=layout, theta=100.0), wanted, 4 * EPS[dtype], dtype)


def test_far_positions_stay_accurate_in_float32():
    x = np.array([[1.0, 0.0]], dtype=np.float32)
    assert_same(rope(x, np.array([1_000_003])), [[math.cos(1_000_003), math.sin(1_000_003)]], 1e-6, "float32")
