"""Run nbval on built notebooks, as a learner or CI would, only quicker, and say which cells failed."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

CELL_TIMEOUT_S = 120
PLOTS = "[plots]\nregex: (?s)<svg xmlns=.*</svg>\nreplace: a plot\n"  # where it puts what depends on its fonts; its words are compared


@dataclass(frozen=True)
class Run:
    """What nbval found: the failed cells as folder/notebook:id, and what it printed."""

    passed: bool
    failed: list[str]
    text: str


def run_nbval(paths: Sequence[Path]) -> Run:
    """Run nbval in a process of its own, free of the options of the tests around it.

    `paths`: notebooks; their kernels work in their folders.
    """
    from attn_course.figures.base import PHONE

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", PHONE: "no"}
    command = [
        sys.executable, "-m", "pytest", "-p", "nbval.plugin",
        "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_TIMEOUT_S}",
        "-p", "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings=", "-q", "--color=no", "-rf", *map(str, paths),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        left_out = Path(folder, "plots.cfg")
        left_out.write_text(PLOTS, encoding="utf-8")
        command.append(f"--nbval-sanitize-with={left_out}")
        done = subprocess.run(command, check=False, cwd=paths[0].parent, env=environment, capture_output=True, text=True, timeout=900)
    codes = {
        f"{path.parent.name}/{path.name}": [cell.id for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        for path in paths
    }
    found = re.findall(r"^FAILED (\S+)::Cell (\d+)", done.stdout, flags=re.MULTILINE)
    named = [(next(name for name in codes if f"{paths[0].parent.parent}/{name}".endswith(at) or at.endswith(name)), n) for at, n in found]
    return Run(done.returncode == 0, [f"{name}:{codes[name][int(n)]}" for name, n in named], done.stdout + done.stderr)
