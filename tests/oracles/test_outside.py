"""Our Transformer and latent attention against the models of the transformers package, with random weights."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.modules import KeyValueCache, LatentAttention, MultiHeadAttention, Transformer, hooked
from tests.oracles.arrays import stored

pytestmark = pytest.mark.filterwarnings("error")
ROTARY_IN_FLOAT32 = 2e-6  # theirs, even in a model of float64


@pytest.fixture
def gpt2(outside):
    return {name: torch.from_numpy(array) for name, array in outside("gpt2").items()}


def weights(arrays):
    return {name.removeprefix("weights."): tensor for name, tensor in arrays.items() if name.startswith("weights.")}


def test_a_program_that_fails_says_why_and_leaves_nothing_that_looks_finished(tmp_path, monkeypatch):
    program = tmp_path / "models.py"
    program.write_text("raise ImportError('no module named transformers')")
    monkeypatch.setattr("tests.oracles.arrays.PROGRAM", program)
    with pytest.raises(AssertionError, match=r"`make test` installs what it needs(.|\n)*no module named transformers"):
        stored(tmp_path)("gpt2")
    assert not (tmp_path / "oracles").exists()


@torch.no_grad()
def test_gpt2_gives_the_logits_streams_and_maps_that_theirs_gives(gpt2):
    model = Transformer.from_gpt2(weights(gpt2), n_heads=int(gpt2["n_heads"]))
    streams, maps = [], []
    places = {"embedded": streams, "blocks.0.stream": streams, "blocks.1.stream": streams}
    places |= {f"blocks.{number}.attention.weights": maps for number in range(3)}
    with hooked(model, {name: found.append for name, found in places.items()}):
        logits = model(gpt2["ids"])
    assert gpt2["maps"].amax(dim=-1).mean() > 0.5
    torch.testing.assert_close(logits, gpt2["logits"], rtol=0, atol=1e-11)
    torch.testing.assert_close(torch.stack(streams), gpt2["streams"], rtol=0, atol=1e-11)
    torch.testing.assert_close(torch.stack(maps), gpt2["maps"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("use_cache", [True, False])
def test_gpt2_writes_what_theirs_writes(gpt2, use_cache):
    model = Transformer.from_gpt2(weights(gpt2), n_heads=5)
    written = model.generate(gpt2["ids"], gpt2["written"].shape[1] - gpt2["ids"].shape[1], use_cache=use_cache)
    assert torch.equal(written, gpt2["written"])
    assert len(set(written[:, -7:].flatten().tolist())) > 2


@torch.no_grad()
def test_a_checkpoint_may_lack_the_prefix_and_the_head_or_hold_old_masks_or_a_head_of_its_own(gpt2):
    given = weights(gpt2)
    bare = {name.removeprefix("transformer."): tensor for name, tensor in given.items() if name != "lm_head.weight"}
    old = given | {"transformer.h.0.attn.bias": torch.ones(1, 1, 29, 29), "transformer.h.2.attn.masked_bias": torch.tensor(-1e4)}
    own = given | {"lm_head.weight": 2.0 * given["lm_head.weight"]}
    for state, factor in ((bare, 1.0), (old, 1.0), (own, 2.0)):
        logits = Transformer.from_gpt2(state, n_heads=5)(gpt2["ids"])
        torch.testing.assert_close(logits, factor * gpt2["logits"], rtol=0, atol=1e-11)


@torch.no_grad()
def test_llama_gives_the_logits_that_theirs_gives(outside):
    arrays = outside("llama")
    state = {name: torch.from_numpy(array) for name, array in arrays.items() if "w_" in name or "norm" in name}
    options = {"n_kv_heads": 2, "d_k": 4, "d_v": 4, "d_hidden": 11, "activation": "silu", "gated": True, "norm": "rms", "tied": False}
    model = Transformer(23, 14, 6, 2, norm_eps=float(arrays["eps"]), rope_theta=float(arrays["theta"]), **options).double()
    model.load_state_dict(state)
    ids = torch.from_numpy(arrays["ids"])
    torch.testing.assert_close(model(ids), torch.from_numpy(arrays["logits"]), rtol=0, atol=10 * ROTARY_IN_FLOAT32)


@pytest.mark.parametrize("prefix", ["", "plain."])
@pytest.mark.parametrize("form", ["naive", "absorbed"])
@torch.no_grad()
def test_latent_attention_is_that_of_deepseek_v2(outside, prefix, form):
    arrays = outside("deepseek_v2")
    known = {name.removeprefix(prefix): torch.from_numpy(array) for name, array in arrays.items() if name.startswith(prefix)}
    matrices = {name: tensor for name, tensor in known.items() if name.startswith("w_")}
    options = {"rope_theta": float(arrays["theta"]), "norm_eps": float(arrays["eps"]), "rope_layout": "interleaved"}
    layer = LatentAttention.from_weights(matrices, n_heads=3, **options)
    layer.load_state_dict({name: tensor for name, tensor in known.items() if name.startswith("norm_")}, strict=False)
    torch.testing.assert_close(layer(known["x"], form=form), known["output"], rtol=0, atol=ROTARY_IN_FLOAT32)
    cache = KeyValueCache()
    steps = [layer(part, cache=cache, form=form) for part in known["x"].split([6, 1, 6], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), known["output"], rtol=0, atol=ROTARY_IN_FLOAT32)


@torch.no_grad()
def test_a_window_of_five_tokens_reaches_four_to_the_left(outside):
    arrays = outside("sliding_window")
    options = {"n_kv_heads": int(arrays["n_kv_heads"]), "d_k": 4, "d_v": 4, "rope_theta": float(arrays["theta"]), "is_causal": True}
    state = {name: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("w_")}

    def difference(left):
        layer = MultiHeadAttention(14, 6, window=(left, 0), **options).double()
        layer.load_state_dict(state)
        return (layer(torch.from_numpy(arrays["x"])) - torch.from_numpy(arrays["output"])).abs().max()

    assert difference(int(arrays["sliding_window"]) - 1) < ROTARY_IN_FLOAT32
    assert difference(int(arrays["sliding_window"])) > 1e-2


@pytest.mark.parametrize("number", [0, 1])
def test_a_sink_takes_the_share_that_gpt_oss_gives_it(outside, number):
    arrays = outside("sinks")
    known = {name.removeprefix(f"{number}."): array for name, array in arrays.items()}
    x, heads = known["x"], {"query": int(known["n_heads"]), "key": int(known["n_kv_heads"]), "value": int(known["n_kv_heads"])}
    query, key, value = (reference.split_heads(x @ known[f"w_{role}"] + known[f"b_{role}"], n) for role, n in heads.items())
    query, key = (reference.rope(part, np.arange(x.shape[1]), float(known["theta"])) for part in (query, key))
    window = (int(known["sliding_window"]) - 1, 0) if number == 0 else None

    def difference(sinks):
        output = reference.sink_attention(query, key, value, sinks, is_causal=True, window=window, enable_gqa=True)
        return np.abs(reference.merge_heads(output) @ known["w_output"] + known["b_output"] - known["output"]).max()

    assert difference(known["sinks"]) < ROTARY_IN_FLOAT32
    assert difference(np.full(heads["query"], -np.inf)) > 1e-2
    assert difference(known["sinks"][::-1]) > 1e-2
