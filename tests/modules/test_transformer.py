"""The whole Transformer: what its parts make, the same with a cache, and at the start as promised."""

import math
import re

import pytest
import torch
from torch import nn

from attn_course.modules import FeedForward, Transformer, hooked
from tests.modules.support import assert_close

TOKENS, D_MODEL, HEADS, LAYERS = 23, 12, 3, 2
KINDS = {
    "gpt2": {"n_positions": 31, "bias": True, "activation": "gelu_tanh"},
    "llama": {"norm": "rms", "activation": "silu", "gated": True, "rope_theta": 100.0, "n_kv_heads": 1, "d_hidden": 7, "tied": False},
    "2017": {"norm_first": False, "n_positions": 31, "activation": "relu", "bias": True},
    "no positions": {"window": (4, 0), "norm": "rms"},
}


def model(kind="gpt2", **options):
    made = Transformer(TOKENS, D_MODEL, HEADS, LAYERS, **KINDS[kind] | options, generator=torch.Generator().manual_seed(3)).double()
    torch.manual_seed(4)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64)
            if name in ("w_tokens", "w_logits"):
                parameter *= 2.0
    return made


def ids(*shape):
    return torch.randint(TOKENS, shape, generator=torch.Generator().manual_seed(5))


# ---- the whole
@pytest.mark.parametrize("kind", [*KINDS])
def test_logits_are_blocks_between_two_tables(kind):
    made, tokens = model(kind), ids(2, 7)
    x = made.w_tokens[tokens] + (0.0 if made.w_positions is None else made.w_positions[:7])
    for block in made.blocks:
        x = block(x)
    x = made.norm(x) if KINDS[kind].get("norm_first", True) else x
    table = made.w_tokens.T if made.w_logits is None else made.w_logits
    assert (made.w_logits is None) == KINDS[kind].get("tied", True)
    assert_close(made(tokens), x @ table)


def test_only_differences_of_positions_count_and_the_last_row_may_be_asked_for_alone():
    made, tokens = model("llama"), ids(2, 7)
    assert_close(made(tokens, positions=torch.arange(7) + 100.0), made(tokens))
    assert not torch.allclose(made(tokens, positions=torch.arange(7) / 2.0), made(tokens))
    assert_close(made(tokens, last=True), made(tokens)[:, -1:])
    with pytest.raises(ValueError, match="positions must be left out: this layer has no frequencies"):
        model("gpt2")(tokens, positions=torch.arange(7))


def test_a_compiled_model_gives_the_same_logits():
    torch.compiler.reset()
    made = Transformer(TOKENS, D_MODEL, HEADS, 1, **KINDS["llama"]).double()
    assert_close(torch.compile(made, backend="aot_eager", fullgraph=True)(ids(2, 5)), made(ids(2, 5)))


# ---- writing
@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
def test_it_writes_the_same_with_and_without_a_cache(kind, temperature):
    made, prompt = model(kind), ids(3, 4)
    written = [
        made.generate(prompt, 20, temperature=temperature, generator=torch.Generator().manual_seed(7), use_cache=use_cache)
        for use_cache in (True, False)
    ]
    assert torch.equal(*written)
    assert written[0].shape == (3, 24)
    assert torch.equal(written[0][:, :4], prompt)


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("steps", [[1] * 7, [3, 1, 3], [7]])
def test_read_in_parts_a_text_gives_the_logits_of_one_pass(kind, steps):
    made, tokens = model(kind), ids(2, 7)
    cache = made.new_cache()
    with torch.no_grad():
        parts = [made(part, cache=cache) for part in tokens.split(steps, dim=1)]
    assert [len(own) for own in cache] == [7] * LAYERS
    assert_close(torch.cat(parts, dim=1), made(tokens))


def test_greedy_takes_the_likeliest_token_after_each():
    made = model()
    written = made.generate(ids(2, 3), 6)
    for end in range(3, 9):
        assert torch.equal(written[:, end], made(written[:, :end])[:, -1].argmax(dim=-1))
    assert made.generate(ids(3), 2).shape == (5,)
    assert torch.equal(made.generate(ids(2, 3), 0), ids(2, 3))


def test_sampled_tokens_come_as_often_as_their_probabilities_say():
    made, prompt = model(), ids(1, 5)
    chances = made(prompt)[0, -1].div(1.7).softmax(dim=-1)
    drawn = made.generate(prompt.expand(20_000, 5), 1, temperature=1.7, generator=torch.Generator().manual_seed(8))[:, -1]
    shares = torch.bincount(drawn, minlength=TOKENS) / len(drawn)
    assert ((shares - chances).abs() < 5.0 * (chances / len(drawn)).sqrt()).all()
    assert chances.max() < 0.9


# ---- first weights
@pytest.mark.parametrize("n_layers", [2, 8])
def test_the_stream_starts_with_one_variance_for_every_depth_and_logits_with_one(n_layers):
    made = Transformer(300, 128, 4, n_layers, activation="relu", generator=torch.Generator().manual_seed(1))
    streams, added = [], []
    places = {f"blocks.{n_layers - 1}.stream": streams.append} | {f"blocks.{layer}.fed": added.append for layer in range(n_layers)}
    tokens = torch.randint(300, (8, 16), generator=torch.Generator().manual_seed(2))
    with torch.no_grad(), hooked(made, places):
        logits = made(tokens)
    assert 0.5 < streams[0].var() < 1.1  # the hidden units bring 1/2, attention less, since it averages
    assert sum(part.var() for part in added).item() == pytest.approx(0.5, rel=0.1)
    own = tokens[..., None]
    others = logits.scatter(-1, own, math.nan)  # the stream still holds its own token: tied, that one is likelier
    assert others[others.isfinite()].var().item() == pytest.approx(1.0, rel=0.2)
    asked = torch.randint(300, tokens.shape, generator=torch.Generator().manual_seed(3))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), asked.flatten()).item()
    assert loss == pytest.approx(math.log(300) + 0.5, abs=0.2)  # normal logits of variance s^2 cost s^2 / 2 more than equal ones


# ---- errors
def tiny(**options):
    return Transformer(5, 4, 2, 2, n_positions=6, **options)


def call_with_caches(lengths):
    made = tiny()
    caches = made.new_cache()
    for own, length in zip(caches, lengths, strict=True):
        own.append(torch.ones(1, 2, length, 2), torch.ones(1, 2, length, 2))
    return made(torch.tensor([[1]]), cache=caches)


STATE = {name: torch.ones(1) for name in ("wte.weight", "wpe.weight")}
MALFORMED = [
    (lambda: tiny(norm="batch"), "norm must be one of layer, rms; got 'batch'"),
    (lambda: tiny(activation="tanh"), "activation must be one of relu, gelu, gelu_tanh, silu; got 'tanh'"),
    (lambda: tiny(d_hidden=0), "d_model and d_hidden must be 1 or more; got 4 and 0"),
    (lambda: Transformer(0, 4, 2, 1), "n_tokens must be 1 or more; got 0"),
    (lambda: Transformer(5, 4, 2, 0), "n_layers must be 1 or more; got 0"),
    (lambda: Transformer(5, 4, 2, 1, n_positions=0), "n_positions must be 1 or more; got 0"),
    (lambda: Transformer(5, 4, 3, 1), "n_heads must divide d_model"),
    (lambda: tiny()(torch.tensor([[1, 5]])), "ids must be from 0 to 4; got 1 to 5"),
    (lambda: tiny()(torch.tensor([[-1, 3]])), "ids must be from 0 to 4; got -1 to 3"),
    (lambda: tiny()(torch.ones(1, 7, dtype=torch.int64)), "ids must end within the 6 positions of the table; got 7"),
    (lambda: tiny()(torch.tensor(1)), "ids must have the axes (..., len); got shape ()"),
    (lambda: tiny()(torch.tensor([[1]]), cache=[]), "cache must hold 2 of one length, one for each block; got lengths []"),
    (lambda: call_with_caches((2, 3)), "cache must hold 2 of one length, one for each block; got lengths [2, 3]"),
    (lambda: call_with_caches((6, 6)), "ids must end within the 6 positions of the table; got 7"),
    (lambda: tiny().generate(torch.tensor([[1]]), -1), "n_new and temperature must be 0 or more, ids hold a token or more; got -1, 0.0"),
    (lambda: tiny().generate(torch.tensor([[1]]), 1, temperature=-1.0), "got 1, -1.0 and shape (1, 1)"),
    (lambda: tiny().generate(torch.ones(1, 0, dtype=torch.int64), 1), "got 1, 0.0 and shape (1, 0)"),
    (lambda: tiny().generate(torch.tensor([[1]]), 7), "ids must end within the 6 positions of the table; got 7"),
    (lambda: FeedForward(4)(torch.ones(2, 5)), "x must have 4 features, its last axis; got shape (2, 5)"),
    (lambda: Transformer.from_gpt2(STATE, n_heads=1), "state_dict must hold the weights of a GPT-2; missing ['ln_f.bias', 'ln_f.weight']"),
    (lambda: Transformer.from_gpt2({"x": torch.ones(1)}, n_heads=1), "unknown ['x']"),
]


@pytest.mark.parametrize(("call", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_errors_name_the_argument_what_is_wanted_and_what_came(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_ids_that_are_no_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="ids must be whole numbers, int64 or int32"):
        tiny()(torch.ones(1, 2))
