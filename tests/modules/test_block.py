"""One block of a Transformer and its hidden units, against the reference, torch's own layer and finite differences."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from attn_course import reference
from attn_course.modules import Block, FeedForward
from attn_course.modules.feed_forward import ACTIVATIONS, mean_square
from tests.modules.support import assert_close, gradients_are_right, normal

D_MODEL, HEADS = 12, 3


def arrays(module):
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


@pytest.mark.parametrize("activation", [*ACTIVATIONS])
@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_hidden_units_are_those_of_the_reference(activation, gated, bias):
    seeded = torch.Generator().manual_seed(3)  # a unit of relu that happens to lie at 0 has no derivative to compare with
    made = FeedForward(7, 11, activation=activation, gated=gated, bias=bias, generator=seeded).double()
    for name, parameter in made.named_parameters():
        if name.startswith("b_"):
            nn.init.normal_(parameter, generator=seeded)
    x = 2.0 * normal(2, 5, 7)
    wanted = reference.feed_forward(x.numpy(), **arrays(made), activation=activation)
    np.testing.assert_allclose(made(x).detach(), wanted, rtol=0, atol=1e-13)
    assert gradients_are_right(made, x + 0.01)


def by_reference(made, x, *, norm, activation="gelu", norm_first=True, window=None, **attention):
    weights = arrays(made)
    parts = {room: {name.partition(".")[2]: array for name, array in weights.items() if name.startswith(room)} for room in ("a", "f")}
    call = {"n_heads": HEADS, "is_causal": True, "window": window}

    def normed(x, name):
        if norm == "rms":
            return reference.rms_norm(x, weights[f"{name}.weight"], eps=1e-5)
        return reference.layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attend(x):
        return reference.multi_head_attention(x, x, **parts["a"], **call, **attention)

    def think(x):
        return reference.feed_forward(x, **parts["f"], activation=activation)

    if norm_first:
        x = x + attend(normed(x, "norm_attention"))
        return x + think(normed(x, "norm_feed_forward"))
    x = normed(x + attend(x), "norm_attention")
    return normed(x + think(x), "norm_feed_forward")


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("options", [{}, {"bias": True, "gated": True, "activation": "silu"}, {"n_kv_heads": 1, "window": (2, 0)}])
def test_a_block_is_what_the_reference_makes_of_its_parts(norm, norm_first, options):
    made = Block(D_MODEL, HEADS, norm=norm, norm_first=norm_first, d_hidden=17, **options).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.6)
    x = normal(2, 7, D_MODEL)
    call = {name: option for name, option in options.items() if name in ("n_kv_heads", "window", "activation")}
    wanted = by_reference(made, x.numpy(), norm=norm, norm_first=norm_first, **call)
    np.testing.assert_allclose(made(x).detach(), wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_block_is_the_encoder_layer_of_torch_behind_a_causal_mask(norm_first, activation):
    torch.manual_seed(6)
    options = {"norm_first": norm_first, "activation": activation, "batch_first": True, "dropout": 0.0, "dtype": torch.float64}
    theirs = nn.TransformerEncoderLayer(D_MODEL, HEADS, 17, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.6)
    ours = Block(D_MODEL, HEADS, norm_first=norm_first, activation=activation, d_hidden=17, bias=True).double()
    attention = type(ours.attention).from_torch(theirs.self_attn)
    pairs = ((ours.attention, attention), (ours.norm_attention, theirs.norm1), (ours.norm_feed_forward, theirs.norm2))
    for own, other in pairs:
        own.load_state_dict(other.state_dict())
    state = {"w_in": theirs.linear1.weight.T, "b_in": theirs.linear1.bias, "w_out": theirs.linear2.weight.T, "b_out": theirs.linear2.bias}
    ours.feed_forward.load_state_dict(state)
    x = normal(2, 7, D_MODEL)
    hide = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    assert_close(ours(x), theirs(x, src_mask=hide, is_causal=True), 1e-11)


def test_the_mean_squares_of_activations_are_those_of_their_formulas():
    assert mean_square("relu") == pytest.approx(0.5, abs=1e-12)
    assert mean_square("gelu") == pytest.approx(1 / 3 + 1 / (2 * math.pi * math.sqrt(3)), abs=1e-12)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    assert mean_square("silu") == pytest.approx(reference.silu(nodes) ** 2 @ weights / weights.sum(), abs=1e-7)


@pytest.mark.parametrize("activation", [*ACTIVATIONS])
@pytest.mark.parametrize("gated", [True, False])
def test_hidden_units_keep_a_variance_of_one_at_the_start(activation, gated):
    made = FeedForward(256, 512, activation=activation, gated=gated, generator=torch.Generator().manual_seed(1))
    x = torch.randn(512, 256, generator=torch.Generator().manual_seed(2))
    assert made(x).var().item() == pytest.approx(1.0, rel=0.1)
