"""The torch layers compute what the reference computes, in float64, and learn with finite gradients."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import Attention, attention
from tests.modules.support import arrays, tensors


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_output_and_weights_are_those_of_the_reference(scale, is_causal, masked):
    query, key, value = arrays((2, 3, 5, 7), (2, 3, 11, 7), (2, 3, 11, 13))
    mask = np.random.default_rng(1).uniform(size=(3, 5, 11)) < 0.6 if masked else None
    output, weights = attention(
        *tensors(query, key, value), mask=None if mask is None else torch.from_numpy(mask), is_causal=is_causal, scale=scale
    )
    expected = reference.attention(query, key, value, mask=mask, is_causal=is_causal, scale=scale, return_weights=True)
    np.testing.assert_allclose(output, expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(weights, expected[1], rtol=1e-12, atol=1e-14)


def test_the_gradients_are_those_of_the_reference():
    query, key, value, d_output = arrays((3, 5, 7), (3, 11, 7), (3, 11, 2), (3, 5, 2))
    parts = [part.requires_grad_() for part in tensors(query, key, value)]
    attention(*parts)[0].backward(torch.from_numpy(d_output))
    for part, expected in zip(parts, reference.attention_backward(query, key, value, d_output), strict=True):
        np.testing.assert_allclose(part.grad, expected, rtol=1e-10, atol=1e-12)


def test_the_layer_projects_rows_and_then_attends():
    x, other = arrays((2, 5, 7), (2, 11, 3))
    layer = Attention(7, 13, 4, d_key_value=3).double()
    w_query, w_key, w_value = (part.detach().numpy() for part in (layer.w_query, layer.w_key, layer.w_value))
    with torch.no_grad():
        output, _ = layer(*tensors(x, other))
    np.testing.assert_allclose(output, reference.attention(x @ w_query, other @ w_key, other @ w_value), rtol=1e-12)


def test_without_a_value_size_the_values_pass_as_they_are_and_self_attention_is_the_default():
    x, value = arrays((5, 7), (5, 2))
    layer = Attention(7, 3, scale=1.0).double()
    w_query, w_key = (part.detach().numpy() for part in (layer.w_query, layer.w_key))
    with torch.no_grad():
        own, _ = layer(torch.from_numpy(x))
        given, _ = layer(torch.from_numpy(x), value=torch.from_numpy(value))
    np.testing.assert_allclose(own, reference.attention(x @ w_query, x @ w_key, x, scale=1.0), rtol=1e-12)
    np.testing.assert_allclose(given, reference.attention(x @ w_query, x @ w_key, value, scale=1.0), rtol=1e-12)
    assert [name for name, _ in layer.named_parameters()] == ["w_query", "w_key"]
