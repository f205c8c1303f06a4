"""Lesson transformer: small models that learn to tell stories, and where the norm stands in a deep one."""

from typing import Any

import torch

from attn_course.experiments.core import Experiment
from attn_course.experiments.stories import FLOOR, LENGTH, STORIES, WORDS, tables, text
from attn_course.experiments.storytellers import BATCH, STEPS, loss_of, new_model, trained
from attn_course.modules.transformer import Transformer

TOLD = 500  # stories that a trained model tells
VERY_DEEP, DEEP, DEEP_STEPS, RATES = 48, 12, 100, (1e-3, 1e-2)


@torch.no_grad()
def tells(model: Transformer, seed: int) -> float:
    """Return the share of stories, drawn word by word at temperature 1, that are stories of the grammar."""
    start = torch.full((TOLD, 1), WORDS.index("."))
    told = model.generate(start, LENGTH, temperature=1.0, generator=torch.Generator().manual_seed(seed))
    right = {*STORIES}
    return sum(text(row[1:]) in right for row in told) / TOLD


MODELS: dict[str, dict[str, Any]] = {
    "two blocks": {},
    "one block": {"n_blocks": 1},
    "one block, unturned": {"n_blocks": 1, "rope_theta": None},
    "mask forgotten": {"is_causal": False},
    "targets not shifted": {},
}


def stories(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train each model; "loss" is that of stories never read, by model, "true" the share of what it tells that is right."""
    found: dict[str, dict[str, float]] = {"loss": {}, "true": {}}
    for name, options in MODELS.items():
        model, shift = new_model(seed, **options), 0 if name == "targets not shifted" else 1
        trained(model, seed, steps=steps, shift=shift)
        with torch.no_grad():
            found["loss"][name] = round(float(loss_of(model, tables()[1], shift)), 4)
        found["true"][name] = tells(model, seed)
    return found | {"floor": round(FLOOR, 4)}


def conclude(found: dict[str, Any]) -> dict[str, Any]:
    """Return which losses are below the floor, and which models tell most stories right."""
    below = [name for name, loss in found["loss"].items() if loss < found["floor"]]
    return {"below the floor": below, "tells most right": [name for name, share in found["true"].items() if share > 0.5]}


def quick(seed: int) -> dict[str, bool]:
    """Say after 60 steps whether only the two mistakes have losses below the floor."""
    found = {name: new_model(seed, **options) for name, options in MODELS.items() if "n_blocks" not in options}
    losses = {}
    for name, model in found.items():
        shift = 0 if name == "targets not shifted" else 1
        trained(model, seed, steps=60, shift=shift)
        with torch.no_grad():
            losses[name] = float(loss_of(model, tables()[1][:100], shift))
    return {
        "above the floor": losses["two blocks"] > FLOOR,
        "without a mask below": losses["mask forgotten"] < FLOOR,
        "without a shift below": losses["targets not shifted"] < FLOOR,
    }


PLACES = {"norm first": True, "norm behind the sum": False}
WAYS = [(place, drawn) for place in PLACES for drawn in ("undivided", "divided")]


def deep_model(seed: int, n_blocks: int, place: str, drawn: str) -> Transformer:
    """Return a deep model: where its norms stand, and whether the last matrix of each part is "divided" by sqrt(2 n_blocks) at the start.

    The numbers drawn are the same in all four.
    """
    first = PLACES[place]
    model = new_model(seed, n_blocks, norm_first=first)  # the course divides where the norm stands first, and only there
    factor = (2 * n_blocks) ** (0.5 * (first - (drawn == "divided")))
    with torch.no_grad():
        for block in model.blocks:
            for last in (block.attention.w_output, block.feed_forward.w_out):  # type: ignore[union-attr]  # torch says less of its modules
                last.mul_(factor)  # type: ignore[operator]
    return model


def gradients(seed: int, place: str, drawn: str, n_blocks: int = VERY_DEEP) -> list[float]:
    """Return the length of the gradient of each block's first weights of hidden units, before any training."""
    model = deep_model(seed, n_blocks, place, drawn)
    loss_of(model, tables()[0][:BATCH]).backward()
    return [float(block.feed_forward.w_in.grad.norm()) for block in model.blocks]  # type: ignore[union-attr, operator]


def places(seed: int) -> dict[str, Any]:
    """Compare both places of the norm, each divided and not: "gradients" of 48 blocks at the start, "loss" of 12 trained at each rate."""
    found: dict[str, Any] = {"gradients": {}, "loss": {}}
    for way in WAYS:
        name = ", ".join(way)
        found["gradients"][name] = [float(f"{length:.3g}") for length in gradients(seed, *way)]
        found["loss"][name] = {}
        for rate in RATES:
            model = deep_model(seed, DEEP, *way)
            trained(model, seed, steps=DEEP_STEPS, rate=rate)
            with torch.no_grad():
                found["loss"][name][str(rate)] = round(float(loss_of(model, tables()[1][:200])), 3)
    return found


def conclude_places(found: dict[str, Any]) -> dict[str, Any]:
    """Return in which models the first block gets more than a hundred times the gradient of the last one."""
    return {name: lengths[0] > 100 * lengths[-1] for name, lengths in found["gradients"].items()}


def quick_places(seed: int) -> dict[str, bool]:
    """Say of 24 blocks that the first one gets far more gradient than the last only if the norm stands behind an undivided sum."""
    grows = {way: (found := gradients(seed, *way, 24))[0] > 20 * found[-1] for way in WAYS}
    return {", ".join(way): much == (way == ("norm behind the sum", "undivided")) for way, much in grows.items()}


STORYTELLERS = Experiment("results/storytellers.json", stories, conclude, quick)
PLACE = Experiment("results/place.json", places, conclude_places, quick_places)
EXPERIMENTS = [STORYTELLERS, PLACE]
