"""Configurations around those the kernels run with: which there are, compiled, timed, and which is best."""

import math
import statistics
from pathlib import Path
from unittest import mock

import torch

from attn_course.gpu import flash_operators
from attn_course.gpu.bench import calls, guarded
from attn_course.gpu.bench_cases import FEATURES, GATES, OURS, TOKENS, Case, attention, expected, relative_error
from attn_course.gpu.bench_log import Log, source_hash
from attn_course.gpu.bench_timing import answers, timed
from attn_course.gpu.configurations import Configuration, configuration
from tests.gpu.card_processes import LOST

KERNELS = ("forward", "backward_key_value", "backward_query")
REGISTERS = 200  # of 255, for accumulators and scores
SHARED_MULTIPROCESSOR = {  # two or three programs on one: no spill in their loops, docs/gpu_notes.md has the counts
    ("forward", 64): [Configuration(64, 64, 4, 3, 168), Configuration(128, 32, 8, 3, 128)],
    ("backward_key_value", 64): [Configuration(32, 64, 4, 3, 168)],
    ("backward_query", 64): [Configuration(64, 64, 4, 3, 168), Configuration(128, 32, 8, 3, 128)],
}


def held(kernel: str, d: int, tile: Configuration) -> float:
    """How many float32 of accumulators and scores one thread holds."""
    scores = tile.block_q * tile.block_kv
    numbers = {
        "forward": scores + tile.block_q * d,
        "backward_key_value": 2 * scores + 2 * tile.block_kv * d,
        "backward_query": 2 * scores + tile.block_q * d,
    }
    return numbers[kernel] / (32 * tile.num_warps)


def candidates(kernel: str, d: int) -> list[Configuration]:
    """Return the configuration as built, those of which several programs share a multiprocessor, then neighbours.

    Of a neighbour one side of the tile is halved or doubled; it has 4 or 8 warps, and a stage more or less.
    """
    built = configuration(kernel, d, d, torch.bfloat16)
    rows, columns = built.block_q, built.block_kv
    tiles = [(rows, columns), (rows // 2, columns), (2 * rows, columns), (rows, columns // 2), (rows, 2 * columns)]
    near = [
        Configuration(*tile, warps, built.num_stages + more) for tile in tiles for warps in (4, 8) for more in (0, 1, -1) if min(tile) >= 16
    ]
    near = [one for one in near if one != built and one.num_stages >= 1 and held(kernel, d, one) <= REGISTERS]
    return [built, *SHARED_MULTIPROCESSOR.get((kernel, d), []), *near]


def running_with(kernel: str, tile: Configuration) -> mock._patch:
    """Let the launcher take a configuration for one kernel; the others keep theirs."""
    return mock.patch.object(
        flash_operators, "configuration", lambda name, *sizes, **options: tile if name == kernel else configuration(name, *sizes, **options)
    )


def grid(device: str) -> tuple[list[Case], dict[tuple[str, int], list[Configuration]]]:
    """Return the cases to time, most telling first, and the candidates of each kernel and width; on a CPU a handful."""
    if device != "cuda":
        rows = {"forward": (16, 32), "backward_key_value": (16,), "backward_query": (16,)}
        return [Case(1, 1, 1, 24, 16, True)], {(kernel, 16): [Configuration(n, 16, 1, 1) for n in rows[kernel]] for kernel in KERNELS}
    sizes = [(length, d, is_causal) for length in (4096, 16384, 1024) for d in (64, 128) for is_causal in (True, False)]
    cases = [Case(TOKENS // length, FEATURES // d, FEATURES // d, length, d, is_causal) for length, d, is_causal in sizes]
    return cases, {(kernel, d): candidates(kernel, d) for kernel in KERNELS for d in (64, 128)}


def compile_share(log: Log, device: str, share: int, of: int) -> None:
    """Compile each `of`-th candidate, by running it once on a short sequence; Triton's cache keeps it for whoever times."""
    cases, tiles = grid(device)
    kinds = dict.fromkeys((case.d, case.heads, case.is_causal) for case in cases)
    jobs = [(*kind, kernel, tile) for kind in kinds for kernel in KERNELS for tile in tiles[kernel, kind[0]]]
    for d, heads, is_causal, kernel, tile in jobs[share::of]:
        short = Case(1, heads, heads, min(256, cases[0].length), d, is_causal)
        _try(log, device, _key("compile", kernel, tile, short), lambda *_: {}, short, [])


def time_all(log: Log, device: str) -> None:
    """Time what compiled: the forward pass, or the backward pass as a whole with one kernel of it changed."""
    cases, tiles = grid(device)
    compiled = {
        (line["kernel"], *line["tile"], line["d"], line["is_causal"])
        for line in log.results
        if line["what"] == "compile" and "error" not in line and line["source"] == source_hash()
    }
    for case in cases:
        jobs = [
            (kernel, tile) for kernel in KERNELS for tile in tiles[kernel, case.d] if (kernel, *tile, case.d, case.is_causal) in compiled
        ]
        wanted: list[torch.Tensor] = []
        for kernel, tile in jobs:
            _try(log, device, _key("time", kernel, tile, case), timed, case, wanted)


def _key(what: str, kernel: str, tile: Configuration, case: Case) -> dict:
    sizes = {"d": case.d, "is_causal": case.is_causal, "length": case.length}
    return {"what": what, "kernel": kernel, "tile": list(tile), **sizes, "source": source_hash()}


def _try(log: Log, device: str, key: dict, time, case: Case, wanted: list[torch.Tensor]) -> None:
    if not log.wants(key):
        return
    log.begin(key)
    with running_with(key["kernel"], Configuration(*key["tile"])):
        line = log.finish(key, guarded(lambda: _run(device, key["kernel"], time, case, wanted)))
    if "error" in line and not answers(device):
        raise SystemExit(LOST)


def _run(device: str, kernel: str, time, case: Case, wanted: list[torch.Tensor]) -> dict:
    tensors = case.tensors(device, torch.bfloat16 if device == "cuda" else torch.float32)
    wanted.extend([] if wanted else expected(case, tensors))
    direction = "forward" if kernel == "forward" else "backward"
    call, _ = calls(attention(OURS, case, tensors[0].device), tensors, direction)
    error = relative_error(call(), wanted[:1] if direction == "forward" else wanted[1:])
    if not error <= 2 * GATES[tensors[0].dtype]:
        return {"error": f"wrong result: relative error {error:.2g}"}
    return {**time(call, device), "relative_error": error}


def summary(path: Path, run: dict) -> list[str]:
    """Return a line for each kernel, width and mask: the configuration as built, and the best by the geometric mean over lengths."""
    times: dict[tuple, dict[tuple, dict[int, float]]] = {}
    for line in Log(path, run).results:
        if line["what"] == "time" and "time_ms" in line and line["source"] == source_hash():
            of_tile = times.setdefault((line["kernel"], line["d"], line["is_causal"]), {}).setdefault(tuple(line["tile"]), {})
            of_tile[line["length"]] = line["time_ms"]
    said = []
    for (kernel, d, is_causal), by_tile in times.items():
        built, of_built = next(iter(by_tile.items()))
        gains = {
            tile: math.exp(statistics.fmean(math.log(of_built[length] / time_ms) for length, time_ms in of_tile.items()))
            for tile, of_tile in by_tile.items()
            if of_tile.keys() == of_built.keys()
        }
        best = max(gains, key=gains.__getitem__)
        kind = "causal" if is_causal else "full"
        said.append(f"{kernel} d {d} {kind}: {_named(built)} as built, {_named(best)} is {gains[best]:.3f} times as fast")
    return said


def _named(tile: tuple) -> str:
    registers = "" if tile[4] is None else f", {tile[4]} registers"
    return "x".join(map(str, tile[:2])) + f", {tile[2]} warps, {tile[3]} stages{registers}"
