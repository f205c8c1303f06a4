"""Lesson softmax: the temperature of a real language model's next token."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, START, logits, losses, model, tokens

LENGTH = 448
TEMPERATURES = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0)
SHOWN = (0.5, 1.0, 2.0)
STARTS = ("The capital of France is", "Once upon a time there was a", "The sun rises in the", "She opened the door and saw")  # one a text


def needed(weights: Tensor, share: float = 0.9) -> Tensor:
    """Return how many of the likeliest entries of each row hold this share together."""
    return (weights.sort(-1, descending=True).values.cumsum(-1) < share).sum(-1) + 1


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row in bits."""
    return torch.special.entr(weights).sum(-1) / torch.tensor(2.0).log()


def rows_at(scores: Tensor, temperature: float) -> dict[str, float]:
    """Return the mean entropy, the mean largest weight and the median number of words that hold 90 %, over rows of logits."""
    weights = (scores / temperature).softmax(-1)
    return {
        "entropy, bits": round(float(entropy(weights).mean()), 3),
        "largest weight": round(float(weights.amax(-1).mean()), 4),
        "words that hold 90 %": int(needed(weights).median()),
    }


def at_the_end(start: str) -> dict[str, Any]:
    """Return the likeliest next words of a start, and how their weights and the number of words that hold 90 % go with temperature."""
    scores = logits(model().ids(start), last=True)
    best, words = scores.topk(3)
    found: dict[str, Any] = {"start": start, "words": [model().tokenizer.decode([word]) for word in words.tolist()]}
    found["scores"] = [round(score, 2) for score in best.tolist()]
    for temperature in SHOWN:
        weights = (scores / temperature).softmax(-1)
        found[f"{temperature:g}"] = {
            "weights": [round(weight, 4) for weight in weights[words].tolist()],
            "words that hold 90 %": int(needed(weights)),
        }
    return found


def run(seed: int, length: int = LENGTH) -> dict[str, Any]:
    """Measure one text, and the end of one start, by temperature; the best one on both halves of the text as a control."""
    ids = tokens(seed, length)
    scores = logits(ids)
    by_token = torch.stack([losses(scores / temperature, ids) for temperature in TEMPERATURES])
    halves = by_token.tensor_split(2, dim=-1)
    best = [TEMPERATURES[int(part.mean(-1).argmin())] for part in (by_token, *halves)]
    return {
        "perplexity": {f"{t:g}": round(float(loss.mean().exp()), 3) for t, loss in zip(TEMPERATURES, by_token, strict=True)},
        "best": best[0],
        "best in each half": best[1:],
        "rows": {f"{temperature:g}": rows_at(scores[START:], temperature) for temperature in SHOWN},
        "likeliest right": round(float((scores[START - 1 : -1].argmax(-1) == ids[START:]).float().mean()), 4),
        "at the end of a start": at_the_end(STARTS[seed]),
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    low, one, high = found["rows"].values()
    ends = [found["at the end of a start"][f"{temperature:g}"]["words that hold 90 %"] for temperature in SHOWN]
    return {
        "perplexity is least near the temperature of training": 0.9 <= found["best"] <= 1.2,
        "at 0.5 and at 2 it is higher": found["perplexity"]["1"] < min(found["perplexity"][t] for t in ("0.5", "2")),
        "entropy grows with temperature": low["entropy, bits"] < one["entropy, bits"] < high["entropy, bits"],
        "at 2 the middle row needs a thousand words for 90 %": high["words that hold 90 %"] > 1000,
        "at 0.5 fewer than ten": low["words that hold 90 %"] < 10,
        "behind the start, too, more words by temperature": ends[0] < ends[1] < ends[2],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of one start what holds there."""
    found = at_the_end(STARTS[seed % len(STARTS)])
    counts = [found[f"{temperature:g}"]["words that hold 90 %"] for temperature in SHOWN]
    return {"more words hold 90 % at a higher temperature": counts[0] < counts[1] < counts[2]}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
