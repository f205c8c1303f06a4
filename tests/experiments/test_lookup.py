"""The recall task of lesson lookup asks what it says, and the models start fairly."""

import pytest
import torch

from attn_course.lessons.lookup.experiments import COLOURS, D_IN, ITEMS, MODELS, conclude, examples, new_model, train
from tests.experiments.support import generator


@pytest.mark.parametrize("stretch", [0, 1, 7])
def test_the_answer_is_the_colour_of_the_item_asked_for(stretch):
    x, colour, wanted = examples(11, stretch, generator())
    assert x.shape == (11, ITEMS + stretch + 1, D_IN)
    name, its_colour, asked_for, distraction = x.split((2, 4, 2, 4), dim=-1)
    for row in range(11):
        (asked,) = asked_for[row, -1].nonzero().ravel().tolist()
        named = name[row, :ITEMS].argmax(dim=-1).tolist()
        assert sorted(named) == [0, 1]
        assert named.index(asked) == wanted[row]
        assert its_colour[row, wanted[row]].argmax() == colour[row]
    assert distraction[:, ITEMS:-1].sum() == 11 * stretch
    assert x.sum() == 11 * (2 * ITEMS + stretch + 1)


def test_the_same_seed_gives_the_same_examples_and_all_colours_occur():
    first, again = examples(200, 3, generator()), examples(200, 3, generator())
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert set(first[1].tolist()) == set(range(COLOURS))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_answers_and_only_the_recurrent_ones_depend_on_the_order_of_the_context(name):
    model, (x, _, _) = new_model(name, generator()), examples(7, 5, generator())
    turned = torch.cat([x[:, :-1].flip(1), x[:, -1:]], dim=1)
    with torch.no_grad():
        answer, other = model(x), model(turned)
    assert answer.shape == (7, COLOURS)
    assert torch.allclose(answer, other, atol=1e-6) == (name == "attention")


def test_training_stops_when_the_task_is_learnt_or_at_the_limit():
    steps, share = train("attention", 2, seed=5)
    assert steps < 1000
    assert share > 0.95
    assert train("RNN", 32, seed=5, most_steps=3) == (3, 0.0)


def test_the_conclusion_follows_the_numbers():
    found = {
        "accuracy": {"attention": [1.0, 0.96, 0.9], "LSTM": [1.0, 1.0, 1.0], "RNN": [0.95, 0.3, 0.3]},
        "steps": {"attention": [50, 50, 50], "LSTM": [50, 50, 149], "RNN": [50, 50, 50]},
        "gradient": {"attention": [1.0, 0.05], "LSTM": [1.0, 2.0], "RNN": [1.0, 1e-5]},
    }
    assert list(conclude(found).values()) == [[2, 8], [2, 8], [], False, True, False, True]
