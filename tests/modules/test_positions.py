"""Positions in torch are those of the reference."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import rope, sinusoidal_positions


@pytest.mark.parametrize(("length", "d_model"), [(7, 6), (5, 3), (0, 4), (1, 1)])
def test_sinusoids_are_those_of_the_reference(length, d_model):
    np.testing.assert_allclose(sinusoidal_positions(length, d_model), reference.sinusoidal_positions(length, d_model), rtol=0, atol=1e-13)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("theta", [10_000.0, 7.0])
def test_rotations_are_those_of_the_reference_at_any_positions(layout, theta):
    rng = np.random.default_rng(3)
    x, positions = rng.normal(size=(2, 3, 5, 6)), np.array([[4, 0, 900, 17, -3], [1, 2, 3, 5, 7]])[:, None]
    got = rope(torch.from_numpy(x), torch.from_numpy(positions), theta, layout)
    np.testing.assert_allclose(got, reference.rope(x, positions, theta, layout), rtol=0, atol=1e-12)


def test_narrow_numbers_are_rotated_in_float32_and_come_back_narrow():
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1)).bfloat16()
    got = rope(x, torch.arange(5) + 100_000)
    wanted = rope(x.double(), torch.arange(5) + 100_000)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.double(), wanted, rtol=0, atol=2e-2)
