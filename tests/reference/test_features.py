"""Feature maps: expectation and variance of random features by exact quadrature over all projections, and how they are drawn."""

import math

import numpy as np
import pytest
import torch

from attn_course.reference import draw_projections, elu_features, positive_random_features
from tests.reference.support import EPS, assert_same, assert_untouched


@pytest.mark.parametrize("dtype", EPS)
def test_elu_features_are_elu_plus_one(dtype):
    x = (np.random.default_rng(7).normal(size=(3, 5, 7)) * 3).astype(dtype)
    x[0, 0, :3] = [0.0, -60_000.0, 60_000.0]
    wanted = torch.nn.functional.elu(torch.from_numpy(x.astype(float))).numpy() + 1
    assert_same(assert_untouched(elu_features, x), wanted, EPS[dtype], dtype)


def quadrature(d_k):
    """Nodes and weights of Gauss and Hermite for a standard normal vector."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(*[nodes] * d_k, indexing="ij"), axis=-1).reshape(-1, d_k)
    return grid, np.stack(np.meshgrid(*[weights] * d_k, indexing="ij"), axis=-1).reshape(-1, d_k).prod(axis=-1) / (2 * math.pi) ** (d_k / 2)


@pytest.mark.parametrize("d_k", [1, 2])
def test_over_all_projections_the_mean_is_the_kernel_and_the_variance_that_of_the_paper(d_k):
    query, key = np.random.default_rng(7).normal(size=(2, 5, d_k)) * 0.7
    projections, chances = quadrature(d_k)
    one_each = math.sqrt(len(projections))  # undo 1 / sqrt(m): each projection is an estimate of its own
    estimates = np.einsum("ir,jr->ijr", *(positive_random_features(x, projections) * one_each for x in (query, key)))
    kernel = np.exp(query @ key.T)
    np.testing.assert_allclose(estimates @ chances, kernel, rtol=1e-10)
    together = ((query[:, None] + key) ** 2).sum(axis=-1)  # |q + k|^2
    np.testing.assert_allclose(estimates**2 @ chances - kernel**2, np.exp(together) * kernel**2 * (1 - np.exp(-together)), rtol=1e-8)


def test_orthogonal_projections_are_orthogonal_in_blocks_and_each_is_standard_normal():
    rng = np.random.default_rng(7)
    drawn = np.array([draw_projections(3, 8, rng, orthogonal=True) for _ in range(4000)])
    assert drawn.shape == (4000, 8, 3)
    for block in (slice(0, 3), slice(3, 6), slice(6, 8)):
        products = drawn[:, block] @ drawn[:, block].swapaxes(-1, -2)
        products[:, range(products.shape[1]), range(products.shape[1])] = 0.0
        np.testing.assert_allclose(products, 0.0, atol=1e-12)
    assert np.abs(drawn[:, 0] @ drawn[0, 3]).max() > 0.1  # across blocks they are not
    for r in (0, 4, 7):
        np.testing.assert_allclose(drawn[:, r].mean(axis=0), 0.0, atol=0.07)
        np.testing.assert_allclose(np.cov(drawn[:, r].T), np.eye(3), atol=0.1)
        np.testing.assert_allclose((drawn[:, r] ** 4).mean(axis=0), 3.0, atol=0.6)


def test_long_inputs_underflow_to_zero_and_never_overflow():
    x = np.array([[1e200, 0.0], [30.0, 30.0], [0.0, -1e5]])
    features = positive_random_features(x, np.random.default_rng(7).normal(size=(50, 2)))
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(features, 0.0)
    assert positive_random_features(np.zeros((0, 2)), np.ones((3, 2))).shape == (0, 3)
