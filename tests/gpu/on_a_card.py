"""Fifteen minutes on a GPU, in two calls: python -m tests.gpu.on_a_card OUT --quick STEP ... --until SECONDS.

warm      what the bench launches is compiled, side by side
core      the gates that everything else rests on: tests marked `core` in tests/gpu/test_*on_a_gpu.py, spread over processes
forward, backward, decode    the benchmark: ours beside SDPA's flash and cuDNN kernels
others    the benchmark: SDPA's efficient kernel and eager, at 1024 and 4096 tokens
worst     configurations near ours for the two cells where we are farthest behind: compiled side by side, then timed
gates     all other gates
wide      more configurations for the worst cell, at 4096 tokens
again     the benchmark with the best configurations
flex      the benchmark: FlexAttention, causal at 4096 tokens
profile   a profile of three kernels and a check of memory accesses, where ncu and compute-sanitizer are there

Each step has a share of the time that is left. Every result is written as soon as it is there, so a kill at any moment costs what was
being measured; called again it goes on. OUT gets card.jsonl (everything), bench.json and again.json (reports, for
attn_course/gpu/measurements), table.txt and profile.txt. It needs torch, Triton, NumPy and pytest. Without a GPU it rehearses all of it
at tiny sizes.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from attn_course.gpu.bench_log import source_hash
from tests.gpu import card_tuning
from tests.gpu.card_processes import said_by, side_by_side
from tests.gpu.card_work import GATE_FILES, REHEARSED, log_of

SHOWN = 30
TOOLS = "/usr/local/cuda/bin"
PROCESSES = 1 if REHEARSED else max(1, min(14, (os.cpu_count() or 1) - 2))
PROFILES = [  # kernel, direction, features
    ("flash_forward", "forward", 64),
    ("flash_forward", "forward", 128),
    ("flash_backward_key_value", "backward", 128),
]


class Card:
    """Where results go, and when the step has to end."""

    def __init__(self, out: Path, limit_s: float) -> None:
        self.out = out
        self.end = time.monotonic() + limit_s

    def left_s(self) -> float:
        return max(self.end - time.monotonic(), 1.0)

    def command(self, limit_s: float, *task: str) -> list[str]:
        return [sys.executable, "-m", "tests.gpu.card_work", str(self.out), str(limit_s), *task]

    def work(self, *tasks: tuple[str, ...], share: float = 1.0) -> bool:
        """Do tasks side by side, for a share of the time left; return whether all of them ended well."""
        limit_s = share * self.left_s()
        return side_by_side([self.command(limit_s, *task) for task in tasks], limit_s)

    def spread(self, *task: str, share: float = 1.0) -> bool:
        """Do a task in shares, one for each process that the machine takes."""
        return self.work(*((*task, str(index), str(PROCESSES)) for index in range(PROCESSES)), share=share)


def warm(card: Card) -> bool:
    """Compile what the bench launches; what came out wrong is said."""
    finished = card.spread("warm")
    for line in [line for line in log_of(card.out).results if "warm" in line and "error" in line]:
        print(f"  {line['warm']} d {line['d']} length {line['length']}: {line['error']}")
    return finished


def gates(card: Card, which: str) -> bool:
    """Run the tests that need a GPU, those marked `core` or the others."""
    finished = card.spread("gates", which)
    source = source_hash(*GATE_FILES, GATE_FILES[0].with_name("oracle.py"))
    lines = [line for line in log_of(card.out).results if "test" in line and line["source"] == source]
    outcomes = Counter(line.get("outcome", "given up") for line in lines)
    print(f"gates: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.items()) or 'none'}")
    for line in [line for line in lines if "error" in line][:SHOWN]:
        print(f"  {line['test'].removeprefix('tests/gpu/')}: {line['error'][:200]}")
    return finished


def tuning(card: Card, step: str) -> bool:
    """Compile the candidates, then time them."""
    compiled = card.spread("compile", step, share=0.6)
    timed = card.work(("tune", step))
    for line in card_tuning.summary(log_of(card.out), step):
        print(line)
    return compiled and timed


def profiles(card: Card) -> bool:
    """What the profiler and the memory checker say; nothing, where they are not installed."""
    length, odd = ("16", ("11", "13")) if REHEARSED else ("4096", ("113", "203"))
    done = True
    for kernel, direction, d in PROFILES:
        options = f"--clock-control none --set full --kernel-name regex:^{kernel}$ --launch-skip 1 --launch-count 1".split()
        task = ("call", direction, str(d), length, length)
        done = _looked_at(card, f"{kernel}, d {d}", ["ncu", *options], task) and done
    title = f"memcheck, {odd[0]} queries and {odd[1]} keys, d 64"
    return _looked_at(card, title, ["compute-sanitizer", "--tool", "memcheck"], ("call", "backward", "64", *odd)) and done


def _looked_at(card: Card, title: str, tool: list[str], task: tuple[str, ...]) -> bool:
    """Add what a tool says about a task to profile.txt, unless it is there; return whether it is, or cannot be."""
    path, head = card.out / "profile.txt", f"==== {title}, source {source_hash()}"
    if path.exists() and head in path.read_text(encoding="utf-8"):
        return True
    found = shutil.which(tool[0], path=os.pathsep.join([os.environ.get("PATH", ""), TOOLS]))
    if found is None:
        print(f"{title}: there is no {tool[0]} here")
        return True
    caching = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}  # else an access beyond a tensor stays within a block of the allocator
    said = said_by([found, *tool[1:], *card.command(card.left_s(), *task)], card.left_s(), **caching)
    if said is None:
        return False
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{head}, exit code {said[0]}\n{said[1]}\n\n")
    print(f"{title}: exit code {said[0]}")
    return True


def bench(card: Card, step: str) -> bool:
    return card.work(("bench", step))


STEPS: dict[str, tuple[float, Callable[[Card], bool]]] = {  # seconds that were planned for it, by which time is shared out
    "warm": (30, warm),
    "core": (45, partial(gates, which="core")),
    "forward": (35, partial(bench, step="forward")),
    "backward": (30, partial(bench, step="backward")),
    "decode": (15, partial(bench, step="decode")),
    "others": (20, partial(bench, step="others")),
    "worst": (50, partial(tuning, step="worst")),
    "gates": (95, partial(gates, which="not core")),
    "wide": (90, partial(tuning, step="wide")),
    "again": (70, partial(bench, step="again")),
    "flex": (40, partial(bench, step="flex")),
    "profile": (50, profiles),
}


def main(words: list[str] | None = None) -> int:
    """Do the steps that are named and not done; return 0 if all are done now."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.on_a_card", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder for the results")
    parser.add_argument("--quick", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP", help="these steps; all, if none is named")
    parser.add_argument("--until", type=float, default=600.0, metavar="SECONDS", help="of all steps together (%(default)g)")
    arguments = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the processes of a step end too
    arguments.out.mkdir(parents=True, exist_ok=True)
    if REHEARSED:
        print("no GPU: a rehearsal at tiny sizes, in Triton's interpreter; it says nothing about GPUs", flush=True)
    log, source = log_of(arguments.out), source_hash(*GATE_FILES)
    asked = [name for name in arguments.quick if log.wants({"step": name, "source": source})]
    for name in asked:
        seconds, step = STEPS[name]
        ahead = sum(STEPS[later][0] for later in asked[asked.index(name) :])
        step_begun = time.monotonic()
        left_s = begun + arguments.until - step_begun
        finished = left_s > 0 and step(Card(arguments.out.resolve(), left_s * seconds / ahead))
        took_s = round(time.monotonic() - step_begun, 1)
        if finished:
            log.finish({"step": name, "source": source}, {"seconds": took_s})
        print(f"{name}: {'done' if finished else 'not finished, call it again'}, {took_s} s", flush=True)
    return 1 if any(log.wants({"step": name, "source": source}) for name in asked) else 0


if __name__ == "__main__":
    raise SystemExit(main())
