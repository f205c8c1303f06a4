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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(3, 5), torch.arange(3)), r"^x must have an even number of features, the last axis; got 5$"),
        (
            (torch.ones(3, 4), torch.arange(2)),
            r"^positions must have the axes \(\.\.\., len\) with len = 3, one for each row of x; got \(2,\)$",
        ),
        ((torch.ones(3, 4), torch.arange(3), 0.0), r"^theta must be positive; got 0\.0$"),
        ((torch.ones(3, 4), torch.arange(3), 10.0, "pairs"), r'^layout must be "halves" or "interleaved"; got \'pairs\'$'),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        rope(*arguments)


def test_a_negative_length_is_named():
    with pytest.raises(ValueError, match=r"^length must be 0 or more and d_model 1 or more; got -1 and 4$"):
        sinusoidal_positions(-1, 4)
