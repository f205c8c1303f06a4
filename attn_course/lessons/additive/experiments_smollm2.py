"""Lesson additive: how many keys of a real language model a dot product can find, in all of their features and in few.

The control: as many random keys in their place.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, attending, changed, tokens

LENGTH, STEPS, RANDOM = 256, 1000, 25
WIDTHS = (64, 16, 4)  # of the 64 directions those in which the keys of a head vary most


def found_by_a_query(keys: Tensor, width: int) -> int:
    """Return for how many keys some query is found to which they have the largest dot product, in `width` directions.

    Keys are made to vary alike in every direction, which exchanges queries for others. The first query is the key itself; then, in each
    step, the difference to the key that is ahead is added: a perceptron, which finds a query where there is one, if it has the time.
    """
    spread: Tensor = torch.linalg.svd(keys - keys.mean(0), full_matrices=False).U[:, :width]
    query, left = spread.clone(), torch.arange(len(spread))  # of the keys that are not found yet
    for _ in range(STEPS):
        ahead = (query @ spread.T).argmax(-1)
        missed = ahead != left
        if not bool(missed.any()):
            return len(spread)
        left, ahead = left[missed], ahead[missed]
        query = query[missed] + spread[left] - spread[ahead]
    return len(spread) - len(left)


def keys_of(ids: Tensor, layers: range = range(30)) -> Tensor:
    """Return the keys of each key head as queries meet them, turned by their places, (heads, tokens, 64)."""
    kept: list[Tensor] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        if layer in layers:
            kept.append(key.double())
        return attending(query, key, value, **options)

    with torch.inference_mode(), changed(attend=attend) as network:
        network(ids)
    return torch.cat(kept)


def fewest_and_most(heads: Tensor, widths: Sequence[int]) -> dict[int, list[int]]:
    """Return for each width the smallest and the largest number of keys found in a head."""
    counts = {width: [found_by_a_query(keys, width) for keys in heads] for width in widths}
    return {width: [min(found), max(found)] for width, found in counts.items()}


def run(seed: int) -> dict[str, Any]:
    """Return the fewest and the most keys found in a head, for one text, and for as many random keys in RANDOM heads."""
    heads = keys_of(tokens(seed, LENGTH))
    random = torch.randn(RANDOM, *heads.shape[1:], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    real = {str(width): found for width, found in fewest_and_most(heads, WIDTHS).items()}
    return real | {f"random {width}": found for width, found in fewest_and_most(random, WIDTHS).items()}


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    return {
        "64 features: every key of every head is found": min(found["64"]) == LENGTH,
        "4 directions: a third or more is missed in every head": max(found["4"]) <= 2 * LENGTH / 3,
        "64 random features: every key is found": min(found["random 64"]) == LENGTH,
        "4 random features: a third or more is missed": max(found["random 4"]) <= 2 * LENGTH / 3,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of one layer what holds there."""
    heads = keys_of(tokens(seed % len(BY_TEXT), 64), range(13, 14))
    counts = fewest_and_most(heads, (63, 4))
    return {"63 features: all": min(counts[63]) == 64, "4 features: some are missed": max(counts[4]) < 64}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
