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
WAYS = ("equal lengths", "lengths passed on")  # what is done to the gradients of a batch

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

    The loss is the squared error of the output, mean over its entries. A way keeps the directions of these gradients and changes their
    lengths: "equal lengths" gives all of them the mean length of the batch, and "lengths passed on" gives each the length of the one
    before it. It is computed in float64 and returned in the type of `found`.
    """
    weights = found.double().softmax(dim=-1)
    # Sums of differences, because a difference of sums is only rounding error where one weight is nearly 1.
    missing = value.double() - value[torch.arange(len(found)), wanted][:, None].double()
    d_output = 2.0 / D_VALUE * torch.einsum("bj,bjv->bv", weights, missing)
    d_weights = torch.einsum("bv,bjv->bj", d_output, value.double())
    # Eq. softmax-vector-jacobian-product
    gradient = weights * torch.einsum("bl,bjl->bj", weights, d_weights[:, :, None] - d_weights[:, None, :])
    if way:
        length = gradient.norm(dim=-1, keepdim=True)
        direction = gradient / gradient.abs().amax(dim=-1, keepdim=True).clamp_min(1e-300)  # squares of tiny numbers would be 0
        direction = torch.nn.functional.normalize(direction, dim=-1)
        gradient = direction * {"equal lengths": length.mean(), "lengths passed on": length.roll(1, dims=0)}[way]
    return gradient.to(found.dtype)


@torch.no_grad()
def first_gradients(d_k: int, kind: str, seed: int, count: int = LOOKED_AT) -> dict[str, float]:
    """Look at the gradients by the scores of a fresh layer with many queries, each alone, before the first step.

    Returns their "mean length"; "silent", the share below 0.01; and "loudest tenth", the share of the sum of all lengths that the
    longest tenth has.
    """
    query, items, value, wanted = Lookups(seed).batch(count)
    length = score_gradients(scores(initial_layer(d_k, kind, seed), query, items), value, wanted).norm(dim=-1).double()
    measured = {
        "mean length": length.mean(),
        "silent": (length < SILENT).double().mean(),
        "loudest tenth": length.topk(count // 10).values.sum() / length.sum(),
    }
    return {name: round(float(value), 4) for name, value in measured.items()}


def train(
    layer: Attention, optimizer: torch.optim.Optimizer, batches: Sequence[Batch], test: Batch, way: str = "", steps: int = STEPS
) -> int:
    """Train a layer in place, one batch a step, until it has learnt.

    Returns the first step after which more than 0.9 of the test lookups are right; `steps` + 1 if there is none.
    """
    for step, (query, items, value, wanted) in enumerate(batches[:steps], 1):
        found = scores(layer, query, items)
        optimizer.zero_grad()
        found.backward(score_gradients(found, value, wanted, way) / len(wanted))
        optimizer.step()
        with torch.no_grad():
            tried = scores(layer, test[0], test[1])
        if not tried.isfinite().all():
            break
        if (tried.argmax(dim=-1) == test[3]).float().mean() > LEARNT:
            return step
    return steps + 1


def optimizer_for(layer: Attention, name: str, step_size: float) -> torch.optim.Optimizer:
    """Return "SGD", plain gradient descent, or "Adam" with its usual constants."""
    if name == "SGD":
        return torch.optim.SGD(layer.parameters(), lr=step_size)
    return torch.optim.Adam(layer.parameters(), lr=step_size, foreach=False)


def fewest_steps(d_k: int, kind: str, optimizer: str, data: tuple[Sequence[Batch], Batch], *, seed: int, way: str = "") -> int:
    """Return the steps that a layer needs with the best step size of its optimizer.

    A training is given up when it has taken more steps than the best before it.
    """
    needed = STEPS + 1
    for step_size in STEP_SIZES[optimizer]:
        layer = initial_layer(d_k, kind, seed)
        needed = min(needed, train(layer, optimizer_for(layer, optimizer, step_size), *data, way, min(needed, STEPS)))
    return needed


def with_and_without_scale(seed: int, widths: Sequence[int] = WIDTHS) -> dict[str, Any]:
    """Measure the first gradients, and the fewest steps over the step sizes: each layer, both optimizers, and each way."""
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    trained = {kind: (kind, "") for kind in LAYERS} | {f"{kind}, {way}": (kind, way) for kind in LAYERS[:2] for way in WAYS}

    def best(d_k: int, optimizer: str) -> dict[str, int]:
        return {name: fewest_steps(d_k, kind, optimizer, data, seed=seed, way=way) for name, (kind, way) in trained.items()}

    return {
        "first": {str(d_k): {kind: first_gradients(d_k, kind, seed) for kind in LAYERS[:2]} for d_k in widths},
        "best": {name: {str(d_k): best(d_k, name) for d_k in widths} for name in STEP_SIZES},
    }


def conclude_scale(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no what came out: of the gradients before the first step, and of the steps to learn, each with its best step size."""
    first, best = found["first"]["64"], found["best"]
    every = [each for by_width in best.values() for each in by_width.values()]
    wide = [best[name][d_k] for name in best for d_k in ("64", "256")]

    def left(each: dict[str, int], way: str) -> float:
        """Of the delay, the share that is left."""
        return (each[f"unscaled, {way}"] - each["scaled"]) / (each["unscaled"] - each["scaled"])

    return {
        "d_k = 64: the mean length is at least half as long without the scale": first["unscaled"]["mean length"]
        > first["scaled"]["mean length"] / 2,
        "d_k = 64: at least a fifth of the queries are silent without the scale, hardly any with it": first["unscaled"]["silent"] > 0.2
        and first["scaled"]["silent"] < 0.02,
        "d_k = 64: without the scale the loudest tenth has a third of the whole length or more": first["unscaled"]["loudest tenth"] > 1 / 3,
        "without the scale more than one and a half times the steps": all(2 * each["unscaled"] > 3 * each["scaled"] for each in every),
        "d_k = 64, SGD: at least six times the steps": best["SGD"]["64"]["unscaled"] >= 6 * best["SGD"]["64"]["scaled"],
        "factor in W_Q: within two steps of the scale": all(abs(each["factor in W_Q"] - each["scaled"]) <= 2 for each in every),
        "d_k = 64 and 256: equal lengths remove at least four fifths of the delay": all(left(each, "equal lengths") < 0.2 for each in wide),
        "equal lengths remove two thirds or more, the same lengths passed on less than half": all(
            left(each, "equal lengths") < 1 / 3 and left(each, "lengths passed on") > 1 / 2 for each in every
        ),
        "the scaled layer gains at most three steps by equal lengths": all(
            each["scaled"] - each["scaled, equal lengths"] <= 3 for each in every
        ),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say at the smallest d_k how many steps of SGD three ways need."""
    task = Lookups(seed)
    data = [task.batch() for _ in range(STEPS)], task.batch(TESTED)
    scaled, unscaled = (fewest_steps(WIDTHS[0], kind, "SGD", data, seed=seed) for kind in LAYERS[:2])
    equal = fewest_steps(WIDTHS[0], "unscaled", "SGD", data, seed=seed, way="equal lengths")
    return {
        "without the scale SGD needs more steps": unscaled > scaled,
        "with equal lengths it needs fewer": equal < unscaled,
    }


SCALE = Experiment("results/scale.json", with_and_without_scale, conclude_scale, quick)
EXPERIMENTS = [SCALE]
