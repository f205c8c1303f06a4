"""Lesson heads: heads of a real language model that look one token back, found by their weights and silenced; nine heads on three keys."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, GROUP, LAYERS, Head, logits, maps, mean, others, perplexity, silence, tokens

LENGTH, FROM = 256, 32  # rows of maps count from here on
COPYING: tuple[Head, ...] = ((17, 3), (17, 4), (17, 5), (18, 6), (18, 7), (20, 6), (23, 2), (23, 7))  # those of the file about copying
BEFORE = ((11, 1), (16, 0))
COUNT, DRAWS = 8, 2


def one_back(weights: Tensor) -> Tensor:
    """Return the mean weight of each head on the token before: (heads,)."""
    return weights.diagonal(-1, -2, -1)[..., FROM - 1 :].mean(-1)


def likeness(weights: Tensor) -> list[float]:
    """Return what two heads' rows have in common, the sum of the smaller weights: with a common key head, and with different ones."""
    rows = weights[:, FROM:]
    pairs = [(a, b) for a in range(len(rows)) for b in range(a)]
    common = torch.tensor([float(torch.minimum(rows[a], rows[b]).sum(-1).mean()) for a, b in pairs])
    together = torch.tensor([a // GROUP == b // GROUP for a, b in pairs])
    return [float(common[together].mean()), float(common[~together].mean())]


def look(ids: Tensor) -> tuple[Tensor, Tensor, list[list[float]]]:
    """Return the mean weights on the token before and on the first, (layers, heads), and for each layer what its heads have in common."""
    found = maps(ids, lambda weights: (one_back(weights), weights[..., FROM:, 0].mean(-1), likeness(weights)))
    return torch.stack([back for back, _, _ in found]), torch.stack([first for _, first, _ in found]), [common for _, _, common in found]


def run(seed: int, length: int = LENGTH) -> dict[str, Any]:
    """Look at all heads of one text; silence those that look one back most, those that copy, and as many others of the same layers."""
    ids = tokens(seed, length)
    back, first, common = look(ids)
    best: list[Head] = [divmod(int(number), 9) for number in back.flatten().topk(COUNT).indices]

    def cost(heads: list[Head]) -> float:
        return round(perplexity(logits(ids, hooks=silence(heads)), ids), 3)

    groups = {"one back": best, "copying": list(COPYING), "11.1 and 16.0": list(BEFORE)}
    return {
        "trained": round(perplexity(logits(ids), ids), 3),
        "one back most": {f"{layer}.{head}": round(float(back[layer, head]), 3) for layer, head in best},
        "above 0.5": {"one back": int((back > 0.5).sum()), "first token": int((first > 0.5).sum())},
        "median": {"one back": round(float(back.median()), 4), "first token": round(float(first.median()), 3)},
        "silenced": {name: cost(heads) for name, heads in groups.items()},
        "others of these layers": {
            name: [cost(others(heads, draw, avoid=[*best, *COPYING, *BEFORE])) for draw in range(DRAWS)] for name, heads in groups.items()
        },
        "in common": {
            "one key head": mean(pair[0] for pair in common),
            "two key heads": mean(pair[1] for pair in common),
            "layers in which the one is larger": sum(pair[0] > pair[1] for pair in common),
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    best, above, common = found["one back most"], found["above 0.5"], found["in common"]
    return {
        "16.0 looks one back most, and 11.1 is among the eight": max(best, key=best.get) == "16.0" and "11.1" in best,
        "more than half: at most six heads look one back, more than fifty at the first token": above["one back"] <= 6
        and above["first token"] > 50,
        "11.1 and 16.0 silenced: a twentieth or more": found["silenced"]["11.1 and 16.0"] > 1.05 * found["trained"],
        "heads with a key head in common look at more of the same": common["one key head"] > common["two key heads"],
        "so in more than two thirds of the layers": common["layers in which the one is larger"] > 2 * len(LAYERS) / 3,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    found = maps(tokens(seed % len(BY_TEXT), 64), one_back)
    return {"head 0 of layer 16 looks one back": float(found[16][0]) > 0.5, "its neighbour less": float(found[16][1]) < 0.5}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
