"""What the processes of `tests.gpu.on_a_card` do, one task each: python -m tests.gpu.card_work OUT LIMIT_S TASK [ARGUMENT ...]."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is first imported

from attn_course.files import write_atomically
from attn_course.gpu import bench
from attn_course.gpu.bench_cases import FEATURES, TOKENS, Case, cases
from attn_course.gpu.bench_log import Line, Log, source_hash, versions
from attn_course.gpu.bench_report import table
from attn_course.gpu.bench_timing import answers, device_name
from tests.gpu import card_tuning
from tests.gpu.card_processes import LOST

HERE = Path(__file__).parent
GATE_FILES = sorted(HERE.glob("test_*on_a_gpu.py"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REHEARSED = DEVICE == "cpu"
SIZES = (
    [*(Case(1, 1, 1, 24, 64, is_causal) for is_causal in (True, False)), Case(1, 2, 1, 24, 64, False, q_len=1)]
    if REHEARSED
    else cases(DEVICE)
)
RIVALS, REST, FLEX = ("ours,sdpa", "eager", "eager") if REHEARSED else ("ours,sdpa-flash,sdpa-cudnn", "sdpa-efficient,eager", "flex")
BENCHES = {  # providers, directions, cases
    "forward": (RIVALS, "forward", SIZES),
    "backward": (RIVALS, "backward", SIZES),
    "decode": (RIVALS, "decode", SIZES),
    "others": (REST, "forward,backward", [case for case in SIZES if case.length in (24, 1024, 4096)]),
    "again": (RIVALS, "forward,backward", [case for case in SIZES if case.is_target]),
    "flex": (FLEX, "forward,backward", [case for case in SIZES if case.is_target and case.is_causal and case.length in (24, 4096)]),
}


def log_of(out: Path) -> Log:
    """Return the file that holds every result; those of another device or other versions do not count."""
    return Log(out / "card.jsonl", {"device": device_name(DEVICE), "versions": versions()})


class Gates:
    """A plugin of pytest: a share of the tests that are not finished (on a CPU one or two, which skip), and a line for each at once.

    Tests that launch the same compiled kernels are in one share. Those of our kernels come first.
    """

    def __init__(self, log: Log, share: int, of: int) -> None:
        self.log, self.share, self.of = log, share, of
        self.source = source_hash(*GATE_FILES, HERE / "oracle.py")

    def key(self, nodeid: str) -> Line:
        return {"test": nodeid, "source": self.source}

    @pytest.hookimpl(trylast=True)  # behind the choice by marker
    def pytest_collection_modifyitems(self, items: list) -> None:
        variants: dict[str, list] = {}
        for item in sorted(items, key=lambda item: parameters(item).get("backend") in ("sdpa", "eager")):
            variants.setdefault(variant(item), []).append(item)
        mine = [item for of_variant in list(variants.values())[self.share :: self.of] for item in of_variant]
        items[:] = [item for item in (mine[:2] if REHEARSED else mine) if self.log.wants(self.key(item.nodeid))]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.log.begin(self.key(nodeid))

    def pytest_runtest_logreport(self, report) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        result = {"outcome": report.outcome, "seconds": round(report.duration, 2)}
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            result["error"] = " ".join((crash.message if crash else report.longreprtext).split())[:300]
        self.log.finish(self.key(report.nodeid), result)
        if report.failed and not answers(DEVICE):
            os._exit(LOST)  # every test after it would fail


def parameters(item) -> dict:
    return item.callspec.params if hasattr(item, "callspec") else {}


def variant(item) -> str:
    """Return what tests have in common that launch the same compiled kernels: everything but lengths."""
    return f"{item.originalname} { ({name: value for name, value in parameters(item).items() if name != 'lengths'}) }"


def gates(out: Path, which: str, share: str, of: str) -> int:
    """Run a share of the tests that need a GPU, "core" or "not core"; one that fails is a line, and no failure of this process.

    A warning, of the driver say, is no failure of a test either.
    """
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib", "-W", "default", "-m", which]
    code = pytest.main([*options, *map(str, GATE_FILES)], plugins=[Gates(log_of(out), int(share), int(of))])
    return 0 if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED) else int(code)


def warm(out: Path, share: str, of: str) -> int:
    card_tuning.warm_share(log_of(out), SIZES, DEVICE, int(share), int(of))
    return 0


def compile_candidates(out: Path, step: str, share: str, of: str) -> int:
    card_tuning.compile_share(log_of(out), step, DEVICE, int(share), int(of))
    return 0


def tune(out: Path, step: str) -> int:
    card_tuning.time_all(log_of(out), step, DEVICE)
    return 0


def measure(out: Path, step: str) -> int:
    """Run a part of the benchmark; "again" with the best configurations, if they are not those that are built.

    After every case bench.json (again.json) is the report of all parts, and table.txt says the same to people.
    """
    tiles = card_tuning.best(log_of(out)) if step == "again" else None
    if tiles == {}:
        print("no configuration is faster than what is built")
        return 0

    def keep(found: Line) -> None:
        write_atomically(out / ("again.json" if tiles else "bench.json"), json.dumps(found, indent=1, allow_nan=False) + "\n")
        reports = [json.loads(path.read_text()) for path in (out / "bench.json", out / "again.json") if path.exists()]
        texts = ["\n".join([f"{one['device']}, {one['date']}, tiles: {one['tiles'] or 'as built'}", *table(one)]) for one in reports]
        write_atomically(out / "table.txt", "\n\n".join(texts) + "\n")

    providers, directions, sizes = BENCHES[step]
    try:
        bench.bench(
            out=out / "card.jsonl", providers=providers, directions=directions, tiles=tiles, sizes=sizes, keep=keep,
            show=lambda line: print(line, flush=True),
        )  # fmt: skip
    except bench.DeviceLostError as error:
        print(error, flush=True)
        return LOST
    return 0


def call(out: Path, direction: str, d: str, q_len: str, kv_len: str) -> int:
    """Call our attention twice, for a profiler or a checker to look on."""
    from attn_course.gpu.flash import flash_attention

    heads = FEATURES // int(d)
    shapes = [(max(1, TOKENS // int(q_len) // 8), heads, length, int(d)) for length in map(int, (q_len, kv_len, kv_len))]
    query, key, value = (torch.randn(shape, device=DEVICE, dtype=torch.bfloat16).requires_grad_() for shape in shapes)
    for _ in range(2):
        output = flash_attention(query, key, value, is_causal=True)
        if direction == "backward":
            torch.autograd.grad(output, (query, key, value), torch.randn_like(output))
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return 0


TASKS = {"warm": warm, "gates": gates, "compile": compile_candidates, "tune": tune, "bench": measure, "call": call}


def main(words: list[str]) -> int:
    out, limit_s, task, *rest = words
    signal.alarm(int(float(limit_s)) + 1)  # also where nobody is left to stop this process
    return TASKS[task](Path(out), *rest)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
