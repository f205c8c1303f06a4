"""Sinusoids and RoPE against loops, complex numbers and the property they exist for: only distances count."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_one_linear_map_moves_every_sinusoid_by_the_same_distance():
    table, distance = sinusoidal_positions(200, 6), 17
    move = np.zeros((6, 6))
    for i in range(3):
        angle = distance * 10_000 ** (-2 * i / 6)
        move[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    assert_same(table[:-distance] @ move, table[distance:], 1e-12)


# --- RoPE --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", EPS)
def test_rope_multiplies_each_pair_by_a_complex_number(layout, dtype):
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(2, 5, 6)).astype(dtype), np.array([3, 0, 71, -2, 3])
    got = assert_untouched(rope, x, positions, layout=layout, theta=100.0)
    wanted = np.array([[turned(x[b, t].astype(float), positions[t], layout, 100.0) for t in range(5)] for b in range(2)])
    assert_same(got, wanted, 4 * EPS[dtype], dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.lists(st.integers(-500, 5000), min_size=7, max_size=7), st.integers(-1000, 1000), st.integers(0, 2**32 - 1))
def test_scores_depend_on_positions_only_through_their_distance(layout, positions, shift, seed):
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, 7, 10))
    where = np.array(positions)
    scores = rope(query, where, layout=layout) @ rope(key, where, layout=layout).T
    moved = rope(query, where + shift, layout=layout) @ rope(key, where + shift, layout=layout).T
    np.testing.assert_allclose(moved, scores, atol=1e-10)
    for i, j in np.ndindex(7, 7):  # q at s against k at t is q at s - t against k at 0
        alone = turned(query[i], positions[i] - positions[j], layout) @ key[j]
        assert scores[i, j] == pytest.approx(alone, abs=1e-10)


def test_scores_change_when_one_position_changes():
    rng = np.random.default_rng(7)
    query, key = rng.normal(size=(2, 3, 4))
    scores = rope(query, np.array([0, 1, 2])) @ rope(key, np.array([0, 1, 2])).T
    assert np.abs(rope(query, np.array([0, 1, 5])) @ rope(key, np.array([0, 1, 2])).T - scores)[2].min() > 1e-3
    assert np.abs(rope(query, np.array([0, 1, -2])) @ rope(key, np.array([0, 1, 2])).T - scores)[2].min() > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_keeps_norms_and_does_nothing_at_position_zero(layout):
    x = np.random.default_rng(7).normal(size=(5, 6))
    np.testing.assert_allclose(
        np.linalg.norm(rope(x, np.array([9, 8, 7, 1, 5000]), layout=layout), axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-13
    )
    np.testing.assert_array_equal(rope(x, np.zeros(5, dtype=int), layout=layout), x)


def test_the_layouts_differ_by_a_permutation_of_the_features():
    x, positions = np.random.default_rng(7).normal(size=(5, 6)), np.array([4, 1, 9, 9, 0])
    order = [0, 3, 1, 4, 2, 5]  # halves side by side
    assert_same(rope(x[:, order], positions, layout="interleaved"), rope(x, positions)[:, order])


def test_positions_broadcast_over_batch_and_heads():
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(3, 2, 5, 4)), rng.integers(0, 90, size=(3, 5))
    got = rope(x, positions[:, None, :])
    for b, h in np.ndindex(3, 2):
        assert_same(got[b, h], rope(x[b, h], positions[b]))
    many = rope(x[0, 0], positions)
    assert many.shape == (3, 5, 4)
    assert_same(many[1], rope(x[0, 0], positions[1]))


def test_positions_between_integers_turn_part_of_the_way():
    x = np.random.default_rng(7).normal(size=(1, 4))
    twice = rope(rope(x, np.array([0.5])), np.array([1.25]))
    assert_same(twice, rope(x, np.array([1.75])))


def test_far_positions_stay_accurate_in_float32():
    x = np.array([[1.0, 0.0]], dtype=np.float32)
    assert_same(rope(x, np.array([1_000_003])), [[math.cos(1_000_003), math.sin(1_000_003)]], 1e-6, "float32")


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 5, 2)])
def test_empty_arrays_keep_their_shape(shape):
    assert rope(np.empty(shape), np.zeros(shape[-2], dtype=int)).shape == shape


def test_padding_that_holds_anything_harms_no_other_row_and_warns_of_nothing():
    x = np.array([[np.nan, np.inf], [1.0, 2.0], [-np.inf, np.inf]])
    np.testing.assert_array_equal(rope(x, np.array([5, 6, 7]))[1], rope(x[1:2], np.array([6]))[0])
