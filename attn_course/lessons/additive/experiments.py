"""Lesson additive: a dictionary learnt from the output alone, by additive scores and by dot products with and without the scale.

Keys are words, and a layer without value projection has to find the one that the query translates.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.additive import AdditiveAttention
from attn_course.modules.encoder_decoder import DotAttention

BATCH, N_KEYS, D_VALUE = 32, 16, 4
N_WORDS, D_WORD, STEPS, RATE = 32, 32, 450, 3e-3
WIDTHS = (8, 64, 256)
WINDOW, LEARNT = 10, 0.9  # learnt: the largest weight lies on the right key in more than 90 % of the last 10 batches
KINDS = ("additive", "scaled dot", "unscaled dot")


def layer_of(kind: str, d_hidden: int, generator: torch.Generator) -> AdditiveAttention | DotAttention:
    """Return a fresh layer of a kind in KINDS, with `d_hidden` features behind its projections."""
    if kind == "additive":
        return AdditiveAttention(D_WORD, D_WORD, d_hidden, bias=True, generator=generator)
    return DotAttention(D_WORD, D_WORD, d_hidden, scaled=kind == "scaled dot", generator=generator)


class Words:
    """Keys are words and the query is the translation of one of them: two trained tables of embeddings, one for each language."""

    def __init__(self, generator: torch.Generator) -> None:
        self.tables = [nn.Parameter(torch.randn(N_WORDS, D_WORD, generator=generator)) for _ in range(2)]
        self.generator = generator

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (batch, 1, 32), keys (batch, 16, 32) and the right key (batch,)."""
        words = torch.rand(BATCH, N_WORDS, generator=self.generator).argsort(dim=1)[:, :N_KEYS]
        wanted = torch.randint(N_KEYS, (BATCH,), generator=self.generator)
        return self.tables[0][words[torch.arange(BATCH), wanted]][:, None], self.tables[1][words], wanted


def steps_until_learnt(layer: AdditiveAttention | DotAttention, task: Words, steps: int = STEPS) -> int:
    """Train by the squared error of the output, whose right value is random and belongs to the right key, until that is learnt.

    Layer and tables are changed in place. Returns `steps` + 1 if that many batches are not enough.
    """
    rights: list[float] = []

    def loss() -> Tensor:
        query, key, wanted = task.batch()
        value = torch.randn(BATCH, N_KEYS, D_VALUE, generator=task.generator)
        output, weights = layer.attend(query, layer.project_keys(key), value)
        rights.append(float((weights[:, 0].argmax(dim=-1) == wanted).float().mean()))
        return (output[:, 0] - value[torch.arange(BATCH), wanted]).square().mean()

    def learnt() -> bool:
        return len(rights) >= WINDOW and bool(np.mean(rights[-WINDOW:]) > LEARNT)

    descend(torch.optim.Adam([*layer.parameters(), *task.tables], lr=RATE), loss, steps, stop=learnt)
    return len(rights) if learnt() else steps + 1


def lookups(seed: int, widths: Sequence[int] = WIDTHS) -> dict[str, Any]:
    """Train each score at each width; returns kind -> d_hidden -> steps until learnt. `seed`: of weights and batches."""
    found: dict[str, Any] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for width in widths:
            generator = torch.Generator().manual_seed(seed)
            layer = layer_of(kind, width, generator)
            found[kind][str(width)] = steps_until_learnt(layer, Words(generator))
    return found


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no who learns in time; "as fast" means within a factor of two of the steps."""
    said = {}
    for width in map(str, WIDTHS):
        steps = {kind: found[kind][width] for kind in KINDS}
        said[f"d_h = {width}: additive learns"] = steps["additive"] <= STEPS
        said[f"d_h = {width}: scaled dot as fast as additive"] = 0.5 <= steps["scaled dot"] / steps["additive"] <= 2.0
        said[f"d_h = {width}: unscaled dot learns"] = steps["unscaled dot"] <= STEPS
    return said


def quick(seed: int) -> dict[str, bool]:
    """Say at one width whether words are learnt with the scale only."""
    steps = {kind: found["64"] for kind, found in lookups(seed, widths=(64,)).items()}
    return {
        "additive and scaled dot learn": max(steps["additive"], steps["scaled dot"]) <= STEPS,
        "unscaled dot takes twice the steps of scaled dot": steps["unscaled dot"] >= 2 * steps["scaled dot"],
    }


LOOKUPS = Experiment("results/lookups.json", lookups, conclude, quick)
EXPERIMENTS = [LOOKUPS]
