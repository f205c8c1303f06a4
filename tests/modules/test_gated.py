"""Memories with gates in torch equal the reference, whatever the chunk, survive any gate with their gradients, and train."""

import re

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import GatedMemory
from attn_course.modules.gated import gated_delta_rule, gated_linear_attention
from attn_course.modules.linear import delta_rule_attention, linear_attention
from tests.modules.support import assert_close, normal, tensors
from tests.modules.test_linear import drawn, layer, x_of


def both(query, key, value, beta, log_decay, **options):
    return (
        *gated_linear_attention(query, key, value, log_decay, **options),
        *gated_delta_rule(query, key, value, beta, log_decay, **options),
    )


@pytest.mark.parametrize("length", [1, 13, 70])
@pytest.mark.parametrize("chunk", [3, 64])
@pytest.mark.parametrize("features", [1, 5])
@pytest.mark.parametrize("started", [False, True])
def test_both_rules_equal_the_reference_across_lengths_chunks_gates_and_states(length, chunk, features, started):
    query, key, value, beta, log_decay, state = drawn(length, features)
    options = {"log_decay": log_decay, "initial_state": state if started else None, "return_state": True}
    wanted = (
        *reference.linear_attention(query, key, value, form="recurrent", **options),
        *reference.delta_rule_attention(query, key, value, beta, **options),
    )
    *given, s = tensors(query, key, value, beta, log_decay, state)
    for ours, theirs in zip(both(*given, chunk=chunk, state=s if started else None), wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("features", [1, 5])
def test_no_position_at_all_leaves_the_state_and_gates_of_1_are_none(features):
    *empty, state = tensors(*drawn(0, features))
    output, after, read, corrected = both(*empty, state=state)
    assert output.shape == read.shape == (2, 3, 0, 7)
    assert torch.equal(after, state)
    assert torch.equal(corrected, state)
    query, key, value, beta, log_decay, state = tensors(*drawn(70, features))
    found = both(query, key, value, beta, 0 * log_decay, state=state)
    plain = (*linear_attention(query, key, value, state=state), *delta_rule_attention(query, key, value, beta, state=state))
    for ours, theirs in zip(found, plain, strict=True):
        assert_close(ours, theirs, 1e-11)


@pytest.mark.parametrize("features", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gates_that_are_nearly_or_wholly_shut_overflow_neither_forward_nor_backward(features, dtype):
    """Dividing by the decay since the start of a chunk is infinite beyond e^88 in float32, and 0 times infinity backward."""
    arrays = drawn(64, features, spread=40.0)
    arrays[4][..., 7, :], arrays[4][..., 20:23, :] = -np.inf, 0.0
    given = [part.to(dtype).requires_grad_() for part in tensors(*arrays)]
    wanted = reference.delta_rule_attention(*arrays[:4], log_decay=arrays[4], initial_state=arrays[5])
    output, state = gated_delta_rule(*given[:5], state=given[5])
    np.testing.assert_allclose(output.detach().numpy(), wanted, atol=1e-11 if dtype == torch.float64 else 1e-4)
    (output.square().sum() + state.square().sum()).backward()
    assert all(part.grad.isfinite().all() for part in given)


@pytest.mark.parametrize("features", [1, 3])
def test_gradients_of_both_rules_are_those_of_finite_differences(features):
    given = [normal(1, 19, width, seed=width).requires_grad_() for width in (3, 3, 2)]
    beta, log_decay = normal(1, 19, 1).sigmoid().requires_grad_(), (-normal(1, 19, features).exp()).requires_grad_()
    state = normal(1, 3, 2).requires_grad_()
    given[1] = (given[1].detach() / 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda *parts: both(*parts[:5], chunk=18, state=parts[5]), (*given, beta, log_decay, state))


# --- the layer ---------------------------------------------------------------------------------------


def softplus(x):
    return np.log1p(np.exp(x))


@pytest.mark.parametrize("name", ["a gate a head", "a gate a feature", "gated sums"])
def test_a_layer_is_its_formula_head_by_head(name):
    module, x = layer(name), x_of()
    weights = {own: part.detach().numpy() for own, part in module.named_parameters()}
    x_, wanted, heads = x.numpy(), 0.0, np.arange(3)

    def of(own, head):
        matrix = weights[own]
        return x_ @ matrix.reshape(12, 3, -1)[:, head]

    for head in heads:
        q, k = (of(own, head) for own in ("w_query", "w_key"))
        q, k = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (q, k))
        beta = module.beta_max / (1 + np.exp(-(of("w_beta", head) + weights["b_beta"][head])))
        log_decay = -np.exp(weights["log_rate"][head]) * softplus(of("w_step", head) + weights["b_step"].reshape(3, -1)[head])
        value, gate = of("w_value", head), of("w_gate", head)
        if module.rule == "delta":
            read = reference.delta_rule_attention(q, k, value, beta, log_decay=log_decay)
        else:
            read = reference.linear_attention(q, k, beta * value, log_decay=log_decay)
        read = read / np.sqrt((read**2).mean(-1, keepdims=True) + 1e-5) * weights["norm_gain"] * gate / (1 + np.exp(-gate))
        wanted = wanted + read @ weights["w_output"].reshape(3, -1, 12)[head]
    np.testing.assert_allclose(module(x).detach().numpy(), wanted, atol=1e-10)


def test_gates_start_open_and_steps_stay_below_their_largest():
    made, x = GatedMemory(64, 8, beta_max=2.0, generator=torch.Generator().manual_seed(1)), torch.zeros(1, 3, 64)
    gates = made.log_decay(x).exp()
    assert 0.2 < gates.min() < gates.max() < 1.0  # exp(-16 * 0.1) to exp(-1 * 0.001)
    assert torch.equal(made.beta(x), torch.ones(1, 8, 3, 1))
    assert made.beta(100 * torch.randn(1, 99, 64)).max() <= 2.0


X = torch.ones(2, 5, 12)
MALFORMED = [
    (lambda: GatedMemory(12, 3, rule="hebb"), "rule must be one of ('delta', 'linear'); got 'hebb'"),
    (lambda: GatedMemory(12, 3, gates="vector"), "gates must be one of ('scalar', 'channel'); got 'vector'"),
    (lambda: GatedMemory(12, 3, beta_max=1.5), "beta_max must be 1 or 2; got 1.5"),
    (lambda: GatedMemory(12, 5), "n_heads must divide d_model, or d_k and d_v be given; got 5 and 12"),
    (lambda: gated_linear_attention(X, X, X, -X, chunk=0), "chunk must be at least 1; got 0"),
    (lambda: gated_delta_rule(X, X, X, X[..., :1], -X, chunk=0), "chunk must be at least 1; got 0"),
    (lambda: gated_delta_rule(X, X, X, X[..., :1], -X[..., :5]), "log_decay must have 1 or d_k = 12 features, the last axis; got 5"),
]


@pytest.mark.parametrize(("call", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_errors_name_the_argument_what_is_wanted_and_what_came(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
