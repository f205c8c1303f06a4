"""Lesson heads: a real language model repeats 50 random tokens, until the heads that look where it went on last time are silenced."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.copying import EIGHT, WORDS, copied, repeated
from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import HEADS, Head, logits, maps, mean, model, others, silence, tokens

SILENT: dict[str, tuple[Head, ...]] = {
    "no head": (),
    "head 0 of layer 16": ((16, 0),),
    "the eight others of layer 16": tuple((16, head) for head in HEADS[1:]),
    "three others that look one back": ((1, 2), (2, 1), (11, 1)),
}
DRAWS = 3
PIECE = 128  # tokens of the story, the first of the texts; a seed is the number of a piece


def looks(ids: Tensor, further: int = 1) -> Tensor:
    """Return the mean weight (layers, heads) from a repeated token to so many behind its first occurrence."""
    words = len(ids) // 2
    places = torch.arange(words - further)
    return torch.stack(maps(ids, lambda weights: weights[:, words + places, places + further].mean(-1)))


def added(ids: Tensor) -> dict[str, float]:
    """Return the norm of what head 0 of layer 16 adds to the stream in the second round, and of what the eight others add together."""
    found: list[Tensor] = []
    logits(ids, hooks={"blocks.16.attention.heads": found.append})
    rows = torch.tensor(model().layer(16).w_output).float().unflatten(0, (9, -1))
    heads = torch.einsum("thd,hdm->thm", found[0][len(ids) // 2 :], rows)
    return {"head 0": mean([heads[:, 0].norm(dim=-1).median()], 1), "the others": mean([heads[:, 1:].sum(-2).norm(dim=-1).median()], 1)}


def told(seed: int, heads: Sequence[Head] = ()) -> float:
    """Return in which part of a piece of the story the likeliest next token is the right one, with these heads silenced."""
    ids = tokens(0, PIECE * (seed + 1))[PIECE * seed :]
    return mean(logits(ids, hooks=silence(heads))[:-1].argmax(-1) == ids[1:])


def run(seed: int) -> dict[str, Any]:
    """Draw tokens, let the model repeat them, and silence heads.

    The controls: for the eight, as many others of their layers; for head 0, the others of its layer, which together add as much or more;
    for the heads of `SILENT`, a text with little to copy.
    """
    ids = repeated(seed)
    weights, further = looks(ids), looks(ids, 2)
    best: list[Head] = [divmod(int(number), 9) for number in weights.flatten().topk(8).indices]
    drawn = [copied(ids, others(EIGHT, draw)) for draw in range(DRAWS)]
    silenced = {name: copied(ids, heads) for name, heads in ({"eight": EIGHT} | SILENT).items()}
    return {
        "copied": silenced["no head"],
        "in the first half": round(float((logits(ids)[: WORDS - 1].argmax(-1) == ids[1:WORDS]).float().mean()), 4),
        "silenced": silenced,
        "adds": added(ids),
        "story": {name: told(seed, heads) for name, heads in SILENT.items()},
        "others of these layers": {"eight": {"mean": mean(drawn), "least": min(drawn)}},
        "most weight on the token behind": {f"{layer}.{head}": round(float(weights[layer, head]), 3) for layer, head in best},
        "theirs two behind": mean(further[head] for head in best),
        "of the eight among them": sum(head in EIGHT for head in best),
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every draw."""
    silenced, story, drawn = found["silenced"], found["story"], found["others of these layers"]["eight"]
    return {
        "it copies more than half": found["copied"] > 0.5,
        "in the first half there is nothing to copy": found["in the first half"] < 0.05,
        "eight silenced: less than a twentieth": silenced["eight"] < 0.05,
        "eight others: more than half": drawn["mean"] > 0.5 * found["copied"],
        "head 0 of layer 16 silenced: less than a third": silenced["head 0 of layer 16"] < 0.33 * found["copied"],
        "the eight others of layer 16 silenced: more than half": silenced["the eight others of layer 16"] > 0.5 * found["copied"],
        "together they add no less than head 0": found["adds"]["the others"] > found["adds"]["head 0"],
        "three others that look one back: more than three quarters": silenced["three others that look one back"] > 0.75 * found["copied"],
        "the story, any of these silenced: more than three quarters": min(story.values()) > 0.75 * story["no head"],
        "the eight are those with the most weight on the token behind": found["of the eight among them"] == 8,
        "two behind they have next to none": found["theirs two behind"] < 0.05,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of few tokens what holds there."""
    ids = repeated(seed, 20)
    return {"it copies some": copied(ids) > 0.3, "without the eight next to nothing": copied(ids, EIGHT) < 0.15}


COPYING = Experiment("results/smollm2_copying.json", run, conclude, quick, seeds=range(6), needs_model=True)
EXPERIMENTS = [COPYING]
