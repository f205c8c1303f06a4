"""What measures the language model, held to loops and closed forms on small random things: no model is needed here."""

import math

import numpy as np
import pytest
import torch

from attn_course.experiments import smollm2
from attn_course.lessons.absorption import experiments_smollm2 as gauges
from attn_course.lessons.long_context import experiments_smollm2 as windows
from attn_course.lessons.long_context import experiments_smollm2_caches as caches
from attn_course.lessons.long_context import experiments_smollm2_selection as selection
from attn_course.lessons.long_context import experiments_smollm2_writing as writing
from attn_course.lessons.scaling import experiments_smollm2 as scaling
from attn_course.lessons.softmax import experiments_smollm2 as temperature
from attn_course.modules import Transformer
from attn_course.modules.positional import rotate_pairs
from tests.experiments.support import generator

N_LAYERS, N_TOKENS = 3, 31


def normal(*shape, seed=5):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.fixture
def network(monkeypatch):
    options = {"norm": "rms", "gated": True, "activation": "silu", "rope_theta": 100.0, "rope_layout": "interleaved"}
    made = Transformer(N_TOKENS, 36, 9, N_LAYERS, n_kv_heads=3, generator=generator(), **options)
    monkeypatch.setattr(smollm2, "network", lambda: made)
    monkeypatch.setattr(smollm2, "LAYERS", range(N_LAYERS))
    return made


IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])


@pytest.mark.parametrize("layer", range(N_LAYERS))
def test_going_on_from_what_enters_a_layer_is_reading_everything_again(network, layer):
    silent = smollm2.silence([(layer, 2), (layer, 7)])
    again = smollm2.logits(IDS, hooks=silent)
    torch.testing.assert_close(smollm2.logits_from(layer, smollm2.streams(IDS)[layer], hooks=silent), again)
    assert (again - smollm2.logits(IDS)).abs().max() > 1e-3


def test_a_silenced_head_is_one_whose_rows_of_the_output_matrix_are_zero(network):
    found = smollm2.logits(IDS, hooks=smollm2.silence([(1, 4)]))
    with torch.no_grad():
        network.blocks[1].attention.w_output[4 * 4 : 5 * 4] = 0.0
    torch.testing.assert_close(found, smollm2.logits(IDS))


def test_what_was_exchanged_is_put_back_even_after_an_error(network):
    before = smollm2.logits(IDS)

    def fail(*_, **__):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        smollm2.logits(IDS, attend=fail, frequencies=[1.0], temperature=2.0)
    assert torch.equal(smollm2.logits(IDS), before)


def test_the_last_row_and_the_maps_are_those_of_the_whole_pass(network):
    torch.testing.assert_close(smollm2.logits(IDS, last=True), smollm2.logits(IDS)[-1])
    maps = smollm2.maps(IDS)
    assert [each.shape for each in maps] == [(9, len(IDS), len(IDS))] * N_LAYERS
    torch.testing.assert_close(maps[2].sum(-1), torch.ones(9, len(IDS)))


def test_the_loss_is_minus_the_log_of_the_chance_that_was_given():
    scores, ids = normal(2, 7, N_TOKENS), torch.arange(14).reshape(2, 7)
    wanted = [[-math.log(scores[text, place - 1].softmax(-1)[ids[text, place]]) for place in range(3, 7)] for text in range(2)]
    np.testing.assert_allclose(smollm2.losses(scores, ids, 3), wanted)
    np.testing.assert_allclose(smollm2.perplexity(scores[0], ids[0], 3), math.exp(np.mean(wanted[0])))


def test_other_heads_come_from_the_same_layers_and_are_other_ones():
    heads, avoid = [(17, 3), (17, 4), (18, 6)], [(17, 0), (18, 1)]
    for seed in range(20):
        drawn = smollm2.others(heads, seed, avoid)
        assert [layer for layer, _ in drawn] == [17, 17, 18]
        assert len({*drawn, *heads, *avoid}) == 8
    assert smollm2.others(heads, 1) == smollm2.others(heads, 1)


@pytest.mark.parametrize("kind", gauges.GAUGES)
def test_a_gauge_keeps_scores_and_only_the_commuting_one_keeps_them_rotated(kind):
    query, key, matrix = normal(5, 64), normal(5, 64, seed=6), gauges.gauge(kind, generator()).double()
    changed = query @ matrix, key @ torch.linalg.inv(matrix).T
    torch.testing.assert_close(changed[0] @ changed[1].T, query @ key.T)

    def rotated(rows):
        turns = np.linspace(1.0, 0.01, 32)
        return rotate_pairs(rows, torch.arange(5), turns, "interleaved")

    scores, others = rotated(query) @ rotated(key).T, rotated(changed[0]) @ rotated(changed[1]).T
    assert ((scores - others).abs().max() < 1e-9) == (kind == gauges.GAUGES[0])


@pytest.mark.parametrize(("bits", "axis"), [(2, -1), (4, -2), (8, -1)])
def test_quantised_numbers_are_few_and_within_half_a_step(bits, axis):
    x = normal(2, 11, 7)
    found = caches.quantised(x, bits, axis)
    span = x.amax(axis, keepdim=True) - x.amin(axis, keepdim=True)
    assert ((found - x).abs() <= span / (2**bits - 1) / 2 + 1e-12).all()
    for line in found.movedim(axis, -1).flatten(0, 1):
        assert len(line.unique()) <= 2**bits
    torch.testing.assert_close(found.amax(axis), x.amax(axis))
    assert torch.equal(caches.quantised(torch.ones(1, 3, 5), bits, axis), torch.ones(1, 3, 5))


def test_the_bound_is_the_weight_left_out_times_the_largest_distance_of_seen_values():
    query, key, value = normal(2, 11, 64), normal(2, 11, 64, seed=6), normal(2, 11, 3, seed=7)
    weights = selection.weights_of(query, key)
    kept = selection.selected(weights, 3, "top", generator())
    limit = selection.bound(weights, kept, value)
    for head, row in np.ndindex(2, 11):
        own = weights[head, row, : row + 1]
        best = sorted(range(row + 1), key=lambda place, own=own: -own[place])[:3]
        assert kept[head, row].nonzero().flatten().tolist() == sorted(best)
        seen = value[head, : row + 1]
        diameter = max(float((a - b).norm()) for a in seen for b in seen)
        left_out = 1.0 - float(own[best].sum())
        assert float(limit[head, row]) == pytest.approx(left_out * diameter, abs=1e-12)
        few = own[best] / own[best].sum() @ seen[best]
        assert float((few - own @ seen).norm()) <= float(limit[head, row]) + 1e-12


@pytest.mark.parametrize("way", selection.WAYS)
def test_as_many_keys_are_kept_as_asked_for_and_none_from_later(way):
    kept = selection.selected(torch.rand(2, 11, 11, generator=generator()).tril(), 4, way, generator())
    assert kept.sum(-1).tolist() == [[min(4, row + 1) for row in range(11)]] * 2
    assert not kept.triu(1).any()
    if way == "newest and the first":
        assert kept[0, 9].nonzero().flatten().tolist() == [0, 7, 8, 9]


def test_a_window_holds_as_many_keys_whichever_are_kept():
    for kept in ((), (0,), (2, 3)):
        mask = windows.in_a_window(13, 5, kept)
        assert mask.sum(-1)[8:].tolist() == [5] * 5
        assert mask[12, [*kept]].all()
        assert not mask.triu(1).any()
    hidden = windows.without(7, 2)
    assert hidden[2, 2]
    assert not hidden[3:, 2].any()
    assert hidden.sum() == 7 * 8 / 2 - 4


@pytest.mark.parametrize("way", writing.WAYS)
def test_both_windows_of_a_writer_are_equally_wide(way):
    mask = writing.seen(torch.tensor([10, 100]), 101, way)
    wide = 101 if way == "whole" else writing.WINDOW
    assert mask.sum(-1).tolist() == [11, wide]
    assert mask[1, 0] == (way != "window")


def test_a_writer_with_all_in_view_and_one_in_a_wide_window_write_the_same(network):
    texts = writing.write(IDS[None, :4].repeat(3, 1), [*writing.WAYS], 5, generator())
    assert texts.shape == (3, 9)
    assert torch.equal(texts[0], texts[1])
    assert torch.equal(texts[0], texts[2])
    assert (texts[:, 4:] > 2).all()


@pytest.mark.parametrize("visible", [0, 1])
def test_the_variance_of_a_row_is_that_of_the_scores_it_sees(visible):
    scores = normal(2, 11, 11)
    found = scaling.variance_of_rows(scores, 3, visible)
    wanted = [[np.var(scores[head, row, visible : row + 1].numpy()) for row in range(3, 11)] for head in range(2)]
    np.testing.assert_allclose(found, wanted)


def test_words_that_hold_ninety_percent_and_bits():
    weights = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    assert temperature.needed(weights).tolist() == [3, 1, 4]
    torch.testing.assert_close(temperature.entropy(weights), torch.tensor([1.5, 0.0, 2.0]))
