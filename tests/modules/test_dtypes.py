"""Every layer in every floating dtype, forward and backward; sums that go on for a whole text are kept in at least float32."""

import functools
import math

import pytest
import torch
from torch import nn

from attn_course import modules
from attn_course.modules.linear import delta_rule_attention, elu_features, linear_attention, unit_features
from tests.modules.support import normal

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LATENT = {"d_latent": 5, "d_head": 4, "d_rope": 2}
IDS, SOURCE = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[3, 5, 4], [4, 6, 0]])
LAYERS = {
    "additive": (lambda: modules.AdditiveAttention(12, 12, 7, bias=True), "pair"),
    "attention": (lambda: modules.Attention(12, 5, 7), "x"),
    "block": (lambda: modules.Block(12, 3, bias=True), "x"),
    "block, gated, rms norm behind": (lambda: modules.Block(12, 3, norm="rms", norm_first=False, activation="silu", gated=True), "x"),
    "causal heads": (lambda: modules.CausalHeads(12, 4, n_kv_heads=2, left=2), "x"),
    "differential": (lambda: modules.DifferentialAttention(12, 3, layer=2), "x"),
    "additive translator": (lambda: modules.EncoderDecoder(11, 13, d_embed=3, d_state=4), "tokens"),
    "dot translator": (lambda: modules.EncoderDecoder(11, 13, attention="dot", d_embed=3, d_state=4), "tokens"),
    "fixed vector": (lambda: modules.EncoderDecoder(11, 13, attention=None, d_embed=3, d_state=4), "tokens"),
    "feed forward": (lambda: modules.FeedForward(12, bias=True), "x"),
    "gates on the output": (lambda: modules.GatedAttention(12, 4), "x"),
    "gated delta rule": (lambda: modules.GatedMemory(12, 3), "x"),
    "gated delta rule, a gate a feature": (lambda: modules.GatedMemory(12, 3, gates="channel", beta_max=2.0), "x"),
    "gated sums": (lambda: modules.GatedMemory(12, 3, rule="linear"), "x"),
    "latent, naive": (lambda: modules.LatentAttention(12, 3, **LATENT, d_query_latent=7, form="naive"), "x"),
    "latent, absorbed": (lambda: modules.LatentAttention(12, 3, **LATENT, form="absorbed"), "x"),
    "linear": (lambda: modules.LinearAttention(12, 3), "x"),
    "linear, unit features": (lambda: modules.LinearAttention(12, 3, features="unit"), "x"),
    "delta rule": (lambda: modules.LinearAttention(12, 3, rule="delta"), "x"),
    "multi-head": (lambda: modules.MultiHeadAttention(12, 3, bias=True, softcap=5.0, is_causal=True), "x"),
    "multi-head, rotary": (lambda: modules.MultiHeadAttention(12, 3, n_kv_heads=1, rope_theta=100.0, window=(2, 0)), "x"),
    "any frequencies": (lambda: modules.PositionalAttention(12, 3, frequencies=[1.0, 0.1], is_causal=True), "x"),
    "penalties": (lambda: modules.PositionalAttention(12, 3, slopes=[0.5, 0.25, 0.125], is_causal=True), "x"),
    "rnn": (lambda: modules.RecurrentReader(12, 8, 2), "x"),
    "lstm": (lambda: modules.RecurrentReader(12, 8, 2, "lstm"), "x"),
    "sink": (lambda: modules.SinkAttention(12, 4, left=2), "x"),
    "transformer": (lambda: modules.Transformer(11, 12, 3, 2, n_positions=8), "ids"),
    "transformer, rotary": (lambda: modules.Transformer(11, 12, 3, 2, norm="rms", rope_theta=100.0, tied=False), "ids"),
}


def arguments(kind, dtype):
    floats = [normal(2, 5, 12).to(dtype).requires_grad_(), normal(2, 7, 12, seed=11).to(dtype).requires_grad_()]
    return {"x": floats[:1], "pair": floats, "tokens": [SOURCE, SOURCE], "ids": [IDS]}[kind]


@functools.cache
def output_and_gradients(name, dtype, narrow=None):
    """The output, and the gradients of all parameters and inputs, of the same numbers in one dtype, or under autocast to `narrow`."""
    make, kind = LAYERS[name]
    torch.manual_seed(3)
    layer, given = make().to(dtype), arguments(kind, dtype)
    with torch.autocast("cpu", narrow or torch.bfloat16, enabled=narrow is not None):
        result = layer(*given)
    output = result[0] if isinstance(result, tuple) else result
    (output.double() * normal(*output.shape, seed=5)).sum().backward()
    gradients = [part.grad for part in (*layer.parameters(), *given) if part.grad is not None]
    return output.detach(), gradients


def error(found, wanted):
    found, wanted = (torch.cat([part.flatten().double() for part in parts]) for parts in (found, wanted))
    return ((found - wanted).norm() / wanted.norm()).item()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_runs_in_every_dtype_forward_and_backward(name, dtype):
    (output, gradients), (wanted, exact) = output_and_gradients(name, dtype), output_and_gradients(name, torch.float64)
    assert {part.dtype for part in (output, *gradients)} == {dtype}
    assert error([output], [wanted]) <= 10 * torch.finfo(dtype).eps
    assert error(gradients, exact) <= 30 * torch.finfo(dtype).eps  # also where rounding opens or shuts one of few ReLUs


@pytest.mark.parametrize("narrow", DTYPES[:2], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_runs_under_autocast_forward_and_backward(name, narrow):
    (output, gradients), (wanted, exact) = output_and_gradients(name, torch.float32, narrow), output_and_gradients(name, torch.float64)
    assert {part.dtype for part in gradients} == {torch.float32}
    assert error([output], [wanted]) <= 10 * torch.finfo(narrow).eps
    assert error(gradients, exact) <= 30 * torch.finfo(narrow).eps


def test_no_layer_of_the_package_is_left_out():
    made = {type(make()) for make, _ in LAYERS.values()}
    public = (getattr(modules, name) for name in modules.__all__)
    assert made >= {kind for kind in public if isinstance(kind, type) and issubclass(kind, nn.Module) and kind is not modules.Place}


MEMORIES = ("gated delta rule", "gated delta rule, a gate a feature", "gated sums", "linear", "linear, unit features", "delta rule")


@pytest.mark.parametrize("cast", ["half", "autocast"])
@pytest.mark.parametrize("name", MEMORIES)
def test_states_of_a_long_text_are_summed_in_float32_whatever_the_layer_computes_in(name, cast):
    torch.manual_seed(0)
    layer, x = LAYERS[name][0](), torch.randn(1, 1000, 12)
    with torch.no_grad():
        wanted, state = layer.double()(x.double(), return_state=True)
        layer, x = (layer.half(), x.half()) if cast == "half" else (layer.float(), x)
        with torch.autocast("cpu", torch.float16, enabled=cast == "autocast"):
            found, kept = layer(x, return_state=True)
            step, after = layer(x[:, :1], state=kept, return_state=True)  # decoding goes on from the wide state
    assert [part.dtype for part in (found, step, kept, after)] == [torch.float16, torch.float16, torch.float32, torch.float32]
    assert error([found], [wanted]) < 0.01
    assert error([kept], [state]) < 0.01


@pytest.mark.parametrize("factor", [1.0, 20.0])
@pytest.mark.parametrize("cast", ["half", "autocast"])
def test_a_normaliser_above_what_float16_holds_silences_no_row(cast, factor):
    """With 64 features a head it passes 65504 near token 712: rows behind it were 0, without a word; with larger inputs, NaN."""
    torch.manual_seed(0)
    layer, x = modules.LinearAttention(256, 4), factor * torch.randn(1, 1000, 256)
    with torch.no_grad():
        wanted = layer(x)
        with torch.autocast("cpu", torch.float16, enabled=cast == "autocast"):
            found = layer.half()(x.half()) if cast == "half" else layer(x)
    assert error([found], [wanted]) < 0.01


def test_sums_of_either_rule_pass_what_float16_holds_and_only_the_output_is_narrow():
    ones = torch.ones(70_000, 1, dtype=torch.float16)
    _, state = linear_attention(ones, ones, ones, chunk=1024)
    assert state == torch.tensor([[70_000.0]])
    output, state = delta_rule_attention(ones[:3], ones[:3], ones[:3], ones[:3] / 2)
    assert output.dtype == torch.float16
    assert torch.equal(state, torch.tensor([[0.875]]))


@pytest.mark.parametrize(
    ("dtype", "lowest"), [(torch.float16, -16.0), (torch.bfloat16, -87.0), (torch.float32, -103.0), (torch.float64, -745.0)]
)
def test_the_positive_feature_is_above_0_down_to_the_smallest_number_of_its_dtype(dtype, lowest):
    x = torch.tensor([lowest, -18.0, -8.0, -1e-3, 1e-3, 2.0], dtype=torch.float64).clamp(min=lowest)
    found = elu_features(x.to(dtype))
    assert (found > 0).all()
    wanted = torch.where(x > 0, x + 1, x.exp())
    torch.testing.assert_close(found[1:].double(), wanted[1:], rtol=64 * torch.finfo(dtype).eps, atol=torch.finfo(dtype).tiny)


def test_the_slope_of_the_positive_feature_at_0_is_1():
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    elu_features(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([math.exp(-1.0), 1.0, 1.0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_features_of_length_1_keep_a_zero_vector_and_do_not_overflow(dtype):
    x = torch.tensor([[0.0, 0.0], [60_000.0, 60_000.0], [3.0, 4.0]], dtype=dtype)
    wanted = torch.tensor([[0.0, 0.0], [0.5**0.5, 0.5**0.5], [0.6, 0.8]], dtype=dtype)
    torch.testing.assert_close(unit_features(x), wanted)


def test_features_that_all_round_to_0_read_0_as_the_reference_says_with_finite_gradients():
    layer = modules.LinearAttention(4, 1)
    with torch.no_grad():
        layer.w_key.copy_(-200 * torch.eye(4))
    x = torch.ones(1, 3, 4, requires_grad=True)
    output = layer(x)
    output.sum().backward()
    assert not output.any()
    assert x.grad.isfinite().all()
    assert not layer.read(x, torch.zeros(1, 4, 5)).any()


def test_a_gate_near_1_forgets_in_bfloat16_too():
    """1 - 0.001 is 1 in bfloat16: decays are exponents in float32, from the projection of x on."""
    layer = modules.GatedMemory(12, 3).bfloat16()
    with torch.no_grad():
        layer.w_step.zero_()
        layer.b_step.fill_(math.log(math.expm1(0.001)))
        layer.log_rate.zero_()
    log_decay = layer.log_decay(torch.ones(1, 5, 12, dtype=torch.bfloat16))
    assert log_decay.dtype == torch.float32
    torch.testing.assert_close(log_decay, torch.full_like(log_decay, -0.001), rtol=0.03, atol=0)
