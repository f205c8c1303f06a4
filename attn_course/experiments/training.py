"""Gradient descent as all trainings of the lessons do it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def descend(
    optimizer: torch.optim.Optimizer,
    loss: Callable[[], Tensor],
    steps: int,
    *,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
    longest: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[float]:
    """Take up to `steps` steps, each on a loss computed anew, and return these losses.

    Gradients longer than `longest` are shortened to it. `stop` is asked after each step whether this was the last.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    losses = []
    for _ in range(steps):
        value = loss()
        optimizer.zero_grad()
        value.backward()
        if longest is not None:
            nn.utils.clip_grad_norm_(parameters, longest)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        losses.append(value.item())
        if stop is not None and stop():
            break
    return losses
