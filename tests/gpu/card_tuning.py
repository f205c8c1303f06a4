"""Configurations around those the kernels run with: which there are, for which cases, compiled, timed, and which is best."""

import math
import statistics
from dataclasses import asdict, replace
from typing import Any

import torch

from attn_course.gpu.bench import calls, guarded
from attn_course.gpu.bench_cases import GATES, OURS, Case, attention, expected, relative_error
from attn_course.gpu.bench_log import Line, Log, source_hash
from attn_course.gpu.bench_report import BEST, relative_rates
from attn_course.gpu.bench_timing import answers, timed
from attn_course.gpu.configurations import Configuration, configuration, instead
from tests.gpu.card_processes import LOST

KERNELS = {"forward": ["forward"], "backward": ["backward_key_value", "backward_query"]}  # those with a tile to choose, by direction
CELLS = 2  # of which "worst" tries so many candidates; "wide" tries as many as there are for one of them
CANDIDATES = {"worst": 12, "wide": 60}
WIDE_LENGTH = 4096
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


def jobs(log: Log, step: str, device: str) -> list[tuple[str, Configuration, Case]]:
    """Return kernels, each with a candidate and a case that is to be timed, by what the bench has in the log.

    "worst": the cells of the target where our rate is least beside the best of the others. "wide": the worst of them at 4096 tokens, with
    a causal mask and without.
    """
    lines = [line for line in log.results if "provider" in line and line["source"] in (None, source_hash()) and line["tiles"] is None]
    ratios = {cell: by_name[BEST] for cell, by_name in relative_rates(lines).items() if cell[0].is_target}
    found = []
    for case, direction in sorted(ratios, key=ratios.__getitem__)[: CELLS if step == "worst" else 1]:
        tokens, most = case.batch * case.length, (CANDIDATES[step] if device == "cuda" else 2) // len(KERNELS[direction])
        length = min(WIDE_LENGTH, tokens)
        both = [replace(case, batch=tokens // length, length=length, is_causal=is_causal) for is_causal in (True, False)]
        of_kernel = [(kernel, tile) for kernel in KERNELS[direction] for tile in candidates(kernel, case.d)[:most]]
        found += [(*one, sized) for one in of_kernel for sized in ([case] if step == "worst" else both)]
    return found


def short(case: Case) -> Case:
    """Return a case that launches the very same compiled kernels, in less time; a step of decoding is left as it is."""
    return case if case.q_len is not None else replace(case, batch=1, length=min(256, case.length))


def warm_share(log: Log, sizes: list[Case], device: str, share: int, of: int) -> None:
    """Compile each `of`-th kind of call that the bench makes, by making it on a short sequence; Triton's cache keeps what it launches."""
    kinds = dict.fromkeys((direction, short(case)) for case in sizes for direction in case.directions)
    for direction, case in list(kinds)[share::of]:
        _try(log, device, {"warm": direction, **asdict(case)}, {}, direction, _not_timed, [])


def compile_share(log: Log, step: str, device: str, share: int, of: int) -> None:
    """Compile each `of`-th candidate in the same way, for whoever times."""
    shortened = dict.fromkeys((kernel, tile, short(case)) for kernel, tile, case in jobs(log, step, device))
    for kernel, tile, case in list(shortened)[share::of]:
        key = {"compile": kernel, "tile": list(tile), **asdict(case)}
        _try(log, device, key, {f"{kernel} {case.d}": list(tile)}, _direction(kernel), _not_timed, [])


def time_all(log: Log, step: str, device: str) -> None:
    """Time what compiled: the forward pass, or the backward pass as a whole with one kernel of it changed."""
    wanted: dict[tuple[Case, str], list[torch.Tensor]] = {}
    failed = [line for line in log.results if "compile" in line and "error" in line]
    for kernel, tile, case in jobs(log, step, device):
        compiled = {"compile": kernel, "tile": list(tile), **asdict(short(case)), "source": source_hash()}
        if not any(compiled.items() <= line.items() for line in failed):
            key, direction = {"tune": step, "kernel": kernel, "tile": list(tile), **asdict(case)}, _direction(kernel)
            _try(log, device, key, {f"{kernel} {case.d}": list(tile)}, direction, timed, wanted.setdefault((case, direction), []))


def _direction(kernel: str) -> str:
    return next(direction for direction, kernels in KERNELS.items() if kernel in kernels)


def _not_timed(call: Any, device: str) -> Line:
    return {}


def _try(log: Log, device: str, key: Line, tiles: dict[str, Any], direction: str, time: Any, wanted: list[torch.Tensor]) -> None:
    key = {**key, "source": source_hash()}
    if not log.wants(key):
        return
    log.begin(key)
    with instead(tiles):
        case = Case(**{name: key[name] for name in Case.__dataclass_fields__})
        line = log.finish(key, guarded(lambda: _run(device, direction, time, case, wanted)))
    if "error" in line and not answers(device):
        raise SystemExit(LOST)


def _run(device: str, direction: str, time: Any, case: Case, wanted: list[torch.Tensor]) -> Line:
    tensors = case.tensors(device, torch.bfloat16 if device == "cuda" else torch.float32)
    wanted.extend([] if wanted else expected(case, tensors, with_gradients=direction == "backward"))
    call, _ = calls(attention(OURS, case, tensors[0].device), tensors, direction)
    error = relative_error(call(), wanted[1:] if direction == "backward" else wanted[:1])
    if not error <= 2 * GATES[tensors[0].dtype]:
        return {"error": f"wrong result: relative error {error:.2g}"}
    return {**time(call, device), "relative_error": error}


def gains(log: Log, step: str) -> dict[tuple[str, int], dict[tuple, float]]:
    """Return by kernel and width how many times as fast each candidate is as what is built: geometric means over the cases."""
    times: dict[tuple[str, int], dict[tuple, dict[tuple, float]]] = {}
    for line in log.results:
        if line.get("tune") == step and "time_ms" in line and line["source"] == source_hash():
            of_tile = times.setdefault((line["kernel"], line["d"]), {}).setdefault(tuple(line["tile"]), {})
            of_tile[line["length"], line["is_causal"]] = line["time_ms"]
    found = {}
    for kernel, by_tile in times.items():
        built = by_tile.get(tuple(candidates(*kernel)[0]), {})
        found[kernel] = {
            tile: math.exp(statistics.fmean(math.log(built[case] / time_ms) for case, time_ms in of_tile.items()))
            for tile, of_tile in by_tile.items()
            if of_tile.keys() == built.keys()
        }
    return {kernel: by_tile for kernel, by_tile in found.items() if by_tile}


def best(log: Log) -> dict[str, list]:
    """Return the candidates that are faster than what is built, as `configurations.instead` takes them; "wide" has the last word."""
    found: dict[str, list] = {}
    for step in CANDIDATES:
        for (kernel, d), by_tile in gains(log, step).items():
            tile, name = max(by_tile, key=by_tile.__getitem__), f"{kernel} {d}"
            found[name] = list(tile)
            if tile == candidates(kernel, d)[0]:
                del found[name]
    return found


def summary(log: Log, step: str) -> list[str]:
    """Return a line for each kernel and width: the configuration as built, and the best."""
    said = []
    for (kernel, d), by_tile in gains(log, step).items():
        tile = max(by_tile, key=by_tile.__getitem__)
        said.append(f"{kernel} d {d}: {_named(candidates(kernel, d)[0])} as built, {_named(tile)} is {by_tile[tile]:.3f} times as fast")
    return said


def _named(tile: tuple) -> str:
    registers = "" if tile[4] is None else f", {tile[4]} registers"
    return "x".join(map(str, tile[:2])) + f", {tile[2]} warps, {tile[3]} stages{registers}"
