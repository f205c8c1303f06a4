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
SILENT = 0.01  # a query whose gradient is shorter is called silent
WAYS = (  # what is done to the gradients of the unscaled layer
    "silent raised",
    "silent right raised",
    "silent wrong raised",
    "silent exchanged",
    "others lengthened",
)
LOG_WEIGHT = "minus log weight"

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
def score_gradients(found: Tensor, value: Tensor, wanted: Tensor, way: str = "") -> Tensor:
    """Return for each query alone the gradient of its loss by its scores, (size, n_items).

    The loss is the squared error of the output, mean over its entries. A way changes these gradients. "silent raised" gives those shorter
    than 0.01 the mean length of the batch, in their own direction; "silent right raised" and "silent wrong raised" only those of queries
    whose largest score is, or is not, the right item's. Two controls: "silent exchanged" gives the silent ones that length too, each in the
    direction of the silent one before it; "others lengthened" shares the same length in all among as many that are not silent. "minus log
    weight" is another loss, minus the logarithm of the weight of the right item: its gradient, w - onehot, has no factor J.
    It is computed in float64 and returned in the type of `found`.
    """
    weights = found.double().softmax(dim=-1)
    if way == LOG_WEIGHT:
        return (weights - torch.nn.functional.one_hot(wanted, found.shape[-1])).to(found.dtype)
    # Sums of differences, because a difference of sums is only rounding error where one weight is nearly 1.
    missing = value.double() - value[torch.arange(len(found)), wanted][:, None].double()
    d_output = 2.0 / D_VALUE * torch.einsum("bj,bjv->bv", weights, missing)
    d_weights = torch.einsum("bv,bjv->bj", d_output, value.double())
    # Eq. softmax-vector-jacobian-product
    gradient = weights * torch.einsum("bl,bjl->bj", weights, d_weights[:, :, None] - d_weights[:, None, :])
    length = gradient.norm(dim=-1, keepdim=True)
    silent, right = length < SILENT, (found.argmax(dim=-1) == wanted)[:, None]
    mean = length.mean()
    direction = gradient / gradient.abs().amax(dim=-1, keepdim=True).clamp_min(1e-300)  # squares of tiny numbers would be 0
    direction = torch.nn.functional.normalize(direction, dim=-1)
    if way == "others lengthened":
        chosen = (~silent).flatten().nonzero().flatten()[: int(silent.sum())]
        gradient[chosen] += mean * silent.sum() / max(len(chosen), 1) * direction[chosen]
        return gradient.to(found.dtype)
    if way == "silent exchanged":
        which = silent.flatten()
        direction[which] = direction[which].roll(1, dims=0)
    changed = {
        "": torch.zeros_like(silent),
        "silent raised": silent,
        "silent right raised": silent & right,
        "silent wrong raised": silent & ~right,
        "silent exchanged": silent,
    }
    return torch.where(changed[way], mean * direction, gradient).to(found.dtype)


@torch.no_grad()
def first_gradients(d_k: int, kind: str, seed: int, count: int = LOOKED_AT) -> dict[str, float]:
    """Look at a fresh layer with many queries, each alone, before the first step.

    Returns "variance of a row": what softmax sees of the scores; "right": share of right lookups; "norm of J": mean of the largest factor
    by which the Jacobian of the softmax stretches; of the gradients by the scores "mean length", "silent", the share below 0.01, and
    "silent and right", the share of all queries that are both.
    """
    query, items, value, wanted = Lookups(seed).batch(count)
    found = scores(initial_layer(d_k, kind, seed), query, items)
    weights = found.double().softmax(dim=-1)
    length = score_gradients(found, value, wanted).norm(dim=-1)
    silent, right = length < SILENT, found.argmax(dim=-1) == wanted
    measured = {
        "variance of a row": found.var(dim=-1, correction=0).mean(),
        "right": right.float().mean(),
        "norm of J": torch.linalg.eigvalsh(torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :])[:, -1].mean(),
        "mean length": length.mean(),
        "silent": silent.float().mean(),
        "silent and right": (silent & right).float().mean(),
    }
    return {name: round(float(value), 4) for name, value in measured.items()}


def train(
    layer: Attention, optimizer: torch.optim.Optimizer, batches: Sequence[Batch], test: Batch, way: str = "", steps: int = STEPS
) -> tuple[int, list[float]]:
    """Train a layer in place, one batch a step, until it has learnt.

    Returns the first step after which more than 0.9 of the test lookups are right (`steps` + 1 if there is none), and the share of
    right ones after each step.
    """
    rights: list[float] = []
    for query, items, value, wanted in batches[:steps]:
        found = scores(layer, query, items)
        optimizer.zero_grad()
        found.backward(score_gradients(found, value, wanted, way) / len(wanted))
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
    d_k: int, kind: str, optimizer: str, data: tuple[Sequence[Batch], Batch], *, seed: int, way: str = "", whole: bool = False
) -> list[int]:
    """Return the steps that a layer needs with each step size of its optimizer.

    Unless `whole`, a training is given up when it has taken more steps than the best before it: only the smallest number counts then.
    """
    needed: list[int] = []
    for step_size in STEP_SIZES[optimizer]:
        layer = initial_layer(d_k, kind, seed)
        limit = STEPS if whole or not needed else min(needed)
        needed.append(train(layer, optimizer_for(layer, optimizer, step_size), *data, way, limit)[0])
    return needed


def with_and_without_scale(seed: int, widths: Sequence[int] = WIDTHS) -> dict[str, Any]:
    """Measure the first gradients, and the steps to learn: each layer, both optimizers, all step sizes, every way.

    "best", the fewest steps over the step sizes, has a number for each layer, for each way in the unscaled one, and for minus log weight
    with and without the scale.
    """
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    found: dict[str, Any] = {"first": {}, "steps": {}, "best": {}}
    for d_k in map(str, widths):
        found["first"][d_k] = {kind: first_gradients(int(d_k), kind, seed) for kind in LAYERS[:2]}
        for name in STEP_SIZES:
            every = {kind: steps_to_learn(int(d_k), kind, name, data, seed=seed, whole=True) for kind in LAYERS}
            found["steps"].setdefault(name, {})[d_k] = every
            changed = {way: min(steps_to_learn(int(d_k), "unscaled", name, data, seed=seed, way=way)) for way in WAYS}
            logs = {
                f"{LOG_WEIGHT}, {kind}": min(steps_to_learn(int(d_k), kind, name, data, seed=seed, way=LOG_WEIGHT)) for kind in LAYERS[:2]
            }
            found["best"].setdefault(name, {})[d_k] = {kind: min(steps) for kind, steps in every.items()} | changed | logs
    return found


def conclude_scale(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no what came out: of the gradients before the first step, and of the steps to learn, each with its best step size."""
    first, best = found["first"], found["best"]
    wide = [best[name][d_k] for name in best for d_k in ("64", "256")]
    every = [each for by_width in best.values() for each in by_width.values()]
    at_64 = first["64"]
    slow_steps = {kind: found["steps"]["SGD"]["64"][kind][0] for kind in LAYERS}

    def left(each: dict[str, int], way: str) -> float:
        """Of the delay, the share that is left."""
        return (each[way] - each["scaled"]) / (each["unscaled"] - each["scaled"])

    return {
        "d_k = 64: the mean norm of the Jacobian is at least three quarters as large without the scale": at_64["unscaled"]["norm of J"]
        > 0.75 * at_64["scaled"]["norm of J"],
        "d_k = 64: the mean length is at least half as long without the scale": at_64["unscaled"]["mean length"]
        > at_64["scaled"]["mean length"] / 2,
        "d_k = 64: at least a fifth of the queries are silent without the scale, hardly any with it": at_64["unscaled"]["silent"] > 0.2
        and at_64["scaled"]["silent"] < 0.02,
        "d_k = 64: at least four in five silent queries are wrong": at_64["unscaled"]["silent and right"]
        < 0.2 * at_64["unscaled"]["silent"],
        "without the scale more than one and a half times the steps": all(2 * each["unscaled"] > 3 * each["scaled"] for each in every),
        "d_k = 64, SGD: at least six times the steps": best["SGD"]["64"]["unscaled"] >= 6 * best["SGD"]["64"]["scaled"],
        "factor in W_Q: within two steps of the scale": all(abs(each["factor in W_Q"] - each["scaled"]) <= 2 for each in every),
        "d_k = 64 and 256: raising the silent ones removes at least two fifths of the delay": all(
            left(each, "silent raised") < 0.6 for each in wide
        ),
        "d_k = 64 and 256: exchanged, they remove less than a quarter": all(left(each, "silent exchanged") > 0.75 for each in wide),
        "d_k = 64 and 256: raising the silent ones removes more than lengthening others": all(
            each["silent raised"] < each["others lengthened"] for each in wide
        ),
        "minus log weight: at most five steps behind without the scale": all(
            each[f"{LOG_WEIGHT}, unscaled"] - each[f"{LOG_WEIGHT}, scaled"] <= 5 for each in every
        ),
        "d_k = 64, smallest step of SGD: faster without the scale": slow_steps["unscaled"] < slow_steps["scaled"],
        "d_k = 64, smallest step of SGD: faster with the factor in W_Q": slow_steps["factor in W_Q"] < slow_steps["scaled"] / 10,
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
    """Say at the smallest d_k that the Jacobian is no smaller without the scale, and how many steps of SGD three ways need."""
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    scaled, unscaled = (first_gradients(WIDTHS[0], kind, seed) for kind in LAYERS[:2])
    needed = [min(steps_to_learn(WIDTHS[0], kind, "SGD", data, seed=seed)) for kind in LAYERS[:2]]
    raised, exchanged = (
        min(steps_to_learn(WIDTHS[0], "unscaled", "SGD", data, seed=seed, way=way)) for way in ("silent raised", "silent exchanged")
    )
    return {
        "without the scale the mean norm of the Jacobian is larger": unscaled["norm of J"] > scaled["norm of J"],
        "without the scale SGD needs more steps": needed[1] > needed[0],
        "with silent queries raised it needs fewer": raised < needed[1],
        "with their directions exchanged it needs more than that": exchanged > raised,
    }


SCALE = Experiment("results/scale.json", with_and_without_scale, conclude_scale, quick)
EXPERIMENTS = [SCALE]
