"""The task of lesson heads on neighbours, silent heads, and the conversion of key heads."""

import numpy as np
import pytest
import torch

from attn_course.experiments.neighbours import LENGTH, SYMBOLS, Neighbours, accuracies, shared, texts
from attn_course.language.stored import stored
from attn_course.lessons.heads import tasks_real
from attn_course.lessons.heads.experiments import conclude_heads, conclude_sharing, without_head
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


def test_a_silent_head_writes_nothing_and_gets_its_rows_back():
    model = Neighbours(2, generator())
    before = model.attention.w_output.clone()
    seen = []
    model.register_forward_pre_hook(lambda *_: seen.append(model.attention.w_output.clone()))
    without_head(model, 1, generator())
    assert torch.equal(model.attention.w_output, before)
    assert (seen[0][16:] == 0).all()
    assert torch.equal(seen[0][:16], before[:16])


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


def test_the_conclusions_round_and_rank():
    silent = [[0.98, 0.13, 0.1], [0.12, 1.0, 0.1]]
    shares = {"one head": [0.1, 1.0, 0.13], "one head, then a network": [0.9, 1.0, 0.9], "two heads": [1.0, 1.0, 0.999]}
    found = conclude_heads({"accuracies": shares, "without head": silent})
    assert found["one head names both"] == 0.1
    assert found["two heads name both"] == 1.0
    assert found["before and after, one head silent"] == [[0.1, 1.0], [1.0, 0.1]]
    ways = {"mean": [0.1, 0.9, 1.0], "first": [0.1, 0.3, 1.0], "random": [0.0, 0.1, 0.9]}
    ranking = conclude_sharing({"two key heads": ways, "one key head": ways})["best after 5 %"]
    assert ranking == {name: ["mean", "first", "random"] for name in ("two key heads", "one key head")}


def test_the_stored_slices_give_the_map_and_the_word_of_the_model():
    (head,), (step,) = ([make(None)] for make in (tasks_real._layer_13_head_8, tasks_real._last_layer))
    scores = tasks_real.my_real_scores.answer(**head)
    model = stored(f"maps(text={tasks_real.SENTENCE!r})")[13, 8]
    np.testing.assert_allclose(softmax(np.where(np.tri(8) > 0, scores, -np.inf)), model, atol=2e-3)
    words, keys, _ = tasks_real.my_word_step.answer(**step)
    assert keys.shape == (3, 7, 64)
    start = "The sun rises in the east and"
    assert stored(f"write(text={start!r}, tokens=5)").startswith(start + tasks_real.slices()["words"][words.argmax()])
