"""Lesson induction: the training that the reader runs, the maps of its two heads on the way, and what the second layer needs."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.lessons.induction.experiments import RATE, Copier, looks, loss_of, repeating, tested, twice

STEPS, EVERY = 300, 10
DRAWN, SHOWN = 0, (150, 300)  # the seed and the steps whose maps are drawn: those of other seeds are not stored
READ: dict[str, dict[str, Any]] = {role: {"word_only": [role]} for role in ("query", "key", "value")}
READ |= {f"{role}, as long": {"word_only": [role], "as_long": True} for role in ("query", "key")}


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
    shares = {name: read(model, texts, **changes) for name, changes in READ.items()}
    return {
        "way": {
            "step": [step for step, *_ in found],
            "copied": [copied for _, copied, _ in found],
            "before": [round(float(looks(maps[0])[1].max()), 3) for *_, maps in found],
            "induction": [round(float(looks(maps[1])[0].max()), 3) for *_, maps in found],
        },
        "word only": {
            name: {"copied": copied, "induction": round(float(looks(maps[1])[0].max()), 3)} for name, (copied, maps) in shares.items()
        },
        "heads": [back, score],
        "maps": {
            str(step): [percents(maps[0][back]), percents(maps[1][score])] for step, _, maps in found if seed == DRAWN and step in SHOWN
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every seed."""
    way, alone = found["way"], found["word only"]
    rising = [at for at, weight in enumerate(way["before"]) if weight > 0.2]
    return {
        "copies at the end, as it did not at half of the training": way["copied"][-1] > 0.8 > 0.3 > way["copied"][STEPS // EVERY // 2],
        "the head that looks back is ahead of the other once it rises": all(way["before"][at] > way["induction"][at] for at in rising),
        "all three rise in 50 steps": max(_rise(way[name]) for name in ("copied", "before", "induction")) <= 50,
        "both heads are there": min(way["before"][-1], way["induction"][-1]) > 0.6,
        "keys of words alone, as long as before or not: no copying, no induction head": max(
            *alone["key"].values(), *alone["key, as long"].values()
        )
        < 0.15,
        "queries of words alone: the score rises, but not where they are as long as before": alone["query"]["induction"]
        > 0.02 + way["induction"][-1]
        > alone["query, as long"]["induction"],
        "queries or values of words alone: both": min(min(alone[role].values()) for role in ("query", "value")) > 0.6,
    }


def _rise(values: list[float]) -> int:
    """Return how many steps lie between the last value below 0.2 and the first above 0.6."""
    return EVERY * (next(at for at, value in enumerate(values) if value > 0.6) - max(at for at, value in enumerate(values) if value < 0.2))


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
