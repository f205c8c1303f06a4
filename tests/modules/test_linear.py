"""Linear attention and the delta rule in torch equal the reference, whatever the chunk, and train."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import GatedMemory, LinearAttention
from attn_course.modules.linear import FEATURES, delta_rule_attention, elu_features, linear_attention, unit_features
from tests.modules.support import tensors


def drawn(length, features=1, spread=1.0):
    rng = np.random.default_rng(11)
    query, key = rng.normal(size=(2, 2, 3, length, 5))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    beta, log_decay = rng.uniform(0, 2, size=(2, 3, length, 1)), -spread * rng.exponential(size=(2, 3, length, features))
    return query, key, rng.normal(size=(2, 3, length, 7)), beta, log_decay, rng.normal(size=(2, 3, 5, 7))


@pytest.mark.parametrize("length", [0, 1, 13, 31])
@pytest.mark.parametrize("chunk", [1, 8, 64])
@pytest.mark.parametrize("started", [False, True])
def test_both_rules_equal_the_reference_across_lengths_chunks_and_states(length, chunk, started):
    query, key, value, beta, _, state = drawn(length)
    first = state if started else None
    wanted = reference.linear_attention(query, key, value, form="recurrent", initial_state=first, return_state=True)
    delta = reference.delta_rule_attention(query, key, value, beta, initial_state=first, return_state=True)
    q, k, v, b, s = tensors(query, key, value, beta, state)
    for found, expected in (
        (linear_attention(q, k, v, chunk=chunk, state=s if started else None), wanted),
        (delta_rule_attention(q, k, v, b, chunk=chunk, state=s if started else None), delta),
    ):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-10)


def test_the_features_are_those_of_the_reference():
    x = np.random.default_rng(2).normal(size=(3, 5))
    np.testing.assert_allclose(elu_features(torch.from_numpy(x)).numpy(), reference.elu_features(x))
    np.testing.assert_allclose(unit_features(torch.from_numpy(x)).norm(dim=-1).numpy(), 1.0)
    assert (unit_features(torch.zeros(2, 3)) == 0).all()
    assert set(FEATURES) == {"elu", "unit"}


LAYERS = {
    "positive": (LinearAttention, {"rule": "linear"}),
    "unit": (LinearAttention, {"rule": "linear", "features": "unit"}),
    "delta": (LinearAttention, {"rule": "delta", "d_k": 5, "d_v": 3}),
    "a gate a head": (GatedMemory, {"d_k": 5, "d_v": 3}),
    "a gate a feature": (GatedMemory, {"gates": "channel", "beta_max": 2.0}),
    "gated sums": (GatedMemory, {"rule": "linear", "gates": "channel"}),
}


def layer(name, chunk=4):
    kind, options = LAYERS[name]
    return kind(12, 3, chunk=chunk, generator=torch.Generator().manual_seed(1), **options).double()


def x_of(length=11):
    return torch.from_numpy(np.random.default_rng(3).normal(size=(2, length, 12)))


@pytest.mark.parametrize("name", ["positive", "delta"])
def test_a_layer_is_its_formula_head_by_head(name):
    module, x, wanted = layer(name), x_of(), 0.0
    weights = {own: part.detach().numpy() for own, part in module.named_parameters()}
    for head in range(3):
        q, k, v = (x.numpy() @ weights[f"w_{role}"].reshape(12, 3, -1)[:, head] for role in ("query", "key", "value"))
        if name == "positive":  # normalised within each head
            read = reference.linear_attention(q, k, v, feature_map=reference.elu_features, normalize=True)
        else:
            q, k = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (q, k))
            beta = 1 / (1 + np.exp(-(x.numpy() @ weights["w_beta"][:, [head]] + weights["b_beta"][head])))
            read = reference.delta_rule_attention(q, k, v, beta)
        wanted = wanted + read @ weights["w_output"].reshape(3, -1, 12)[head]
    np.testing.assert_allclose(module(x).detach().numpy(), wanted, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_decoding_from_the_state_is_the_full_pass(name):
    module, x = layer(name), x_of()
    full, last = module(x, return_state=True)
    state, rows = None, []
    for t in range(x.shape[1]):
        row, state = module(x[:, t : t + 1], state=state, return_state=True)
        rows.append(row)
    torch.testing.assert_close(torch.cat(rows, dim=1), full, atol=1e-10, rtol=0)
    torch.testing.assert_close(state, last, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["positive", "unit", "delta"])
def test_reading_writes_nothing(name):
    module, x = layer(name), x_of()
    output, state = module(x, return_state=True)
    before = state.clone()
    torch.testing.assert_close(module.read(x[:, -1:], state), output[:, -1:])
    assert torch.equal(state, before)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_right_and_reach_every_weight(name):
    module, x = layer(name, chunk=2), x_of(5)
    module(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
    short = x[:1].clone().requires_grad_()
    assert torch.autograd.gradcheck(module, (short,))
