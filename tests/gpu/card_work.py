"""What the processes of `tests.gpu.on_a_card` do, one task each: python -m tests.gpu.card_work OUT LIMIT_S TASK [ARGUMENT ...]."""

import os
import signal
import sys
from pathlib import Path

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is first imported

from attn_course.gpu import bench
from attn_course.gpu.bench_cases import FEATURES, GATES, OURS, TOKENS, Case, attention, expected, relative_error
from attn_course.gpu.bench_log import Log, source_hash, versions
from attn_course.gpu.bench_timing import answers, device_name, machine_state
from tests.gpu import card_tuning
from tests.gpu.card_processes import LOST

HERE = Path(__file__).parent
GATE_FILES = sorted(HERE.glob("test_*on_a_gpu.py"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REHEARSED = DEVICE == "cpu"


def run() -> dict:
    """Return device and versions: results of another device do not count."""
    return {"device": device_name(DEVICE), "versions": versions()}


def smoke(out: Path) -> int:
    """Compare forward and backward pass of ours and of SDPA with float32, in bfloat16 (float32 on a CPU)."""
    log = Log(out / "card.jsonl", run())
    log.note({"state": machine_state()})
    sizes = [(64, False), (64, True), (128, False), (128, True)] if not REHEARSED else [(16, True)]
    for d, is_causal in sizes:
        case = Case(1, 2, 2, 1024 if not REHEARSED else 24, d, is_causal)
        for provider in (OURS, "sdpa-flash" if DEVICE == "cuda" else "sdpa"):
            key = {"smoke": provider, "d": d, "is_causal": is_causal, "source": source_hash()}
            if not log.wants(key):
                continue
            log.begin(key)
            line = log.finish(key, bench.guarded(lambda: _errors(provider, case)))  # noqa: B023
            print(f"smoke d {d} {'causal' if is_causal else 'full'} {provider}: {line.get('error') or line['relative_errors']}", flush=True)
            if "error" in line and not answers(DEVICE):
                return LOST
    return 0


def _errors(provider: str, case: Case) -> dict:
    tensors = case.tensors(DEVICE, torch.bfloat16 if DEVICE == "cuda" else torch.float32)
    output = attention(provider, case, tensors[0].device)(*tensors[:3])
    found = [output, *torch.autograd.grad(output, tensors[:3], tensors[3])]
    errors = [relative_error([one], [wanted]) for one, wanted in zip(found, expected(case, tensors), strict=True)]
    said = dict(zip(("output", "d_query", "d_key", "d_value"), (float(f"{error:.2g}") for error in errors), strict=True))
    right = all(error <= 2 * GATES[output.dtype] for error in errors)
    return {"relative_errors": said} if right else {"error": f"wrong result: {said}"}


class Gates:
    """A plugin of pytest: every `of`-th test that is not finished (on a CPU one or two, which skip), and a line for each at once."""

    def __init__(self, log: Log, share: int, of: int) -> None:
        self.log, self.share, self.of = log, share, of
        self.source = source_hash(*GATE_FILES, HERE / "oracle.py")

    def key(self, nodeid: str) -> dict:
        return {"test": nodeid, "source": self.source}

    def pytest_collection_modifyitems(self, items: list) -> None:
        mine = items[self.share :: self.of] if not REHEARSED else items[:2]
        items[:] = [item for item in mine if self.log.wants(self.key(item.nodeid))]

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


def gates(out: Path, share: str, of: str) -> int:
    """Run a share of the tests that need a GPU; a test that fails is a line, and no failure of this process."""
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
    code = pytest.main([*options, *map(str, GATE_FILES)], plugins=[Gates(Log(out / "gates.jsonl", run()), int(share), int(of))])
    return 0 if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED) else int(code)


def compile_candidates(out: Path, share: str, of: str) -> int:
    """Compile a share of the candidate configurations."""
    card_tuning.compile_share(Log(out / "tuning.jsonl", run()), DEVICE, int(share), int(of))
    return 0


def tune(out: Path) -> int:
    """Time the candidates that compiled."""
    card_tuning.time_all(Log(out / "tuning.jsonl", run()), DEVICE)
    return 0


def measure(out: Path, *words: str) -> int:
    """Run the benchmark, kept in bench.jsonl, reported in bench.json."""
    if REHEARSED:
        bench.cases = lambda device: [Case(1, 1, 1, 8, 4, True)]
    return bench.main(["--out", str(out / "bench.jsonl"), "--json", str(out / "bench.json"), *words])


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


TASKS = {"smoke": smoke, "gates": gates, "compile": compile_candidates, "tune": tune, "bench": measure, "call": call}


def main(words: list[str]) -> int:
    """Do one task."""
    out, limit_s, task, *rest = words
    signal.alarm(int(float(limit_s)) + 1)  # also where nobody is left to stop this process
    return TASKS[task](Path(out), *rest)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
