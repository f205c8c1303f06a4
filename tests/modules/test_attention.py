"""The torch layers compute what the reference computes, in float64, and learn with finite gradients."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import Attention, attention


def arrays(*shapes, seed=7):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def tensors(*parts):
    return [torch.from_numpy(part) for part in parts]


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


def test_a_query_that_sees_nothing_gets_zeros_and_leaves_every_gradient_finite():
    query, key, value = (part.requires_grad_() for part in tensors(*arrays((5, 7), (11, 7), (11, 3))))
    mask = torch.ones(5, 11, dtype=torch.bool)
    mask[2] = False
    output, weights = attention(query, key, value, mask=mask)
    output.square().sum().backward()
    assert not output[2].any()
    assert not weights[2].any()
    assert all(part.grad.isfinite().all() for part in (query, key, value))
    assert not query.grad[2].any()


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


def test_the_first_projections_keep_unit_variance_and_a_seed_gives_the_same_ones():
    first, again = (Attention(400, 300, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.w_query, again.w_query)
    assert first.w_query.std().item() == pytest.approx(1 / 20, rel=0.01)
    assert Attention(400, 300, query_std=0.5).w_query.std().item() == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5, 7), (11, 3), (11, 2)), "query and key must share d_k, the last axis; got 7 and 3"),
        (((5, 7), (11, 7), (13, 2)), "key and value must share kv_len, the second to last axis; got 11 and 13"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, message):
    with pytest.raises(ValueError, match=message):
        attention(*tensors(*arrays(*shapes)))
