"""Lesson masking: the causal mask of a real language model taken away, in all layers, by one token, and in one layer at a time."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, START, TOKENS, attending, logits, logits_from, perplexity, tokens

LAYERS = tuple(range(30))
CUTS = (20, 100, 400)  # from here on the words of a text are exchanged


def _seeing(ahead: int, layers: tuple[int, ...]) -> Any:
    """In these layers every token also sees so many behind it."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        changed = {"is_causal": False, "window": (None, ahead)} if layer in layers else {}
        return attending(query, key, value, **options | changed)

    return attend


def run(seed: int, count: int = TOKENS, layers: tuple[int, ...] = LAYERS) -> dict[str, Any]:
    """Measure perplexities of one text with the mask, without it, with a mask that is one token too wide, and without it in one layer."""
    ids = tokens(seed, count)

    def losses(scores: Tensor) -> dict[str, float]:
        right = (scores[START - 1 : -1].argmax(-1) == ids[START:]).float().mean()
        return {"perplexity": round(perplexity(scores, ids), 3), "right": round(float(right), 4)}

    def without_in(layer: int) -> float:
        return losses(logits_from(layer, entering[layer], attend=_seeing(count, (layer,))))["perplexity"]

    entering: list[Tensor] = []
    watch = {"embedded": entering.append} | {f"blocks.{layer}.stream": entering.append for layer in LAYERS}
    causal = logits(ids, hooks=watch)
    other = ids.clone()
    leaks = {}
    for cut in (cut for cut in CUTS if cut < count):
        other[cut:] = torch.randint(1000, 20_000, (count - cut,), generator=torch.Generator().manual_seed(seed))
        changed = (logits(other) - causal)[:cut].abs().max()
        leaks[str(cut)] = float(changed)
        other = ids.clone()
    return {
        "masked": losses(causal),
        "no mask": losses(logits(ids, attend=_seeing(count, LAYERS))),
        "next token visible": losses(logits(ids, attend=_seeing(1, LAYERS))),
        "no mask in one layer": {str(layer): without_in(layer) for layer in layers},
        "change of earlier logits with the mask": leaks,
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    masked = found["masked"]["perplexity"]
    return {
        "with the next token visible it is a better guesser": found["next token visible"]["perplexity"] < 0.75 * masked,
        "off in layer 18 alone, or in 20 alone, it is a better guesser": max(found["no mask in one layer"][layer] for layer in ("18", "20"))
        < 0.95 * masked,
        "later words change nothing before them": max(found["change of earlier logits with the mask"].values()) == 0.0,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    found = run(seed, count=160, layers=(20,))
    return {
        "with the next token visible it is a better guesser": found["next token visible"]["perplexity"] < found["masked"]["perplexity"],
        "later words change nothing before them": max(found["change of earlier logits with the mask"].values()) == 0.0,
    }


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
