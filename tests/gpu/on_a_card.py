"""The first minutes on a GPU, step by step: python -m tests.gpu.on_a_card OUT [STEP ...]. Needs torch, Triton, NumPy and pytest.

A  versions, a smoke test of both directions, then the gates: tests/gpu/test_*on_a_gpu.py, spread over processes
B  configurations near those the kernels run with: compiled side by side, then timed
C  the benchmark: ours beside SDPA's flash, cuDNN and efficient kernels
D  the benchmark: FlexAttention and eager, at three lengths
E  a profile of three kernels and a check of memory accesses, where ncu and compute-sanitizer are there

Every result is written as soon as it is there. A step ends by its limit, with all its processes; called again it goes on. OUT gets
card.jsonl, gates.jsonl, tuning.jsonl, bench.jsonl, bench.json (for attn_course/gpu/measurements), profile.txt and sanitizer.txt.
Without a GPU it rehearses all of it at tiny sizes.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from attn_course.gpu.bench_log import Log, source_hash
from tests.gpu import card_tuning
from tests.gpu.card_processes import said_by, side_by_side
from tests.gpu.card_work import GATE_FILES, REHEARSED, run

LIMIT_S = 520.0
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
        """Return what is left of the step's time."""
        return max(self.end - time.monotonic(), 1.0)

    def command(self, limit_s: float, *task: str) -> list[str]:
        """Return the command that does a task of `card_work`."""
        return [sys.executable, "-m", "tests.gpu.card_work", str(self.out), str(limit_s), *task]

    def work(self, *tasks: tuple[str, ...], share: float = 1.0) -> bool:
        """Do tasks side by side, for a share of the time left; return whether all of them ended well."""
        limit_s = share * self.left_s()
        return side_by_side([self.command(limit_s, *task) for task in tasks], limit_s)

    def spread(self, task: str, share: float = 1.0) -> bool:
        """Do a task in shares, one for each process that the machine takes."""
        return self.work(*((task, str(index), str(PROCESSES)) for index in range(PROCESSES)), share=share)


def gates(card: Card) -> bool:
    """Step A: the smoke test, then the tests that need a GPU."""
    smoked = card.work(("smoke",), share=0.3)
    finished = card.spread("gates")
    source = source_hash(*GATE_FILES, GATE_FILES[0].with_name("oracle.py"))
    lines = [line for line in Log(card.out / "gates.jsonl", run()).results if line["source"] == source]
    outcomes = Counter(line.get("outcome", "given up") for line in lines)
    print(f"gates: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.items()) or 'none'}")
    for line in [line for line in lines if "error" in line][:SHOWN]:
        print(f"  {line['test'].removeprefix('tests/gpu/')}: {line['error'][:200]}")
    return smoked and finished


def tuning(card: Card) -> bool:
    """Step B: compile the candidates, then time them."""
    compiled = card.spread("compile", share=0.5)
    timed = card.work(("tune",))
    for line in card_tuning.summary(card.out / "tuning.jsonl", run()):
        print(line)
    return compiled and timed


def shipped(card: Card) -> bool:
    """Step C: ours and what torch ships."""
    return card.work(("bench", "--providers", "ours,sdpa" if REHEARSED else "ours,sdpa-flash,sdpa-cudnn,sdpa-efficient"))


def others(card: Card) -> bool:
    """Step D: FlexAttention, which is compiled for each size, and eager."""
    if REHEARSED:
        return card.work(("bench", "--providers", "eager", "--lengths", "8"))
    return card.work(("bench", "--providers", "flex,eager", "--lengths", "1024,4096,16384"))


def profiles(card: Card) -> bool:
    """Step E: what the profiler and the memory checker say; nothing, where they are not installed."""
    length, odd = ("16", ("11", "13")) if REHEARSED else ("4096", ("113", "203"))
    done = True
    for kernel, direction, d in PROFILES:
        options = f"--clock-control none --set full --kernel-name regex:^{kernel}$ --launch-skip 1 --launch-count 1".split()
        task = ("call", direction, str(d), length, length)
        done = _looked_at(card, "profile.txt", f"{kernel}, d {d}", ["ncu", *options], task) and done
    title = f"memcheck, {odd[0]} queries and {odd[1]} keys, d 64"
    return _looked_at(card, "sanitizer.txt", title, ["compute-sanitizer", "--tool", "memcheck"], ("call", "backward", "64", *odd)) and done


def _looked_at(card: Card, name: str, title: str, tool: list[str], task: tuple[str, ...]) -> bool:
    """Add what a tool says about a task to a file that does not have it; return whether it is there, or cannot be."""
    path, head = card.out / name, f"==== {title}, source {source_hash()}"
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
    print(f"{title}: {name}, exit code {said[0]}")
    return True


STEPS = {"A": gates, "B": tuning, "C": shipped, "D": others, "E": profiles}


def main(words: list[str] | None = None) -> int:
    """Do the steps that are named, else those that are not done; return 0 if all are done now."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.on_a_card", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder for the results")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="A to E; all, if none is named")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS", help="of each step (%(default)g)")
    arguments = parser.parse_args(words)
    if not set(arguments.steps) <= STEPS.keys():
        parser.error(f"a STEP is one of {', '.join(STEPS)}; got {' '.join(arguments.steps)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the processes of a step end too
    arguments.out.mkdir(parents=True, exist_ok=True)
    if REHEARSED:
        print("no GPU: a rehearsal at tiny sizes, in Triton's interpreter; it says nothing about GPUs", flush=True)
    log = Log(arguments.out / "card.jsonl", run())
    done = True
    for name in arguments.steps or STEPS:
        key = {"step": name, "source": source_hash(*GATE_FILES)}
        if not log.wants(key):
            print(f"{name}: done before", flush=True)
            continue
        begun = time.monotonic()
        finished = STEPS[name](Card(arguments.out.resolve(), arguments.limit))
        seconds = round(time.monotonic() - begun, 1)
        if finished:
            log.finish(key, {"seconds": seconds})
        print(f"{name}: {'done' if finished else 'not finished, call it again'}, {seconds} s", flush=True)
        done = done and finished
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
