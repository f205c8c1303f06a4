"""Lesson induction: attention alone learns to continue what repeats, in two layers (`experiments_maps`), but not in one."""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, rms_norm

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.positional import rotate_pairs

WORDS, D_MODEL, HEADS, D_K = 32, 48, 4, 12
LENGTH, SHORTEST, LONGEST = 48, 8, 24  # of a text, and of what repeats in it
BATCH, RATE, STEPS, EVERY = 32, 1e-2, 600, 25
PERIOD, TEXTS = 16, 200  # of the texts that a model is tested on
TURNS = 100.0 ** (-torch.arange(0, D_K, 2) / D_K)  # radians of each pair of features for each place


class Copier(nn.Module):
    """A Transformer without hidden units: a table, layers of attention with a norm before each, a norm, and a second table that says."""

    def __init__(self, n_layers: int = 2, *, generator: torch.Generator) -> None:
        super().__init__()

        def weight(*size: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*size, generator=generator) / size[-2] ** 0.5)

        self.table = nn.Parameter(torch.randn(WORDS, D_MODEL, generator=generator))
        self.says = weight(D_MODEL, WORDS)
        self.layers = nn.ParameterList(weight(4, D_MODEL, D_MODEL) for _ in range(n_layers))  # query, key, value, output

    def forward(self, ids: Tensor, *, maps: list[Tensor] | None = None, word_only: Collection[str] = (), as_long: bool = False) -> Tensor:
        """Return the scores of each next word.

        `maps`: takes the weights of each layer. `word_only`: which of "query", "key" and "value" read the words themselves in every
        layer, without what layers below added. `as_long`: divide those words by the root mean square of the whole stream, as if it
        were read, and not by their own.
        """
        x = words = self.table[ids]
        places = torch.arange(ids.shape[-1])
        later = places[:, None] < places
        for matrices in self.layers:
            alone = words / x.square().mean(-1, keepdim=True).sqrt() if as_long else rms_norm(words, x.shape[-1:])
            read = {role: alone if role in word_only else rms_norm(x, x.shape[-1:]) for role in ("query", "key", "value")}
            q, k, v = ((row @ w).unflatten(-1, (HEADS, D_K)).swapaxes(-2, -3) for row, w in zip(read.values(), matrices[:3], strict=True))
            q, k = (rotate_pairs(each, places, TURNS, "interleaved") for each in (q, k))
            weights = (q @ k.mT / D_K**0.5).masked_fill(later, -torch.inf).softmax(-1)
            if maps is not None:
                maps.append(weights.detach())
            x = x + (weights @ v).swapaxes(-2, -3).flatten(-2) @ matrices[3]
        return rms_norm(x, x.shape[-1:]) @ self.says


def repeating(generator: torch.Generator) -> Tensor:
    """Draw texts (BATCH, LENGTH): random words, 8 to 24 of them, over and over."""
    period = torch.randint(SHORTEST, LONGEST + 1, (BATCH, 1), generator=generator)
    words = torch.randint(WORDS, (BATCH, LONGEST), generator=generator)
    return words.gather(1, torch.arange(LENGTH) % period)


def loss_of(model: Copier, texts: Tensor) -> Tensor:
    """Return the mean loss of each next word."""
    return cross_entropy(model(texts[:, :-1]).flatten(0, 1), texts[:, 1:].flatten())


def twice(generator: torch.Generator) -> Tensor:
    """Draw texts (TEXTS, 2 PERIOD) to test on: different words, and the same once more."""
    words = torch.stack([torch.randperm(WORDS, generator=generator)[:PERIOD] for _ in range(TEXTS)])
    return torch.cat([words, words], dim=1)


def looks(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return each head's mean weight on the word behind the same one of before, and on the word before, from weights (..., 2 n, 2 n)."""
    half = weights.shape[-1] // 2
    behind = weights.diagonal(1 - half, -2, -1)[..., 1:].mean(-1)  # row half + i, column i + 1
    return behind, weights.diagonal(-1, -2, -1).mean(-1)


@torch.no_grad()
def tested(model: Copier, texts: Tensor, **changes: Any) -> dict[str, Any]:
    """Return the loss and the share of right words behind the first word of the second round, with the `changes` of `forward`."""
    scores, right = model(texts, **changes)[:, PERIOD:-1], texts[:, PERIOD + 1 :]
    loss = cross_entropy(scores.flatten(0, 1), right.flatten())
    return {"loss": round(float(loss), 3), "copied": round(float((scores.argmax(-1) == right).float().mean()), 3)}


def run(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train one layer; return at every 25th step "loss", "copied" and the largest induction score of a head."""
    generator, found = torch.Generator().manual_seed(seed), dict[str, list[Any]]()
    model, texts = Copier(1, generator=generator), twice(torch.Generator().manual_seed(99))
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for step in range(0, steps + 1, EVERY):
        maps: list[Tensor] = []
        with torch.no_grad():
            model(texts, maps=maps)
        score = round(float(looks(maps[0].mean(0))[0].max()), 3)
        for name, value in ({"step": step} | tested(model, texts) | {"induction": score}).items():
            found.setdefault(name, []).append(value)
        if step < steps:
            descend(optimiser, lambda: loss_of(model, repeating(generator)), EVERY, schedule=falling)
    return {"one layer": found}


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every seed."""
    one = found["one layer"]
    return {"one layer does not copy, and no head finds the word behind": max(one["copied"]) < 0.25 and max(one["induction"]) < 0.2}


@torch.no_grad()
def quick(seed: int) -> dict[str, bool]:
    """Say of fresh models whether another word in the place before a key changes what the key gets, against the key two places on."""
    texts = twice(torch.Generator().manual_seed(seed))[:8]
    other = texts.clone()
    other[:, 5] = (other[:, 5] + 1) % WORDS

    def changes(n_layers: int, *word_only: str) -> bool:
        model, ratios = Copier(n_layers, generator=torch.Generator().manual_seed(seed)), []
        for read in (texts, other):
            maps: list[Tensor] = []
            model(read, maps=maps, word_only=word_only)
            ratios.append(maps[-1][..., -1, 6] / maps[-1][..., -1, 8])
        return not torch.allclose(ratios[0], ratios[1], rtol=1e-4)

    return {
        "not in one layer": not changes(1),
        "in the second of two, queries of words alone": changes(2, "query"),
        "not with keys of words alone as well": not changes(2, "query", "key"),
    }


COPIER = Experiment("results/copier.json", run, conclude, quick)
EXPERIMENTS = [COPIER]
