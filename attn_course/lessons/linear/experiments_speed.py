"""Lesson linear: what the three orders of one sum take on one thread of a CPU."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from attn_course.experiments.core import Experiment
from attn_course.experiments.timing import cpu_seconds
from attn_course.modules.linear import linear_attention

LENGTHS = (512, 2048, 8192)
WIDTH, CHUNK = 64, 64
REPEATS = 3


def speed(seed: int, lengths: Sequence[int] = LENGTHS) -> dict[str, Any]:
    """Measure each form of causal linear attention.

    `seed`: of the arrays; times do not depend on it. Returns CPU milliseconds, median of the repetitions, for each of the lengths.
    """
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, list[float]] = {"parallel": [], "recurrent": [], "chunked": []}
    for length in lengths:
        arrays = [torch.randn(length, WIDTH, generator=generator) / math.sqrt(WIDTH) for _ in range(3)]
        calls = [partial(linear_attention, *arrays, chunk=size) for size in (length, 1, CHUNK)]
        for name, seconds in zip(found, np.median(cpu_seconds(calls, REPEATS), axis=1), strict=True):
            found[name].append(float(f"{1000 * seconds:.3g}"))
    return {"ms": found}


def conclude(result: dict[str, Any]) -> dict[str, Any]:
    """Say which form is the fastest, and how the times grow between the last two lengths."""
    ms = result["ms"]
    return {
        "chunks are the fastest at every length": all(
            least < min(others) for least, *others in zip(ms["chunked"], ms["parallel"], ms["recurrent"], strict=True)
        ),
        "from slow to fast at the longest": sorted(ms, key=lambda name: -ms[name][-1]),
        "four times the length: parallel more than 8 times, the others less than 8 times": ms["parallel"][-1] / ms["parallel"][-2]
        > 8
        > max(ms[name][-1] / ms[name][-2] for name in ("recurrent", "chunked")),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say at two lengths whether the work of all pairs grows faster than that of chunks."""
    ms = speed(seed, (256, 2048))["ms"]
    return {"all pairs grow faster than chunks": ms["parallel"][1] / ms["parallel"][0] > ms["chunked"][1] / ms["chunked"][0]}


SPEED = Experiment("results/speed.json", speed, conclude, quick)
EXPERIMENTS = [SPEED]
