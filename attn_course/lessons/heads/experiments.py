"""Lesson heads: naming both neighbours of a position, with one head and with two, and where the heads look."""

from typing import Any

import torch

from attn_course.experiments.core import Experiment
from attn_course.experiments.neighbours import OFFSETS, STEPS, TEST_EXAMPLES, Neighbours, accuracies, texts, train

MODELS: dict[str, dict[str, Any]] = {
    "one head": {"n_heads": 1},
    "one head, then a network": {"n_heads": 1, "hidden": True},
    "two heads": {"n_heads": 2},
}


@torch.no_grad()
def looks(model: Neighbours, generator: torch.Generator) -> tuple[list[list[float]], float]:
    """Return the mean weights of each head on the places before and after, and how far one weight differs from text to text.

    The second is a standard deviation, averaged over the places; the largest of the heads and the two sides.
    """
    weights = model.weights(texts(TEST_EXAMPLES, generator)[0])
    sides = torch.stack([weights.roll(-offset, dims=-1).diagonal(dim1=-2, dim2=-1) for offset in OFFSETS])  # (side, text, head, place)
    return sides.mean(dim=(1, 3)).T.tolist(), sides.std(dim=1).mean(dim=-1).max().item()


def heads(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train each model, and look where its heads look.

    `seed`: of the first weights and of the texts. Returns by model, as `looks` and `accuracies` do: "accuracies": before, after, both.
    "looks": mean weights. "spread": how far they differ from text to text.
    """
    generator = torch.Generator().manual_seed(seed)
    models = {name: Neighbours(generator=generator, **options) for name, options in MODELS.items()}
    for model in models.values():
        train(model, generator, steps)
    found = {name: looks(model, generator) for name, model in models.items()}
    return {
        "accuracies": {name: accuracies(model, generator) for name, model in models.items()},
        "looks": {name: means for name, (means, _) in found.items()},
        "spread": {name: spread for name, (_, spread) in found.items()},
    }


def conclude_heads(result: dict[str, Any]) -> dict[str, Any]:
    """Return how often both neighbours are named, and how a head shares its weight out between them."""
    one, behind, two = (result["looks"][name] for name in MODELS)
    return {f"both, {name}": round(each[-1], 1) for name, each in result["accuracies"].items()} | {
        "one head: a tenth or less between its weights": abs(one[0][0] - one[0][1]) < 0.1,
        "one head, then a network: weights": sorted(round(weight, 1) for weight in behind[0]),
        "two heads: weights": sorted([round(weight, 1) for weight in head] for head in two),
        "from text to text they hardly differ": max(result["spread"].values()) < 0.03,
    }


def quick_heads(seed: int) -> dict[str, bool]:
    """Say after a third of the steps whether two heads name both neighbours where one head cannot."""
    both = {name: found[-1] for name, found in heads(seed, STEPS // 3)["accuracies"].items()}
    return {
        "one head names both in less than a third": both["one head"] < 1 / 3,
        "two heads name both in more than two thirds": both["two heads"] > 2 / 3,
    }


HEADS = Experiment("results/heads.json", heads, conclude_heads, quick_heads)
EXPERIMENTS = [HEADS]
