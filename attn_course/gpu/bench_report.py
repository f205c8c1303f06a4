"""What the lines of a benchmark say together: means over the cells of the target, the rest one by one, and the table."""

import math
import statistics
from typing import Any

from attn_course.gpu.bench_cases import OURS, Case

Line = dict[str, Any]
BEST = "best"


def case_of(line: Line) -> Case:
    """Return the case of a line."""
    return Case(**{name: line[name] for name in Case.__dataclass_fields__})


def relative_rates(lines: list[Line]) -> dict[tuple[Case, str], dict[str, float]]:
    """Return our rate over that of each other provider, and of the best of them, by case and direction; wrong results have no rate."""
    rates: dict[tuple[Case, str], dict[str, float]] = {}
    for line in lines:
        if "tflops_per_s" in line:
            rates.setdefault((case_of(line), line["direction"]), {})[line["provider"]] = line["tflops_per_s"]
    found = {}
    for cell, by_provider in rates.items():
        ours = by_provider.pop(OURS, None)
        if ours is not None and by_provider:
            found[cell] = {**{name: ours / rate for name, rate in by_provider.items()}, BEST: ours / max(by_provider.values())}
    return found


def means(lines: list[Line]) -> dict[str, dict[str, dict[str, float]]]:
    """Return geometric mean and least of our rate over that of each other, over the cells of the target, by direction."""
    columns: dict[str, dict[str, list[float]]] = {}
    for (case, direction), ratios in relative_rates(lines).items():
        for name, ratio in ratios.items() if case.is_target else ():
            columns.setdefault(direction, {}).setdefault(name, []).append(ratio)
    return {
        direction: {
            name: {"geometric_mean": math.exp(statistics.fmean(map(math.log, ratios))), "least": min(ratios), "cells": len(ratios)}
            for name, ratios in by_name.items()
        }
        for direction, by_name in columns.items()
    }


def report(run: Line, results: list[Line], source: str | None, tiles: Line | None = None) -> Line:
    """Return everything as plain data: what was measured where, and how we compare.

    `results` are those of a log; of these the ones count that were measured beside `tiles`, and of ours those of one `source` of the
    kernels (None: the last).
    """
    results = [line for line in results if line.get("tiles") == tiles]
    roofs, measured = [line for line in results if "roofs" in line], [line for line in results if "provider" in line]
    source = source or next((line["source"] for line in reversed(measured) if line["source"]), None)
    lines = [line for line in measured if line["source"] in (None, source)]
    extras = [
        {"case": case.name, "direction": direction, "our_rate_over": ratios}
        for (case, direction), ratios in relative_rates(lines).items()
        if not case.is_target
    ]
    return {
        "device": run["device"],
        "date": roofs[0]["time"][:10],
        "versions": run["versions"],
        "driver": (roofs[0]["state"] or {}).get("driver"),
        "tiles": tiles,
        "matmul_tflops_per_s": [roof["matmul_tflops_per_s"] for roof in roofs],
        "copy_gb_per_s": [roof["copy_gb_per_s"] for roof in roofs],
        "states": [roof["state"] for roof in roofs],
        "our_rate_over": means(lines),
        "extras": extras,
        "measurements": lines,
    }


def row(case: Case, direction: str, lines: list[Line]) -> str:
    """Return a line of the table: each provider's rate in TFLOP/s, or in GB/s and percent of a copy for decoding."""
    cells = []
    for line in lines:
        name = line["provider"]
        if "error" in line:
            cells.append(f"{name} failed")
        elif direction == "decode":
            cells.append(f"{name} {line['gb_per_s']:.4g} GB/s ({line['percent_of_copy']:.0f} %)")
        else:
            cells.append(f"{name} {line['tflops_per_s']:.4g}{' late' if line['late'] else ''}")
    return f"{case.name:40s} {direction:8s} {'  '.join(cells)}"


def table(found: Line) -> list[str]:
    """Return a line for each case and direction, then what the report says in a few."""
    cells: dict[tuple[Case, str], list[Line]] = {}
    for line in found["measurements"]:
        cells.setdefault((case_of(line), line["direction"]), []).append(line)
    order = sorted(cells, key=lambda cell: (cell[1], cell[0].d, cell[0].is_causal, cell[0].length))
    return [*(row(*cell, cells[cell]) for cell in order), *summary(found)]


def summary(found: Line) -> list[str]:
    """Return what the report says in a few lines."""
    said = [f"product of large matrices, before and after: {' and '.join(f'{rate:.4g}' for rate in found['matmul_tflops_per_s'])} TFLOP/s"]
    for direction, columns in found["our_rate_over"].items():
        parts = [f"{name} {one['geometric_mean']:.2f} (least {one['least']:.2f} of {one['cells']})" for name, one in columns.items()]
        said.append(f"{direction}: our rate over {', '.join(parts)}")
    for extra in found["extras"]:
        parts = [f"{name} {ratio:.2f}" for name, ratio in extra["our_rate_over"].items()]
        said.append(f"{extra['case']} {extra['direction']}: our rate over {', '.join(parts)}")
    return said
