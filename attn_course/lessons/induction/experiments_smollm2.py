"""Lesson induction: at which depth of a real language model its table can read the word that is to be copied."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.copying import BEFORE, EIGHT, copied, repeated
from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import LAYERS, logits, network, others, silence
from attn_course.modules.hooks import Hook


@torch.inference_mode()
def ranks(ids: Tensor, hooks: dict[str, Hook]) -> list[float]:
    """Return the median place of the right next token of the second half, by depth: what goes into layer 0, what leaves each layer."""
    found: list[Tensor] = []
    logits(ids, last=True, hooks={"embedded": found.append} | {f"blocks.{layer}.stream": found.append for layer in LAYERS} | hooks)
    model, half = network(), len(ids) // 2
    right = ids[half + 1 :, None]
    scores = [model.norm(stream[half:-1]) @ model.w_tokens.T for stream in found]
    return [float((each > each.gather(1, right)).sum(-1).add(1).double().quantile(0.5)) for each in scores]


def run(seed: int, words: int = 50) -> dict[str, Any]:
    """Let the model repeat random tokens: as it is, without the eight heads that copy, and without eight others of their layers."""
    ids = repeated(seed, words)
    groups = {"as it is": [], "without the eight": [*EIGHT], "without eight others": others(EIGHT, seed, avoid=BEFORE)}
    return {
        "rank": {name: ranks(ids, silence(heads)) for name, heads in groups.items()},
        "copied": {name: copied(ids, heads) for name, heads in groups.items()},
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every draw."""
    rank, copies = found["rank"], found["copied"]
    return {
        "read at the end": rank["as it is"][-1] == 1.0,
        "behind layer 23, the last with a head of the eight, not yet among the first ten": rank["as it is"][24] > 10,
        "without the eight never among the first ten": min(rank["without the eight"]) > 10,
        "without eight others it is, at the end": rank["without eight others"][-1] < 10,
        "copied as it is, and without the eight": copies["as it is"] > 0.5 > 0.05 > copies["without the eight"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of few tokens what holds there."""
    rank = run(seed, 12)["rank"]
    return {"read at the end": rank["as it is"][-1] < 10, "not without the eight": rank["without the eight"][-1] > 10}


LENS = Experiment("results/smollm2_lens.json", run, conclude, quick, seeds=range(6), needs_model=True)
EXPERIMENTS = [LENS]
