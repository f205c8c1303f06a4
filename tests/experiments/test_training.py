"""The loop that all trainings share, and how their calls are timed."""

import time

import pytest
import torch

from attn_course.experiments.timing import cpu_seconds
from attn_course.experiments.training import descend


@pytest.fixture
def x():
    return torch.nn.Parameter(torch.tensor([3.0, 4.0]))


def test_each_step_goes_down_the_gradient_of_a_loss_made_anew(x):
    made = []

    def loss():
        made.append(x.detach().tolist())
        return x.square().sum() / 2

    assert descend(torch.optim.SGD([x], lr=0.5), loss, 3) == pytest.approx([12.5, 3.125, 0.78125])
    assert made == [[3.0, 4.0], [1.5, 2.0], [0.75, 1.0]]
    assert x.tolist() == [0.375, 0.5]


def test_long_gradients_are_shortened_before_the_step(x):
    descend(torch.optim.SGD([x], lr=1.0), lambda: x.square().sum() / 2, 1, longest=0.5)
    torch.testing.assert_close(x.detach(), torch.tensor([2.7, 3.6]))


def test_a_schedule_is_asked_after_each_step(x):
    optimizer = torch.optim.SGD([x], lr=1.0)
    descend(optimizer, x.sum, 2, schedule=torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1))
    torch.testing.assert_close(x.detach(), torch.tensor([1.9, 2.9]))


def test_it_stops_where_it_is_told_and_makes_no_step_of_none(x):
    optimizer = torch.optim.SGD([x], lr=0.5)
    assert len(descend(optimizer, lambda: x.square().sum(), 9, stop=lambda: bool(x[0] < 1.0))) == 1
    assert descend(optimizer, lambda: x.square().sum(), 0) == []


def test_times_are_those_of_the_processor_call_by_call_after_a_run_that_does_not_count(monkeypatch):
    calls = []

    def work(name, seconds):
        calls.append((name, seconds))

    monkeypatch.setattr(time, "process_time", lambda: sum(seconds for _, seconds in calls))
    found = cpu_seconds([lambda: work("idle", 0.0), lambda: work("busy", 2.0)], 3, runs=2)
    assert found.tolist() == [[0.0] * 3, [2.0] * 3]
    assert [name for name, _ in calls] == ["idle", "busy"] + 3 * ["idle", "idle", "busy", "busy"]
