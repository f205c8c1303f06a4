"""The task of lesson heads on neighbours, where heads look, and how key heads are shared."""

import numpy as np
import pytest
import torch

from attn_course.experiments.neighbours import LENGTH, SYMBOLS, Neighbours, accuracies, shared, texts
from attn_course.language.stored import stored
from attn_course.lessons.heads import tasks_real
from attn_course.lessons.heads.experiments import conclude_heads, looks
from attn_course.lessons.heads.experiments_given import answers, differs_by, matrices, named, neighbours, train, turned_and_shared
from attn_course.reference import softmax


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


def test_the_wanted_symbols_stand_before_and_after_on_the_ring():
    text, wanted = texts(3, generator())
    for row in range(3):
        for t in range(LENGTH):
            assert wanted[row, t].tolist() == [text[row, t - 1].item(), text[row, (t + 1) % LENGTH].item()]


def test_the_same_seed_gives_the_same_texts_and_first_weights():
    assert all(torch.equal(a, b) for a, b in zip(texts(4, generator()), texts(4, generator()), strict=True))
    assert torch.equal(Neighbours(2, generator()).attention.w_query, Neighbours(2, generator()).attention.w_query)


@pytest.mark.parametrize(("n_heads", "hidden"), [(1, False), (1, True), (2, False), (4, False)])
def test_answers_are_logits_for_each_place_and_side(n_heads, hidden):
    model = Neighbours(n_heads, generator(), hidden=hidden)
    text, _ = texts(3, generator())
    assert model(text).shape == (3, LENGTH, 2, SYMBOLS)
    weights = model.weights(text)
    assert weights.shape == (3, n_heads, LENGTH, LENGTH)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, n_heads, LENGTH))


def test_all_models_of_one_width_have_the_same_number_of_weights():
    counts = {sum(p.numel() for p in Neighbours(n_heads, generator()).attention.parameters()) for n_heads in (1, 2, 4)}
    assert counts == {4 * 32**2}


def test_where_a_head_looks_is_its_weight_on_the_place_before_and_on_the_place_after():
    model = Neighbours(2, generator())
    ring = torch.arange(LENGTH)
    weights = torch.full((3, 2, LENGTH, LENGTH), 0.01)
    weights[:, 0, ring, ring - 1] = 0.7
    weights[:, 1, ring, (ring + 1) % LENGTH] = torch.tensor([0.7, 0.8, 0.9])[:, None]
    model.weights = lambda text: weights
    means, spread = looks(model, generator())
    np.testing.assert_allclose(means, [[0.7, 0.01], [0.01, 0.8]], rtol=1e-5)
    assert spread == pytest.approx(0.1)


def test_pooled_key_heads_are_means_of_their_groups_and_the_rest_stays():
    model = Neighbours(4, generator())
    old = model.attention.w_key.detach()
    mean, first = (shared(model, 2, how, generator()).attention for how in ("mean", "first"))
    torch.testing.assert_close(mean.w_key[:, :8], (old[:, :8] + old[:, 8:16]) / 2)
    torch.testing.assert_close(mean.w_key[:, 8:], (old[:, 16:24] + old[:, 24:]) / 2)
    assert torch.equal(first.w_key, torch.cat([old[:, :8], old[:, 16:24]], dim=1))
    assert torch.equal(mean.w_query, model.attention.w_query)
    assert not torch.allclose(shared(model, 2, "random", generator()).attention.w_key, first.w_key)


def test_sharing_with_as_many_key_heads_changes_nothing():
    model = Neighbours(4, generator())
    text, _ = texts(3, generator())
    torch.testing.assert_close(shared(model, 4, "mean", generator())(text), model(text))


def test_untrained_models_guess():
    before, after, both = accuracies(Neighbours(2, generator()), generator())
    assert max(before, after) < 0.4
    assert both < 0.2


def test_the_conclusions_round_and_sort():
    shares = {"one head": [0.1, 1.0, 0.13], "one head, then a network": [0.9, 1.0, 0.96], "two heads": [1.0, 1.0, 0.999]}
    means = {"one head": [[0.46, 0.51]], "one head, then a network": [[0.69, 0.29]], "two heads": [[0.99, 0.01], [0.0, 1.0]]}
    found = conclude_heads({"accuracies": shares, "looks": means, "spread": {"one head": 0.02, "two heads": 0.01}})
    assert [found[f"both, {name}"] for name in shares] == [0.1, 1.0, 1.0]
    assert found["one head: a tenth or less between its weights"]
    assert found["one head, then a network: weights"] == [0.3, 0.7]
    assert found["two heads: weights"] == [[0.0, 1.0], [1.0, 0.0]]
    assert found["from text to text they hardly differ"]


def test_what_the_lesson_gives_names_neighbours_and_learns_them():
    rings, wanted = texts(3, generator())
    assert torch.equal(neighbours(rings), wanted)

    class Both(torch.nn.Module):  # sees the whole ring, so a linear map is enough
        def __init__(self):
            super().__init__()
            self.names = torch.nn.Linear(SYMBOLS * LENGTH, LENGTH * 2 * SYMBOLS)

        def forward(self, rings):
            seen = torch.nn.functional.one_hot(rings, SYMBOLS).float().flatten(1)
            return self.names(seen).unflatten(1, (LENGTH, 2, SYMBOLS)), None

    given, _ = train(Both())(rings)
    assert torch.equal(given.argmax(dim=-1), wanted)
    assert not given.requires_grad


def test_the_share_of_colours_named_is_told_for_before_and_after():
    rings = torch.arange(8)[None]
    before = torch.nn.functional.one_hot(rings.roll(1, dims=1), 8).float()
    assert named(torch.stack([before, before], dim=2), rings) == "before 1.00, after 0.00"


def test_the_matrices_of_a_layer_of_pytorch_are_told_apart():
    layer, x = torch.nn.MultiheadAttention(6, 1, bias=False), torch.randn(5, 6, generator=generator())
    query, key, value, output = matrices(layer)
    weights = softmax((x.numpy() @ query) @ (x.numpy() @ key).T / np.sqrt(6))
    np.testing.assert_allclose(weights @ (x.numpy() @ value) @ output, layer(x, x, x)[0].detach(), atol=1e-6)


def test_answers_are_what_a_model_names_before_and_after():
    model = torch.nn.Module()
    model.names = torch.nn.Linear(3, 16)
    z = torch.randn(2, 5, 3, generator=generator())
    found = answers(model, list(z.double().numpy()))
    torch.testing.assert_close(found.flatten(2), model.names(z))
    torch.testing.assert_close(found[..., 1, :], model.names(z)[..., 8:])


def test_a_layer_is_compared_on_the_text_up_to_each_token():
    class Model:
        def around_heads(self, layer, text):
            read = np.random.default_rng(layer).normal(size=(len(text), 3))
            return read, np.cumsum(read, axis=0)

    assert differs_by(lambda x: np.tile(x.sum(axis=0), (len(x), 1)), Model(), 16, "seven") < 1e-12
    assert differs_by(lambda x: np.tile(x.sum(axis=0) + len(x), (len(x), 1)), Model(), 16, "seven") == pytest.approx(5)


def test_a_given_layer_turns_pairs_of_features_and_shares_each_key_head_among_three():
    rng = np.random.default_rng(8)
    sides = [rng.normal(size=(5, heads * 64)) for heads in (6, 2, 2)]
    query, key, value = turned_and_shared(*sides)
    for t in range(5):
        turns = np.exp(1j * t * 1e5 ** (-np.arange(0, 64, 2) / 64))
        for h in range(6):
            for found, side, own in ((query, sides[0], h), (key, sides[1], h // 3)):
                pairs = side[t, own * 64 : own * 64 + 64].reshape(32, 2) @ [1, 1j] * turns
                np.testing.assert_allclose(found[t, h * 64 : h * 64 + 64].reshape(32, 2) @ [1, 1j], pairs, rtol=1e-12)
            np.testing.assert_array_equal(value[t, h * 64 : h * 64 + 64], sides[2][t, h // 3 * 64 : h // 3 * 64 + 64])


def test_the_stored_slices_give_the_map_and_the_word_of_the_model():
    (head,), (step,) = ([make(None)] for make in (tasks_real._layer_13_head_8, tasks_real._last_layer))
    scores = tasks_real.my_real_scores.answer(**head)
    model = stored(f"maps(text={tasks_real.SENTENCE!r})")[13, 8]
    np.testing.assert_allclose(softmax(np.where(np.tri(8) > 0, scores, -np.inf)), model, atol=2e-3)
    words, keys, _ = tasks_real.my_word_step.answer(**step)
    assert keys.shape == (3, 7, 64)
    start = "The sun rises in the east and"
    assert stored(f"write(text={start!r}, tokens=5)").startswith(start + tasks_real.slices()["words"][words.argmax()])
