"""Lesson absorption: keys of a real language model on fewer directions, before their rotation and after it."""

import functools
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, LAYERS, attending, logits, perplexity, tokens
from attn_course.modules.hooks import Hook

LENGTH = 320
RANKS = (96, 64, 32)  # of the 192 numbers that the three key heads of a layer take together
OF_RANDOM = 96
Basis = tuple[Tensor, Tensor]  # the mean, and directions as columns, the most important first


@functools.cache
def keys_of(number: int, length: int) -> dict[str, list[Tensor]]:
    """Return the keys of one text, (len, 192) for each layer, before and after the rotation; without the first token's."""
    before: list[Tensor] = []
    after: list[Tensor] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        after.append(side_by_side(key)[1:])
        return attending(query, key, value, **options)

    watch: dict[str, Hook] = {f"blocks.{layer}.attention.key": lambda key: before.append(side_by_side(key)[1:]) for layer in LAYERS}
    logits(tokens(number, length), last=True, attend=attend, hooks=watch)
    return {"before": before, "after": after}


def side_by_side(key: Tensor) -> Tensor:
    """Return (len, heads * d_k) from (heads, len, d_k)."""
    return key.transpose(-2, -3).flatten(-2)


def principal(rows: Tensor) -> Basis:
    """Return the mean of rows and the directions in which they spread most."""
    mean = rows.mean(0)
    return mean, torch.linalg.svd(rows - mean, full_matrices=False).Vh.T


def on_directions(key: Tensor, basis: Basis, rank: int) -> Tensor:
    """Return keys (heads, len, d_k) that differ from the mean in the first `rank` directions only; the first token's as they are."""
    mean, directions = basis[0], basis[1][:, :rank]
    rows = side_by_side(key)
    near = mean + (rows - mean) @ directions @ directions.T
    return torch.cat([rows[:1], near[1:]]).unflatten(-1, (-1, key.shape[-1])).transpose(0, 1)


def with_bases(ids: Tensor, where: str, bases: list[Basis], rank: int) -> float:
    """Return the perplexity with all keys on few directions, before or after the rotation."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        return attending(query, on_directions(key, bases[layer], rank), value, **options)

    def hook(layer: int) -> Hook:
        return lambda key: on_directions(key, bases[layer], rank)

    if where == "after":
        return round(perplexity(logits(ids, attend=attend), ids), 3)
    return round(perplexity(logits(ids, hooks={f"blocks.{layer}.attention.key": hook(layer) for layer in LAYERS}), ids), 3)


def run(seed: int, length: int = LENGTH, ranks: tuple[int, ...] = RANKS) -> dict[str, Any]:
    """Measure perplexities of one text; directions come from the keys of the other texts, and as a control from a random turn."""
    ids = tokens(seed, length)
    rest = [keys_of(number, length) for number in BY_TEXT if number != seed]
    found: dict[str, Any] = {"trained": round(perplexity(logits(ids), ids), 3)}
    random = torch.Generator().manual_seed(seed)
    for where in ("before", "after"):
        bases = [principal(torch.cat([keys[where][layer] for keys in rest])) for layer in LAYERS]
        found[where] = {str(rank): with_bases(ids, where, bases, rank) for rank in ranks}
        turn = torch.linalg.qr(torch.randn(3 * D_K, 3 * D_K, generator=random)).Q
        found[f"{where}, random directions"] = {str(OF_RANDOM): with_bases(ids, where, [(mean, turn) for mean, _ in bases], OF_RANDOM)}
    return found


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    before, after = found["before"], found["after"]
    return {
        "at every rank better before the rotation than after": all(before[rank] < after[rank] for rank in before),
        "64 before better than 96 random ones": before["64"] < found["before, random directions"]["96"],
        "64 after better than 96 random ones": after["64"] < found["after, random directions"]["96"],
        "64 before: less than 1.4 times the trained perplexity": before["64"] < 1.4 * found["trained"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of the keys of one text what holds there."""
    shares = {}
    for where, keys in keys_of(seed % len(BY_TEXT), 64).items():
        spread = torch.stack([torch.linalg.svdvals(rows - rows.mean(0)).square() for rows in keys])
        shares[where] = float((spread[:, :16].sum(-1) / spread.sum(-1)).mean())
    return {"16 directions hold more of the spread before the rotation": shares["before"] > shares["after"]}


SMOLLM2 = Experiment("results/smollm2_latent.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
