"""What the scale does to a training, and what it does not: a soft lookup whose keys have to be recognised.

Each example holds 16 items with 16 features and a value each. The query is one of the items, turned by a rotation that is the
same in all examples; the right output is this item's value. A layer without value projection has to learn W_Q and W_K.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules import Attention

D_MODEL, N_ITEMS, D_VALUE, BATCH = 16, 16, 4, 32
STEPS, LEARNING_RATE = 160, 0.003
WIDTHS = (16, 64, 256)
WINDOW, LEARNT = 10, 0.9  # learnt: the share of right lookups, over the last 10 batches, is above 0.9
STARTS = ("unit variance", "factor in W_Q")


def initial_layer(d_k: int, *, scaled: bool, start: str, seed: int) -> Attention:
    """Return a fresh layer.

    Parameters
    ----------
    d_k : int
        Features of queries and keys.
    scaled : bool
        Divide the scores by sqrt(d_k), or not.
    start : {"unit variance", "factor in W_Q"}
        Queries of variance 1 at the start, or of variance 1 / d_k as in Eq. scale-in-the-initialisation.
    seed : int
        Of the first weights: the same random numbers for all choices.

    Returns
    -------
    layer : Attention
        Without value projection.
    """
    if start not in STARTS:
        raise ValueError(f"start must be one of {STARTS}; got {start!r}")
    std = 1.0 / math.sqrt(D_MODEL) if start == STARTS[0] else 1.0 / math.sqrt(D_MODEL * d_k)
    generator = torch.Generator().manual_seed(seed)
    return Attention(D_MODEL, d_k, scale=None if scaled else 1.0, query_std=std, generator=generator)


class Lookups:
    """Endless batches of the task; the same seed gives the same batches.

    Parameters
    ----------
    seed : int
        Of the rotation and the examples.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rotation = np.linalg.qr(self.rng.normal(size=(D_MODEL, D_MODEL)))[0]

    def batch(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return queries (batch, 1, d_model), items (batch, 16, d_model), values (batch, 16, 4) and the right item (batch,)."""
        items = self.rng.normal(size=(BATCH, N_ITEMS, D_MODEL))
        wanted = self.rng.integers(N_ITEMS, size=BATCH)
        query = items[np.arange(BATCH), wanted] @ self.rotation
        value = self.rng.normal(size=(BATCH, N_ITEMS, D_VALUE))
        parts = [torch.tensor(array, dtype=torch.float32) for array in (query[:, None], items, value)]
        return parts[0], parts[1], parts[2], torch.tensor(wanted)


def train(layer: Attention, seed: int, optimizer: torch.optim.Optimizer, steps: int = STEPS) -> dict[str, Any]:
    """Train a layer and watch it.

    Parameters
    ----------
    layer : Attention
        Is changed.
    seed : int
        Of the task.
    optimizer : torch.optim.Optimizer
        Holds the parameters of `layer`.
    steps : int
        Batches to see, each once.

    Returns
    -------
    seen : dict
        "accuracy": share of lookups with the largest weight on the right item, mean of the last 10 batches, for each
        step; "steps": the first step at which it is above 0.9 (`steps` + 1 if there is none); "entropy": mean entropy of
        the weights before the first step, in nats.
    """
    task = Lookups(seed)
    rights: list[float] = []
    entropies: list[float] = []

    def loss() -> Tensor:
        query, items, value, wanted = task.batch()
        output, weights = layer(query, items, value)
        entropies.append(float(torch.special.entr(weights.detach()).sum(dim=-1).mean()))
        rights.append(float((weights[:, 0].argmax(dim=-1) == wanted).float().mean()))
        return (output[:, 0] - value[torch.arange(BATCH), wanted]).square().mean()

    descend(optimizer, loss, steps)
    accuracy = [float(np.mean(rights[max(0, n - WINDOW) : n])) for n in range(1, steps + 1)]
    first = next((n for n, value in enumerate(accuracy, 1) if n >= WINDOW and value > LEARNT), steps + 1)
    return {"accuracy": [round(value, 3) for value in accuracy], "steps": first, "entropy": round(entropies[0], 3)}


def with_and_without_scale(seed: int, starts: Sequence[str] = STARTS, widths: Sequence[int] = WIDTHS, steps: int = STEPS) -> dict[str, Any]:
    """Train with and without the scale, from both starts, at three d_k, by Adam with one step size for all."""
    found: dict[str, Any] = {}
    for start in starts:
        for name, scaled in (("scaled", True), ("unscaled", False)):
            for d_k in widths:
                layer = initial_layer(d_k, scaled=scaled, start=start, seed=seed)
                seen = train(layer, seed, torch.optim.Adam(layer.parameters(), lr=LEARNING_RATE), steps)
                if d_k != WIDTHS[-1]:
                    del seen["accuracy"]  # the lesson draws the curves of the largest d_k only
                found.setdefault(start, {}).setdefault(name, {})[str(d_k)] = seen
    return found


def conclude_scale(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no how the steps to learn compare: "slower" means at least twice as many."""

    def slower(start: str, d_k: int) -> bool:
        unscaled, scaled = (found[start][name][str(d_k)]["steps"] for name in ("unscaled", "scaled"))
        return bool(unscaled >= 2 * scaled)

    return {
        "unit variance, d_k = 16: slower without the scale": slower("unit variance", 16),
        "unit variance, d_k = 256: slower without the scale": slower("unit variance", 256),
        "factor in W_Q, d_k = 256: slower without the scale": slower("factor in W_Q", 256),
    }


def two_step_sizes(d_k: int, steps: int, *, step_size: float = 0.1, matched: bool = True, seed: int = 0) -> float:
    """Train a scaled layer and its unscaled twin by plain gradient descent, and compare their weights at the end.

    The twin starts with W' = W_Q / sqrt(d_k), Eq. scale-as-reparametrisation, hence with the same scores.

    Parameters
    ----------
    d_k : int
        Features of queries and keys.
    steps : int
        Steps of gradient descent, in float64.
    step_size : float
        Of the scaled layer.
    matched : bool
        Let the twin's W' move with the step size / d_k, as Eq. scale-as-reparametrisation asks, or with the same one.
    seed : int
        Of weights and task.

    Returns
    -------
    difference : float
        Largest difference between the attention weights of the two on a new batch.
    """
    scaled = initial_layer(d_k, scaled=True, start=STARTS[0], seed=seed).double()
    twin = initial_layer(d_k, scaled=False, start=STARTS[1], seed=seed).double()
    with torch.no_grad():  # equal beyond the rounding of float32
        twin.w_query.copy_(scaled.w_query / math.sqrt(d_k))
    query_step = step_size / d_k if matched else step_size
    groups: list[dict[str, Any]] = [{"params": [twin.w_query], "lr": query_step}, {"params": [twin.w_key]}]
    optimizers = torch.optim.SGD(scaled.parameters(), lr=step_size), torch.optim.SGD(groups, lr=step_size)
    last = []
    for layer, optimizer in zip((scaled, twin), optimizers, strict=True):
        task = Lookups(seed)

        def loss(layer: Attention = layer, task: Lookups = task) -> Tensor:
            query, items, value, wanted = (part.double() if part.is_floating_point() else part for part in task.batch())
            return (layer(query, items, value)[0][:, 0] - value[torch.arange(BATCH), wanted]).square().mean()

        descend(optimizer, loss, steps)
        query, items, value, _ = task.batch()
        last.append(layer(query.double(), items.double(), value.double())[1].detach())
    return float((last[0] - last[1]).abs().max())


def quick(seed: int) -> dict[str, bool]:
    """Say at the largest d_k whether a start of unit variance needs the scale, and whether the twin without it walks the same path."""
    found = with_and_without_scale(seed, STARTS[:1], WIDTHS[-1:], STEPS // 2)[STARTS[0]]
    scaled, unscaled = (found[name][str(WIDTHS[-1])] for name in ("scaled", "unscaled"))
    return {
        "with the scale learnt": scaled["steps"] <= STEPS // 2,
        "without it not yet": unscaled["steps"] > STEPS // 2,
        "without it the first weights are sharp": unscaled["entropy"] < 0.5 * scaled["entropy"],
    }


SCALE = Experiment("results/scale.json", with_and_without_scale, conclude_scale, quick)
EXPERIMENTS = [SCALE]
