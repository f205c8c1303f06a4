"""What the tests of converters share."""

import numpy as np
import torch


def normal(*shape, seed=7):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def tensor(array):
    return torch.from_numpy(array)


def assert_equal_to(got, wanted, tolerance=1e-12):
    """Same shape, and equal up to `tolerance` of the largest entry."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max(initial=1.0))


def assert_differs(got, wanted):
    """A mistake would show: some entry is off by far more than rounding."""
    assert np.abs(np.asarray(got) - np.asarray(wanted)).max() > 1e-3


def assert_own_memory(converted, *given):
    parts = converted if isinstance(converted, tuple) else converted.values() if isinstance(converted, dict) else (converted,)
    for part in parts:
        assert not any(np.shares_memory(part, array) for array in given)
