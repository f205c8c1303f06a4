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
from attn_course.lessons.linear.experiments_smollm2 import overlap, without_softmax
from attn_course.lessons.linear.experiments_speed import conclude as conclude_speed
from attn_course.modules.linear import LinearAttention
from tests.experiments.support import generator


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


def test_the_conclusion_of_the_speeds():
    ms = {"parallel": [1.0, 30.0, 500.0], "recurrent": [8.0, 32.0, 130.0], "chunked": [0.5, 2.0, 7.0]}
    found = conclude_speed({"ms": ms})
    assert found.pop("from slow to fast at the longest") == ["parallel", "recurrent", "chunked"]
    assert all(found.values())
    found = conclude_speed({"ms": {**ms, "chunked": [2.0, 9.0, 99.0]}})
    assert [value for value in found.values() if isinstance(value, bool)] == [False, False]


def test_the_overlap_of_keys_is_that_of_a_loop():
    keys = torch.randn(2, 5, 3, generator=generator())
    for found, rows in zip(overlap(keys), keys, strict=True):
        squares = [float(a @ b / (a.norm() * b.norm())) ** 2 for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
        assert found.item() == pytest.approx(sum(squares) / 20, rel=1e-5)


def test_without_softmax_a_position_averages_what_it_sees():
    query, key = torch.randn(9, 5, 64, generator=generator()), torch.randn(3, 5, 64, generator=generator(6))
    value = torch.randn(3, 5, 4, generator=generator(7))
    means = value.cumsum(-2) / torch.arange(1, 6)[:, None]
    plain = without_softmax(average=True)(query, key, value, layer=16)
    torch.testing.assert_close(plain, means.repeat_interleave(3, dim=0))
    weighed = without_softmax(average=False)(query, key, value, layer=16)
    torch.testing.assert_close(weighed[:, 0], value[:, 0].repeat_interleave(3, dim=0))
    asked, keys = (torch.nn.functional.elu(a) + 1 for a in (query[4, 3] / 8, key[1, :4]))
    weights = keys @ asked
    torch.testing.assert_close(weighed[4, 3], weights @ value[1, :4] / weights.sum())
