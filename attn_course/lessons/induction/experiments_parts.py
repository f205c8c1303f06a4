"""Lesson induction: which part of a trained storyteller says which word, and what it cannot say without that part."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.stories import COLOURS, DEEDS, WORDS, tables
from attn_course.experiments.storytellers import STEPS, new_model, trained
from attn_course.modules.hooks import hooked
from attn_course.modules.transformer import Transformer

PARTS = {
    "attention 1": "blocks.0.attended",
    "hidden units 1": "blocks.0.fed",
    "attention 2": "blocks.1.attended",
    "hidden units 2": "blocks.1.fed",
}
ASKED = {"deed": (12, tuple(DEEDS.values())), "colour": (14, COLOURS)}  # read up to this word, the next one is one of these


def choices(name: str) -> tuple[int, Tensor]:
    """Return the place of the last word read, and the numbers of the words among which the next one is."""
    place, words = ASKED[name]
    return place, torch.tensor([WORDS.index(word) for word in words])


@torch.no_grad()
def shares(model: Transformer, rows: Tensor, name: str) -> dict[str, float]:
    """Return how much the word itself and each part put the right word ahead of the mean of the other choices, on average."""
    place, among = choices(name)
    found: list[Tensor] = []
    with hooked(model, {"embedded": found.append} | dict.fromkeys(PARTS.values(), found.append)):
        model(rows[:, :-1])
    parts = torch.stack([part[:, place] for part in found])
    root = (parts.sum(dim=0).square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    scores = parts / root * model.norm.weight @ model.w_tokens[among].T  # type: ignore[operator]
    right = (rows[:, place + 1, None] == among).float()
    others = (1.0 - right) / (len(among) - 1)
    ahead = (scores * (right - others)).sum(dim=-1).mean(dim=-1)
    return {part: round(float(share), 2) for part, share in zip(("the word itself", *PARTS), ahead, strict=True)}


@torch.no_grad()
def right_without(model: Transformer, rows: Tensor, name: str, *parts: str) -> float:
    """Return the share of rows in which the right one of the choices has the largest score when these parts add nothing."""
    place, among = choices(name)
    with hooked(model, {PARTS[part]: torch.zeros_like for part in parts}):
        best = among[model(rows[:, :-1])[:, place, among].argmax(dim=-1)]
    return round(float((best == rows[:, place + 1]).float().mean()), 2)


def parts(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train a model; by what is asked, "shares" of each part, "right" as it is, and "right without" each, in stories kept back."""
    model, (_, kept_back) = new_model(seed), tables()
    trained(model, seed, steps=steps)
    return {
        name: {
            "shares": shares(model, kept_back, name),
            "right": right_without(model, kept_back, name),
            "right without": {part: right_without(model, kept_back, name, part) for part in PARTS},
        }
        for name in ASKED
    }


def conclude(found: dict[str, Any]) -> dict[str, str]:
    """Return the part with the largest share in the deed, and the one that can least be spared for it."""
    largest, least = found["deed"]["shares"], found["deed"]["right without"]
    return {"largest share": max(largest, key=largest.__getitem__), "least to be spared": min(least, key=least.__getitem__)}


def quick(seed: int) -> dict[str, bool]:
    """Say after half of the steps that the first attention says little of the deed itself, and is missed."""
    found = parts(seed, STEPS // 2)["deed"]
    return {"says little": found["shares"]["attention 1"] < 1.0, "is missed": found["right without"]["attention 1"] < 0.7}


SHARES = Experiment("results/shares.json", parts, conclude, quick)
EXPERIMENTS = [SHARES]
