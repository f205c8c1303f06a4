"""Stretched frequencies against loops and the conditions they come from; rotations of a part against complex numbers."""

import cmath
import math

import numpy as np
import pytest

from attn_course import reference as ref
from tests.reference.support import EPS, assert_same, assert_untouched

LAYOUTS = ("halves", "interleaved")
STRETCHED = {
    "linear": lambda d, factor, length, theta: ref.linear_frequencies(d, factor, theta),
    "ntk": lambda d, factor, length, theta: ref.ntk_frequencies(d, factor, theta),
    "turns": ref.yarn_frequencies,
    "pairs": lambda d, factor, length, theta: ref.yarn_frequencies(d, factor, length, theta, ramp="pairs"),
}


def turned(row, position, frequencies, layout):
    """One row whose pairs are complex numbers times e^(i t omega); the rest as it was."""
    out = list(row)
    for i, omega in enumerate(frequencies):
        a, b = (i, i + len(frequencies)) if layout == "halves" else (2 * i, 2 * i + 1)
        z = complex(row[a], row[b]) * cmath.exp(1j * position * omega)
        out[a], out[b] = z.real, z.imag
    return out


# --- rotations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_pairs", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", EPS)
def test_the_first_pairs_are_multiplied_by_complex_numbers_and_the_rest_is_passed_on(layout, n_pairs, dtype):
    rng = np.random.default_rng(7)
    x, positions, frequencies = rng.normal(size=(2, 5, 7)).astype(dtype), np.array([3, 0, 71, -2, 3]), rng.uniform(0.01, 2, size=n_pairs)
    got = assert_untouched(ref.rotate_pairs, x, positions, frequencies, layout=layout)
    wanted = [[turned(x[b, t].astype(float), positions[t], frequencies, layout) for t in range(5)] for b in range(2)]
    assert_same(got, wanted, 4 * EPS[dtype], dtype)
    np.testing.assert_array_equal(got[..., 2 * n_pairs :], x[..., 2 * n_pairs :])


@pytest.mark.parametrize("turned", [ref.rope, lambda x, positions: ref.rotate_pairs(x, positions, np.array([0.3, 0.1]))])
def test_positions_broadcast_over_batch_and_heads_and_over_what_is_passed_on_too(turned):
    rng = np.random.default_rng(7)
    x, positions = rng.normal(size=(2, 5, 6)), rng.integers(0, 90, size=(3, 5))
    got = turned(x, positions[:, None, :])
    for b, h in np.ndindex(3, 2):
        assert_same(got[b, h], turned(x[h], positions[b]))


# --- frequencies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [0, 2, 10, 26])
def test_usual_frequencies_are_powers_of_the_base(d):
    wanted = [1000.0 ** (-2 * i / d) for i in range(d // 2)]
    assert_same(ref.rope_frequencies(d, 1000.0), wanted, 1e-15)


@pytest.mark.parametrize("name", STRETCHED)
@pytest.mark.parametrize("d", [4, 10, 26])
def test_a_factor_of_1_changes_nothing(name, d):
    assert_same(STRETCHED[name](d, 1.0, 64, 100.0), ref.rope_frequencies(d, 100.0), 1e-15)


def test_interpolation_divides_frequencies_or_positions():
    x, positions = np.random.default_rng(7).normal(size=(5, 6)), np.array([0, 1, 7, 64, 200])
    assert_same(ref.rotate_pairs(x, positions, ref.linear_frequencies(6, 3.5)), ref.rope(x, positions / 3.5))


@pytest.mark.parametrize(("d", "factor", "theta"), [(4, 2.0, 10_000.0), (26, 4.0, 100.0), (128, 16.0, 500_000.0)])
def test_ntk_leaves_the_fastest_pair_and_interpolates_the_slowest(d, factor, theta):
    got, usual = ref.ntk_frequencies(d, factor, theta), ref.rope_frequencies(d, theta)
    assert got[0] == usual[0] == 1.0
    assert got[-1] == pytest.approx(usual[-1] / factor, rel=1e-12)
    ratios = got[1:] / got[:-1]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)  # frequencies of one base


@pytest.mark.parametrize(("d", "factor", "length", "theta"), [(10, 4.0, 700, 10_000.0), (26, 1.5, 64, 100.0), (128, 32.0, 4096, 10_000.0)])
def test_yarn_goes_by_turns(d, factor, length, theta):
    got = ref.yarn_frequencies(d, factor, length, theta, slow=1.3, fast=17.0)
    for i, frequency in enumerate(got):
        usual = theta ** (-2 * i / d)
        turns = length / (2 * math.pi / usual)  # positions over wavelength
        if turns <= 1.3:
            wanted = usual / factor
        elif turns >= 17.0:
            wanted = usual
        else:
            kept = (turns - 1.3) / (17.0 - 1.3)
            wanted = kept * usual + (1 - kept) * usual / factor
        assert frequency == pytest.approx(wanted, rel=1e-13)


def test_a_ramp_over_pairs_is_even_from_pair_to_pair_between_whole_ones():
    length, d, theta = 4096, 128, 10_000.0
    stretch = ref.yarn_frequencies(d, 4.0, length, theta, ramp="pairs") / ref.rope_frequencies(d, theta)
    kept = (stretch - 0.25) / 0.75
    turns = length * ref.rope_frequencies(d, theta) / (2 * math.pi)
    first, last = np.flatnonzero(kept > 1 - 1e-12)[-1], np.flatnonzero(kept < 1e-12)[0]
    assert turns[first] >= 32 > turns[first + 1]
    assert turns[last - 1] >= 1 > turns[last]
    np.testing.assert_allclose(np.diff(kept[first : last + 1]), -1 / (last - first), rtol=1e-9)


@pytest.mark.parametrize("factor", [1.0, 2.0, 40.0])
def test_the_root_of_the_inverse_temperature_grows_with_the_logarithm(factor):
    assert 1 / math.sqrt(ref.yarn_temperature(factor)) == pytest.approx(0.1 * math.log(factor) + 1)
