"""Lesson linear: where the state overtakes the scores, on one thread of a CPU, against the crossover counted in FLOPs."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.timing import cpu_seconds
from attn_course.modules.linear import linear_attention

BATCH = 4
WIDTHS = (128, 256)
FRACTIONS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0)  # lengths, as multiples of the width
REPEATS = 9
LONG = (1024, 2048)
CHUNK = 64


def median_seconds(calls: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the median CPU time of each call."""
    return np.median(cpu_seconds(calls, repeats, runs=3), axis=1).tolist()


def scores_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return (Q K^T) V."""
    return (query @ key.mT) @ value


def state_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return Q (K^T V), the same numbers."""
    return query @ (key.mT @ value)


def softmax_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(Q K^T) V."""
    return torch.softmax(query @ key.mT, dim=-1) @ value


def causal_softmax(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the same with a causal mask, over all T^2 pairs."""
    hidden = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).triu(1)
    return torch.softmax((query @ key.mT).masked_fill(hidden, -math.inf), dim=-1) @ value


def crossing(lengths: Sequence[int], ratio: Sequence[float]) -> float:
    """Return the first length at which a ratio of times reaches 1, between two lengths on logarithmic axes.

    >>> round(crossing([64, 128, 256], [0.5, 2.0, 4.0]), 1)
    90.5
    """
    for (a, b), (low, high) in zip(pairwise(lengths), pairwise(ratio), strict=True):
        if low < 1 <= high:
            return math.exp(math.log(a) + math.log(b / a) * math.log(1 / low) / math.log(high / low))
    return float(lengths[0] if ratio[0] >= 1 else lengths[-1])


def speed(
    seed: int, widths: Sequence[int] = WIDTHS, fractions: Sequence[float] = FRACTIONS, ends: tuple[int, int] = LONG, repeats: int = REPEATS
) -> dict[str, Any]:
    """Measure both brackets, softmax attention, and the forms of linear attention.

    `seed`: of the arrays; times do not depend on it. Returns "predicted": Eq. linear-attention-crossover by width. "lengths",
    "scores first / state first", "softmax / state first": ratios of CPU times by width; "crossing": where each reaches 1. "share of
    softmax": of softmax attention at the predicted length, by width. "doubling": what twice the length costs. "forms": CPU
    milliseconds at 512 positions of width 64.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(length: int, width: int) -> list[Tensor]:
        return [torch.randn(BATCH, length, width, generator=generator) / math.sqrt(width) for _ in range(3)]

    result: dict[str, Any] = {
        "lengths": {},
        "scores first / state first": {},
        "softmax / state first": {},
        "crossing": {},
        "share of softmax": {},
    }
    result["predicted"] = {str(width): 2 * width * width / (width + width) for width in widths}  # Eq. linear-attention-crossover
    for width in widths:
        lengths, plain, soft = [round(width * fraction) for fraction in fractions], [], []
        for length in lengths:
            arrays = drawn(length, width)
            scores = arrays[0] @ arrays[1].mT
            calls = [partial(f, *arrays) for f in (scores_first, state_first, softmax_attention)]
            first, second, third, alone = median_seconds([*calls, partial(torch.softmax, scores, dim=-1)], repeats)
            plain.append(first / second)
            soft.append(third / second)
            if length == width:
                result["share of softmax"][str(width)] = alone / third
        result["lengths"][str(width)] = lengths
        result["scores first / state first"][str(width)], result["softmax / state first"][str(width)] = plain, soft
        result["crossing"][str(width)] = [crossing(lengths, plain), crossing(lengths, soft)]
    short, long = (drawn(length, 64) for length in ends)
    both_ends: list[Callable[[], Any]] = [partial(causal_softmax, *arrays) for arrays in (short, long)]
    both_ends += [partial(linear_attention, *arrays, chunk=CHUNK) for arrays in (short, long)]
    times = median_seconds(both_ends, min(repeats, 5))
    result["doubling"] = {"softmax": times[1] / times[0], "chunked": times[3] / times[2]}
    arrays = drawn(512, 64)
    sizes = {"recurrent": 1, "chunked": CHUNK, "parallel": 512}
    forms = median_seconds([partial(linear_attention, *arrays, chunk=size) for size in sizes.values()], min(repeats, 5))
    result["forms"] = {name: 1000 * found for name, found in zip(sizes, forms, strict=True)}
    return result


def conclude_speed(result: dict[str, Any]) -> dict[str, Any]:
    """Return whether the counted crossover is the measured one within a factor of two, and how the costs grow."""
    within = [0.5 <= result["crossing"][width][0] / result["predicted"][width] <= 2 for width in result["predicted"]]
    return {
        "crossing of the brackets within a factor of two": all(within),
        "softmax is overtaken earlier": all(soft <= plain for plain, soft in result["crossing"].values()),
        "twice the length: softmax more than 3 times, chunked less than 3 times": result["doubling"]["softmax"]
        > 3
        > result["doubling"]["chunked"],
        "slowest form at 512": max(result["forms"], key=result["forms"].get),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say at one width whether the state is ahead well behind the crossover, and the recurrent form the slowest."""
    result = speed(seed, widths=(64,), fractions=(0.25, 1.0, 8.0), ends=(128, 1024), repeats=3)
    return {
        "8 times the width: scores first takes longer": result["scores first / state first"]["64"][-1] > 1,
        "8 times the width: softmax takes longer": result["softmax / state first"]["64"][-1] > 1,
        "8 times the length: softmax grows more than chunked": result["doubling"]["softmax"] > result["doubling"]["chunked"],
        "slowest form at 512": max(result["forms"], key=result["forms"].get) == "recurrent",
    }


SPEED = Experiment("results/speed.json", speed, conclude_speed, quick)
EXPERIMENTS = [SPEED]
