"""Lesson absorption: the matrices of a real language model: how many directions its heads use, and which changes of gauge it survives."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, HEADS, LAYERS, logits, model, perplexity, tokens
from attn_course.modules.hooks import Hook

LENGTH = 256
GAUGES = ("pairs turned and stretched", "each pair by any matrix", "orthogonal", "any")
DRAWS = 2  # of each kind of gauge, for each text


def singular_values(left: Tensor, right: Tensor) -> Tensor:
    """Return the singular values of left @ right.T, (d_model, d_k) each, but for zeros; in float64."""
    triangles = [torch.linalg.qr(matrix.double()).R for matrix in (left, right)]
    return torch.linalg.svdvals(triangles[0] @ triangles[1].T)


def effective_rank(singular: Tensor) -> float:
    """Return e to the entropy of the squares' shares: r for r equal ones."""
    shares = singular.square() / singular.square().sum()
    return float(torch.special.entr(shares).sum().exp())


def of_all_heads() -> dict[str, list[list[float]]]:
    """Return the effective ranks of W_Q W_K^T and W_V W_O for each layer and head, the gain of the norm included."""
    found: dict[str, list[list[float]]] = {"W_Q W_K^T": [], "W_V W_O": []}
    for number in LAYERS:
        layer = model().layer(number)
        gain = torch.from_numpy(layer.gain)[:, None]
        query, key, value = ((gain * torch.from_numpy(matrix)).split(D_K, dim=1) for matrix in (layer.w_query, layer.w_key, layer.w_value))
        output = torch.from_numpy(layer.w_output).split(D_K, dim=0)
        pairs = {
            "W_Q W_K^T": [singular_values(query[head], key[head // GROUP]) for head in HEADS],
            "W_V W_O": [singular_values(value[head // GROUP], output[head].T) for head in HEADS],
        }
        for name, rows in pairs.items():
            found[name].append([round(effective_rank(row), 1) for row in rows])
    return found


def of_random_ones(seed: int, count: int) -> list[float]:
    """Return the effective ranks of products of random matrices of the same shape."""
    random = torch.Generator().manual_seed(seed)
    return [round(effective_rank(singular_values(*(torch.randn(2, 576, D_K, generator=random) / math.sqrt(576)))), 2) for _ in range(count)]


def gauge(kind: str, random: torch.Generator) -> Tensor:
    """Draw a matrix G, (d_k, d_k): queries times G and keys times its inverse transposed have the same scores, if nothing turns them."""
    if kind == "orthogonal":
        return torch.linalg.qr(torch.randn(D_K, D_K, generator=random, dtype=torch.float64)).Q
    if kind == "any":
        return torch.eye(D_K, dtype=torch.float64) + torch.randn(D_K, D_K, generator=random, dtype=torch.float64) / 8
    if kind == "each pair by any matrix":
        return torch.block_diag(*(torch.eye(2) + torch.randn(D_K // 2, 2, 2, generator=random, dtype=torch.float64)))
    stretch = (0.7 * torch.randn(D_K // 2, generator=random, dtype=torch.float64)).exp()
    angle = 2 * math.pi * torch.rand(D_K // 2, generator=random, dtype=torch.float64)
    cos, sin = stretch * angle.cos(), stretch * angle.sin()
    return torch.block_diag(*torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2)))


def in_gauge(kind: str, seed: int) -> dict[str, Hook]:
    """Return hooks that put queries and keys of all layers, before their rotation, in gauges drawn for each key head."""
    random = torch.Generator().manual_seed(seed)
    hooks: dict[str, Hook] = {}
    for layer in LAYERS:
        drawn = torch.stack([gauge(kind, random) for _ in range(len(HEADS) // GROUP)])
        place = f"blocks.{layer}.attention"
        hooks |= {f"{place}.query": _times(drawn.repeat_interleave(GROUP, dim=0)), f"{place}.key": _times(torch.linalg.inv(drawn).mT)}
    return hooks


def _times(matrices: Tensor) -> Hook:
    return lambda found: (found.double() @ matrices).to(found)


def run(seed: int, length: int = LENGTH, draws: int = DRAWS) -> dict[str, Any]:
    """Measure perplexities and changes of logits of one text in other gauges, with the rotations and without them."""
    ids = tokens(seed, length)
    trained, unturned = logits(ids), logits(ids, frequencies=[])
    found: dict[str, Any] = {"trained": round(perplexity(trained, ids), 3), "without rotations": round(perplexity(unturned, ids), 1)}
    found["largest logit"] = round(float(trained.abs().max()), 1)
    for kind in GAUGES:
        turned = [logits(ids, hooks=in_gauge(kind, 10 * seed + draw)) for draw in range(draws)]
        free = logits(ids, hooks=in_gauge(kind, 10 * seed), frequencies=[])
        found[kind] = {
            "perplexity": [round(perplexity(scores, ids), 3) for scores in turned],
            "largest change of a logit": [float(f"{(scores - trained).abs().max():.2g}") for scores in turned],
            "without rotations, largest change of a logit": float(f"{(free - unturned).abs().max():.2g}"),
        }
    return found


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    commuting, *rest = (found[kind] for kind in GAUGES)
    return {
        "pairs turned and stretched: logits change by less than 0.01": max(commuting["largest change of a logit"]) < 0.01,
        "any other gauge: four times the perplexity or more": min(min(kind["perplexity"]) for kind in rest) > 4 * found["trained"],
        "without rotations none changes a logit by 0.1": max(found[kind]["without rotations, largest change of a logit"] for kind in GAUGES)
        < 0.1,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 40)
    trained = logits(ids)
    changes = [float((logits(ids, hooks=in_gauge(kind, seed)) - trained).abs().max()) for kind in (GAUGES[0], GAUGES[2])]
    return {"pairs turned and stretched: no change": changes[0] < 0.01, "orthogonal: another model": changes[1] > 1.0}


def run_ranks(seed: int, count: int = 20) -> dict[str, Any]:
    """Measure all heads, and random matrices with this seed."""
    heads, random = of_all_heads(), of_random_ones(seed, count)
    quantiles = {name: np.quantile(rows, (0, 0.1, 0.5, 0.9, 1)).round(1).tolist() for name, rows in heads.items()}
    return {
        "least, tenth, half, nine tenths, largest": quantiles,
        "random matrices": random,
        "by layer and head": heads if not seed else {},
    }


def conclude_ranks(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every draw of random matrices."""
    least, most = min(found["random matrices"]), max(found["random matrices"])
    forms, maps = found["least, tenth, half, nine tenths, largest"].values()
    return {
        "random matrices of this shape: above 56": least > 56.0,
        "W_Q W_K^T: every head below": forms[4] < least,
        "half of the heads below 45": forms[2] < 45.0,
        "W_V W_O: half of the heads above 45": maps[2] > 45.0,
        "and some above every random one": maps[4] > most,
    }


def quick_ranks(seed: int) -> dict[str, bool]:
    """Say of one head and one pair of random matrices what holds there."""
    layer, head = 13, 8
    own = model().layer(layer)
    gain = torch.from_numpy(own.gain)[:, None]
    query = gain * torch.from_numpy(own.w_query).split(D_K, dim=1)[head]
    key = gain * torch.from_numpy(own.w_key).split(D_K, dim=1)[head // GROUP]
    return {"below a random one": effective_rank(singular_values(query, key)) < of_random_ones(seed, 1)[0]}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
RANKS = Experiment("results/smollm2_ranks.json", run_ranks, conclude_ranks, quick_ranks, needs_model=True)
EXPERIMENTS = [SMOLLM2, RANKS]
