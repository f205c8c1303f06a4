"""Lesson flash: how fast a CPU carries and computes, where attention stands under that roof, and what rounding does to it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from attn_course.experiments.core import Experiment
from attn_course.experiments.timing import cpu_seconds
from attn_course.reference import attention

LENGTHS = (512, 1024, 2048, 4096)
WIDTHS = (16, 64, 128)
COPIED = 32 * 2**20  # float32 numbers, 128 MiB: several times the largest cache
PRODUCT = 1024
REPEATS = 3
Tables = Sequence[torch.Tensor | None]


def seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of a call at best."""
    return float(cpu_seconds([call], REPEATS).min())


def eager(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, tables: Tables = (None, None, None)) -> torch.Tensor:
    """Return attention step by step; scores, scaled scores and weights go into the tables, or into new ones where these are None."""
    scores, scaled, weights = tables
    scores = torch.matmul(query, key.mT, out=scores)
    scaled = torch.mul(scores, query.shape[-1] ** -0.5, out=scaled)
    return torch.softmax(scaled, -1, out=weights) @ value


@torch.no_grad()
def roofline(
    seed: int, lengths: Sequence[int] = LENGTHS, widths: Sequence[int] = WIDTHS, copied: int = COPIED, product: int = PRODUCT
) -> dict[str, Any]:
    """Measure a copy, a product, a softmax and three ways to compute attention, in float32 on one thread.

    `seed`: of the numbers computed with. Returns "copy_bytes_per_s" (read and written, into memory in use),
    "new_copy_bytes_per_s" (into memory just asked for), "product_flops_per_s", "softmax_s" and "new_softmax_s" (of the longest
    length, squared), and for each width "eager_s", "eager_in_use_s" (into tables in use) and "sdpa_s", a list over `lengths`.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(copied, generator=generator)
    target = torch.zeros_like(source)
    left, right = torch.randn(2, product, product, generator=generator)
    scores = torch.randn(lengths[-1], lengths[-1], generator=generator)
    weights = torch.zeros_like(scores)
    result: dict[str, Any] = {
        "copy_bytes_per_s": 2 * source.nbytes / seconds(lambda: target.copy_(source)),
        "new_copy_bytes_per_s": 2 * source.nbytes / seconds(source.clone),
        "product_flops_per_s": 2 * product**3 / seconds(lambda: left @ right),
        "softmax_s": seconds(lambda: torch.softmax(scores, -1, out=weights)),
        "new_softmax_s": seconds(lambda: torch.softmax(scores, -1)),
    }
    for width in widths:
        times = [_attention_s(length, width, generator) for length in lengths]
        for name in times[0]:
            result.setdefault(name, {})[str(width)] = [found[name] for found in times]
    torch.set_num_threads(threads)
    return result


def _attention_s(length: int, width: int, generator: torch.Generator) -> dict[str, float]:
    query, key, value = torch.randn(3, 1, 1, length, width, generator=generator)
    tables = [*torch.zeros(3, 1, 1, length, length)]
    return {
        "eager_s": seconds(lambda: eager(query, key, value)),
        "eager_in_use_s": seconds(lambda: eager(query, key, value, tables)),
        "sdpa_s": seconds(lambda: scaled_dot_product_attention(query, key, value)),
    }


def conclude_roofline(result: dict[str, Any]) -> dict[str, Any]:
    """Return rankings at the longest sequence; factors are so far from 1 that a busy machine keeps them."""
    new, in_use, none = (np.array([result[name][str(width)][-1] for width in WIDTHS]) for name in ("eager_s", "eager_in_use_s", "sdpa_s"))
    gains = new / none
    carried_s = 8 * LENGTHS[-1] ** 2 / result["copy_bytes_per_s"]
    return {
        "sdpa is ahead of eager at every width": bool((gains > 1).all()),
        "more than half of its lead is the memory of new tables": bool((new - in_use > in_use - none).all()),
        "its lead is larger for heads of 16 than of 128": bool(gains[0] > gains[-1]),
        "a softmax takes longer than carrying its numbers": result["softmax_s"] > carried_s,
        "a softmax into new memory takes longer still": result["new_softmax_s"] > result["softmax_s"],
    }


LENGTH = 512
WIDTH = 64
BLOCK = 64
SPREADS = {"plain scores": 1.0, "wide scores": 8.0}  # standard deviations


def stored_whole(query: np.ndarray, key: np.ndarray, value: np.ndarray, dtype: type) -> np.ndarray:
    """Return attention whose scores and weights are stored as arrays of a dtype; sums inside a step are float32."""
    scores = (_wide(query) @ _wide(key).T / np.float32(np.sqrt(query.shape[1]))).astype(dtype)
    shares = np.exp(_wide(scores) - _wide(scores).max(axis=1, keepdims=True))
    weights = (shares / shares.sum(axis=1, keepdims=True)).astype(dtype)
    return (_wide(weights) @ _wide(value)).astype(dtype)


def without_maximum(query: np.ndarray, key: np.ndarray, value: np.ndarray, dtype: type) -> np.ndarray:
    """Return the same with exponentials of the bare scores, stored in the dtype."""
    scores = _wide(query) @ _wide(key).T / np.float32(np.sqrt(query.shape[1]))
    shares = np.exp(scores).astype(dtype)
    return (_wide(shares) @ _wide(value) / _wide(shares).sum(axis=1, keepdims=True)).astype(dtype)


def in_tiles(query: np.ndarray, key: np.ndarray, value: np.ndarray, dtype: type, state: type = np.float32) -> np.ndarray:
    """Return attention by Eq. tiled-attention-update.

    Scores stay in float32, shares are rounded for the product, maximum, sum and acc are of `state`.
    """
    row_max: np.ndarray = np.full((len(query), 1), -np.inf, state)
    row_sum: np.ndarray = np.zeros((len(query), 1), state)
    acc: np.ndarray = np.zeros((len(query), value.shape[1]), state)
    for start in range(0, len(key), BLOCK):
        keys, values = _wide(key[start : start + BLOCK]), _wide(value[start : start + BLOCK])
        scores = _wide(query) @ keys.T / np.float32(np.sqrt(query.shape[1]))
        new_max = np.maximum(_wide(row_max), scores.max(axis=1, keepdims=True)).astype(state)
        rescale, shares = np.exp(_wide(row_max) - _wide(new_max)), np.exp(scores - _wide(new_max))
        row_sum = (rescale * _wide(row_sum) + shares.sum(axis=1, keepdims=True)).astype(state)
        acc = (rescale * _wide(acc) + _wide(shares.astype(dtype)) @ values).astype(state)
        row_max = new_max
    return (_wide(acc) / _wide(row_sum)).astype(dtype)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)


WAYS: dict[str, Callable[..., np.ndarray]] = {
    "float32, stored whole": partial(stored_whole, dtype=np.float32),
    "float32, in tiles": partial(in_tiles, dtype=np.float32),
    "float16, stored whole": partial(stored_whole, dtype=np.float16),
    "float16, in tiles": partial(in_tiles, dtype=np.float16),
    "float16, in tiles, state in float16": partial(in_tiles, dtype=np.float16, state=np.float16),
    "float16, no maximum": partial(without_maximum, dtype=np.float16),
}


def errors(seed: int) -> dict[str, Any]:
    """Compute attention in float32 and float16 in several ways, on inputs that float16 holds exactly.

    `seed`: of the inputs. Returns for each spread of the scores and each way: the relative error (Frobenius norm) against
    float64, None where the output is not finite.
    """
    rng = np.random.default_rng(seed)
    result: dict[str, Any] = {}
    for name, spread in SPREADS.items():
        inputs = [rng.normal(size=(LENGTH, WIDTH)).astype(np.float16) for _ in range(3)]
        inputs[0] = (spread * inputs[0]).astype(np.float16)
        exact = attention(*(array.astype(np.float64) for array in inputs))
        with np.errstate(all="ignore"):
            result[name] = {way: _relative(compute(*inputs), exact) for way, compute in WAYS.items()}
    return result


def _relative(output: np.ndarray, exact: np.ndarray) -> float | None:
    error = float(np.linalg.norm(output.astype(np.float64) - exact) / np.linalg.norm(exact))
    return error if np.isfinite(error) else None


def conclude_errors(result: dict[str, Any]) -> dict[str, Any]:
    """Return what fails, and the ranking of the three float16 ways that subtract a maximum."""
    ways = [way for way in WAYS if way.startswith("float16") and "maximum" not in way]
    return {
        "not finite": [f"{way}, {name}" for name, found in result.items() for way, error in found.items() if error is None],
        "float16, best first": {name: sorted(ways, key=found.get) for name, found in result.items()},
        "float32 below": all(found[way] < 1e-5 for found in result.values() for way in WAYS if way.startswith("float32")),
    }


def quick_roofline(seed: int) -> dict[str, bool]:
    """Say at small sizes what holds on any machine, however busy: 8 times the length takes longer, a product does more than carry."""
    result = roofline(seed, lengths=(128, 1024), widths=(16,), copied=2**24, product=512)
    return {
        "eager: the longer sequence takes 8 times as long and more": result["eager_s"]["16"][1] > 8 * result["eager_s"]["16"][0],
        "sdpa: the longer sequence takes longer": result["sdpa_s"]["16"][1] > result["sdpa_s"]["16"][0],
        "more FLOPs than bytes in a second": result["product_flops_per_s"] > result["copy_bytes_per_s"],
    }


def quick_errors(seed: int) -> dict[str, bool]:
    """Say whether float16 without a maximum overflows, and what a state in float16 costs; this is the whole experiment."""
    found = conclude_errors(errors(seed))
    return {
        "only wide scores without a maximum are not finite": found["not finite"] == ["float16, no maximum, wide scores"],
        "a state in float16 is worse than one in float32": all(
            best[0] == "float16, in tiles" for best in found["float16, best first"].values()
        ),
        "float32 below": found["float32 below"],
    }


ROOFLINE = Experiment("results/roofline.json", roofline, conclude_roofline, quick_roofline)
ERRORS = Experiment("results/errors.json", errors, conclude_errors, quick_errors)
EXPERIMENTS = [ROOFLINE, ERRORS]
