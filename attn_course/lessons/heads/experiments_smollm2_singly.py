"""Lesson heads: every head of a real language model silenced by itself."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, HEADS, LAYERS, logits, logits_from, losses, silence, streams, tokens

LENGTH, FROM = 128, 32


def one_by_one(ids: Tensor, layers: Iterable[int], heads: Iterable[int] = HEADS) -> tuple[Tensor, Tensor]:
    """Return the change of each token's loss, (layers, heads, tokens), and the loss as it is."""
    start, entering = losses(logits(ids), ids, FROM), streams(ids)

    def change(layer: int, head: int) -> Tensor:
        scores = logits_from(layer, entering[layer], hooks=silence([(layer, head)]))
        return losses(scores, ids, FROM) - start

    return torch.stack([torch.stack([change(layer, head) for head in heads]) for layer in layers]), start


def run(seed: int, layers: Iterable[int] = LAYERS) -> dict[str, Any]:
    """Silence each head of these layers while the model reads the start of one text."""
    changes, start = one_by_one(tokens(seed, LENGTH), layers)
    percent = 100 * changes.mean(-1).expm1()  # of perplexity
    error = 100 * changes.std(-1) / changes.shape[-1] ** 0.5
    largest = percent.flatten().topk(5).indices.tolist()
    names = [f"{layer}.{head}" for layer in layers for head in HEADS]
    return {
        "trained": round(float(start.mean().exp()), 3),
        "percent more": percent.double().numpy().round(1).tolist(),
        "standard error, median": round(float(error.median()), 2),
        "less than 1 percent more": int((percent < 1.0).sum()),
        "less than before": int((percent < 0.0).sum()),
        "more by over two standard errors": int((percent > 2 * error).sum()),
        "largest": {names[number]: [round(float(each.flatten()[number]), 1) for each in (percent, error)] for number in largest},
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    percent = np.array(found["percent more"])
    return {
        "half of the heads cost less than 2 percent": bool(np.median(percent) < 2.0),
        "three quarters less than 5 percent": bool(np.quantile(percent, 0.75) < 5.0),
        "the largest cost is more than a tenth": bool(percent.max() > 10.0),
        "one of the five that cost most is in layer 0 or 1": any(name.split(".")[0] in "01" for name in found["largest"]),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of two heads on the start of one text what holds there."""
    changes, _ = one_by_one(tokens(seed % len(BY_TEXT), 64), (29,), (0, 1))
    return {"two heads of the last layer cost less than a tenth": float(changes.mean(-1).expm1().max()) < 0.1}


SINGLY = Experiment("results/smollm2_singly.json", run, conclude, quick, seeds=BY_TEXT[:3], needs_model=True)
EXPERIMENTS = [SINGLY]
