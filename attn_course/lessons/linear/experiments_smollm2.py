"""Lesson linear: the softmax of a trained language model exchanged for elu + 1, for a plain mean, and for exp without the maximum."""

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import elu

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, GROUP, HEADS, LAYERS, Head, attending, logits, perplexity, tokens

LENGTH = 256
PLACES: dict[str, list[Head]] = {
    "layer 13, head 8": [(13, 8)],
    "layer 13": [(13, head) for head in HEADS],
    "layer 18": [(18, head) for head in HEADS],
    "all layers": [(layer, head) for layer in LAYERS for head in HEADS],
}
LARGEST_IN_FLOAT16 = 11.09  # its exponential is 65,504

Weigh = Callable[[Tensor, Tensor], Tensor]  # queries and keys to what stands in the place of exp of the scores


def of_features(query: Tensor, key: Tensor) -> Tensor:
    """Return phi(q) . phi(k) with phi = elu + 1, where q . k is scaled as the softmax has it."""
    return (elu(query * D_K**-0.25) + 1) @ (elu(key * D_K**-0.25) + 1).mT


def all_alike(query: Tensor, key: Tensor) -> Tensor:
    """Return ones: a plain mean of the values."""
    return torch.ones(*query.shape[:-1], key.shape[-2])


def plain_exp(dtype: torch.dtype) -> Weigh:
    """Return exp of the scaled scores, no maximum subtracted, in a dtype."""
    return lambda query, key: (query @ key.mT / D_K**0.5).to(dtype).exp()


def weighted(query: Tensor, key: Tensor, value: Tensor, weigh: Weigh) -> Tensor:
    """Return the causal mean of the values with these weights; sums of weights are taken in their dtype."""
    terms = weigh(query, key).tril()
    return (terms / terms.sum(-1, keepdim=True)).to(value) @ value


def exchanged(ids: Tensor, weigh: Weigh, heads: Collection[Head]) -> float | None:
    """Return the perplexity with other weights in some heads; None where it is no number."""
    by_layer = {layer: [head for own, head in heads if own == layer] for layer in LAYERS}

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        own = by_layer[layer]
        if not own:
            return attending(query, key, value, **options)
        keys, values = (x.repeat_interleave(GROUP, dim=-3)[own] for x in (key, value))
        output = weighted(query[own], keys, values, weigh)
        return output if len(own) == len(HEADS) else attending(query, key, value, **options).index_copy(0, torch.tensor(own), output)

    cost = perplexity(logits(ids, attend=attend), ids)
    return None if cost != cost else round(cost, 3)


def rows_above(ids: Tensor, limit: float = LARGEST_IN_FLOAT16) -> float:
    """Return in which part of all rows exp of the largest score is more than float16 holds."""
    found = []

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        scores = query @ key.repeat_interleave(GROUP, dim=-3).mT / D_K**0.5
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        found.append((scores.masked_fill(~seen, -torch.inf).amax(-1) > limit).float().mean())
        return attending(query, key, value, **options)

    logits(ids, last=True, attend=attend)
    return round(float(torch.stack(found).mean()), 4)


def run(seed: int, length: int = LENGTH) -> dict[str, Any]:
    """Measure one text with other weights in some heads, without any training."""
    ids = tokens(seed, length)
    return {
        "trained": round(perplexity(logits(ids), ids), 3),
        "elu + 1": {place: exchanged(ids, of_features, heads) for place, heads in PLACES.items()},
        "plain mean": {place: exchanged(ids, all_alike, heads) for place, heads in PLACES.items()},
        "exp without the maximum": {
            "float32": exchanged(ids, plain_exp(torch.float32), PLACES["all layers"]),
            "float16": exchanged(ids, plain_exp(torch.float16), PLACES["all layers"]),
            "rows that float16 does not hold": rows_above(ids),
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    trained, features, average, bare = found["trained"], found["elu + 1"], found["plain mean"], found["exp without the maximum"]
    return {
        "elu + 1 in layer 13, head 8: within 5 %": abs(features["layer 13, head 8"] / trained - 1) < 0.05,
        "in layer 13 or 18: a tenth or more": min(features[place] for place in ("layer 13", "layer 18")) > 1.1 * trained,
        "in all layers: fifteen times the perplexity or more": features["all layers"] > 15 * trained,
        "a plain mean in its place does the same to 1 % in one head or layer": all(
            abs(features[place] / average[place] - 1) < 0.01 for place in PLACES if place != "all layers"
        ),
        "and to a sixth in all": abs(features["all layers"] / average["all layers"] - 1) < 0.17,
        "exp without the maximum: in float32 the same": abs(bare["float32"] / trained - 1) < 1e-3,
        "in float16 no number": bare["float16"] is None,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 64)
    trained, bare = perplexity(logits(ids), ids, 20), logits(ids, attend=_bare)
    return {"exp without the maximum is the softmax in float32": abs(perplexity(bare, ids, 20) / trained - 1) < 1e-3}


def _bare(query: Tensor, key: Tensor, value: Tensor, **_: Any) -> Tensor:
    keys, values = (x.repeat_interleave(GROUP, dim=-3) for x in (key, value))
    return weighted(query, keys, values, plain_exp(torch.float32))


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
