"""The lookup task of lesson scaling, and the reparametrisation that it demonstrates."""

import math

import numpy as np
import pytest
import torch

from attn_course.lessons.scaling.experiments import Lookups, initial_layer, score_gradients, scores, two_step_sizes


def test_the_query_is_the_turned_item_whose_value_is_wanted():
    task = Lookups(5)
    query, items, _, wanted = task.batch()
    turned = items.double().numpy() @ task.rotation
    distance = np.linalg.norm(turned - query[:, None].double().numpy(), axis=-1)
    assert distance.argmin(axis=-1).tolist() == wanted.tolist()
    assert distance.min(axis=-1).max() < 1e-5


def test_the_same_seed_gives_the_same_task_and_the_same_first_weights():
    assert all(torch.equal(a, b) for a, b in zip(Lookups(5).batch(), Lookups(5).batch(), strict=True))
    first, again = (initial_layer(64, "scaled", 5) for _ in range(2))
    assert torch.equal(first.w_query, again.w_query)


@pytest.mark.parametrize(("kind", "std"), [("unscaled", 16.0), ("scaled", 1.0), ("factor in W_Q", 1.0)])
def test_the_spread_of_the_first_scores_is_that_of_the_variance_formula(kind, std):
    query, items, _, _ = Lookups(0).batch(500)
    found = scores(initial_layer(256, kind, 0), query, items)
    assert found.std().item() == pytest.approx(std, rel=0.1)


def test_scores_are_those_of_the_layer():
    query, items, value, _ = Lookups(3).batch(7)
    layer = initial_layer(8, "scaled", 3)
    _, weights = layer(query[:, None], items, value)
    torch.testing.assert_close(scores(layer, query, items).softmax(dim=-1), weights[:, 0])


@pytest.mark.parametrize("loss", ["squared error", "minus log weight"])
def test_gradients_of_single_queries_are_those_of_autograd(loss):
    query, items, value, wanted = Lookups(3).batch(7)
    found = scores(initial_layer(8, "unscaled", 3), query, items).detach().requires_grad_()
    if loss == "squared error":
        output = torch.einsum("bj,bjv->bv", found.softmax(dim=-1), value)
        (output - value[torch.arange(7), wanted]).square().mean(dim=-1).sum().backward()
    else:
        torch.nn.functional.cross_entropy(found, wanted, reduction="sum").backward()
    torch.testing.assert_close(score_gradients(found.detach(), value, wanted, loss), found.grad)


@pytest.mark.parametrize(
    ("way", "length"),
    [
        ("equal lengths", lambda before: torch.full_like(before, 0.3)),
        ("long ones cut", lambda before: before.clamp_max(0.3)),
        ("silent ones raised", lambda before: torch.where(before < 0.01, 0.3, before)),
    ],
)
def test_a_change_of_lengths_turns_no_gradient(way, length):
    query, items, value, wanted = Lookups(3).batch(50)
    found = scores(initial_layer(64, "unscaled", 3), query, items).detach().double()
    as_it_is, changed = (score_gradients(found, value.double(), wanted, loss) for loss in ("squared error", way))
    before = as_it_is.norm(dim=-1)
    assert before.min() < 0.01
    assert before.max() > 0.3
    torch.testing.assert_close(changed.norm(dim=-1), length(before))
    torch.testing.assert_close(torch.nn.functional.cosine_similarity(1e6 * as_it_is, 1e6 * changed), torch.ones(50).double())


def test_right_and_wrong_silent_queries_are_raised_apart():
    query, items, value, wanted = Lookups(3).batch(400)
    found = scores(initial_layer(64, "unscaled", 3), query, items).detach().double()
    ways = ("squared error", "silent right raised", "silent wrong raised", "silent ones raised")
    before, right_raised, wrong_raised, all_raised = (score_gradients(found, value.double(), wanted, way) for way in ways)
    right = torch.tensor([row.argsort()[-1] == at for row, at in zip(found.numpy(), wanted.numpy(), strict=True)])
    silent = before.norm(dim=-1) < 0.01
    assert min((silent & right).sum(), (silent & ~right).sum(), (~silent & right).sum()) > 0
    torch.testing.assert_close(right_raised, torch.where(right[:, None], all_raised, before))
    torch.testing.assert_close(wrong_raised, torch.where(right[:, None], before, all_raised))
    turned = score_gradients(found, value.double(), wanted, "silent wrong turned")
    pull = torch.nn.functional.normalize(score_gradients(found, value.double(), wanted, "minus log weight"), dim=-1)
    torch.testing.assert_close(turned, torch.where((silent & ~right)[:, None], 0.3 * pull, before))


def test_equal_lengths_keep_the_direction_where_one_weight_is_nearly_1():
    found, value = torch.tensor([[90.0, 0.0, 1.0]]), torch.tensor([[[0.0], [1.0], [3.0]]])
    gap = 1 + 3 * math.e  # of the output, in units of the smallest weight; so for tiny weights g = w * gap * (v - 0) / ...
    wanted = torch.tensor([0.0, gap, 3 * math.e * gap]) - torch.tensor([gap * gap, 0.0, 0.0])
    alike = score_gradients(found, value, torch.tensor([0]), "equal lengths")[0]
    torch.testing.assert_close(alike, 0.3 * wanted / wanted.norm())


@pytest.mark.parametrize(("optimizer", "factor"), [("SGD", 1 / 64), ("Adam", 1 / 8)])
def test_the_twin_without_scale_walks_the_same_path_with_its_own_step_only(optimizer, factor):
    assert two_step_sizes(64, 10, optimizer=optimizer, factor=factor) < 1e-10
    assert two_step_sizes(64, 10, optimizer=optimizer) > 1e-3


def test_another_layer_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        initial_layer(16, "zero", 0)
