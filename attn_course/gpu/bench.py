"""How fast the kernels are beside what torch ships: `python -m attn_course.gpu.bench --help`.

Rates are matrix FLOPs by the conventions of `attn_course.costs` (2 for a multiplication and its addition; only pairs that may
attend; the backward pass counted as if scores were computed once) over the median time. A step of decoding, one query for a
long past, also has the rate of bytes: it reads keys and values once, and that is what limits it. Every result is compared with
float32 at the size that is timed. On a GPU it takes minutes; without one a small matrix runs in seconds, and says nothing
about GPUs.
"""

import argparse
import gc
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import torch

from attn_course.gpu.bench_cases import (
    GATES,
    OURS,
    Attention,
    Case,
    Tensors,
    attention,
    cases,
    expected,
    known_providers,
    relative_error,
    takes,
)
from attn_course.gpu.bench_log import Line, Log, now, source_hash, versions
from attn_course.gpu.bench_report import report, row, summary
from attn_course.gpu.bench_timing import answers, device_name, peak_bytes, roofs, timed


class DeviceLostError(RuntimeError):
    """A kernel spoilt the GPU for this process; what was measured is kept, and a new process goes on."""


def bench(
    show: Callable[[str], None] = print, *, out: Path | None = None, providers: str | None = None, lengths: str | None = None
) -> Line:
    """Measure every case on the device that is there, and return the report.

    `out` is a file of JSON lines (see `bench_log`) that keeps each result as soon as it is there, and is gone on with; the report
    is about all it holds. `providers` and `lengths` name some, with commas between them; ValueError if the device has no such
    provider, or no case has such a length. `show` gets each line of the table. DeviceLostError where a kernel spoilt the GPU: run
    again with the same `out`.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen, sizes = _chosen(device, providers, lengths)
    if device == "cpu":
        show("no GPU: a small matrix on the CPU; 'ours' is Triton's interpreter, which checks kernels and says nothing about speed")
    run = {"device": device_name(device), "versions": versions()}
    log = Log(out, run)
    before = roofs(device)
    log.note({"roofs": before})
    for case in sizes:
        measure(case, [name for name in chosen if takes(name, case)], device, log, before["copy_gb_per_s"], show)
    after = roofs(device)
    log.note({"roofs": after})
    lines = [line for line in log.results if line["source"] in (None, source_hash())]
    found = report(run, [before, after], lines, now()[:10])
    for text in summary(found) if device == "cuda" else ():
        show(text)
    return found


def _chosen(device: str, providers: str | None, lengths: str | None) -> tuple[list[str], list[Case]]:
    known, sizes = known_providers(device), cases(device)
    there = [str(length) for length in sorted({case.length for case in sizes})]
    names, numbers = (known if providers is None else providers.split(",")), (there if lengths is None else lengths.split(","))
    for name in names:
        if name not in known:
            raise ValueError(f"providers: on this device there are {', '.join(known)}; got {name!r}")
    for number in numbers:
        if number not in there:
            raise ValueError(f"lengths: there are cases of {', '.join(there)}; got {number!r}")
    return [name for name in known if name in names], [case for case in sizes if str(case.length) in numbers]


def measure(case: Case, providers: list[str], device: str, log: Log, copy_gb_per_s: float, show: Callable[[str], None]) -> None:
    """Measure what the log does not have of a case, and show a line for each direction; an error costs its own line only.

    A provider that fails forward is not asked for its backward pass.
    """
    source = source_hash()

    @cache
    def given() -> tuple[Tensors, list[torch.Tensor]]:
        tensors = case.tensors(device, torch.bfloat16 if device == "cuda" else torch.float32)
        return tensors, expected(case, tensors)

    shown: dict[str, list[Line]] = {direction: [] for direction in case.directions}
    for name in providers:
        keys = [
            {**asdict(case), "provider": name, "direction": direction, "source": source if name == OURS else None}
            for direction in case.directions
        ]
        for key in keys:
            if not log.wants(key):
                continue
            if any(_failed(log, earlier) for earlier in keys[: keys.index(key)]):
                break
            log.begin(key)
            line = log.finish(key, guarded(partial(_measure, case, name, key["direction"], given, copy_gb_per_s)))
            shown[key["direction"]].append(line)
            if "error" in line:
                show(f"{case.name} {key['direction']} {name}: {line['error']}")
                if not answers(device):
                    raise DeviceLostError(
                        f"{name} spoilt the GPU for this process; run again with the same --out, and it goes on after {name}"
                    )
    for direction, lines in shown.items():
        if lines:
            show(row(case, direction, lines))


def _failed(log: Log, key: Line) -> bool:
    return any("error" in line and "time_ms" not in line and key.items() <= line.items() for line in log.results)


def guarded(function: Callable[[], Line]) -> Line:
    """Return what a function returns, or its error; what it held on the device is free again."""
    try:
        return function()
    except Exception as error:  # whatever a provider or a compiler raises (Triton's OutOfResources is a plain Exception) is a result
        said = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
    gc.collect()  # the traceback held tensors
    if torch.cuda.is_available() and answers("cuda"):
        torch.cuda.empty_cache()
    return said


def _measure(
    case: Case, provider: str, direction: str, given: Callable[[], tuple[Tensors, list[torch.Tensor]]], copy_gb_per_s: float
) -> Line:
    tensors, wanted = given()
    device, dtype = tensors[0].device.type, tensors[0].dtype
    call, whole = calls(attention(provider, case, tensors[0].device), tensors, direction)
    error = relative_error(call(), wanted[1:] if direction == "backward" else wanted[:1])
    peak = peak_bytes(whole, device)
    line: Line = {"dtype": str(dtype).removeprefix("torch."), **timed(call, device), "peak_bytes": peak}
    line["relative_error"] = error if math.isfinite(error) else None
    gate = GATES[dtype] * (2 if direction == "backward" else 1)
    if not error <= gate:
        return {**line, "error": f"wrong result: relative error {error:.2g}, at most {gate:g} is right"}
    line["tflops_per_s"] = case.flops(direction) / line["time_ms"] / 1e9
    if direction == "decode":
        line["gb_per_s"] = case.least_bytes(dtype.itemsize) / line["time_ms"] / 1e6
        line["percent_of_copy"] = 100 * line["gb_per_s"] / copy_gb_per_s
    return line


def calls(function: Attention, tensors: Tensors, direction: str) -> tuple[Callable[[], Tensors], Callable[[], Tensors]]:
    """Return what is timed, and what memory is counted of: a backward pass needs its forward pass too."""
    inputs, d_output = tensors[:3], tensors[3]
    if direction != "backward":
        forward = torch.no_grad()(lambda: (function(*inputs),))
        return forward, forward
    output = function(*inputs)
    return (
        lambda: torch.autograd.grad(output, inputs, d_output, retain_graph=True),
        lambda: torch.autograd.grad(function(*inputs), inputs, d_output),
    )


def main(words: list[str] | None = None) -> int:
    """Run the benchmark from the command line, and return its exit code: 0, 2 for bad input, 3 where the GPU was lost on the way."""
    parser = argparse.ArgumentParser(prog="python -m attn_course.gpu.bench", description="Time attention on the device that is there.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep each result here as it is measured; if it has some, go on there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report here at the end")
    parser.add_argument("--providers", metavar="A,B", help="only these, such as ours,sdpa-flash")
    parser.add_argument("--lengths", metavar="T,T", help="only these, such as 1024,4096")
    arguments = parser.parse_args(words)
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is first needed
    try:
        found = bench(lambda line: print(line, flush=True), out=arguments.out, providers=arguments.providers, lengths=arguments.lengths)
    except ValueError as error:
        parser.error(str(error))
    except DeviceLostError as error:
        print(error, flush=True)
        return 3
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
