"""Lesson induction: the training that the reader runs, the maps of its two heads on the way, and what the second layer needs."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.lessons.induction.experiments import RATE, Copier, looks, loss_of, repeating, tested, twice

STEPS, EVERY = 300, 25
DRAWN, SHOWN = 0, (150, 175, 200, 300)  # the seed and the steps whose maps are drawn: those of other seeds are not stored
ROLES = ("query", "key", "value")


@torch.no_grad()
def read(model: Copier, texts: Tensor, **changes: Any) -> tuple[float, list[Tensor]]:
    """Return the share of right words, and the mean weights (heads, 2 n, 2 n) of each layer, with the `changes` of `forward`."""
    maps: list[Tensor] = []
    model(texts, maps=maps, **changes)
    return tested(model, texts, **changes)["copied"], [weights.mean(0) for weights in maps]


def percents(weights: Tensor) -> list[list[int]]:
    """Return the rows of a causal map up to the diagonal, as whole percents."""
    return [[round(100 * float(w)) for w in row[: place + 1]] for place, row in enumerate(weights)]


def run(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train as the lesson does; "way": what is right and the largest weights, by step; "word only": the same at the end, by role."""
    generator, texts = torch.Generator().manual_seed(seed), twice(torch.Generator().manual_seed(9))
    model = Copier(generator=generator)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    found = []
    for step in range(steps + 1):
        if step % EVERY == 0:
            found.append((step, *read(model, texts)))
        optimiser.zero_grad()
        loss_of(model, repeating(generator)).backward()
        if step < steps:
            optimiser.step()
    back, score = (int(looks(layer)[which].argmax()) for layer, which in zip(found[-1][2], (1, 0), strict=True))
    shares = {role: read(model, texts, word_only=[role]) for role in ROLES}
    return {
        "way": {
            "step": [step for step, *_ in found],
            "copied": [copied for _, copied, _ in found],
            "before": [round(float(looks(maps[0])[1].max()), 3) for *_, maps in found],
            "induction": [round(float(looks(maps[1])[0].max()), 3) for *_, maps in found],
        },
        "word only": {
            role: {"copied": copied, "induction": round(float(looks(maps[1])[0].max()), 3)} for role, (copied, maps) in shares.items()
        },
        "heads": [back, score],
        "maps": {
            str(step): [percents(maps[0][back]), percents(maps[1][score])] for step, _, maps in found if seed == DRAWN and step in SHOWN
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every seed."""
    way, alone = found["way"], found["word only"]
    return {
        "copies at the end, as it did not at half of the training": way["copied"][-1] > 0.8 > 0.3 > way["copied"][STEPS // EVERY // 2],
        "both heads are there": min(way["before"][-1], way["induction"][-1]) > 0.6,
        "keys of words alone: no copying, no induction head": max(alone["key"].values()) < 0.15,
        "queries or values of words alone: both": min(min(alone[role].values()) for role in ("query", "value")) > 0.6,
    }


@torch.no_grad()
def quick(seed: int) -> dict[str, bool]:
    """Say of a fresh model that its maps are stored as rows of percents that grow, and that values of words alone leave the weights."""
    model, texts = Copier(generator=torch.Generator().manual_seed(seed)), twice(torch.Generator().manual_seed(seed))[:4]
    _, maps = read(model, texts)
    rows, same = percents(maps[1][0]), read(model, texts, word_only=["value"])[1]
    return {
        "as long as the row is": [len(row) for row in rows] == list(range(1, texts.shape[1] + 1)),
        "a hundred percent": all(abs(sum(row) - 100) <= len(row) for row in rows),
        "values do not tell where to look": torch.allclose(maps[1], same[1]),
    }


MAPS = Experiment("results/maps.json", run, conclude, quick)
EXPERIMENTS = [MAPS]
