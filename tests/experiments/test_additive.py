"""The tasks of lesson additive are what the lesson says, and the two models of the translation see the same sentences."""

import pytest
import torch

from attn_course.lessons.additive.experiments import Translation, Vectors, Words, layer_of, train_lookup, train_translation


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


def test_the_query_is_the_translation_of_the_right_word_and_all_words_differ():
    task = Words(generator())
    query, key, wanted = task.batch()
    for n in range(len(query)):
        names = [int((task.tables[1] == row).all(dim=1).nonzero()) for row in key[n]]
        assert len(set(names)) == 16
        assert torch.equal(query[n, 0], task.tables[0][names[wanted[n]]])


def test_the_query_is_the_right_vector_turned():
    task = Vectors(generator())
    query, key, wanted = task.batch()
    distance = (query @ task.rotation.T - key).norm(dim=-1)
    assert torch.equal(distance.argmin(dim=-1), wanted)
    assert distance.min(dim=-1).values.max() < 1e-5
    assert task.tables == []


@pytest.mark.parametrize("task", [Words, Vectors])
def test_the_same_seed_gives_the_same_lookups(task):
    assert all(torch.equal(a, b) for a, b in zip(task(generator()).batch(), task(generator()).batch(), strict=True))


@pytest.mark.parametrize(("kind", "names"), [("additive", 4), ("additive without bias", 3), ("scaled dot", 2), ("unscaled dot", 2)])
def test_each_kind_is_the_layer_it_is_called(kind, names):
    layer = layer_of(kind, 4, 16, generator())
    assert len(list(layer.parameters())) == names
    assert getattr(layer, "scale", None) == {"scaled dot": 0.25, "unscaled dot": 1.0}.get(kind)


def test_a_run_stops_when_it_has_learnt_and_reports_the_step():
    def run(stop, task):
        return train_lookup(layer_of("scaled dot", 32, 64, task.generator), task, 120, 0.01, stop_when_learnt=stop)

    early, late = run(True, Words(generator())), run(False, Words(generator()))
    assert early["steps"] == late["steps"] == len(early["accuracy"]) < 120 == len(late["accuracy"])
    assert early["accuracy"] == late["accuracy"][: early["steps"]]
    assert early["accuracy"][-1] > 0.9 >= early["accuracy"][-2]


def test_a_translation_is_the_dictionary_backwards_then_the_end_then_padding():
    task = Translation(5)
    source, target = task.batch(50, 2, 8)
    for words, written in zip(source.tolist(), target.tolist(), strict=True):
        length = sum(word > 0 for word in words)
        assert 2 <= length <= 8
        assert len(set(words[:length])) == length
        assert min(words[:length]) >= 3
        assert words[length:] == [0] * (8 - length)
        assert written == [int(task.dictionary[word - 3]) for word in reversed(words[:length])] + [2] + [0] * (8 - length)


def test_the_models_start_alike_and_leave_the_random_numbers_of_others_alone():
    before = torch.get_rng_state()
    first, again = (train_translation("additive", 5, steps=1) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
