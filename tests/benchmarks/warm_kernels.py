"""How much time warm kernels save: stock nbval, the same nbval with our provisioner, and with our manager, in turns.

    python -m tests.benchmarks.warm_kernels [--rounds 3] [--notebooks 6] [--only short,solutions,lessons]

Prints, for each way, seconds per notebook (wall clock and CPU of all processes), best of the rounds, and the ratios. Starting
pytest and starting the warm process are stated apart. Short notebooks are our solutions and exercises without the one cell of each
that draws a figure, so that every cell computes for less than 0.1 s; whole solutions and lessons follow, in seconds saved.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attn_course.grading.warm_kernels.owner import WarmKernels
from attn_course.grading.warm_kernels.settings import PROVISIONER

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
QUICK = "attn_course.grading.warm_kernels.quick_nbval"
_NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"]
_QUIET = ["-p", "nbval.plugin", "-p", "no:cacheprovider", "--noconftest", "-q", "--tb=no", "--color=no"]


@dataclass(frozen=True)
class Cost:
    """Seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def __truediv__(self, count: int) -> "Cost":
        return Cost(self.wall / count, self.cpu / count)


def best(costs: list[Cost]) -> Cost:
    """The least of each; other work on the machine only adds."""
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def run_pytest(folder: Path, arguments: list[str], variables: dict[str, str], warm_cpu: Callable[[], float]) -> Cost:
    """Run nbval on all notebooks of a folder."""
    variables = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": PATHS, **variables}
    command = [
        sys.executable,
        "-m",
        "pytest",
        *_QUIET,
        *_NBVAL,
        "-c",
        str(folder / "pytest.ini"),
        f"--rootdir={folder}",
        *arguments,
        str(folder),
    ]
    before, warm_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), warm_cpu(), time.perf_counter()
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0 or "plain kernels" in done.stderr:
        raise SystemExit(f"{folder.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + warm_cpu() - warm_before)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def write_set(folder: Path, sources: list[Path], *, figures: bool) -> int:
    """Copy notebooks as they are, or without the cells that draw and with outputs no run compares."""
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for source in sources:
        notebook = json.loads(source.read_text(encoding="utf-8"))
        if not figures:
            notebook["cells"] = [cell for cell in notebook["cells"] if "figures." not in "".join(cell["source"])]
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    cell |= {"outputs": [], "execution_count": None}
                    cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "raises-exception"]  # untouched exercises fail
        (folder / f"{source.parent.name}_{source.name}").write_text(json.dumps(notebook), encoding="utf-8")
    return len(sources)


def start_warm_process(warm: WarmKernels) -> Cost:
    """Time until the first kernel could be forked."""
    start = time.perf_counter()
    warm.__enter__()
    warm.wait_until_ready()
    assert warm.process is not None
    return Cost(time.perf_counter() - start, cpu_of(warm.process.pid))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--notebooks", type=int, default=6, help="of each kind")
    parser.add_argument("--only", default="short,solutions,lessons", help="which sets of notebooks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        warm = WarmKernels(environment={**os.environ, "PYTHONPATH": PATHS})
        start = start_warm_process(warm)
        try:
            report(Path(name), warm, start, options.rounds, options.notebooks, options.only.split(","))
        finally:
            warm.__exit__(None, None, None)


def report(place: Path, warm: WarmKernels, start: Cost, rounds: int, most: int, wanted: list[str]) -> None:
    """Run all ways in turns and print what each costs."""
    assert warm.process is not None
    pid = warm.process.pid
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"start of the warm process, once: {start.wall:.2f} s wall, {start.cpu:.2f} s CPU; {load}")
    found = {kind: sorted((ROOT / kind).glob("*.ipynb"))[1 : most + 1] for kind in ("solutions", "exercises", "notebooks")}
    sets = {
        "short": write_set(place / "short", found["solutions"] + found["exercises"], figures=False),
        "solutions": write_set(place / "solutions", found["solutions"], figures=True),
        "lessons": write_set(place / "lessons", found["notebooks"], figures=True),
    }
    ways: dict[str, tuple[list[str], dict[str, str]]] = {
        "pytest alone": (["--collect-only"], {}),
        "stock nbval": ([], {}),
        "with the provisioner": ([], {**warm.variables, "JUPYTER_DEFAULT_PROVISIONER_NAME": PROVISIONER}),
        "with our manager": (["-p", QUICK], warm.variables),
    }
    for kind, count in ((kind, count) for kind, count in sets.items() if kind in wanted):
        costs: dict[str, list[Cost]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, (arguments, variables) in ways.items():
                costs[way].append(run_pytest(place / kind, arguments, variables, lambda: cpu_of(pid)))
        alone = best(costs.pop("pytest alone"))
        print(
            f"\n{kind}: {count} notebooks; pytest alone, once: {alone.wall:.2f} s wall, {alone.cpu:.2f} s CPU; s per notebook without it:"
        )
        stock = (best(costs["stock nbval"]) - alone) / count
        for way, runs in costs.items():
            each = (best(runs) - alone) / count
            saved = stock - each
            gain = f"{stock.wall / each.wall:.1f} and {stock.cpu / each.cpu:.1f} times faster, " if kind == "short" else ""
            print(f"  {way:22}{each.wall:6.2f} wall {each.cpu:6.2f} CPU   {gain}{saved.wall:.2f} s and {saved.cpu:.2f} s saved")


if __name__ == "__main__":
    main()
