"""The lookup task of lesson scaling, and the reparametrisation that it demonstrates."""

import math

import numpy as np
import pytest
import torch

from attn_course.lessons.scaling.experiments import LOG_WEIGHT, WAYS, Lookups, initial_layer, score_gradients, scores, two_step_sizes


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


@pytest.mark.parametrize("way", ["", LOG_WEIGHT])
def test_gradients_of_single_queries_are_those_of_autograd(way):
    query, items, value, wanted = Lookups(3).batch(7)
    found = scores(initial_layer(8, "unscaled", 3), query, items).detach().requires_grad_()
    if way == LOG_WEIGHT:
        torch.nn.functional.cross_entropy(found, wanted, reduction="sum").backward()
    else:
        output = torch.einsum("bj,bjv->bv", found.softmax(dim=-1), value)
        (output - value[torch.arange(7), wanted]).square().mean(dim=-1).sum().backward()
    torch.testing.assert_close(score_gradients(found.detach(), value, wanted, way), found.grad)


@pytest.fixture(scope="module")
def ways():
    """The gradients of 400 queries of an unscaled layer, by way; which of them are silent, and which right."""
    query, items, value, wanted = Lookups(3).batch(400)
    found = scores(initial_layer(64, "unscaled", 3), query, items).detach().double()
    right = torch.tensor([row.argsort()[-1] == at for row, at in zip(found.numpy(), wanted.numpy(), strict=True)])
    by_way = {way: score_gradients(found, value.double(), wanted, way) for way in ("", *WAYS)}
    silent = by_way[""].norm(dim=-1) < 0.01
    assert min((silent & right).sum(), (silent & ~right).sum(), (~silent & right).sum()) > 0
    return by_way, silent, right


def directions(gradients):
    return torch.nn.functional.normalize(gradients / gradients.abs().amax(dim=-1, keepdim=True), dim=-1)  # squares of tiny numbers are 0


def test_raised_silent_queries_get_the_mean_length_and_keep_their_direction(ways):
    by_way, silent, _ = ways
    before, raised = by_way[""], by_way["silent raised"]
    mean = before.norm(dim=-1).mean()
    torch.testing.assert_close(raised.norm(dim=-1), torch.where(silent, mean, before.norm(dim=-1)))
    torch.testing.assert_close(directions(raised), directions(before))


def test_right_and_wrong_silent_queries_are_raised_apart(ways):
    by_way, _, right = ways
    torch.testing.assert_close(by_way["silent right raised"], torch.where(right[:, None], by_way["silent raised"], by_way[""]))
    torch.testing.assert_close(by_way["silent wrong raised"], torch.where(right[:, None], by_way[""], by_way["silent raised"]))


def test_exchanged_silent_queries_have_each_other_s_gradients(ways):
    by_way, silent, _ = ways
    raised, exchanged = by_way["silent raised"], by_way["silent exchanged"]
    torch.testing.assert_close(exchanged[~silent], by_way[""][~silent])
    torch.testing.assert_close(exchanged[silent][1:], raised[silent][:-1])
    torch.testing.assert_close(exchanged[silent][0], raised[silent][-1])


def test_as_many_others_share_the_length_that_raising_would_give(ways):
    by_way, silent, _ = ways
    before, lengthened = by_way[""], by_way["others lengthened"]
    more = lengthened.norm(dim=-1) - before.norm(dim=-1)
    assert (more[silent] == 0).all()
    assert (more > 1e-6).sum() == silent.sum() < (~silent).sum()
    assert more.sum().item() == pytest.approx((silent.sum() * before.norm(dim=-1).mean()).item())
    torch.testing.assert_close(directions(lengthened), directions(before))


def test_where_few_are_loud_they_share_all_of_it():
    query, items, value, wanted = Lookups(3).batch(200)
    found = 100 * scores(initial_layer(64, "unscaled", 3), query, items).detach().double()
    before, lengthened = (score_gradients(found, value.double(), wanted, way).norm(dim=-1) for way in ("", "others lengthened"))
    silent = before < 0.01
    assert silent.sum() > (~silent).sum() > 0
    torch.testing.assert_close((lengthened - before)[~silent], (before.mean() * silent.sum() / (~silent).sum()).expand((~silent).sum()))


def test_a_direction_is_right_where_one_weight_is_nearly_1():
    found, value = torch.tensor([[90.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), torch.tensor([[[0.0], [1.0], [3.0]]] * 2)
    gap = 1 + 3 * math.e  # of the output, in units of the smallest weight; so for tiny weights g = w * gap * (v - 0) / ...
    wanted = torch.tensor([0.0, gap, 3 * math.e * gap]) - torch.tensor([gap * gap, 0.0, 0.0])
    raised = score_gradients(found, value, torch.tensor([0, 0]), "silent raised")
    torch.testing.assert_close(raised[0] / raised[0].norm(), wanted / wanted.norm())


@pytest.mark.parametrize(("optimizer", "factor"), [("SGD", 1 / 64), ("Adam", 1 / 8)])
def test_the_twin_without_scale_walks_the_same_path_with_its_own_step_only(optimizer, factor):
    assert two_step_sizes(64, 10, optimizer=optimizer, factor=factor) < 1e-10
    assert two_step_sizes(64, 10, optimizer=optimizer) > 1e-3


def test_another_layer_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        initial_layer(16, "zero", 0)
