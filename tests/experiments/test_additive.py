"""The tasks of lesson additive are what the lesson says, and the two models of the translation see the same sentences."""

import pytest
import torch

from attn_course.lessons.additive.experiments import Words, layer_of, steps_until_learnt
from attn_course.lessons.additive.experiments_smollm2 import found_by_a_query
from attn_course.lessons.additive.experiments_translation import Translation, train
from tests.experiments.support import generator


def test_the_query_is_the_translation_of_the_right_word_and_all_words_differ():
    task = Words(generator())
    query, key, wanted = task.batch()
    for n in range(len(query)):
        names = [int((task.tables[1] == row).all(dim=1).nonzero()) for row in key[n]]
        assert len(set(names)) == 16
        assert torch.equal(query[n, 0], task.tables[0][names[wanted[n]]])


@pytest.mark.parametrize(("kind", "names"), [("additive", 4), ("scaled dot", 2), ("unscaled dot", 2)])
def test_each_kind_is_the_layer_it_is_called(kind, names):
    layer = layer_of(kind, 16, generator())
    assert len(list(layer.parameters())) == names
    assert getattr(layer, "scale", None) == {"scaled dot": 0.25, "unscaled dot": 1.0}.get(kind)


def test_a_run_reports_the_step_at_which_it_has_learnt_and_the_same_seed_gives_the_same():
    def run(steps):
        task = Words(generator())
        return steps_until_learnt(layer_of("additive", 64, task.generator), task, steps)

    needed = run(120)
    assert 10 < needed < 120
    assert run(needed) == run(120)
    assert run(needed - 1) == needed


def test_a_query_is_found_for_each_corner_and_for_nothing_between_corners():
    cube = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    assert found_by_a_query(cube, 3) == 8
    between = torch.cat([cube, cube[:4] / 2 + cube[4:] / 2, cube[:1] / 2 + cube[1:2] / 2])
    assert found_by_a_query(between, 3) == 8


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
    first, again = (train(True, 5, steps=1) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
