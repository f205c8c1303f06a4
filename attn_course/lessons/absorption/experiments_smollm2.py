"""Lesson absorption: which changes of gauge a real language model survives."""

import math
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, HEADS, LAYERS, logits, perplexity, tokens
from attn_course.modules.hooks import Hook

LENGTH = 256
GAUGES = ("pairs turned and stretched", "each pair by any matrix", "orthogonal", "any")
DRAWS = 2  # of each kind of gauge, for each text


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


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
