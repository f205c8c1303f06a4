"""`attn-course bench`: how fast the kernels are beside what torch ships."""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from attn_course.commands.terminal import BadInput, Failure, check_json_target, option, write_json


def bench(
    json_file: Annotated[str | None, option("--json", "FILE", "Also write the whole report as JSON.")] = None,
    out: Annotated[Path | None, option("--out", "FILE", "Keep each result here as it is measured; if it has some, go on.")] = None,
    providers: Annotated[str | None, option("--providers", "A,B", "Only these, such as ours,sdpa-flash.")] = None,
    lengths: Annotated[str | None, option("--lengths", "T,T", "Only these, such as 1024,4096.")] = None,
    directions: Annotated[str | None, option("--directions", "A,B", "Only these, of forward,backward,decode.")] = None,
    tiles: Annotated[Path | None, option("--tiles", "FILE", 'Other configurations, such as {"forward 128": [64, 64, 4, 3]}.')] = None,
    report_from: Annotated[Path | None, option("--report-from", "FILE", "Measure nothing: report what an --out FILE holds.")] = None,
) -> None:
    """Time attention on the device that is there, and print ratios.

    On a GPU it takes minutes. Without one a small matrix runs in seconds; our kernels then run in Triton's interpreter,
    which checks them and says nothing about speed.

    Examples:

        attn-course bench
        attn-course bench --out h100.jsonl --json h100.json
        attn-course bench --providers ours,sdpa-flash --lengths 1024,4096 --directions forward
        attn-course bench --report-from h100.jsonl --json h100.json
    """
    check_json_target(json_file)
    if out is not None and not out.absolute().parent.is_dir():
        raise BadInput(f"--out: there is no directory {out.absolute().parent}")
    for name, path in (("--tiles", tiles), ("--report-from", report_from)):
        if path is not None and not path.is_file():
            raise BadInput(f"{name}: there is no file {path}")
    instead = None if tiles is None else _tiles(tiles)
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is first needed
    from attn_course.gpu import bench as benchmark
    from attn_course.gpu.bench_report import table

    stream = sys.stderr if json_file == "-" else sys.stdout
    try:
        if report_from is not None:
            report = benchmark.reported(report_from, instead)
            print("\n".join(table(report)), file=stream)
        else:
            show = partial(print, flush=True, file=stream)
            report = benchmark.bench(show, out=out, providers=providers, lengths=lengths, directions=directions, tiles=instead)
    except ValueError as error:
        raise BadInput(f"--{error}") from error
    except benchmark.DeviceLostError as error:
        raise Failure(str(error)) from error
    if json_file:
        write_json(json_file, report)


def _tiles(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"--tiles: {path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadInput(f'--tiles: wanted such as {{"forward 128": [64, 64, 4, 3]}}; got {found}')
    return found
