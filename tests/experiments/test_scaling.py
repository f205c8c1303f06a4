"""The lookup task of lesson scaling, and the reparametrisation that it demonstrates."""

import numpy as np
import pytest
import torch

from attn_course.lessons.scaling.experiments import Lookups, initial_layer, two_step_sizes


def test_the_query_is_the_turned_item_whose_value_is_wanted():
    task = Lookups(5)
    query, items, _, wanted = task.batch()
    turned = items.double().numpy() @ task.rotation
    distance = np.linalg.norm(turned - query.double().numpy(), axis=-1)
    assert distance.argmin(axis=-1).tolist() == wanted.tolist()
    assert distance.min(axis=-1).max() < 1e-5


def test_the_same_seed_gives_the_same_task_and_the_same_first_weights():
    assert all(torch.equal(a, b) for a, b in zip(Lookups(5).batch(), Lookups(5).batch(), strict=True))
    first, again = (initial_layer(64, scaled=True, start="unit variance", seed=5) for _ in range(2))
    assert torch.equal(first.w_query, again.w_query)


@pytest.mark.parametrize(
    ("start", "scaled", "std"), [("unit variance", False, 16.0), ("unit variance", True, 1.0), ("factor in W_Q", False, 1.0)]
)
def test_the_spread_of_the_first_scores_is_that_of_the_variance_formula(start, scaled, std):
    layer = initial_layer(256, scaled=scaled, start=start, seed=0)
    x, y = np.random.default_rng(0).normal(size=(2, 500, 16))
    scores = torch.tensor(x, dtype=torch.float32) @ layer.w_query @ (torch.tensor(y, dtype=torch.float32) @ layer.w_key).T
    spread = scores.std().item() * (1 / 16 if scaled else 1.0)
    assert spread == pytest.approx(std, rel=0.1)


def test_the_twin_without_scale_walks_the_same_path_with_its_own_step_only():
    assert two_step_sizes(64, 10) < 1e-10
    assert two_step_sizes(64, 10, matched=False) > 1e-3


def test_another_start_is_refused():
    with pytest.raises(ValueError, match="start must be one of"):
        initial_layer(16, scaled=True, start="zero", seed=0)
