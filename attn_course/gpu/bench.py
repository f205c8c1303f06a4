"""How fast the kernels are beside what torch ships: `attn-course bench --help`.

Rates are matrix FLOPs by the conventions of `attn_course.costs` (2 for a multiplication and its addition; only pairs that may
attend; the backward pass counted as if scores were computed once) over the median time. A step of decoding, one query for a
long past, also has the rate of bytes: it reads keys and values once, and that is what limits it. Every result is compared with
float32 at the size that is timed. On a GPU it takes minutes; without one a small matrix runs in seconds, and says nothing
about GPUs.
"""

import gc
import math
from collections.abc import Callable, Sequence
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
from attn_course.gpu.bench_log import Line, Log, source_hash, versions
from attn_course.gpu.bench_report import report, row, summary
from attn_course.gpu.bench_timing import answers, device_name, peak_bytes, roofs, timed
from attn_course.gpu.configurations import instead

DIRECTIONS = ("forward", "backward", "decode")


class DeviceLostError(RuntimeError):
    """A kernel spoilt the GPU for this process; what was measured is kept, and a new process goes on."""


def bench(
    show: Callable[[str], None] = print,
    *,
    out: Path | None = None,
    providers: str | None = None,
    lengths: str | None = None,
    directions: str | None = None,
    tiles: Line | None = None,
    sizes: Sequence[Case] | None = None,
    keep: Callable[[Line], None] = lambda found: None,
) -> Line:
    """Measure every case on the device that is there, and return the report.

    `out` is a file of JSON lines (see `bench_log`) that keeps each result as soon as it is there, and is gone on with; the report
    is about all it holds, and `keep` gets it after every case. `providers`, `lengths` and `directions` name some, with commas between
    them; ValueError if the device has no such provider, or no case has such a length or direction. `tiles` puts other configurations
    in the place of some, see `configurations.instead`; everything is measured anew beside them. `sizes`: cases of your own. `show`
    gets each line of the table. DeviceLostError where a kernel spoilt the GPU: run again with the same `out`.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = cases(device) if sizes is None else sizes
    known, there = known_providers(device), list(dict.fromkeys(str(case.length) for case in sorted(sizes, key=lambda case: case.length)))
    names = _named("providers", providers, known, "on this device there are")
    numbers = _named("lengths", lengths, there, "there are cases of")
    ways = _named("directions", directions, DIRECTIONS, "there are")
    if device == "cpu":
        show("no GPU: a small matrix on the CPU; 'ours' is Triton's interpreter, which checks kernels and says nothing about speed")
    log = Log(out, {"device": device_name(device), "versions": versions()})
    with instead(tiles or {}):
        copy_gb_per_s = _roofs("before", device, log, tiles)["copy_gb_per_s"]
        for case in [case for case in sizes if str(case.length) in numbers]:
            asked = [(name, way) for name in names if takes(name, case) for way in case.directions if way in ways]
            measure(case, asked, device, log, copy_gb_per_s, show, tiles)
            keep(report(log.run, log.results, source_hash(), tiles))
        _roofs("after", device, log, tiles)
    found = report(log.run, log.results, source_hash(), tiles)
    keep(found)
    for text in summary(found) if device == "cuda" else ():
        show(text)
    return found


def reported(path: Path, tiles: Line | None = None) -> Line:
    """Return the report of the last run that a file of `bench` holds, whatever its device; ValueError if it holds none."""
    log = Log(path)
    if not any("roofs" in line and line["tiles"] == tiles for line in log.results):
        raise ValueError(f"report-from: {path} holds nothing that was measured with such tiles")
    return report(log.run, log.results, None, tiles)


def _named(what: str, said: str | None, there: Sequence[str], complaint: str) -> list[str]:
    names = there if said is None else said.split(",")
    for name in names:
        if name not in there:
            raise ValueError(f"{what}: {complaint} {', '.join(there)}; got {name!r}")
    return [name for name in there if name in names]


def _roofs(when: str, device: str, log: Log, tiles: Line | None) -> Line:
    """The rates of a product and of a copy as the log has them, measured if it does not."""
    key = {"roofs": when, "tiles": tiles}
    if log.wants(key):
        log.finish(key, roofs(device))
    return next(line for line in log.results if key.items() <= line.items())


def measure(
    case: Case,
    asked: list[tuple[str, str]],
    device: str,
    log: Log,
    copy_gb_per_s: float,
    show: Callable[[str], None],
    tiles: Line | None = None,
) -> None:
    """Measure what the log does not have of a case, and show a line for each direction; an error costs its own line only.

    `asked`: providers and directions. A provider that fails forward is not asked for its backward pass.
    """
    source = source_hash()

    @cache
    def given() -> tuple[Tensors, list[torch.Tensor]]:
        tensors = case.tensors(device, torch.bfloat16 if device == "cuda" else torch.float32)
        return tensors, expected(case, tensors, with_gradients=any(direction == "backward" for _, direction in asked))

    shown: dict[str, list[Line]] = {direction: [] for direction in case.directions}
    for name, direction in asked:
        key = {**asdict(case), "provider": name, "direction": direction, "source": source if name == OURS else None, "tiles": tiles}
        if not log.wants(key) or (direction == "backward" and _failed(log, {**key, "direction": "forward"})):
            continue
        log.begin(key)
        line = log.finish(key, guarded(partial(_measure, case, name, direction, given, copy_gb_per_s)))
        shown[direction].append(line)
        if "error" in line:
            show(f"{case.name} {direction} {name}: {line['error']}")
            if not answers(device):
                raise DeviceLostError(f"{name} spoilt the GPU for this process; run again with the same --out, and it goes on after {name}")
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
