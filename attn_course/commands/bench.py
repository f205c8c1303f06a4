"""`attn-course bench`: how fast the kernels are beside what torch ships."""

import os
from typing import Annotated

import typer

from attn_course.commands.terminal import check_json_target, write_json


def bench(
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write every measurement as JSON.", show_default=False)
    ] = None,
) -> None:
    """Time attention on the device that is there, and print ratios.

    On a GPU it takes minutes. Without one a small matrix runs in seconds; our kernels then run in Triton's interpreter,
    which checks them and says nothing about speed.

    Examples:

        attn-course bench
        attn-course bench --json h100.json
    """
    check_json_target(json_file)
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is first needed
    from attn_course.gpu import bench as benchmark

    report = benchmark.bench(lambda line: print(line, flush=True))
    if json_file:
        write_json(json_file, report)
