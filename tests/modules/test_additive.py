"""The additive layer computes what the reference computes, in float64; padding takes no part."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import AdditiveAttention
from tests.modules.support import arrays, tensors

SIZES = {"d_q": 7, "d_k": 5, "d_hidden": 13}


def fresh_layer(**options):
    return AdditiveAttention(**SIZES, **options, generator=torch.Generator().manual_seed(3)).double()


def by_reference(layer, query, key, value, mask=None):
    parts = (part.detach().numpy() for part in (layer.w_query, layer.w_key, layer.w_score))
    scores = reference.additive_scores(query, key, *parts)
    weights = reference.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights @ value, weights


@pytest.mark.parametrize("masked", [False, True])
def test_output_and_weights_are_those_of_the_reference(masked):
    query, key, value = arrays((2, 3, 5, 7), (2, 3, 11, 5), (2, 3, 11, 2))
    mask = np.random.default_rng(1).uniform(size=(3, 5, 11)) < 0.4 if masked else None
    layer = fresh_layer()
    with torch.no_grad():
        found = layer(*tensors(query, key, value), mask=None if mask is None else torch.from_numpy(mask))
    for mine, expected in zip(found, by_reference(layer, query, key, value, mask), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-14)


def test_without_values_the_keys_are_averaged_and_keys_without_a_batch_serve_every_example():
    query, key = arrays((2, 5, 7), (11, 5))
    layer = fresh_layer()
    with torch.no_grad():
        output, weights = layer(*tensors(query, key))
    np.testing.assert_allclose(output, by_reference(layer, query, key, key)[0], rtol=1e-12)
    assert weights.shape == (2, 5, 11)


def test_keys_projected_once_give_the_same_as_all_at_once():
    query, key, value = tensors(*arrays((2, 5, 7), (2, 11, 5), (2, 11, 3)))
    layer = fresh_layer()
    with torch.no_grad():
        projected, whole = layer.project_keys(key), layer(query, key, value)[0]
        steps = [layer.attend(query[:, i : i + 1], projected, value)[0] for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=1e-12, atol=1e-14)


def test_what_padding_holds_changes_nothing_and_no_keys_at_all_give_zeros():
    query, key, value = tensors(*arrays((3, 5, 7), (3, 11, 5), (3, 11, 2)))
    lengths, layer = torch.tensor([11, 4, 0]), fresh_layer()
    other_key, other_value = key.clone(), value.clone()
    other_key[1, 4:], other_value[1, 4:] = 1e3, -1e3
    with torch.no_grad():
        output, weights = layer(query, key, value, kv_lengths=lengths)
        again, _ = layer(query, other_key, other_value, kv_lengths=lengths)
        short, _ = layer(query[1], key[1, :4], value[1, :4])
    assert torch.equal(output, again)
    torch.testing.assert_close(output[1], short, rtol=1e-12, atol=1e-14)
    assert not weights[1, :, 4:].any()
    assert not output[2].any()


def test_lengths_and_mask_close_together():
    query, key = tensors(*arrays((2, 5, 7), (2, 11, 5)))
    mask = torch.ones(5, 11, dtype=torch.bool)
    mask[:, 0] = False
    with torch.no_grad():
        _, weights = fresh_layer()(query, key, mask=mask, kv_lengths=torch.tensor([6, 1]))
    assert ((weights > 0).sum(dim=-1) == torch.tensor([[5], [0]])).all()


def test_the_score_is_odd_without_a_bias_and_the_bias_is_added_inside_tanh():
    query, key = tensors(*arrays((5, 7), (11, 5)))
    layer = fresh_layer(bias=True)
    with torch.no_grad():
        pairs = torch.stack([torch.tanh(query[i] @ layer.w_query + key @ layer.w_key + layer.bias) @ layer.w_score for i in range(5)])
        torch.testing.assert_close(layer(query, key)[1], pairs.softmax(dim=-1))
        layer.bias.zero_()
        plus, minus = (layer(sign * query, sign * key)[1].log() for sign in (1, -1))
    centred = plus - plus.mean(dim=-1, keepdim=True) + minus - minus.mean(dim=-1, keepdim=True)
    assert centred.abs().max() < 1e-12
