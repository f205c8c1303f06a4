"""Lesson linear: how far the keys of a real language model overlap, and what it guesses if its softmax is left out."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, TOKENS, attending, logits, perplexity, tokens
from attn_course.modules.linear import elu_features, unit_features


def overlap(keys: Tensor) -> Tensor:
    """Return the mean square of the dot products of different keys, brought to length 1."""
    unit = unit_features(keys)
    n = keys.shape[-2]
    return ((unit @ unit.mT).square().sum((-1, -2)) - n) / (n * (n - 1))


def without_softmax(average: bool) -> Any:
    """In all layers weigh by positive features, Eq. normalised-linear-attention, or give all visible tokens the same weight."""

    def attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Any:
        keys, values = (array.repeat_interleave(GROUP, dim=-3) for array in (key, value))
        kernel = elu_features(query / D_K**0.5) @ elu_features(keys).mT
        weights = (torch.ones_like(kernel) if average else kernel).tril()
        return weights @ values / weights.sum(-1, keepdim=True)

    return attend


def run(seed: int, count: int = TOKENS) -> dict[str, Any]:
    """Measure the overlap of the keys in each head of each layer of one text, and perplexities with and without softmax."""
    ids, keys = tokens(seed, count), []

    def watched(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        keys.append(key)
        return attending(query, key, value, **options)

    scores = {
        "softmax": logits(ids, attend=watched),
        "features, in all layers": logits(ids, attend=without_softmax(False)),
        "plain averages, in all layers": logits(ids, attend=without_softmax(True)),
    }
    found = torch.stack(keys)
    ways = {"as they are": found, "less their mean": found - found.mean(-2, keepdim=True)}
    return {
        "overlap": {way: round(overlap(each).median().item(), 3) for way, each in ways.items()},
        "least overlap": round(overlap(found).min().item(), 3),
        "perplexity": {way: round(perplexity(each, ids), 1) for way, each in scores.items()},
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text, and in the start of one."""
    real, guessing = found["overlap"], found["perplexity"]
    averages = guessing["plain averages, in all layers"]
    return {
        "keys overlap more than 5 times as much as random ones in every head": found["least overlap"] > 5 / D_K,
        "without their mean less than a fifth of it is left": real["less their mean"] < real["as they are"] / 5,
        "without softmax it cannot guess": guessing["features, in all layers"] > 10 * guessing["softmax"],
        "and plain averages do about the same": 2 / 3 < guessing["features, in all layers"] / averages < 3 / 2,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    return conclude(run(seed, count=128))


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
