"""Lesson masking: what a leaking mask does to a training: it is too good to be true, and then the model cannot write.

Each text is a random half of 8 symbols, and its translation by a fixed code. Nobody can tell a random symbol before it is
there, so an honest model that has learnt the code tells 8 symbols for certain and 7 by chance.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend

SYMBOLS, HALF = 8, 8
D_MODEL, D_K, D_HIDDEN = 32, 16, 64
BATCH, STEPS, LEARNING_RATE = 32, 500, 1e-2
TEST_TEXTS = 512
SURE = 0.95
LAST = 20  # batches over which the final loss is averaged
HONEST_LOSS = (HALF - 1) * math.log(SYMBOLS) / (2 * HALF - 1)  # the lowest expected loss without a look ahead, in nats
MASKS = ("right", "one column too wide", "transposed", "after the softmax", "softmax over the queries")


def masked_weights(scores: Tensor, kind: str) -> Tensor:
    """Return attention weights with the causal mask put on rightly, or in one of four wrong ways.

    `scores` (..., length, length): rows are queries. `kind`: one of `MASKS`. Returns `weights` (..., length, length): rows sum to
    1 for the first three kinds only. Raises ValueError if there is no such kind.
    """
    if kind not in MASKS:
        raise ValueError(f"kind must be one of {MASKS}; got {kind!r}")
    length = scores.shape[-1]
    seen = torch.ones(length, length, dtype=torch.bool).tril(1 if kind == "one column too wide" else 0)
    if kind == "transposed":
        seen = seen.T
    if kind == "after the softmax":
        return scores.softmax(dim=-1) * seen
    return scores.masked_fill(~seen, -math.inf).softmax(dim=-2 if kind == "softmax over the queries" else -1)


class NextToken(nn.Module):
    """One head of attention and a small network; row i gives the logits of the symbol that follows position i.

    `kind`: how the mask is put on: one of `MASKS`.
    """

    def __init__(self, kind: str, generator: torch.Generator) -> None:
        super().__init__()

        def normal(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))

        self.kind = kind
        self.tokens = nn.Parameter(torch.randn(SYMBOLS, D_MODEL, generator=generator))
        self.places = nn.Parameter(torch.randn(2 * HALF, D_MODEL, generator=generator))
        self.w_query, self.w_key = normal(D_MODEL, D_K), normal(D_MODEL, D_K)
        self.w_value = normal(D_MODEL, D_MODEL)
        self.w_hidden, self.w_logits = normal(D_MODEL, D_HIDDEN), normal(D_HIDDEN, SYMBOLS)

    def forward(self, text: Tensor) -> Tensor:
        """Return logits: (batch, length) -> (batch, length, symbols)."""
        x = self.tokens[text] + self.places[: text.shape[-1]]
        scores = x @ self.w_query @ (x @ self.w_key).mT / math.sqrt(D_K)
        z = x + masked_weights(scores, self.kind) @ (x @ self.w_value)
        return torch.relu(z @ self.w_hidden) @ self.w_logits


def texts(count: int, generator: torch.Generator) -> Tensor:
    """Return random texts, (count, 16): the second half of each translates the first, symbol by symbol."""
    half = torch.randint(SYMBOLS, (count, HALF), generator=generator)
    return torch.cat([half, (3 * half + 1) % SYMBOLS], dim=-1)


def train(model: NextToken, generator: torch.Generator, steps: int = STEPS) -> float:
    """Train a model on fresh texts, all next symbols of a text at once.

    `model`: trained in place. `steps`: batches to see, each once. Returns the mean cross-entropy of the last 20 batches, in nats.
    """

    def loss() -> Tensor:
        text = texts(BATCH, generator)
        return cross_entropy(model(text)[:, :-1].flatten(0, 1), text[:, 1:].flatten())

    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    losses = descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))
    return sum(losses[-LAST:]) / len(losses[-LAST:])


@torch.no_grad()
def evaluate(model: NextToken, generator: torch.Generator) -> dict[str, float]:
    """Evaluate a model twice on fresh texts.

    Returns the share of next symbols told right "in one pass" over whole texts, as in training; of these in the random "first
    half" and in the "second half"; and share of the second half right when it is "written" symbol by symbol.
    """
    text = texts(TEST_TEXTS, generator)
    right = (model(text)[:, :-1].argmax(dim=-1) == text[:, 1:]).float()
    written = text[:, :HALF]
    for _ in range(HALF):
        written = torch.cat([written, model(written)[:, -1:].argmax(dim=-1)], dim=-1)
    shares = {
        "in one pass": right.mean(),
        "first half": right[:, : HALF - 1].mean(),
        "second half": right[:, HALF - 1 :].mean(),
        "written": (written[:, HALF:] == text[:, HALF:]).float().mean(),
    }
    return {name: round(float(share), 3) for name, share in shares.items()}


def leaking_masks(seed: int, masks: Sequence[str] = MASKS, steps: int = STEPS) -> dict[str, Any]:
    """Train a model with each mask and evaluate it; `seed` gives the first weights and the texts."""
    found = {}
    for kind in masks:
        generator = torch.Generator().manual_seed(seed)
        model = NextToken(kind, generator)
        loss = train(model, generator, steps)
        found[kind] = {"loss": round(loss, 3), **evaluate(model, generator)}
    return found


def conclude(found: dict[str, Any]) -> dict[str, dict[str, bool]]:
    """Say for each mask whether the model tells random symbols before they are there, and whether it has learnt to write."""
    return {
        kind: {"knows the random half": shares["first half"] > SURE, "writes the second half": shares["written"] > SURE}
        for kind, shares in found.items()
    }


def quick(seed: int) -> dict[str, bool]:
    """Say after a fifth of the steps whether a mask that is one column too wide looks better in training, and cannot write."""
    honest, leaking = leaking_masks(seed, MASKS[:2], STEPS // 5).values()
    return {
        "the leaking mask has a loss below the honest one": leaking["loss"] < HONEST_LOSS < honest["loss"],
        "it knows the random half": leaking["first half"] > 0.8 > 0.3 > honest["first half"],
        "it writes worse": leaking["written"] < 0.3 < honest["written"],
    }


LEAKS = Experiment("results/leaks.json", leaking_masks, conclude, quick)
EXPERIMENTS = [LEAKS]
