"""Lesson heads: naming both neighbours of a position, with one head and with several; what each head does; heads that are shared later."""

from typing import Any

import torch

from attn_course.experiments.core import Experiment
from attn_course.experiments.neighbours import STEPS, TEST_EXAMPLES, Neighbours, accuracies, shared, texts, train


@torch.no_grad()
def without_head(model: Neighbours, head: int, generator: torch.Generator) -> list[float]:
    """Return the accuracies when the rows of W_O that belong to one head are zero."""
    rows = slice(head * model.attention.d_v, (head + 1) * model.attention.d_v)
    kept = model.attention.w_output[rows].clone()
    model.attention.w_output[rows] = 0.0
    found = accuracies(model, generator)
    model.attention.w_output[rows] = kept
    return found


MODELS: dict[str, dict[str, Any]] = {
    "one head": {"n_heads": 1},
    "one head, then a network": {"n_heads": 1, "hidden": True},
    "two heads": {"n_heads": 2},
}


def heads(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train each model, and look at the heads of the one that has two.

    `seed`: of the first weights and of the texts. Returns "accuracies": before, after, both, by model. "maps": the mean weights
    of the two heads. "without head": accuracies of the model with two heads when one of them is silent.
    """
    generator = torch.Generator().manual_seed(seed)
    models = {name: Neighbours(generator=generator, **options) for name, options in MODELS.items()}
    for model in models.values():
        train(model, generator, steps)
    pair = models["two heads"]
    with torch.no_grad():
        maps = pair.weights(texts(TEST_EXAMPLES, generator)[0]).mean(dim=0)
    return {
        "accuracies": {name: accuracies(model, generator) for name, model in models.items()},
        "maps": maps.tolist(),
        "without head": [without_head(pair, head, generator) for head in range(2)],
    }


def conclude_heads(result: dict[str, Any]) -> dict[str, Any]:
    """Return how often both neighbours are named, and what becomes of each when a head is silent."""
    both = {name: found[-1] for name, found in result["accuracies"].items()}
    silent = sorted([round(share, 1) for share in found[:2]] for found in result["without head"])
    return {
        "one head names both": round(both["one head"], 1),
        "a network behind one head helps": both["one head, then a network"] > 0.5,
        "two heads name both": round(both["two heads"], 1),
        "before and after, one head silent": silent,
    }


WAYS = ("mean", "first", "random")
UPTRAINING = (0, 5, 20)  # steps after the conversion, in percent of those before


def sharing(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train four heads, convert them to two and to one key head in each way, and train on.

    `seed`: of the first weights and of the texts. Returns "steps": those after the conversion. "four heads": how often both
    neighbours are named before it. "two key heads" and "one key head": how often after these steps, by the way of conversion.
    """
    generator = torch.Generator().manual_seed(seed)
    model = Neighbours(4, generator)
    train(model, generator, steps)
    later = [steps * percent // 100 for percent in UPTRAINING]
    result: dict[str, Any] = {"steps": later, "four heads": accuracies(model, generator)[-1]}
    for name, n_kv_heads in (("two key heads", 2), ("one key head", 1)):
        result[name] = {how: _uptrained(shared(model, n_kv_heads, how, generator), later, generator) for how in WAYS}
    return result


def _uptrained(model: Neighbours, steps: list[int], generator: torch.Generator) -> list[float]:
    found = []
    for before, after in zip((0, *steps[:-1]), steps, strict=True):
        train(model, generator, after - before)
        found.append(accuracies(model, generator)[-1])
    return found


def conclude_sharing(result: dict[str, Any]) -> dict[str, Any]:
    """Return which conversion is ahead after 5 % more steps, and whether sharing costs anything in the end."""
    ranking = {name: sorted(WAYS, key=lambda how: -result[name][how][1]) for name in ("two key heads", "one key head")}
    return {
        "best after 5 %": ranking,
        "one key head from the mean, at once: below half": result["one key head"]["mean"][0] < 0.5,
        "one key head from the mean, after 20 %": round(result["one key head"]["mean"][-1], 1),
    }


def quick_heads(seed: int) -> dict[str, bool]:
    """Say after a third of the steps whether two heads name both neighbours where one head cannot."""
    both = {name: found[-1] for name, found in heads(seed, STEPS // 3)["accuracies"].items()}
    return {
        "one head names both in less than a third": both["one head"] < 1 / 3,
        "two heads name both in more than two thirds": both["two heads"] > 2 / 3,
    }


def quick_sharing(seed: int) -> dict[str, bool]:
    """Say after a third of the steps whether a key head from the mean learns faster than a random one."""
    result = sharing(seed, STEPS // 3)
    return {
        f"{name}: the mean is ahead of a random head": result[name]["mean"][1] > result[name]["random"][1]
        for name in ("two key heads", "one key head")
    }


HEADS = Experiment("results/heads.json", heads, conclude_heads, quick_heads)
SHARING = Experiment("results/sharing.json", sharing, conclude_sharing, quick_sharing)
EXPERIMENTS = [HEADS, SHARING]
