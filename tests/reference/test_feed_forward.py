"""Norms, activations and hidden units against torch, closed forms and loops."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from attn_course.reference import feed_forward, gelu, layer_norm, rms_norm, silu
from tests.reference.support import assert_same, assert_untouched

X, GAIN, BIAS = (np.random.default_rng(7).normal(size=shape) for shape in ((2, 5, 7), (7,), (7,)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_norms_are_those_of_torch(dtype, eps):
    x, gain, bias = (array.astype(dtype) for array in (3.0 * X + 1.0, GAIN, BIAS))
    tensors = [torch.from_numpy(array).double() for array in (x, gain, bias)]
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3}[dtype]
    assert_same(
        assert_untouched(layer_norm, x, gain, bias, eps=eps), functional.layer_norm(tensors[0], (7,), *tensors[1:], eps), tolerance, dtype
    )
    assert_same(layer_norm(x, eps=eps), functional.layer_norm(tensors[0], (7,), eps=eps), tolerance, dtype)
    assert_same(assert_untouched(rms_norm, x, gain, eps=eps), functional.rms_norm(tensors[0], (7,), tensors[1], eps), tolerance, dtype)
    assert_same(rms_norm(x[0, 0], eps=eps), functional.rms_norm(tensors[0][0, 0], (7,), eps=eps), tolerance, dtype)


def test_activations_are_those_of_torch_and_gelu_holds_far_out():
    x = np.linspace(-9.0, 9.0, 113)
    tensor = torch.from_numpy(x)
    assert_same(assert_untouched(gelu, x), functional.gelu(tensor), 1e-15)
    assert_same(gelu(x, tanh=True), functional.gelu(tensor, approximate="tanh"), 1e-15)
    assert_same(assert_untouched(silu, x), functional.silu(tensor), 1e-15)
    assert_same(silu(np.array([-1e4, 1e4])), [0.0, 1e4])
    assert_same(gelu(np.array(2.0)), 2.0 * (0.5 + math.erf(2.0 / math.sqrt(2.0)) / 2.0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gates_far_below_0_keep_their_digits(dtype):
    """Written as 1 + tanh or 1 + erf they are exactly 0 there."""
    x = np.array([-5.0, -8.0], dtype)
    shares = [math.erfc(-entry / math.sqrt(2.0)) / 2.0 for entry in x]
    near = {"rtol": 20 * np.finfo(dtype).eps}
    np.testing.assert_allclose(silu(x), [entry / (1.0 + math.exp(-entry)) for entry in x], **near)
    np.testing.assert_allclose(gelu(x), [entry * share for entry, share in zip(x, shares, strict=True)], **near)
    inner = [math.sqrt(2.0 / math.pi) * (entry + 0.044715 * entry**3) for entry in map(float, x)]
    looser = {"rtol": 400 * np.finfo(dtype).eps}  # an exponent near 50 multiplies its own rounding
    np.testing.assert_allclose(
        gelu(x, tanh=True), [entry / (1.0 + math.exp(-2.0 * u)) for entry, u in zip(x, inner, strict=True)], **looser
    )


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_hidden_units_are_what_loops_over_units_give(gated, has_bias, activation):
    rng = np.random.default_rng(3)
    w_in, w_gate, w_out, b_in, b_out = (rng.normal(size=shape) for shape in ((7, 11), (7, 11), (11, 5), (11,), (5,)))
    act = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu}.get(
        activation, lambda part: functional.gelu(part, approximate="tanh")
    )
    wanted = np.zeros((2, 5, 5)) + (b_out if has_bias else 0.0)
    for unit in range(11):
        value = X @ w_in[:, unit] + (b_in[unit] if has_bias else 0.0)
        active = act(torch.from_numpy(X @ w_gate[:, unit] if gated else value)).numpy()
        wanted += (active * value if gated else active)[..., None] * w_out[unit]
    options = {"w_gate": w_gate} if gated else {}
    options |= {"b_in": b_in, "b_out": b_out} if has_bias else {}
    assert_same(assert_untouched(feed_forward, X, w_in, w_out, activation=activation, **options), wanted, 1e-13)
