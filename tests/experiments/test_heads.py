"""The task of lesson heads on neighbours, where heads look, and how key heads are shared."""

import numpy as np
import pytest
import torch

from attn_course.experiments.neighbours import LENGTH, SYMBOLS, Neighbours, accuracies, shared, texts
from attn_course.language.stored import stored
from attn_course.lessons.heads import tasks_real
from attn_course.lessons.heads.experiments import conclude_heads, looks
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


def test_the_stored_slices_give_the_map_and_the_word_of_the_model():
    (head,), (step,) = ([make(None)] for make in (tasks_real._layer_13_head_8, tasks_real._last_layer))
    scores = tasks_real.my_real_scores.answer(**head)
    model = stored(f"maps(text={tasks_real.SENTENCE!r})")[13, 8]
    np.testing.assert_allclose(softmax(np.where(np.tri(8) > 0, scores, -np.inf)), model, atol=2e-3)
    words, keys, _ = tasks_real.my_word_step.answer(**step)
    assert keys.shape == (3, 7, 64)
    start = "The sun rises in the east and"
    assert stored(f"write(text={start!r}, tokens=5)").startswith(start + tasks_real.slices()["words"][words.argmax()])
