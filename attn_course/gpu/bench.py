"""How fast the kernels are beside what torch ships: `python -m attn_course.gpu.bench --out FILE` prints a table and writes JSON.

Rates are matrix FLOPs by the conventions of `attn_course.costs` (2 for a multiplication and its addition; only pairs that may
attend; the backward pass counted as if scores were computed once) over the median time. A step of decoding, one query for a
long past, also has the rate of bytes: it reads keys and values once, and that is what limits it. On a GPU it takes minutes;
without one a small matrix runs in seconds, and says nothing about GPUs.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from attn_course.costs import attended_pairs, attention_backward_flops, attention_flops
from attn_course.gpu.flash import flash_attention, unsupported

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
OURS = "ours"
EAGER_UP_TO = 4096  # beyond it the scores fill the memory
TOKENS = 16384


@dataclass(frozen=True)
class Case:
    """One size: batch sequences of `length` tokens, heads of d features.

    Attributes
    ----------
    batch, heads, kv_heads, length, d : int
        Sizes.
    is_causal : bool
        Whether later keys are hidden.
    left : int or None
        How far a query sees to the left.
    q_len : int or None
        Queries of a step of decoding, which come last and see the whole past; None: as many as keys.
    """

    batch: int
    heads: int
    kv_heads: int
    length: int
    d: int
    is_causal: bool
    left: int | None = None
    q_len: int | None = None

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return self.length if self.q_len is None else self.q_len

    @property
    def name(self) -> str:
        """As the table names it."""
        kind = "causal" if self.is_causal else "full"
        window = "" if self.left is None else f" window {self.left}"
        decode = "" if self.q_len is None else f" queries {self.q_len} batch {self.batch}"
        return f"d {self.d:3d} {kind:6s} length {self.length:5d} heads {self.heads}/{self.kv_heads}{window}{decode}"

    @property
    def window(self) -> tuple[int | None, int | None] | None:
        """As `flash_attention` takes it."""
        return None if self.left is None else (self.left, 0)

    def flops(self, direction: str) -> int:
        """Return the matrix FLOPs of the forward or backward pass, or of a step of decoding."""
        pairs = attended_pairs(self.queries, self.length, is_causal=self.is_causal, window=self.window)
        count = attention_backward_flops if direction == "backward" else attention_flops
        return self.batch * self.heads * count(pairs, self.d, self.d)

    def least_bytes(self, bytes_per_number: int) -> int:
        """Return the bytes of query, key, value and output, each moved once."""
        return 2 * self.batch * self.d * bytes_per_number * (self.heads * self.queries + self.kv_heads * self.length)


def cases(device: str) -> list[Case]:
    """Return the sizes to measure: 16384 tokens of 2048 features and five extras on a GPU, three small ones on a CPU."""
    if device != "cuda":
        return [Case(1, 2, 2, 64, 32, False), Case(1, 2, 2, 64, 32, True), Case(1, 4, 2, 64, 32, False, q_len=1)]
    lengths = [512, 1024, 2048, 4096, 8192, 16384]
    matrix = [(d, is_causal, length) for d in (64, 128) for is_causal in (False, True) for length in lengths]
    plain = [Case(TOKENS // length, 2048 // d, 2048 // d, length, d, is_causal) for d, is_causal, length in matrix]
    extras = [Case(4, 32, 8, 4096, 128, True), Case(1, 16, 16, 16384, 128, True, left=1024), Case(4, 8, 8, 4096, 256, True)]
    decode = [Case(16, 32, 8, 8192, 128, False, q_len=1), Case(1, 32, 8, 65536, 128, False, q_len=1)]
    return plain + extras + decode


def providers(case: Case, query: torch.Tensor) -> dict[str, Attention]:
    """Return what can compute a case on the device of `query`, by name; ours comes first."""
    repeats = case.heads // case.kv_heads
    options: dict[str, Any] = {"is_causal": case.is_causal, "window": case.window, "enable_gqa": repeats > 1}
    found: dict[str, Attention] = {}
    if unsupported(query, query, query) is None:
        found[OURS] = lambda q, k, v: flash_attention(q, k, v, **options)
    if case.left is None:
        kinds = {"sdpa-flash": SDPBackend.FLASH_ATTENTION, "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION}
        kinds |= {"sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION} if repeats == 1 else {}
        for name, kind in (kinds if query.is_cuda else {"sdpa": SDPBackend.MATH}).items():
            found[name] = _pinned(kind, case.is_causal, repeats > 1)
    if query.is_cuda:
        found["flex"] = _flex(case)
    if case.length <= EAGER_UP_TO and case.left is None and repeats == 1:
        hidden = torch.ones(case.queries, case.length, dtype=torch.bool, device=query.device).triu(1) if case.is_causal else None
        found["eager"] = lambda q, k, v: _eager(q, k, v, hidden)
    return found


def _pinned(kind: SDPBackend, is_causal: bool, enable_gqa: bool) -> Attention:
    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(kind):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=enable_gqa)

    return call


def _flex(case: Case) -> Attention:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def visible(batch: Any, head: Any, row: Any, column: Any) -> Any:
        near = True if case.left is None else row - column <= case.left
        return (row >= column) & near

    banded = case.is_causal or case.left is not None
    blocks = create_block_mask(visible, None, None, case.queries, case.length, device="cuda") if banded else None
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=blocks, enable_gqa=case.heads != case.kv_heads)


def _eager(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
    scores = (query @ key.mT) * query.shape[-1] ** -0.5
    return (scores if hidden is None else scores.masked_fill(hidden, -torch.inf)).softmax(-1) @ value


def median_ms(function: Callable[[], Any], device: str, *, repeats: int = 20, budget_ms: float = 150.0) -> float:
    """Return the median time of a call in ms, after three calls that do not count and with the GPU's cache flushed before each.

    Parameters
    ----------
    function : callable
        Takes nothing.
    device : {"cuda", "cpu"}
        Where it computes: events time a GPU, the clock a CPU.
    repeats : int, optional
        How often at most.
    budget_ms : float, optional
        Stop once this much was measured; at least three calls are timed.

    Returns
    -------
    time_ms : float
        Of one call.
    """
    times: list[float] = []
    flush = torch.empty(256 * 2**20 if device == "cuda" else 0, dtype=torch.uint8, device=device)
    for turn in range(3 + repeats):
        flush.zero_()
        if device == "cuda":
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            function()
            stop.record()
            torch.cuda.synchronize()
            elapsed = start.elapsed_time(stop)
        else:
            begun = time.perf_counter()
            function()
            elapsed = 1e3 * (time.perf_counter() - begun)
        if turn >= 3:
            times.append(elapsed)
        if len(times) >= 3 and sum(times) > budget_ms:
            break
    return statistics.median(times)


def measure(case: Case, device: str, dtype: torch.dtype) -> list[dict[str, Any]]:
    """Return one line for each provider and direction (decoding has no backward pass): time and rates, or the error that stopped it."""
    shape = (case.batch, case.heads, case.queries, case.d)
    kv_shape = (case.batch, case.kv_heads, case.length, case.d)
    tensors = [torch.randn(size, device=device, dtype=dtype).requires_grad_() for size in (shape, kv_shape, kv_shape)]
    d_output = torch.randn(shape, device=device, dtype=dtype)
    lines = []
    for name, attention in providers(case, tensors[0]).items():
        for direction in ("forward", "backward") if case.q_len is None else ("decode",):
            line: dict[str, Any] = {**asdict(case), "provider": name, "direction": direction}
            try:
                line["time_ms"] = _time(attention, tensors, d_output, direction, device)
                line["tflops_per_s"] = case.flops(direction) / line["time_ms"] / 1e9
                if case.q_len is not None:
                    line["gb_per_s"] = case.least_bytes(dtype.itemsize) / line["time_ms"] / 1e6
            except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:  # a provider that refuses a size is a result
                line["error"] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            lines.append(line)
    return lines


def _time(attention: Attention, tensors: list[torch.Tensor], d_output: torch.Tensor, direction: str, device: str) -> float:
    if direction != "backward":
        with torch.no_grad():
            return median_ms(lambda: attention(tensors[0], tensors[1], tensors[2]), device)
    output = attention(tensors[0], tensors[1], tensors[2])
    return median_ms(lambda: torch.autograd.grad(output, tensors, d_output, retain_graph=True), device)


def ratios(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the geometric mean of our rate over that of each other provider, by direction, over the cases both measured."""
    rates: dict[tuple[Any, ...], dict[str, float]] = {}
    for line in lines:
        if "tflops_per_s" in line:
            cell = tuple(line[name] for name in (*Case.__dataclass_fields__, "direction"))
            rates.setdefault(cell, {})[line["provider"]] = line["tflops_per_s"]
    logs: dict[str, dict[str, list[float]]] = {}
    for cell, by_provider in rates.items():
        for other, rate in by_provider.items():
            if other != OURS and OURS in by_provider:
                logs.setdefault(cell[-1], {}).setdefault(other, []).append(math.log(by_provider[OURS] / rate))
    return {direction: {other: math.exp(statistics.fmean(logged)) for other, logged in found.items()} for direction, found in logs.items()}


def matmul_tflops_per_s(device: str) -> float:
    """Return the rate of a large product of random matrices, the practical roof."""
    n = 8192 if device == "cuda" else 512
    left, right = (torch.randn(n, n, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32) for _ in range(2))
    return 2 * n**3 / median_ms(lambda: left @ right, device) / 1e9


def bench(show: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure every case on the device that is there.

    Parameters
    ----------
    show : callable, optional
        Called with each line of the table.

    Returns
    -------
    report : dict
        Device, versions, date, the roof before and after, one entry for each measurement, and geometric means of ratios.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        show("no GPU: a small matrix on the CPU; 'ours' is Triton's interpreter, which checks kernels and says nothing about speed")
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    roof_before = matmul_tflops_per_s(device)
    lines: list[dict[str, Any]] = []
    for case in cases(device):
        for line in measure(case, device, dtype):
            rate = f"{line['tflops_per_s']:10.4g} TFLOP/s {line['time_ms']:9.3f} ms" if "time_ms" in line else line["error"]
            rate += f" {line['gb_per_s']:8.4g} GB/s" if "gb_per_s" in line else ""
            show(f"{case.name} {line['direction']:8s} {line['provider']:14s} {rate}")
            lines.append(line)
    report = {
        "device": torch.cuda.get_device_name() if device == "cuda" else f"CPU {platform.machine()}, Triton's interpreter",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "matmul_tflops_per_s": [roof_before, matmul_tflops_per_s(device)],
        "geometric_mean_of_our_rate_over": ratios(lines),
        "measurements": lines,
    }
    show(json.dumps(report["geometric_mean_of_our_rate_over"], indent=1))
    return report


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=bench.__doc__)
    parser.add_argument("--out", type=Path, help="file to write the JSON to")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is first needed
    report = bench()
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
