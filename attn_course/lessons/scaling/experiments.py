"""What the scale does to a training, and why: a soft lookup whose keys have to be recognised.

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
from attn_course.modules import Attention

D_MODEL, N_ITEMS, D_VALUE, BATCH = 16, 16, 4, 32
STEPS, LEARNT, TESTED, LOOKED_AT = 100, 0.9, 512, 2048  # learnt: more than 0.9 of 512 new lookups are right
WIDTHS = (16, 64, 256)
LAYERS = ("scaled", "unscaled", "factor in W_Q")
STEP_SIZES = {"SGD": tuple(0.1 * 2.0**n for n in range(8)), "Adam": tuple(0.002 * 2.0**n for n in range(7))}
LOSSES = (
    "squared error",
    "long ones cut",
    "silent ones raised",
    "silent right raised",
    "silent wrong raised",
    "silent wrong turned",
    "equal lengths",
    "minus log weight",
)
SILENT = 0.01  # a query whose gradient is shorter is called silent
LENGTH = 0.3  # to which gradients are cut or raised: about their mean length in a fresh scaled layer

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def initial_layer(d_k: int, kind: str, seed: int) -> Attention:
    """Return a fresh layer without value projection, from the same random numbers for every kind.

    "scaled" divides scores by sqrt(d_k), and its queries and keys have variance 1; "unscaled" has the same weights and does not
    divide; "factor in W_Q" does not divide either, but its W_Q is that of the others divided by sqrt(d_k).
    """
    if kind not in LAYERS:
        raise ValueError(f"kind must be one of {LAYERS}; got {kind!r}")
    std = 1.0 / math.sqrt(D_MODEL * d_k) if kind == "factor in W_Q" else 1.0 / math.sqrt(D_MODEL)
    scale = 1.0 / math.sqrt(d_k) if kind == "scaled" else 1.0
    return Attention(D_MODEL, d_k, scale=scale, query_std=std, generator=torch.Generator().manual_seed(seed))


class Lookups:
    """Endless batches of the task; the same seed gives the same rotation and the same batches."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rotation = np.linalg.qr(self.rng.normal(size=(D_MODEL, D_MODEL)))[0]

    def batch(self, size: int = BATCH) -> Batch:
        """Return queries (size, d_model), items (size, 16, d_model), values (size, 16, 4) and the right item (size,)."""
        items = self.rng.normal(size=(size, N_ITEMS, D_MODEL))
        wanted = self.rng.integers(N_ITEMS, size=size)
        query = items[np.arange(size), wanted] @ self.rotation
        value = self.rng.normal(size=(size, N_ITEMS, D_VALUE))
        parts = [torch.tensor(array, dtype=torch.float32) for array in (query, items, value)]
        return parts[0], parts[1], parts[2], torch.tensor(wanted)


def scores(layer: Attention, query: Tensor, items: Tensor) -> Tensor:
    """Return the score of each item: (size, d_model), (size, n_items, d_model) -> (size, n_items)."""
    assert layer.scale is not None  # initial_layer says it
    return layer.scale * torch.einsum("bd,bjd->bj", query @ (layer.w_query @ layer.w_key.T), items)


@torch.no_grad()
def score_gradients(found: Tensor, value: Tensor, wanted: Tensor, loss: str = LOSSES[0]) -> Tensor:
    """Return for each query alone the gradient of its loss by its scores, (size, n_items).

    "squared error": of the output, mean over its entries. The next five change the length of that gradient and keep its direction:
    "long ones cut" makes those longer than 0.3 as long as that, "silent ones raised" those shorter than 0.01, "silent right raised" and
    "silent wrong raised" of these only those of queries whose largest score is, or is not, the right item's, and "equal lengths" all.
    "silent wrong turned" raises the same as "silent wrong raised", and gives them the direction that minus log weight has.
    "minus log weight" is another loss, minus the logarithm of the weight of the right item; its gradient is w - onehot.
    It is computed in float64 and returned in the type of `found`.
    """
    weights = found.double().softmax(dim=-1)
    toward = weights - torch.nn.functional.one_hot(wanted, found.shape[-1])
    if loss == "minus log weight":
        return toward.to(found.dtype)
    # Sums of differences, because a difference of sums is only rounding error where one weight is nearly 1.
    missing = value.double() - value[torch.arange(len(found)), wanted][:, None].double()
    d_output = 2.0 / D_VALUE * torch.einsum("bj,bjv->bv", weights, missing)
    d_weights = torch.einsum("bv,bjv->bj", d_output, value.double())
    # Eq. softmax-vector-jacobian-product
    gradient = weights * torch.einsum("bl,bjl->bj", weights, d_weights[:, :, None] - d_weights[:, None, :])
    if loss == "squared error":
        return gradient.to(found.dtype)
    length = gradient.norm(dim=-1, keepdim=True)
    silent, right = length < SILENT, (found.argmax(dim=-1) == wanted)[:, None]
    changed = {
        "long ones cut": length > LENGTH,
        "silent ones raised": silent,
        "silent right raised": silent & right,
        "silent wrong raised": silent & ~right,
        "silent wrong turned": silent & ~right,
        "equal lengths": torch.ones_like(silent),
    }
    if loss == "silent wrong turned":
        gradient = torch.where(changed[loss], toward, gradient)
    direction = gradient / gradient.abs().amax(dim=-1, keepdim=True).clamp_min(1e-300)  # squares of tiny numbers would be 0
    return torch.where(changed[loss], LENGTH * torch.nn.functional.normalize(direction, dim=-1), gradient).to(found.dtype)


@torch.no_grad()
def first_gradients(d_k: int, kind: str, seed: int, count: int = LOOKED_AT) -> dict[str, Any]:
    """Look at a fresh layer with many queries, each alone, before the first step.

    Returns "within a row" and "in all": the variance of scores that softmax sees, and that of all scores; "right": share of right
    lookups; of the lengths of gradients by scores "mean", "deciles" (nine) and "silent", the share below 0.01; "silent and right": the
    share of all queries that are both; "pull": mean of minus the gradient by the right item's score; "pull, equal lengths": the same,
    all gradients made as long as each other.
    """
    query, items, value, wanted = Lookups(seed).batch(count)
    found = scores(initial_layer(d_k, kind, seed), query, items)
    gradient, equal = (score_gradients(found, value, wanted, loss) for loss in ("squared error", "equal lengths"))
    silent, right = gradient.norm(dim=-1) < SILENT, found.argmax(dim=-1) == wanted
    measured = {
        "within a row": found.var(dim=-1).mean(),
        "in all": found.var(),
        "right": right.float().mean(),
        "mean": gradient.norm(dim=-1).mean(),
        "silent": silent.float().mean(),
        "silent and right": (silent & right).float().mean(),
        "pull": -gradient[torch.arange(count), wanted].mean(),
        "pull, equal lengths": -equal[torch.arange(count), wanted].mean(),
    }
    deciles = torch.quantile(gradient.norm(dim=-1), torch.linspace(0.1, 0.9, 9))
    return {name: round(float(value), 4) for name, value in measured.items()} | {"deciles": [round(float(x), 4) for x in deciles]}


def train(
    layer: Attention, optimizer: torch.optim.Optimizer, batches: Sequence[Batch], test: Batch, loss: str = LOSSES[0], steps: int = STEPS
) -> tuple[int, list[float]]:
    """Train a layer in place, one batch a step, until it has learnt.

    Returns the first step after which more than 0.9 of the test lookups are right (`steps` + 1 if there is none), and the share of
    right ones after each step.
    """
    rights: list[float] = []
    for query, items, value, wanted in batches[:steps]:
        found = scores(layer, query, items)
        optimizer.zero_grad()
        found.backward(score_gradients(found, value, wanted, loss) / len(wanted))
        optimizer.step()
        with torch.no_grad():
            tried = scores(layer, test[0], test[1])
        rights.append(round(float((tried.argmax(dim=-1) == test[3]).float().mean()), 3) if tried.isfinite().all() else 0.0)
        if rights[-1] > LEARNT or rights[-1] == 0.0:
            break
    return (len(rights) if rights[-1] > LEARNT else steps + 1), rights


def optimizer_for(layer: Attention, name: str, step_size: float) -> torch.optim.Optimizer:
    """Return "SGD", plain gradient descent, or "Adam" with its usual constants."""
    if name == "SGD":
        return torch.optim.SGD(layer.parameters(), lr=step_size)
    return torch.optim.Adam(layer.parameters(), lr=step_size, foreach=False)


def steps_to_learn(
    d_k: int, kind: str, optimizer: str, data: tuple[Sequence[Batch], Batch], *, seed: int, loss: str = LOSSES[0], whole: bool = False
) -> list[int]:
    """Return the steps that a layer needs with each step size of its optimizer.

    Unless `whole`, a training is given up when it has taken more steps than the best before it: only the smallest number counts then.
    """
    needed: list[int] = []
    for step_size in STEP_SIZES[optimizer]:
        layer = initial_layer(d_k, kind, seed)
        limit = STEPS if whole or not needed else min(needed)
        needed.append(train(layer, optimizer_for(layer, optimizer, step_size), *data, loss, limit)[0])
    return needed


def with_and_without_scale(seed: int, widths: Sequence[int] = WIDTHS) -> dict[str, Any]:
    """Measure the first gradients, and the steps to learn: each layer, both optimizers, all step sizes, every change of the gradients."""
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    found: dict[str, Any] = {"first": {}, "steps": {}, "best": {}}
    for d_k in map(str, widths):
        found["first"][d_k] = {kind: first_gradients(int(d_k), kind, seed) for kind in LAYERS}
        for name in STEP_SIZES:
            every = {kind: steps_to_learn(int(d_k), kind, name, data, seed=seed, whole=True) for kind in LAYERS}
            found["steps"].setdefault(name, {})[d_k] = every
            best = found["best"].setdefault(name, {}).setdefault(d_k, {LOSSES[0]: {kind: min(steps) for kind, steps in every.items()}})
            for loss in LOSSES[1:]:
                best[loss] = {kind: min(steps_to_learn(int(d_k), kind, name, data, seed=seed, loss=loss)) for kind in LAYERS[:2]}
    return found


def conclude_scale(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no what came out: of the gradients before the first step, and of the steps to learn, each with its best step size."""
    first, best = found["first"], found["best"]

    def steps(loss: str, kind: str) -> list[int]:
        return [best[name][d_k][loss][kind] for name in best for d_k in best[name]]

    def ratios(d_k: str) -> list[float]:
        return [best[name][d_k][LOSSES[0]]["unscaled"] / best[name][d_k][LOSSES[0]]["scaled"] for name in best]

    def behind(loss: str) -> int:
        return max(b - a for a, b in zip(steps(loss, "scaled"), steps(loss, "unscaled"), strict=True))

    def left(loss: str, d_k: str) -> list[float]:
        """Of the delay with squared error, the share that is left, for each optimizer."""
        delays = [[best[name][d_k][each]["unscaled"] - best[name][d_k][each]["scaled"] for each in (loss, LOSSES[0])] for name in best]
        return [changed / whole for changed, whole in delays]

    raised = {d_k: left("silent ones raised", d_k) for d_k in first}
    sixteen, slow_steps = first["16"], {kind: found["steps"]["SGD"]["64"][kind][0] for kind in LAYERS}
    with_factor = zip(steps(LOSSES[0], "scaled"), steps(LOSSES[0], "factor in W_Q"), strict=True)
    return {
        "d_k = 16: mean lengths differ by less than a seventh": abs(sixteen["unscaled"]["mean"] / sixteen["scaled"]["mean"] - 1) < 1 / 7,
        "without the scale more queries are silent": all(at["unscaled"]["silent"] > at["scaled"]["silent"] for at in first.values()),
        "d_k = 64: at least four in five silent queries are wrong": first["64"]["unscaled"]["silent and right"]
        < 0.2 * first["64"]["unscaled"]["silent"],
        "without the scale the right item is pulled less": all(at["unscaled"]["pull"] < at["scaled"]["pull"] for at in first.values()),
        "d_k = 64: equal lengths leave the right item pulled less than half as much": 2 * first["64"]["unscaled"]["pull, equal lengths"]
        < first["64"]["scaled"]["pull"],
        "without the scale at least twice the steps, each with its best step size": min(map(min, map(ratios, first))) >= 2,
        "d_k = 256: at least nine times the steps": min(ratios("256")) >= 9,
        "d_k = 64 and 256: raising the silent ones removes at least three quarters of the delay": max(*raised["64"], *raised["256"])
        <= 1 / 4,
        "d_k = 16: raising the silent ones removes a part of the delay, not all": min(raised["16"]) > 0 and max(raised["16"]) < 3 / 4,
        "d_k = 64: raising only the silent right ones removes at least half of the delay": max(left("silent right raised", "64")) <= 1 / 2,
        "raising the silent right ones always removes more than raising the silent wrong ones": all(
            a < b for d_k in first for a, b in zip(left("silent right raised", d_k), left("silent wrong raised", d_k), strict=True)
        ),
        "d_k = 64 and 256: raising and turning the silent wrong ones removes at least three quarters of the delay": max(
            *left("silent wrong turned", "64"), *left("silent wrong turned", "256")
        )
        <= 1 / 4,
        "d_k = 64: cutting the long ones leaves at least half of the delay": min(left("long ones cut", "64")) >= 1 / 2,
        "equal lengths: at most five steps behind without the scale": behind("equal lengths") <= 5,
        "minus log weight: at most five steps behind without the scale": behind("minus log weight") <= 5,
        "d_k = 64, smallest step of SGD: faster without the scale": slow_steps["unscaled"] < slow_steps["scaled"],
        "d_k = 64, smallest step of SGD: faster with the factor in W_Q": slow_steps["factor in W_Q"] < slow_steps["scaled"] / 10,
        "best step sizes: scale and factor in W_Q within two steps": all(abs(a - b) <= 2 for a, b in with_factor),
    }


def two_step_sizes(d_k: int, steps: int, *, optimizer: str = "SGD", factor: float = 1.0, seed: int = 0) -> float:
    """Train a scaled layer and its unscaled twin, whose W_Q starts divided by sqrt(d_k), in float64, and compare them at the end.

    `factor`: of the twin's step size for W_Q; its W_K takes the steps of the other. Returns the largest difference between their
    attention weights on a new batch.
    """
    step_size = {"SGD": 0.4, "Adam": 0.004}[optimizer]
    last = []
    for kind, query_step in (("scaled", step_size), ("factor in W_Q", factor * step_size)):
        layer, task = initial_layer(d_k, "scaled", seed).double(), Lookups(seed)
        if kind != "scaled":
            layer.scale = 1.0
            with torch.no_grad():
                layer.w_query.div_(math.sqrt(d_k))
        groups: list[dict[str, Any]] = [{"params": [layer.w_query], "lr": query_step}, {"params": [layer.w_key]}]
        moved = torch.optim.SGD(groups, lr=step_size) if optimizer == "SGD" else torch.optim.Adam(groups, lr=step_size, eps=1e-20)
        batches = [tuple(part.double() if part.is_floating_point() else part for part in task.batch()) for _ in range(steps + 1)]
        for query, items, value, wanted in batches[:-1]:
            found = scores(layer, query, items)
            moved.zero_grad()
            found.backward(score_gradients(found, value, wanted) / len(wanted))
            moved.step()
        last.append(scores(layer, *batches[-1][:2]).softmax(dim=-1).detach())
    return float((last[0] - last[1]).abs().max())


def quick(seed: int) -> dict[str, bool]:
    """Say at the smallest d_k that gradients are as long without the scale and pull the right item less, and what SGD makes of it."""
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    scaled, unscaled = (first_gradients(WIDTHS[0], kind, seed) for kind in LAYERS[:2])
    needed = [min(steps_to_learn(WIDTHS[0], kind, "SGD", data, seed=seed)) for kind in LAYERS[:2]]
    raised = min(steps_to_learn(WIDTHS[0], "unscaled", "SGD", data, seed=seed, loss="silent ones raised"))
    return {
        "the mean length is nearly the same": abs(unscaled["mean"] / scaled["mean"] - 1) < 1 / 7,
        "without the scale the right item is pulled less": unscaled["pull"] < 0.8 * scaled["pull"],
        "without the scale SGD needs more steps": needed[1] > needed[0],
        "with silent queries raised it needs fewer": raised < needed[1],
    }


SCALE = Experiment("results/scale.json", with_and_without_scale, conclude_scale, quick)
EXPERIMENTS = [SCALE]
