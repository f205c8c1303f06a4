"""Lesson long_context: keys and values of a real language model in 8, 4 and 2 bits."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, attending, logits, perplexity, tokens

LENGTH = 256
BITS = (8, 4, 2)
PER_TOKEN, PER_CHANNEL = -1, -2  # the axis over which numbers share a scale and an offset


def quantised(x: Tensor, bits: int, axis: int) -> Tensor:
    """Return the nearest of 2^bits numbers, evenly from the least to the largest along an axis."""
    least, largest = x.aminmax(dim=axis, keepdim=True)
    step = ((largest - least) / (2**bits - 1)).clamp_min(torch.finfo(x.dtype).tiny)
    return least + ((x - least) / step).round() * step


def with_cache(ids: Tensor, keys: tuple[int, int] | None, values: tuple[int, int] | None) -> float:
    """Return the perplexity with keys and values in so many bits along an axis, or as they are."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        key, value = (x if way is None else quantised(x, *way) for x, way in ((key, keys), (value, values)))
        return attending(query, key, value, **options)

    return round(perplexity(logits(ids, attend=attend), ids), 3)


def width_of_channels(ids: Tensor) -> list[float]:
    """Return, for each layer, how much wider the widest channel of the keys is than the middle one, and the same of values."""
    found: list[list[float]] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        widths = [x.amax(-2) - x.amin(-2) for x in (key, value)]
        found.append([float((width.amax(-1) / width.median(-1).values).mean()) for width in widths])
        return attending(query, key, value, **options)

    logits(ids, last=True, attend=attend)
    return torch.tensor(found).median(0).values.double().numpy().round(2).tolist()


def run(seed: int, length: int = LENGTH) -> dict[str, Any]:
    """Measure perplexities of one text by the bits of its cache; keys are quantised after their rotation."""
    ids = tokens(seed, length)
    found: dict[str, Any] = {"trained": with_cache(ids, None, None)}
    for bits in BITS:
        found[f"{bits} bits"] = {
            "both per token": with_cache(ids, (bits, PER_TOKEN), (bits, PER_TOKEN)),
            "keys per channel, values per token": with_cache(ids, (bits, PER_CHANNEL), (bits, PER_TOKEN)),
        }
    for bits in BITS[1:]:
        found[f"{bits} bits"] |= {
            "keys only, per token": with_cache(ids, (bits, PER_TOKEN), None),
            "keys only, per channel": with_cache(ids, (bits, PER_CHANNEL), None),
            "values only, per token": with_cache(ids, None, (bits, PER_TOKEN)),
            "values only, per channel": with_cache(ids, None, (bits, PER_CHANNEL)),
        }
    return found | {"widest channel against the middle one, keys and values": width_of_channels(ids)}


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    trained, four, two = found["trained"], found["4 bits"], found["2 bits"]
    keys, values = found["widest channel against the middle one, keys and values"]
    return {
        "8 bits: within 2 %": max(abs(cost / trained - 1) for cost in found["8 bits"].values()) < 0.02,
        "4 bits: keys per channel are better than per token": four["keys only, per channel"] < four["keys only, per token"],
        "4 bits, keys per channel: within a sixth": four["keys per channel, values per token"] < 1.17 * trained,
        "2 bits: keys per token cost more than values": two["keys only, per token"] > two["values only, per token"],
        "some channels of the keys are wider than those of the values": keys > values,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 96)
    trained, eight, two = with_cache(ids, None, None), *(with_cache(ids, (bits, PER_TOKEN), None) for bits in (8, 2))
    return {"8 bits: within a tenth": abs(eight / trained - 1) < 0.1, "2 bits: twice the perplexity or more": two > 2 * trained}


CACHES = Experiment("results/smollm2_caches.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [CACHES]
