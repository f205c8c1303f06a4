"""The Jacobian of softmax and its vector-Jacobian product against differences and autograd."""

import numpy as np
import pytest
import torch

from attn_course.reference import logsumexp, softmax, softmax_jacobian, softmax_vjp
from tests.reference.support import EPS, assert_same


@pytest.mark.parametrize("dtype", EPS)
def test_the_jacobian_matches_autograd_for_every_row_of_a_batch(dtype):
    weights = softmax(np.random.default_rng(7).normal(size=(2, 3, 5)) * 2).astype(dtype)
    jacobian = softmax_jacobian(weights)
    for batch, row in np.ndindex(2, 3):
        scores = torch.from_numpy(weights[batch, row].astype(np.float64)).log()
        # softmax(log s) = s / sum(s), and a rounded s sums to 1 only up to its own rounding
        wanted = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, -1), scores).numpy()
        assert_same(jacobian[batch, row], wanted, 8 * EPS[dtype], dtype)
    assert jacobian.shape == (2, 3, 5, 5)


@pytest.mark.parametrize("dtype", EPS)
def test_the_vjp_matches_autograd(dtype):
    rng = np.random.default_rng(7)
    scores = torch.from_numpy(rng.normal(size=(2, 3, 5)) * 2).requires_grad_()
    d_weights = rng.normal(size=(2, 3, 5)).astype(dtype)
    weights = torch.softmax(scores, -1)
    weights.backward(torch.from_numpy(d_weights.astype(np.float64)))
    assert_same(softmax_vjp(weights.detach().numpy().astype(dtype), d_weights), scores.grad.numpy(), 8 * EPS[dtype], dtype)


@pytest.mark.parametrize("n", [0, 1])
def test_derivatives_of_no_entry_and_of_one_entry_are_empty_and_zero(n):
    weights = np.ones((3, n))
    np.testing.assert_array_equal(softmax_jacobian(weights), np.zeros((3, n, n)), strict=True)
    np.testing.assert_array_equal(softmax_vjp(weights, np.full((3, n), 7.0)), np.zeros((3, n)), strict=True)


def test_float16_sums_do_not_overflow():
    weights, d_weights = np.full(4, 0.25, np.float16), np.full(4, 60_000.0, np.float16)
    np.testing.assert_array_equal(softmax_vjp(weights, d_weights), np.zeros(4, np.float16), strict=True)


FUNCTIONS = {
    "softmax": softmax,
    "logsumexp": logsumexp,
    "jacobian": lambda array: softmax_jacobian(softmax(array)),
    "vjp": lambda array: softmax_vjp(softmax(array), np.ones_like(array)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", EPS)
def test_an_underflow_is_a_zero_and_no_error_where_floating_point_flags_raise(name, dtype):
    for row in ([0.0, -9.0, -14.0], [1.0, -np.inf, -3e4], [1.0, float(np.finfo(dtype).tiny), 0.0]):
        calm = FUNCTIONS[name](np.array(row, dtype=dtype))
        with np.errstate(all="raise"):
            strict = FUNCTIONS[name](np.array(row, dtype=dtype))
        np.testing.assert_array_equal(strict, calm, strict=True)
