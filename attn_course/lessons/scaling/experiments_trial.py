"""The trial of the lesson: layers made from the same random matrices learn the lookups of `experiments`, by gradient descent.

How a batch teaches is the lesson's own: it gets the scores that a layer gave, and sends a gradient back to the matrices.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from attn_course.lessons.scaling.experiments import BATCH, LEARNT, STEPS, TESTED, Batch, Lookups, initial_layer, score_gradients

D_K, SEEDS = 64, range(3)
STEP_SIZES = [0.1 * 2**n for n in range(12)]
Layer = tuple[Tensor, Tensor, float]  # W_Q, W_K and the divisor
Teach = Callable[[Tensor, Tensor, Tensor], None]  # scores, values and the right items of a batch


@cache
def examples(seed: int) -> tuple[list[Batch], Batch]:
    """Return 100 batches to learn from and one to test on, in float64."""
    task = Lookups(seed)
    drawn = [task.batch(size) for size in [BATCH] * STEPS + [TESTED]]
    *batches, test = [(query.double(), items.double(), value.double(), right) for query, items, value, right in drawn]
    return batches, test


def made(shrink: float, divisor: float, seed: int) -> Layer:
    """Return a fresh layer: scores are divided by `divisor`, and W_Q by `shrink`."""
    drawn = initial_layer(D_K, "scaled", seed)
    return drawn.w_query.detach().double() / shrink, drawn.w_key.detach().double(), divisor


def scores(layer: Layer, query: Tensor, items: Tensor) -> Tensor:
    """Return the score of each item: (size, d_model), (size, n_items, d_model) -> (size, n_items)."""
    w_query, w_key, divisor = layer
    return torch.einsum("bd,bjd->bj", query @ w_query @ w_key.T, items) / divisor


def first_gradients(shrink: float, divisor: float) -> Tensor:
    """Return the gradient of each test query by its scores before the first step, (queries of all seeds, n_items)."""
    found = []
    for seed in SEEDS:
        query, items, value, right = examples(seed)[1]
        found.append(score_gradients(scores(made(shrink, divisor, seed), query, items), value, right))
    return torch.cat(found)


def fewest_steps(teach: Teach, shrink: float, divisor: float) -> list[int]:
    """Return for each seed the steps that a layer needs with the best of twelve step sizes; 101 if it learns with none."""
    found = []
    for seed in SEEDS:
        needed = STEPS + 1
        for step_size in STEP_SIZES:
            needed = steps_until_learnt(teach, made(shrink, divisor, seed), seed, step_size, needed)
        found.append(needed)
    return found


def steps_until_learnt(teach: Teach, layer: Layer, seed: int, step_size: float, known: int) -> int:
    """Return the first step after which more than 0.9 of the test lookups are right, or `known` if it takes that many steps or more."""
    batches, (asked, among, _, wanted) = examples(seed)
    w_query, w_key, divisor = layer
    descent = torch.optim.SGD([w_query.requires_grad_(), w_key.requires_grad_()], lr=step_size)
    for step, (query, items, value, right) in enumerate(batches[: known - 1], 1):
        descent.zero_grad()
        teach(scores((w_query, w_key, divisor), query, items), value, right)
        descent.step()
        with torch.no_grad():
            best = scores((w_query, w_key, divisor), asked, among).argmax(dim=1)
        if (best == wanted).double().mean() > LEARNT:
            return step
    return known
