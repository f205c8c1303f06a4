"""What every layer promises: gradients, first weights, storing, compiling, empty rows, and errors that name the argument."""

import re
from functools import partial

import pytest
import torch
from torch import nn

from attn_course.modules import (
    AdditiveAttention,
    Attention,
    CausalHeads,
    EncoderDecoder,
    GatedAttention,
    GatedMemory,
    KeyValueCache,
    LatentAttention,
    LinearAttention,
    MultiHeadAttention,
    PositionalAttention,
    RecurrentReader,
    SinkAttention,
    Transformer,
    attention,
    rope,
    sinusoidal_positions,
)
from attn_course.modules.linear import delta_rule_attention, linear_attention
from tests.modules.support import assert_close, gradients_are_right, normal
from tests.modules.test_positional import KINDS

LATENT = {"d_latent": 5, "d_head": 7, "d_rope": 4, "d_v": 2}
TINY = {"d_latent": 2, "d_query_latent": 3, "d_head": 2, "d_rope": 2, "d_v": 1}
LLAMA = {"norm": "rms", "gated": True, "rope_theta": 100.0, "tied": False}
SHARED = {"d_k": 6, "is_causal": True, "n_kv_heads": 1}
ROTARY = {"n_kv_heads": 1, "rope_theta": 100.0, "is_causal": True}


def seeded(kind, *sizes, **options):
    return kind(*sizes, **options, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("make", "shapes", "call"),
    [
        (lambda: MultiHeadAttention(4, 2, backend="eager"), [(1, 3, 4)], {"lengths": torch.tensor([2])}),
        (lambda: MultiHeadAttention(4, 2, **ROTARY, backend="eager"), [(1, 3, 4)], {"lengths": torch.tensor([2])}),
        (lambda: MultiHeadAttention(4, 2, softcap=2.0, bias=True, backend="eager"), [(1, 3, 4)], {"lengths": torch.tensor([2])}),
        *((partial(PositionalAttention, 12, 3, **SHARED, **KINDS[kind], backend="eager"), [(1, 3, 12)], {}) for kind in ("yarn", "both")),
        (lambda: LatentAttention(3, 2, **TINY, backend="eager", form="naive"), [(3, 3)], {}),
        (lambda: LatentAttention(3, 2, **TINY, backend="eager", form="absorbed"), [(3, 3)], {}),
        (
            lambda: AdditiveAttention(7, 5, 13),
            [(2, 3, 7), (2, 4, 5), (2, 4, 2)],
            {"mask": torch.tensor([[[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]], [[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]]]).bool()},
        ),
    ],
)
def test_the_gradients_are_those_of_finite_differences(make, shapes, call):
    torch.manual_seed(3)
    assert gradients_are_right(make().double(), *(normal(*shape) for shape in shapes), **call)


@pytest.mark.parametrize("make", [lambda: attention, lambda: AdditiveAttention(7, 7, 13).double()], ids=["attention", "additive"])
def test_a_query_that_sees_nothing_gets_zeros_and_leaves_every_gradient_finite(make):
    attend, mask = make(), torch.ones(5, 11, dtype=torch.bool)
    query, key, value = (normal(*shape).requires_grad_() for shape in ((5, 7), (11, 7), (11, 3)))
    mask[2] = False
    output, weights = attend(query, key, value, mask=mask)
    output.square().sum().backward()
    assert not output[2].any()
    assert not weights[2].any()
    assert not query.grad[2].any()
    assert all(part.grad.isfinite().all() for part in (query, key, value, *(attend.parameters() if attend is not attention else ())))


@pytest.mark.parametrize(
    ("kind", "sizes", "options", "spread"),
    [
        (Attention, (400, 300), {}, {"w_query": 1 / 20}),
        (Attention, (400, 300), {"query_std": 0.5}, {"w_query": 0.5}),
        (AdditiveAttention, (400, 100, 3000), {}, {"w_query": 1 / 20, "w_key": 1 / 10, "w_score": 3000**-0.5}),
        (MultiHeadAttention, (256, 4), {}, {"w_output": 1 / 16}),
        (LatentAttention, (128, 4), {"d_latent": 64, "d_head": 32, "d_rope": 16}, {"w_key_up": 1 / 8}),
        (RecurrentReader, (400, 300, 2), {}, {"layer.weight_ih_l0": 1 / 20}),
        (RecurrentReader, (400, 300, 2, "lstm"), {}, {}),
        (GatedMemory, (12, 3), {}, {}),
        (Transformer, (5, 4, 2, 1), {"n_positions": 3}, {}),
    ],
)
def test_a_seed_alone_gives_the_first_weights_and_they_have_the_promised_spread(kind, sizes, options, spread):
    torch.manual_seed(1)
    first = seeded(kind, *sizes, **options).state_dict()
    torch.manual_seed(2)
    again = seeded(kind, *sizes, **options).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    for name, std in spread.items():
        found = [part for own, part in first.items() if own.endswith(name.partition(".")[2] or name)]
        assert found[0].std().item() == pytest.approx(std, rel=0.04)


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: AdditiveAttention(12, 12, 13), lambda made: made(normal(5, 12), normal(11, 12))[0]),
        (lambda: GatedMemory(12, 3), lambda made: made(normal(2, 5, 12))),
        (lambda: Transformer(11, 12, 3, 2, **LLAMA), lambda made: made(torch.tensor([[3, 1, 4]]))),
        (lambda: MultiHeadAttention(12, 4, bias=True), lambda made: made(normal(2, 5, 12))),
        (
            lambda: MultiHeadAttention(12, 4, n_kv_heads=2, output_bias=True, d_key_value=7),
            lambda made: made(normal(2, 5, 12), normal(2, 3, 7)),
        ),
    ],
)
def test_a_stored_layer_comes_back_as_it_was(make, call):
    made, other = make().double(), make().double()
    assert not torch.equal(call(made), call(other))
    other.load_state_dict(made.state_dict())
    assert made.state_dict().keys() == dict(made.named_parameters()).keys()
    assert torch.equal(call(made), call(other))


@pytest.mark.parametrize(
    "make",
    [
        lambda: MultiHeadAttention(12, 4, n_kv_heads=2, d_k=6, rope_theta=100.0, is_causal=True, bias=True),
        lambda: LatentAttention(12, 3, **LATENT, d_query_latent=13, form="naive"),
        lambda: LatentAttention(12, 3, **LATENT, d_query_latent=13, form="absorbed"),
    ],
)
def test_a_compiled_layer_gives_the_same_output_and_gradients(make):
    torch.compiler.reset()
    made, x = make().double(), normal(2, 5, 12)
    results = []
    for function in (made, torch.compile(made, backend="aot_eager", fullgraph=True)):
        made.zero_grad()
        output = function(x, lengths=torch.tensor([5, 3]))
        output.square().sum().backward()
        results.append([output, *(parameter.grad for parameter in made.parameters())])
    for got, wanted in zip(*results, strict=True):
        assert_close(got, wanted)


@pytest.mark.parametrize("steps", [[1] * 7, [3, 1, 1, 2], [2, 5], [7]])
@pytest.mark.parametrize(
    "make",
    [
        partial(MultiHeadAttention, 12, 4, is_causal=True),
        partial(MultiHeadAttention, 12, 4, is_causal=True, n_kv_heads=1, window=(3, 0)),
        partial(MultiHeadAttention, 12, 4, is_causal=True, n_kv_heads=2, rope_theta=50.0, d_k=6, bias=True),
        *(partial(PositionalAttention, 12, 3, **SHARED, **options) for options in KINDS.values()),
        *(partial(LatentAttention, 12, 3, **LATENT, d_query_latent=13, form=form) for form in ("auto", "naive", "absorbed")),
        *(partial(LatentAttention, 12, 3, **LATENT, form=form) for form in ("auto", "naive", "absorbed")),
        *(partial(kind, 12, 3, left=4) for kind in (CausalHeads, SinkAttention, GatedAttention)),
    ],
)
def test_decoding_in_any_steps_is_the_full_pass(make, steps):
    torch.manual_seed(3)
    made, x = make().double(), normal(2, 7, 12)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    for call in ({},) if isinstance(made, CausalHeads) else ({}, {"return_weights": True}):
        cache = KeyValueCache()
        with torch.no_grad():
            found, *weights = zip(*(_parts(made(part, cache=cache, **call)) for part in x.split(steps, dim=1)), strict=True)
            wanted, *rows = _parts(made(x, **call))
        assert len(cache) == 7
        assert_close(torch.cat(found, dim=1), wanted)
        assert_close([one[-1] for one in weights], [one[:, :, -steps[-1] :] for one in rows])


def _parts(result):
    return result if isinstance(result, tuple) else (result,)


X, L = torch.ones(2, 5, 12), torch.ones(2, 5, 11)
SOURCE, TARGET = torch.tensor([[3, 5, 0], [4, 0, 0], [6, 7, 8]]), torch.tensor([[4, 2], [5, 2], [6, 2]])


def latent(**options):
    return LatentAttention(11, 3, **{**LATENT, **options})


def linear(**options):
    return LinearAttention(**{"d_model": 12, "n_heads": 3, **options})


def translator(attention="additive", d_state=4):
    return EncoderDecoder(11, 13, attention=attention, d_embed=3, d_state=d_state)


def renamed():
    weights = latent(norm=False).latent_weights()
    return {"w_out" if name == "w_output" else name: matrix for name, matrix in weights.items()}


def rows(*shape):
    return torch.ones(shape)


def with_past():
    cache = KeyValueCache()
    cache.append(rows(2, 2, 4), rows(2, 2, 5))
    return cache


MALFORMED = [
    (lambda: MultiHeadAttention(12, 4, n_kv_heads=3), "n_kv_heads must divide n_heads; got 3 and 4"),
    (lambda: MultiHeadAttention(12, 5), "n_heads must divide d_model, or d_k and d_v be given; got 5 and 12"),
    (lambda: MultiHeadAttention(12, 4, rope_theta=10.0), "d_k must be even for a rotation of pairs; got 3"),
    (lambda: MultiHeadAttention(12, 4)(rows(2, 5, 7)), "x must have the axes (..., len, 12); got shape (2, 5, 7)"),
    (lambda: MultiHeadAttention(12, 4, d_key_value=7)(X, X), "x_key_value must have the axes (..., len, 7); got shape (2, 5, 12)"),
    (lambda: MultiHeadAttention(12, 4)(X, X, cache=KeyValueCache()), "x_key_value must be left out with a cache or a rotation"),
    (lambda: MultiHeadAttention(12, 2, rope_theta=10.0)(X, X), "x_key_value must be left out with a cache or a rotation"),
    (lambda: MultiHeadAttention(12, 4)(X, positions=torch.arange(5)), "positions must be left out: this layer has no rope_theta"),
    (lambda: MultiHeadAttention(12, 4)(X, mask=rows(2, 5, 5)), "leading axes must broadcast"),
    (lambda: MultiHeadAttention(12, 4).load_packed(rows(12, 35)), "packed must have 12 + 12 + 12 columns for query, key and value; got 35"),
    (lambda: MultiHeadAttention(12, 4).load_packed(rows(36, 36)), "packed must have d_model = d_key_value = 12 rows; got shape (36, 36)"),
    (lambda: MultiHeadAttention(12, 4, bias=True).load_packed(rows(12, 36)), "bias must be given: the layer has some"),
    (lambda: MultiHeadAttention(12, 4).load_packed(rows(12, 36), rows(36)), "bias must be left out: the layer has none"),
    (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 4, add_zero_attn=True)), "module must have neither add_bias_kv nor"),
    (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 4, kdim=3, vdim=5)), "of one width; got kdim 3 and vdim 5"),
    (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 4, dropout=0.1)), "got dropout 0.1 in training mode"),
    (lambda: with_past().append(rows(2, 3, 4), rows(2, 1, 5)), "key and value must share len, the axis before the last; got 3 and 1"),
    (lambda: with_past().append(rows(1, 3, 4), rows(2, 3, 5)), "past but for len, (2, 3, 4), and its dtype torch.float32; got"),
    (lambda: with_past().append(rows(2, 3, 4), rows(2, 3, 5).double()), "got (2, 3, 5) and torch.float64"),
    (lambda: latent(d_latent=0), "d_latent must be 1 or more; got 0"),
    (lambda: latent(d_query_latent=0), "d_query_latent must be 1 or more; got 0"),
    (lambda: latent(d_rope=3), "d_rope must be even and not negative, for a rotation of pairs; got 3"),
    (lambda: latent(form="fast"), "form must be one of auto, naive, absorbed; got 'fast'"),
    (lambda: latent()(L, form="fast"), "form must be one of auto, naive, absorbed; got 'fast'"),
    (lambda: latent()(rows(2, 5, 7)), "x must have the axes (..., len, 11); got shape (2, 5, 7)"),
    (lambda: latent()(rows(11)), "x must have the axes (..., len, 11); got shape (11,)"),
    (lambda: latent()(L, positions=torch.arange(4)), "positions must have the axes (..., len) with len = 5"),
    (lambda: latent()(L, positions=rows(3, 1, 5)), "positions must broadcast to (2, 5), the axes of x"),
    (lambda: latent()(L, mask=rows(2, 5, 5)), "to (..., n_heads, len, kv_len) = (2, 3, 5, 5); got shape (2, 5, 5)"),
    (lambda: latent()(L, mask=rows(5)), "mask must broadcast to"),
    (lambda: latent()(L, lengths=torch.tensor(3)), "lengths must have one number for each sequence, shape (2,); got ()"),
    (lambda: latent(backend="fast")(L), "backend must be one of auto, sdpa, eager, triton"),
    (lambda: LatentAttention.from_weights(renamed(), n_heads=3), "missing or unknown: ['w_out', 'w_output']"),
    (
        lambda: LatentAttention.from_weights(latent().latent_weights(), n_heads=2),
        "w_query_up must have shape (11, 20), to fit the others and 2 heads; got (11, 21)",
    ),
    (lambda: attention(rows(5, 7), rows(11, 3), rows(11, 2)), "query and key must share d_k, the last axis; got 7 and 3"),
    (lambda: attention(rows(5, 7), rows(11, 7), rows(13, 2)), "key and value must share kv_len, the second to last axis; got 11 and 13"),
    (lambda: AdditiveAttention(7, 5, 13)(rows(5, 6), rows(11, 5)), "query must have d_q = 7 features, its last axis; got 6"),
    (lambda: AdditiveAttention(7, 5, 13)(rows(5, 7), rows(11, 7)), "key must have d_k = 5 features, its last axis; got 7"),
    (lambda: AdditiveAttention(7, 5, 13)(rows(5, 7), rows(11, 5), rows(13, 2)), "share kv_len, the second to last axis; got 11 and 13"),
    (lambda: AdditiveAttention(7, 5, 0), "d_hidden must be at least 1; got 0"),
    (lambda: rope(rows(3, 5), torch.arange(3)), "x must have an even number of features, the last axis; got 5"),
    (lambda: rope(rows(3, 4), torch.arange(2)), "positions must have the axes (..., len) with len = 3, one for each row of x; got (2,)"),
    (lambda: rope(rows(3, 4), torch.arange(3), 0.0), "theta must be positive; got 0.0"),
    (lambda: rope(rows(3, 4), torch.arange(3), 10.0, "pairs"), 'layout must be "halves" or "interleaved"; got \'pairs\''),
    (lambda: sinusoidal_positions(-1, 4), "length must be 0 or more and d_model 1 or more; got -1 and 4"),
    (lambda: linear(rule="hebb"), "rule must be"),
    (lambda: linear(features="relu"), "features must be one of"),
    (lambda: linear(rule="delta", normalize=True), "normalize needs the linear rule"),
    (lambda: linear(features="unit", normalize=True), "normalize needs the linear rule"),
    (lambda: linear(n_heads=5), "n_heads must divide d_model"),
    (lambda: linear_attention(X, X, X, chunk=0), "chunk must be at least 1; got 0"),
    (lambda: delta_rule_attention(X, X, X, rows(2, 5, 1), chunk=0), "chunk must be at least 1; got 0"),
    (lambda: RecurrentReader(3, 5, 2, "gru"), "kind must be one of ('rnn', 'lstm'); got 'gru'"),
    (lambda: translator("cosine"), "attention must be 'additive', 'dot' or None; got 'cosine'"),
    (lambda: translator(d_state=5), "d_state must be even, half for each direction; got 5"),
    (lambda: translator()(SOURCE, TARGET[:2]), "source and target must hold as many examples; got 3 and 2"),
    (lambda: translator().encode(torch.tensor([[3, 0, 5]])), "source must hold real tokens first, at least one, then padding (0)"),
    (lambda: translator().encode(torch.tensor([[0, 0, 0]])), "source must hold real tokens first, at least one, then padding (0)"),
]


@pytest.mark.parametrize(("call", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_errors_name_the_argument_what_is_wanted_and_what_came(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("call", [{"mask": rows(4, 4)}, {"positions": rows(3, 1, 5)}, {"form": "fast"}])
def test_a_call_that_is_refused_leaves_the_cache_as_it_was(call):
    made, cache = latent(), KeyValueCache()
    with pytest.raises(ValueError, match="must"):
        made(L, cache=cache, **call)
    assert len(cache) == 0
    cache = with_past()
    with pytest.raises(ValueError, match="must"):
        cache.append(rows(2, 3, 4), rows(2, 1, 5))
    assert len(cache) == 2
