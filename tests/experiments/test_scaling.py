"""The lookup task of lesson scaling, and the gradients whose lengths are changed."""

import math

import numpy as np
import pytest
import torch

from attn_course.lessons.scaling.experiments import Lookups, first_gradients, initial_layer, score_gradients, scores


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


def test_gradients_of_single_queries_are_those_of_autograd():
    query, items, value, wanted = Lookups(3).batch(7)
    found = scores(initial_layer(8, "unscaled", 3), query, items).detach().requires_grad_()
    output = torch.einsum("bj,bjv->bv", found.softmax(dim=-1), value)
    (output - value[torch.arange(7), wanted]).square().mean(dim=-1).sum().backward()
    torch.testing.assert_close(score_gradients(found.detach(), value, wanted), found.grad)


def directions(gradients):
    return torch.nn.functional.normalize(gradients / gradients.abs().amax(dim=-1, keepdim=True), dim=-1)  # squares of tiny numbers are 0


@pytest.mark.parametrize("way", ["equal lengths", "lengths passed on"])
def test_gradients_keep_their_directions_and_get_one_length_or_that_of_their_neighbour(way):
    query, items, value, wanted = Lookups(3).batch(400)
    found = scores(initial_layer(64, "unscaled", 3), query, items).detach().double()
    before, after = (score_gradients(found, value, wanted, name) for name in ("", way))
    lengths = before.norm(dim=-1)
    passed_on = torch.cat([lengths[-1:], lengths[:-1]])
    torch.testing.assert_close(after.norm(dim=-1), lengths.mean().expand(400) if way == "equal lengths" else passed_on)
    torch.testing.assert_close(directions(after), directions(before))


def test_a_direction_is_right_where_one_weight_is_nearly_1():
    found, value = torch.tensor([[90.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), torch.tensor([[[0.0], [1.0], [3.0]]] * 2)
    gap = 1 + 3 * math.e  # of the output, in units of the smallest weight; so for tiny weights g = w * gap * (v - 0) / ...
    wanted = torch.tensor([0.0, gap, 3 * math.e * gap]) - torch.tensor([gap * gap, 0.0, 0.0])
    equal = score_gradients(found, value, torch.tensor([0, 0]), "equal lengths")
    torch.testing.assert_close(equal[0] / equal[0].norm(), wanted / wanted.norm())


def test_the_loudest_tenth_and_the_silent_are_counted():
    query, items, value, wanted = Lookups(3).batch(200)
    lengths = score_gradients(scores(initial_layer(64, "unscaled", 3), query, items), value, wanted).norm(dim=-1).detach().numpy()
    found, ordered = first_gradients(64, "unscaled", 3, 200), np.sort(lengths)[::-1]
    assert found["loudest tenth"] == pytest.approx(ordered[:20].sum() / lengths.sum(), abs=1e-4)
    assert found["silent"] == pytest.approx((lengths < 0.01).mean(), abs=1e-4)


def test_another_layer_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        initial_layer(16, "zero", 0)
