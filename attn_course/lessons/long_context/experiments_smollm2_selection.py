"""Lesson long_context: queries of a real language model average over few keys only; the bound on what that changes, row by row."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, logits, perplexity, tokens

LENGTH = 256
COUNTS = (64, 16, 4)
WAYS = ("top", "newest", "newest and the first", "drawn")


def weights_of(query: Tensor, key: Tensor) -> Tensor:
    """Return the causal weights, (heads, len, len), with a key head for each query head."""
    scores = query @ key.mT / D_K**0.5
    return scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf).softmax(-1)


def selected(weights: Tensor, count: int, way: str, random: torch.Generator) -> Tensor:
    """Return which keys each query keeps, `count` of those it sees."""
    order = {
        "top": lambda: weights,
        "newest": lambda: torch.arange(weights.shape[-1]).float().expand_as(weights),
        "newest and the first": lambda: torch.arange(weights.shape[-1]).float().index_fill(0, torch.tensor(0), 1e6).expand_as(weights),
        "drawn": lambda: torch.rand(weights.shape, generator=random),
    }[way]()
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    best = order.masked_fill(~visible, -torch.inf).topk(min(count, weights.shape[-1]), dim=-1).indices
    return torch.zeros_like(weights, dtype=torch.bool).scatter(-1, best, True) & visible


def bound(weights: Tensor, kept: Tensor, value: Tensor) -> Tensor:
    """Return, for each row, the weight left out times the diameter of the values it sees."""
    distances = torch.cdist(value, value, compute_mode="donot_use_mm_for_euclid_dist")
    diameter = distances.tril().amax(-1).cummax(-1).values
    return (weights * ~kept).sum(-1) * diameter


def on_few(ids: Tensor, count: int, way: str, seed: int) -> dict[str, Any]:
    """Return the perplexity with few keys in all layers, and how the change of each head's output compares with the bound."""
    random, rows = torch.Generator().manual_seed(seed), []

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **_: Any) -> Tensor:
        key, value = (x.repeat_interleave(GROUP, dim=-3) for x in (key, value))
        weights = weights_of(query, key)
        kept = selected(weights, count, way, random)
        few = weights * kept
        output = few / few.sum(-1, keepdim=True) @ value
        change, limit = (weights @ value - output).norm(dim=-1), bound(weights, kept, value)
        behind = slice(count, None)  # rows that see more keys than they keep
        left_out = (weights * ~kept).sum(-1)
        rows.append(torch.stack([left_out, change, limit])[:, :, behind].flatten(1))
        return output

    cost = perplexity(logits(ids, attend=attend), ids)
    left_out, change, limit = torch.cat(rows, dim=1)
    return {
        "perplexity": round(cost, 3),
        "left out": round(float(left_out.mean()), 4),
        "rows": change.numel(),
        "above the bound": int((change > limit * (1 + 1e-4) + 1e-4).sum()),
        "change, part of the bound": round(float((change / limit.clamp_min(1e-9)).median()), 3),
    }


def run(seed: int, length: int = LENGTH, counts: tuple[int, ...] = COUNTS, ways: tuple[str, ...] = WAYS) -> dict[str, Any]:
    """Measure one text with few keys for each query: those with the largest weights, and as a control others."""
    ids = tokens(seed, length)
    few = {str(count): {way: on_few(ids, count, way, seed) for way in ways} for count in counts}
    return {"trained": round(perplexity(logits(ids), ids), 3)} | few


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    few = [found[str(count)] for count in COUNTS]
    cost = [{way: each["perplexity"] for way, each in ways.items()} for ways in few]
    return {
        "the bound holds in every row": sum(each["above the bound"] for ways in few for each in ways.values()) == 0,
        "the top 64: within a tenth": cost[0]["top"] < 1.1 * found["trained"],
        "the top 16 are better than 64 newest": cost[1]["top"] < cost[0]["newest"],
        "at 64 and 16 the top keys are the best of the four": all(ways["top"] == min(ways.values()) for ways in cost[:2]),
        "the newest are better with the first among them": all(ways["newest and the first"] < ways["newest"] for ways in cost),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    found = run(seed % len(BY_TEXT), 64, (8,), ("top",))["8"]["top"]
    return {"the bound holds in every row": found["above the bound"] == 0}


SELECTION = Experiment("results/smollm2_selection.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SELECTION]
