"""A model for notebooks, on a small file of random numbers: what it reads, writes, shows, and how each change of it changes that."""

import math

import numpy as np
import pytest
import torch
from gguf import GGUFReader

from attn_course.language import maps
from attn_course.language.getting import ModelMissing
from attn_course.language.model import LanguageModel
from attn_course.language.stored import question_of, stored
from attn_course.modules import Transformer
from attn_course.modules.gguf import read_gguf
from attn_course.reference import attention

from .conftest import SIZES, write_gguf

TEXT = "a cat, a dog, the"  # 12 tokens, some of them whole words
HEADS, KV_HEADS, D_K = SIZES["heads"], SIZES["kv_heads"], SIZES["d_model"] // SIZES["heads"]


def llama(path, ids, *, silent=(), values=None, window=None, sinks=0, scale=None, positions=None):
    """Llama's formula in NumPy, read straight from the file: logits and maps; `values` (layer, position) -> other values."""
    w = {tensor.name.removesuffix(".weight"): np.array(tensor.data, np.float64) for tensor in GGUFReader(path).tensors}

    def norm(x, gain):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain

    def turned(rows):  # (len, heads, d_k); features 2i and 2i + 1 are one complex number
        numbers = rows[..., 0::2] + 1j * rows[..., 1::2]
        angles = np.outer(range(len(rows)) if positions is None else positions, 100.0 ** (-2 * np.arange(D_K // 2) / D_K))
        numbers = numbers * np.exp(1j * angles)[:, None]
        return np.stack([numbers.real, numbers.imag], -1).reshape(rows.shape)

    x, maps, kept, length = w["token_embd"][ids], [], {}, len(ids)
    for layer in range(SIZES["layers"]):
        at = f"blk.{layer}."
        normed = norm(x, w[at + "attn_norm"])
        q, k, v = ((normed @ w[at + f"attn_{role}"].T).reshape(length, -1, D_K) for role in "qkv")
        kept[layer] = v
        if values and layer in values:
            place, other = values[layer]
            v = v.copy()
            v[place] = other
        q, k = turned(q), turned(k)
        found, layer_maps = np.zeros((length, HEADS, D_K)), np.zeros((HEADS, length, length))
        for head in range(HEADS):
            shared = head // (HEADS // KV_HEADS)
            for i in range(length):
                seen = [j for j in range(i + 1) if window is None or i - j < window or j < sinks]
                scores = np.array([q[i, head] @ k[j, shared] for j in seen]) * (scale or 1 / math.sqrt(D_K))
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                layer_maps[head, i, seen] = weights
                if (layer, head) not in silent:
                    found[i, head] = weights @ v[seen, shared]
        maps.append(layer_maps)
        x = x + found.reshape(length, -1) @ w[at + "attn_output"].T
        normed = norm(x, w[at + "ffn_norm"])
        gate = normed @ w[at + "ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ w[at + "ffn_up"].T)) @ w[at + "ffn_down"].T
    return norm(x, w["output_norm"]) @ w["token_embd"].T, np.array(maps), kept


def next_weights(logits):
    terms = np.exp(logits[-1] - logits[-1].max())
    return terms / terms.sum()


def test_logits_maps_and_stream_are_those_of_the_formula(toy, toy_file):
    ids = toy.ids(TEXT).numpy()
    logits, maps, _ = llama(toy_file, ids)
    np.testing.assert_allclose(toy.logits(TEXT), logits, atol=2e-5)
    np.testing.assert_allclose(toy.maps(TEXT), maps, atol=2e-5)
    np.testing.assert_allclose(toy.maps(TEXT, layer=1), maps[1], atol=2e-5)
    with pytest.raises(ValueError, match=r"^layer must be 0 to \d+; got -1$"):
        toy.maps(TEXT, layer=-1)
    stream = toy.residual(TEXT)
    assert stream.shape == (SIZES["layers"] + 1, len(ids), SIZES["d_model"])
    np.testing.assert_array_equal(stream[0], toy.network.w_tokens.detach()[ids])


def test_what_a_head_brings_is_its_value_times_its_rows_of_the_output_matrix(toy, toy_file):
    found = maps.computed(toy, TEXT)
    _, weights, kept = llama(toy_file, toy.ids(TEXT).numpy())
    np.testing.assert_allclose(found["weights"], weights, atol=2e-5)
    tensors = {tensor.name: np.array(tensor.data, np.float64) for tensor in GGUFReader(toy_file).tensors}
    for layer, head, key in np.ndindex(found["values"].shape):
        columns = tensors[f"blk.{layer}.attn_output.weight"][:, head * D_K : (head + 1) * D_K]
        brought = columns @ kept[layer][key, head // (HEADS // KV_HEADS)]
        assert found["values"][layer, head, key] == pytest.approx(math.sqrt(brought @ brought), rel=1e-4)


def test_the_viewer_has_the_stored_maps_of_the_lessons_and_other_texts_need_the_model():
    found = maps.smollm2_maps(maps.TEXTS[0])
    np.testing.assert_array_equal(found["weights"], stored(question_of("maps", {"text": maps.TEXTS[0]})))
    assert "".join(found["tokens"]) == maps.TEXTS[0]
    with pytest.raises(ModelMissing):
        maps.smollm2_maps("Another text.")


def test_it_reads_words_pieces_and_spaces(toy):
    assert toy.tokens("a cat dog") == ["a", " cat", " dog"]
    assert "".join(toy.tokens(TEXT)) == TEXT
    with pytest.raises(ValueError, match="text must have a token at least; got none"):
        toy.tokens("")


def test_the_likeliest_next_tokens_come_first_and_a_temperature_flattens_them(toy, toy_file):
    weights = next_weights(llama(toy_file, toy.ids(TEXT).numpy())[0])
    found = toy.next_tokens(TEXT, 3)
    np.testing.assert_allclose([*found.values()], np.sort(weights)[::-1][:3], atol=1e-5)
    assert max(toy.next_tokens(TEXT, 1, temperature=3.0).values()) < max(found.values())


def test_what_it_writes_is_the_likeliest_token_each_time_until_it_ends(toy, toy_file):
    text = TEXT
    for _ in range(5):
        token = int(llama(toy_file, toy.ids(text).numpy())[0][-1].argmax())
        if token in (0, 2):
            break
        text += toy.tokenizer.decode([token])
    assert toy.write(TEXT, tokens=5) == text
    assert toy.write(TEXT, tokens=0) == TEXT


def test_sampling_repeats_with_its_seed_and_follows_the_probabilities(toy):
    drawn = [toy.write(TEXT, tokens=1, temperature=1.0, seed=seed)[len(TEXT) :] for seed in range(400)]
    assert drawn[7] == toy.write(TEXT, tokens=1, temperature=1.0, seed=7)[len(TEXT) :]
    (token, weight), *_ = toy.next_tokens(TEXT).items()
    assert abs(drawn.count(token) / 400 - weight) < 4 * math.sqrt(weight * (1 - weight) / 400)


def test_a_readers_function_gets_a_query_and_all_keys_in_every_layer_and_gives_the_same(toy):
    calls = []

    def own(query, key, value):
        assert query.dtype == key.dtype == value.dtype == np.float64
        calls.append((query.shape, key.shape, value.shape))
        return attention(query, key, value)

    before, plain = toy.next_tokens(TEXT), toy.write(TEXT, tokens=3)
    toy.attend = own
    np.testing.assert_allclose([*toy.next_tokens(TEXT).values()], [*before.values()], atol=1e-5)
    length = len(toy.tokens(TEXT))
    wanted = [((HEADS, 1, D_K), *[(HEADS, n + 1, D_K)] * 2) for n in range(length) for _ in range(SIZES["layers"])]
    assert calls == wanted
    assert toy.write(TEXT, tokens=3) == plain
    toy.attend = lambda query, key, value: attention(9 * query, key, value)
    assert toy.next_tokens(TEXT) != before
    toy.attend = None
    assert toy.next_tokens(TEXT) == before


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda q, k, v: v, r"float64 of shape \(6, 2, 2\), all finite"),
        (lambda q, k, v: np.full_like(q, np.nan), "not all finite"),
        (lambda q, k, v: None, "object.*"),
    ],
)
def test_what_a_readers_function_must_return(toy, function, got):
    toy.attend = function
    with pytest.raises(ValueError, match=rf"finite floating-point numbers of shape \(6, 1, 2\); got .*{got}"):
        toy.write(TEXT, tokens=1)
    with pytest.raises(TypeError, match="attend must be a function of query, key and value; got int"):
        toy.attend = 3


def test_silenced_heads_pass_on_zeros_in_this_view_only(toy, toy_file):
    before = toy.next_tokens(TEXT, 20)
    quiet = toy.silenced((1, 4)).silenced((0, 2), (1, 0))
    wanted = next_weights(llama(toy_file, toy.ids(TEXT).numpy(), silent={(1, 4), (0, 2), (1, 0)})[0])
    np.testing.assert_allclose([*quiet.next_tokens(TEXT, 20).values()], np.sort(wanted)[::-1][:20], atol=1e-5)
    quiet.attend = attention
    np.testing.assert_allclose([*quiet.next_tokens(TEXT, 20).values()], np.sort(wanted)[::-1][:20], atol=1e-5)
    assert toy.attend is None
    assert toy.next_tokens(TEXT, 20) == before
    with pytest.raises(ValueError, match=r"layers 0 to 2 and heads 0 to 5; got \(3, 0\)"):
        toy.silenced((3, 0))


@pytest.mark.parametrize("own", [None, attention])
def test_exchanged_values_are_those_of_the_text_with_the_other_word(toy, toy_file, own):
    ids = toy.ids(TEXT).numpy()
    place = toy.tokens(TEXT).index(" cat")
    other = ids.copy()
    other[place] = toy.ids(" dog")[0]
    kept = llama(toy_file, other)[2]
    wanted = next_weights(llama(toy_file, ids, values={layer: (place, kept[layer][place]) for layer in (1, 2)})[0])
    changed = toy.exchange_values("cat", "dog", (1, 2))
    changed.attend = own
    np.testing.assert_allclose([*changed.next_tokens(TEXT, 9).values()], np.sort(wanted)[::-1][:9], atol=1e-5)
    assert toy.next_tokens(TEXT, 9) != changed.next_tokens(TEXT, 9)
    with pytest.raises(ValueError, match="word must be a token that stands in the text once"):
        changed.next_tokens("a cat, a cat")


def test_exchanges_add_up_go_with_silence_and_are_seen_in_maps_and_stream(toy, toy_file):
    text, ids = "a cat dog", toy.ids("a cat dog").numpy()
    cat, dog = toy.tokens(text).index(" cat"), toy.tokens(text).index(" dog")
    others = {word: ids.copy() for word in ("cat", "dog")}
    others["cat"][cat], others["dog"][dog] = toy.ids(" dog")[0], toy.ids(" t")[0]
    silent = {(0, 3), (2, 1)}
    kept = {word: llama(toy_file, other, silent=silent)[2][1] for word, other in others.items()}
    both = np.stack([kept["cat"][cat], kept["dog"][dog]])
    logits, maps, _ = llama(toy_file, ids, silent=silent, values={1: ([cat, dog], both)})
    changed = toy.silenced(*silent).exchange_values("cat", "dog", (1,)).exchange_values("dog", "t", (1,))
    np.testing.assert_allclose(changed.logits(text), logits, atol=2e-5)
    np.testing.assert_allclose(changed.maps(text), maps, atol=2e-5)
    assert changed.residual(text).shape == (SIZES["layers"] + 1, len(ids), SIZES["d_model"])


@pytest.mark.parametrize(
    "change",
    [{}, {"window": 3}, {"window": 3, "sinks": 2}, {"scale": 2.0}, {"positions": [0, 0.5, 1, 9, 9.5, 10, 11, 12, 13, 14]}],
    ids=str,
)
def test_perplexity_is_that_of_the_formula(toy, toy_file, change):
    ids = toy.ids(TEXT).numpy()
    logits = llama(toy_file, ids, **change)[0]
    losses = np.log(np.exp(logits).sum(-1))[4:-1] - logits[np.arange(4, len(ids) - 1), ids[5:]]
    assert toy.perplexity(TEXT, start=5, **change) == pytest.approx(np.exp(losses.mean()), rel=1e-5)


def test_perplexity_without_a_mask_and_in_some_layers_only(toy):
    plain = toy.perplexity(TEXT, start=5)
    everywhere, in_one = (toy.perplexity(TEXT, start=5, is_causal=False, layers=layers) for layers in (None, (1,)))
    assert len({plain, everywhere, in_one}) == 3
    assert toy.perplexity(TEXT, start=5, is_causal=False, layers=()) == plain
    assert toy.perplexity(TEXT, start=5) == plain
    with pytest.raises(ValueError, match="text must have more than start = 64 tokens"):
        toy.perplexity(TEXT)
    with pytest.raises(ValueError, match="window must be 1 or more, its own token included; got 0"):
        toy.perplexity(TEXT, start=5, window=0)
    with pytest.raises(ValueError, match=r"temperature must be positive; got 0\.0"):
        toy.next_tokens(TEXT, temperature=0.0)


def test_the_matrices_of_a_layer_make_its_queries_and_its_output(toy):
    toy.layer(1).w_query[:] = 0.0  # a copy
    layer = toy.layer(1)
    x = toy.residual(TEXT)[1]
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * layer.gain
    seen = []
    toy._look(TEXT, {f"blocks.1.{place}": seen.append for place in ("attention.query", "attention.heads", "attended")})
    query, heads, returned = seen
    np.testing.assert_allclose(normed @ layer.w_query, query.transpose(0, 1).flatten(1).numpy(), atol=1e-5)
    np.testing.assert_allclose(returned, heads.flatten(1).numpy() @ layer.w_output, atol=1e-5)
    assert layer.w_key.shape == layer.w_value.shape == (SIZES["d_model"], KV_HEADS * D_K)
    assert layer.w_output.shape == (HEADS * D_K, SIZES["d_model"])


def test_what_the_heads_of_a_layer_read_and_add(toy):
    for number in (0, 1):
        stream, layer, seen = toy.residual(TEXT)[number], toy.layer(number), []
        x, added = toy.around_heads(number, TEXT)
        toy._look(TEXT, {f"blocks.{number}.attention.heads": seen.append})
        np.testing.assert_allclose(x, stream / np.sqrt((stream**2).mean(-1, keepdims=True) + 1e-5) * layer.gain, atol=1e-5)
        np.testing.assert_allclose(added, seen[0].flatten(1).numpy() @ layer.w_output, atol=1e-5)
        _, less = toy.silenced((number, 0)).around_heads(number, TEXT)
        np.testing.assert_allclose(less, seen[0].flatten(1).numpy()[:, D_K:] @ layer.w_output[D_K:], atol=1e-5)


def test_without_a_file_only_stored_answers_are_given():
    model = LanguageModel(None, None)
    assert not model.is_here
    with pytest.raises(ModelMissing, match=r"needed for write\(text='x', tokens=3\): `attn-course model` fetches it"):
        model.write("x", tokens=3)
    for needs_it in (lambda: model.layer(1), lambda: model.logits("a")):
        with pytest.raises(ModelMissing, match="needed for this"):
            needs_it()
    with pytest.raises(ValueError, match=r"layers 0 to 29 and heads 0 to 8; got \(30, 0\)"):
        model.silenced((30, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "gpt2"}, "architecture llama; got 'gpt2'"),
        ({"leave_out": "blk.1.ffn_up.weight"}, r"missing \['blk.1.ffn_up.weight'\], unknown \[\]"),
    ],
)
def test_a_file_of_another_model_is_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Transformer.from_gguf(write_gguf(tmp_path / "other.gguf", **options))


@pytest.mark.parametrize("content", [b"no GGUF at all, but long enough to be read as one", b"GGUF", b"", "cut short"])
def test_what_is_no_gguf_is_refused_in_a_line(tmp_path, toy_file, content):
    path = tmp_path / "broken.gguf"
    path.write_bytes(toy_file.read_bytes()[:-200] if content == "cut short" else content)
    with pytest.raises(ValueError, match=r"broken\.gguf must be a GGUF file"):
        read_gguf(path)


def test_weights_are_not_drawn_first(toy_file, monkeypatch):
    drawn = []
    real = torch.randn
    monkeypatch.setattr(
        torch, "randn", lambda *shape, **options: drawn.append(real(*shape, **options).device.type) or real(*shape, **options)
    )
    model = Transformer.from_gguf(toy_file)
    assert {*drawn} == {"meta"}
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
