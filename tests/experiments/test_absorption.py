"""The tasks of lesson absorption: names that ask for a colour, squeezed keys and values, and what decoding holds and takes."""

import pytest
import torch

from attn_course.experiments.neighbours import Neighbours
from attn_course.lessons.absorption.experiments import (
    COLOURS,
    NAMES,
    Asker,
    balance,
    conclude_circuits,
    conclude_compression,
    conclude_decoding,
    counted_flops,
    squeezed,
    tokens,
    told,
    truncated,
)


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


def test_the_wanted_colour_is_that_of_the_next_name():
    x, wanted = tokens(7, generator())
    assert x.shape == (7, NAMES, NAMES + COLOURS)
    names, colours = x[..., :NAMES].argmax(dim=-1), x[..., NAMES:].argmax(dim=-1)
    for row in range(7):
        assert sorted(names[row].tolist()) == list(range(NAMES))
        colour_of = dict(zip(names[row].tolist(), colours[row].tolist(), strict=True))
        assert wanted[row].tolist() == [colour_of[(name + 1) % NAMES] for name in names[row].tolist()]


def test_a_head_built_by_hand_tells_every_colour_and_only_in_the_right_direction():
    model = Asker(NAMES, generator())
    with torch.no_grad():
        for weights in (model.w_query, model.w_key, model.w_value):
            weights.zero_()
        model.w_query[:NAMES] = 60 * torch.eye(NAMES)
        model.w_key[:NAMES] = torch.eye(NAMES).roll(-1, dims=1)
        model.w_value[NAMES:] = torch.eye(COLOURS)
        model.w_output.copy_(torch.eye(COLOURS))
    assert model.form()[0, 1] > 20
    assert told(model, 0) == 1.0
    assert told(model, 0, model.form().T.detach()) < 0.3


def test_balance_is_one_in_the_balanced_gauge_and_below_elsewhere():
    w_query, w_key = torch.randn(2, 7, 3, generator=generator(), dtype=torch.float64)
    left, singular, right = torch.linalg.svd(w_query @ w_key.T)
    even = left[:, :3] * singular[:3].sqrt(), right[:3].T * singular[:3].sqrt()
    assert balance(*even) == pytest.approx(1.0)
    assert balance(w_query, w_key) < 1.0
    assert balance(3 * even[0], even[1] / 3) == pytest.approx(2 / (9 + 1 / 9))


def test_truncation_keeps_the_largest_singular_values():
    form = torch.randn(5, 5, generator=generator())
    kept = torch.linalg.svdvals(truncated(form, 2))
    torch.testing.assert_close(kept[:2], torch.linalg.svdvals(form)[:2])
    assert (kept[2:] < 1e-5).all()


def test_a_squeezed_model_has_low_rank_and_a_wide_one_is_unchanged():
    model = Neighbours(4, generator())
    narrow, wide = squeezed(model, 3, generator()).attention, squeezed(model, 32, generator()).attention
    assert torch.linalg.matrix_rank(torch.cat([narrow.w_key, narrow.w_value], dim=1), rtol=1e-5) == 3
    x = (model.symbols[:, None] + model.places).flatten(0, 1)
    torch.testing.assert_close(x @ wide.w_key, x @ model.attention.w_key, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(x @ wide.w_value, x @ model.attention.w_value, atol=1e-4, rtol=1e-4)


def test_flops_are_counted_as_two_for_a_multiply_add():
    a, b = torch.zeros(3, 5), torch.zeros(5, 7)
    assert counted_flops(lambda: a @ b) == 2 * 3 * 5 * 7


def test_the_conclusions_round_and_rank():
    form = torch.eye(NAMES).roll(1, dims=1).tolist()
    shares = {"as trained": 0.999, "other gauge": 0.998, "symmetric part": 0.6, "transposed": 0.2}
    circuit = {"form": form, "map": torch.cat([torch.zeros(NAMES, COLOURS), torch.eye(COLOURS)]).tolist(), "told": shares}
    circuit |= {"balance": {"as trained": 0.999, "other gauge": 0.4}, "truncated": [0.5, 0.7], "trained": [0.6, 1.0]}
    found = conclude_circuits(circuit)
    assert found["each name asks for"] == [1, 2, 3, 4, 5, 0]
    assert found["each colour is written as"] == [0, 1, 2, 3, 4]
    assert found["at rank 2 training beats cutting"]
    squeeze = {"spectrum": [1.0, 0.5, 1e-6], "latent": {"16": 0.99, "2": 0.1}, "shared": {"16": 0.2}}
    assert conclude_compression(squeeze)["directions"] == 2
    step, prompt = {"naive": [9.0, 40.0], "absorbed": [8.0, 10.0]}, {"naive": [1.0, 2.0], "absorbed": [1.0, 5.0]}
    timed = {"bytes per token": {"latent": 8.0}, "step ms": step, "step flops": step, "prompt flops": prompt, "largest difference": 1e-7}
    found = conclude_decoding(timed)
    assert found["a step behind 1024 tokens, naive over absorbed, FLOPs"] == 4
    assert found["a prompt of 1024 tokens, absorbed over naive, FLOPs"] == 2.5
    assert found["a step behind 1024 tokens takes at least twice as long in the naive form"]
