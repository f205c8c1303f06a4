"""Run a notebook under nbval in a process of its own, and read how each cell went."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_course.checking.cells import Cell

STARTUP_S = 180.0  # a kernel that does not start is started twice, 60 s each
_GRACE_S = 10.0  # per cell, for nbval's own waits; and for its clean-up after an interrupt


class EngineError(RuntimeError):
    """The machinery failed, not the notebook: no kernel, no nbval, or it ended early."""


@dataclass(frozen=True)
class Outcome:
    """How one cell went.

    `problem`: "exception", "timeout", "died" (the kernel has ended), "differs" (another output), "no kernel"; None if all is
    well. `alive`: whether the kernel could go on. `seconds`: wall time. `stdout`: what the cell printed, and the plain text of
    what it displayed. `error_name`, `error_text`: type and first line of the exception; empty without one. `verdict`: what
    `check` attached to its failure, unverified; None otherwise.
    """

    problem: str | None
    alive: bool
    seconds: float
    stdout: str = ""
    error_name: str = ""
    error_text: str = ""
    verdict: Any = None


def run_nbval(
    cells: Sequence[Cell],
    *,
    folder: Path,
    cell_timeout_s: float,
    on_cell: Callable[[int], None] | None = None,
) -> dict[int, Outcome]:
    """Run cells under nbval in a fresh kernel of this environment.

    `cells`: they are written to a notebook in a temporary directory. `folder`: the kernel's working directory. `cell_timeout_s`:
    longest time for one cell, in seconds. `on_cell`: called with the number of cells that are done.

    They come by position of the cell; cells after the death of the kernel are absent. Raises EngineError if nbval or the kernel
    does not start, or nbval ends before its cells.
    """
    with tempfile.TemporaryDirectory(prefix="attn-course-check-") as name:
        place = Path(name)
        (place / "copy.ipynb").write_text(json.dumps(_notebook(cells)), encoding="utf-8")
        (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (place / "cells.jsonl").touch()
        with (place / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                _command(place, folder, cell_timeout_s),
                cwd=place,
                env=_environment(place),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is ours to pass on, once: a second one would cut its clean-up short
            )
            try:
                _wait(process, place / "cells.jsonl", STARTUP_S + len(cells) * (cell_timeout_s + _GRACE_S), on_cell)
            finally:
                _end(process)
        return _read_outcomes(place, len(cells), process.returncode)


def _command(place: Path, folder: Path, cell_timeout_s: float) -> list[str]:
    plugins = ["-p", "attn_course.checking.nbval_watch", "-p", "nbval.plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    nbval = ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout_s:g}"]
    ours = [f"--kernel-folder={folder.absolute()}", f"--cell-log={place / 'cells.jsonl'}", f"--owner={os.getpid()}"]
    paths = [*ours, f"--rootdir={place}"]
    quiet = ["-c", str(place / "pytest.ini"), "--noconftest", "-q", "--tb=line", "--color=no", "--capture=no"]
    return [sys.executable, "-m", "pytest", *plugins, *nbval, *paths, *quiet, str(place / "copy.ipynb")]


def _environment(place: Path) -> dict[str, str]:
    """Ours, less what steers pytest from outside; IPython's history and start-up files are those of a fresh user."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    return environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "IPYTHONDIR": str(place / "ipython")}


def _notebook(cells: Sequence[Cell]) -> dict[str, Any]:
    def outputs(cell: Cell) -> list[dict[str, Any]]:
        return [] if cell.expected is None else [{"output_type": "display_data", "data": dict(cell.expected), "metadata": {}}]

    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {"tags": list(cell.tags)},
                "source": cell.source,
                "outputs": outputs(cell),
                "execution_count": None if cell.expected is None else 1,  # null: nbval does not compare
            }
            for number, cell in enumerate(cells)
        ],
    }


def _wait(process: subprocess.Popen[bytes], log: Path, limit_s: float, on_cell: Callable[[int], None] | None) -> None:
    end = time.monotonic() + limit_s
    while process.poll() is None:
        if time.monotonic() > end:
            raise EngineError(f"nbval did not finish within {limit_s:.0f} s")
        if on_cell:
            on_cell(sum(1 for _ in _lines(log)))
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop nbval if it still runs (Ctrl-C, time limit); it ends its kernel, or the kernel sees that it is alone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _lines(log: Path) -> Iterator[str]:
    """The whole lines; nbval may have been killed within one."""
    yield from log.read_text(encoding="utf-8").split("\n")[:-1]


def _read_outcomes(place: Path, n_cells: int, returncode: int | None) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    for line in _lines(place / "cells.jsonl"):
        entry = json.loads(line)
        if entry.get("problem") == "no kernel":
            raise EngineError("the Python kernel did not start; attn-course doctor may say why")
        if entry.get("problem") == "gone":  # this cell and all later ones did not run
            last = max(outcomes, default=None)
            if last is not None and outcomes[last].alive:  # it replied, and what it left behind ended the kernel
                outcomes[last] = replace(outcomes[last], problem="died", alive=False)
            break
        number = entry.pop("cell")
        outcomes[number] = Outcome(entry.pop("problem", None), entry.pop("alive", True), **entry)
    ended_early = len(outcomes) < n_cells and all(outcome.alive for outcome in outcomes.values())
    if returncode not in (0, 1) or ended_early:
        output = (place / "output.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line[:200] for line in output if line.strip()]
        raise EngineError(f"nbval ended early (exit code {returncode}): {said[-1] if said else 'no output'}")
    return outcomes
