"""Pairs to be recalled, layers that recall them, and how a crossover of times is found."""

import pytest
import torch

from attn_course.lessons.linear.experiments import (
    D_K,
    D_V,
    KEYS,
    MIXERS,
    ONCE,
    PAIRS,
    QUESTIONS,
    TWICE,
    VALUES,
    Recall,
    accuracies,
    conclude_overwriting,
    conclude_recall,
    pairs,
)
from attn_course.lessons.linear.experiments_speed import (
    causal_softmax,
    conclude_speed,
    crossing,
    scores_first,
    softmax_attention,
    state_first,
)
from attn_course.modules.linear import LinearAttention, linear_attention


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("n", PAIRS)
def test_the_wanted_value_is_the_last_one_written_under_the_key(n, twice):
    keys, values, asked, wanted = pairs(n, 7, generator(), twice=twice)
    assert (keys.shape, values.shape, asked.shape, wanted.shape) == ((7, n), (7, n), (7, QUESTIONS), (7, QUESTIONS))
    for row in range(7):
        memory = dict(zip(keys[row].tolist(), values[row].tolist(), strict=True))  # a later pair replaces an earlier one
        assert len(memory) == (n // 2 if twice else n)
        assert [memory[key] for key in asked[row].tolist()] == wanted[row].tolist()


@pytest.mark.parametrize("name", MIXERS)
def test_each_layer_answers_with_logits_and_every_weight_learns(name):
    model = Recall(name, generator())
    *given, _ = pairs(16, 3, generator(), twice=True)
    answers = model(*given)
    assert answers.shape == (3, QUESTIONS, VALUES)
    answers.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_all_layers_have_heads_of_the_same_width():
    for name in MIXERS:
        mixer = Recall(name, generator()).mixer
        assert (mixer.d_k, mixer.d_v) == (D_K, D_V)
        assert D_K < max(PAIRS) <= KEYS


def test_only_a_bonus_for_nearness_and_the_delta_rule_notice_the_order_of_the_pairs():
    keys, values, asked, _ = pairs(8, 3, generator(), twice=True)
    noticed = {}
    for name in MIXERS:
        model = Recall(name, generator())
        noticed[name] = not torch.allclose(model(keys, values, asked), model(keys.flip(1), values.flip(1), asked), atol=1e-4)
        assert isinstance(model.mixer, LinearAttention) == (not name.startswith("softmax"))
    assert [name for name, found in noticed.items() if found] == ["softmax, nearer is better", "delta rule, unit keys"]


def test_untrained_layers_guess():
    assert max(accuracies(Recall("softmax", generator()), generator(), twice=False)) < 0.4


def test_the_conclusions_of_the_trainings():
    once = {name: [0.99, 0.9, 0.9, 0.7] for name in ONCE} | {"softmax": [1.0] * 4, "sums, positive features": [0.97, 0.9, 0.7, 0.4]}
    found = conclude_recall({"accuracies": once})
    assert found.pop("softmax, 32 pairs") == 1.0
    assert all(found.values())
    twice = dict(zip(TWICE, ([0.5] * 4, [0.99] * 4, [0.5] * 4, [0.99, 0.9, 0.9, 0.7]), strict=True))
    found = conclude_overwriting({"accuracies": twice})
    assert found.pop("delta rule, 4 pairs") == 1.0
    assert all(found.values())
    assert not conclude_overwriting({"accuracies": {**twice, "softmax": [0.9] * 4}})["softmax without order: about half"]


def test_what_is_timed_are_the_same_numbers():
    query, key, value = torch.randn(3, 2, 5, 3, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(scores_first(query, key, value), state_first(query, key, value))
    causal = causal_softmax(query, key, value)
    torch.testing.assert_close(causal[:, -1], softmax_attention(query, key, value)[:, -1])
    torch.testing.assert_close(causal[:, 0], value[:, 0])
    parallel = linear_attention(query, key, value, chunk=5)[0]
    torch.testing.assert_close(parallel[:, -1], scores_first(query, key, value)[:, -1])


def test_a_crossing_is_interpolated_and_never_beyond_the_lengths():
    assert crossing([10, 20, 40], [0.5, 1.0, 2.0]) == pytest.approx(20)
    assert crossing([10, 20, 40], [0.25, 0.5, 2.0]) == pytest.approx(20 * 2**0.5)
    assert crossing([10, 20], [1.5, 3.0]) == 10
    assert crossing([10, 20], [0.1, 0.2]) == 20


def test_the_conclusion_of_the_speeds():
    result = {
        "predicted": {"128": 128.0},
        "crossing": {"128": [90.0, 60.0]},
        "doubling": {"softmax": 4.1, "chunked": 2.0},
        "forms": {"recurrent": 50.0, "chunked": 3.0, "parallel": 9.0},
    }
    found = conclude_speed(result)
    assert found.pop("slowest form at 512") == "recurrent"
    assert all(found.values())
    assert not conclude_speed({**result, "crossing": {"128": [300.0, 60.0]}})["crossing of the brackets within a factor of two"]
