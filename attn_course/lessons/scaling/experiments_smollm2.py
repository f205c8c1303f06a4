"""Lesson scaling: the scale of a trained language model changed, and how far the scores of its rows spread."""

import math
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, START, attending, logits, maps, mean, perplexity, tokens

LENGTH = 320
FACTORS = (0.5, 0.85, 1.0, 1.2, 2.0, 8.0)  # of the scale; 8 leaves it out
SHARP = 0.9


def scaled(ids: Tensor, factor: float) -> Tensor:
    """Return the logits with all scores multiplied."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        return attending(query, key, value, **options | {"scale": factor / math.sqrt(D_K)})

    return logits(ids, attend=attend)


def variance_of_rows(scores: Tensor, first: int, visible: int = 0) -> Tensor:
    """Return the variance of each row's scores over the keys from `visible` up to its own position, for the rows from `first` on."""
    rows = torch.arange(scores.shape[-2])[:, None]
    columns = torch.arange(scores.shape[-1])
    seen = ((columns <= rows) & (columns >= visible))[first:]
    scores, count = torch.where(seen, scores[..., first:, :], 0.0), seen.sum(-1)
    average = scores.sum(-1) / count
    return torch.where(seen, scores - average[..., None], 0.0).square().sum(-1) / count


def spread(ids: Tensor, first: int) -> dict[str, list[float]]:
    """Return the mean variance of a row's scaled scores for each layer, over all keys and without the first."""
    found: dict[str, list[float]] = {"all keys": [], "without the first": []}

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        scores = query @ key.repeat_interleave(GROUP, dim=-3).mT / math.sqrt(D_K)
        for name, visible in (("all keys", 0), ("without the first", 1)):
            found[name].append(round(float(variance_of_rows(scores, first, visible).mean()), 3))
        return attending(query, key, value, **options)

    logits(ids, last=True, attend=attend)
    return found


def sharp_rows(ids: Tensor, first: int) -> dict[str, float]:
    """Return how many rows have a weight above SHARP: as they are, that weight on the first key, and with the same scores eight times."""

    def look(weights: Tensor) -> tuple[Tensor, ...]:
        rows = weights[:, first:]
        largest = rows.max(-1)
        eightfold = 1.0 / (rows / largest.values[..., None]).double().pow(8).sum(-1)  # softmax of 8 s is softmax of s to the 8th, normed
        sharp = largest.values > SHARP
        return tuple(each.float().mean() for each in (sharp, sharp & (largest.indices == 0), eightfold > SHARP))

    names = ("as it is", "on the first key", "the same scores times 8")
    return {name: mean(shares) for name, shares in zip(names, zip(*maps(ids, look), strict=True), strict=True)}


def run(seed: int, length: int = LENGTH) -> dict[str, Any]:
    """Measure perplexities of one text by scale, and its rows at the trained one."""
    ids = tokens(seed, length)
    variances = spread(ids, START)
    return {
        "perplexity": {f"{factor:g}": round(perplexity(scaled(ids, factor), ids), 3) for factor in FACTORS},
        "rows above 0.9": sharp_rows(ids, START),
        "variance of a row by layer": variances,
        "median of the layers": {name: round(float(torch.tensor(rows).median()), 2) for name, rows in variances.items()},
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    by_scale, sharp, rest = found["perplexity"], found["rows above 0.9"], found["variance of a row by layer"]["without the first"]
    return {
        "halved: twice the perplexity or more": by_scale["0.5"] > 2 * by_scale["1"],
        "doubled: worse": by_scale["2"] > 1.1 * by_scale["1"],
        "left out: thirty times or more": by_scale["8"] > 30 * by_scale["1"],
        "times 0.85: within a tenth": abs(by_scale["0.85"] / by_scale["1"] - 1) < 0.1,
        "with the scale less than a tenth of the rows are sharp": sharp["as it is"] < 0.1,
        "the same scores times 8: more than six tenths": sharp["the same scores times 8"] > 0.6,
        "trained scores have no variance of 1: above 2 in the middle layer, without the first key too": min(
            found["median of the layers"].values()
        )
        > 2.0,
        "without the first key it is largest in layer 18": max(range(30), key=lambda layer: rest[layer]) == 18,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 80)
    kept, left_out = (perplexity(scaled(ids, factor), ids, 20) for factor in (1.0, 8.0))
    return {"left out: ten times the perplexity or more": left_out > 10 * kept}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
