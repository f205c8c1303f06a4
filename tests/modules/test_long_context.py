"""Sinks, gates, windows and two maps in torch: equal to the reference with the same weights."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import CausalHeads, DifferentialAttention, GatedAttention, SinkAttention
from tests.modules.support import assert_close, normal

PARTS = ("w_query", "w_key", "w_value", "w_output")


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def made(kind, *sizes, **options):
    layer = kind(*sizes, **options, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name not in PARTS:
                parameter.copy_(normal(*parameter.shape, seed=len(name)))
    return layer


def split(layer, x, name, heads):
    return reference.split_heads(x.numpy() @ getattr(layer, name).detach().numpy(), heads)


def merged(layer, output):
    return torch.from_numpy(reference.merge_heads(output) @ layer.w_output.detach().numpy())


@pytest.mark.parametrize("left", [None, 0, 3, 40])
@pytest.mark.parametrize("n_kv_heads", [None, 3])
def test_sinks_and_gates_are_those_of_the_reference(left, n_kv_heads):
    x = normal(2, 11, 30)
    for kind in (CausalHeads, SinkAttention, GatedAttention):
        layer = made(kind, 30, 6, left=left, n_kv_heads=n_kv_heads)
        heads = (split(layer, x, name, heads) for name, heads in zip(PARTS, (6, n_kv_heads or 6, n_kv_heads or 6), strict=False))
        options = {"is_causal": True, "window": None if left is None else (left, 0), "enable_gqa": True}
        if kind is SinkAttention:
            output = reference.sink_attention(*heads, layer.sink_logits.detach().numpy(), **options)
        else:
            output = reference.attention(*heads, **options)
        if kind is GatedAttention:
            output = reference.gate_output(output, split(layer, x, "w_gate", 6))
        assert_close(layer(x), merged(layer, output))


def test_a_sink_of_minus_infinity_is_none_and_passes_no_nan_back():
    layer, x = made(SinkAttention, 12, 3), normal(2, 7, 12)
    plain = CausalHeads(12, 3)
    plain.load_state_dict({name: part for name, part in layer.state_dict().items() if name != "sink_logits"})
    layer.sink_logits.data.fill_(-torch.inf)
    output = layer(x)
    assert_close(output, plain(x))
    output.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_two_maps_are_those_of_the_reference():
    x, layer = normal(2, 7, 12), made(DifferentialAttention, 12, 3, layer=2)
    query, key = (reference.split_heads(x.numpy() @ getattr(layer, name).detach().numpy(), 6) for name in ("w_query", "w_key"))
    value = split(layer, x, "w_value", 3)
    pairs = ((part[:, ::2], part[:, 1::2]) for part in (query, key))
    lambdas = layer.lambdas.detach().numpy()
    factor = np.exp(lambdas[0] @ lambdas[1]) - np.exp(lambdas[2] @ lambdas[3]) + reference.differential_start(2)
    output = reference.differential_attention(*pairs, value, np.array(factor), is_causal=True)
    normed = output / np.sqrt((output**2).mean(axis=-1, keepdims=True) + 1e-5) * layer.gain.detach().numpy()
    assert_close(layer(x), merged(layer, (1 - reference.differential_start(2)) * normed))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SinkAttention(12, 5), "n_heads must divide d_model; got 5 and 12"),
        (lambda: GatedAttention(12, 6, n_kv_heads=4), "n_kv_heads must divide n_heads; got 4 and 6"),
        (lambda: DifferentialAttention(12, 4, layer=1), "2 n_heads must divide d_model; got n_heads = 4 and 12"),
        (lambda: DifferentialAttention(12, 3, layer=0), "layer must be 1 or more; got 0"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
