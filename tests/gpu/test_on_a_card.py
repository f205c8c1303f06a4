"""The fifteen minutes on a GPU, rehearsed without one: killed on the way, gone on with, and what each part of it does."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from attn_course.gpu import bench_cases, decoding, flash_backward, flash_decode, flash_forward, flash_row_terms
from attn_course.gpu.bench import calls, reported
from attn_course.gpu.bench_cases import OURS, Case, attention
from attn_course.gpu.bench_log import Log, source_hash
from attn_course.gpu.bench_report import table
from attn_course.gpu.configurations import Configuration, configuration
from tests.gpu import card_processes, card_tuning, card_work, on_a_card
from tests.gpu.card_processes import said_by, side_by_side
from tests.processes import is_running, wait_for

ROOT = Path(__file__).parents[2]
WITHOUT = """
import importlib.util, sys

ABSENT = {"IPython", "beartype", "hypothesis", "jaxtyping", "jupyter_client", "matplotlib", "nbformat", "nbval", "rich", "typer"}
find = importlib.util.find_spec


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
importlib.util.find_spec = lambda name, package=None: None if name.partition(".")[0] in ABSENT else find(name, package)
"""
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a rehearsal; on a GPU the script itself is run")


CALLS = ["warm core forward backward decode others worst gates", "wide again flex profile"]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(path):
    return [line for line in lines(path) if "key" in line]


# ---- the script, killed on the way


def pids():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def of_session(leader):
    """The processes of a session, whatever their groups."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader and is_running(pid):
                found.append(pid)
    return found


def check_usable(folder):
    """What a kill left: at most eight files that can be read, and a report of all that was measured; return how much that is."""
    files = {path.name for path in folder.iterdir()}
    assert len(files | {"log.txt", "log2.txt"}) <= 8
    whole = (folder / "card.jsonl").read_text().split("\n")[:-1] if "card.jsonl" in files else []
    measured = [line for line in map(json.loads, whole) if "provider" in line.get("key", {})]
    if measured:
        found = reported(folder / "card.jsonl")
        assert len(found["measurements"]) == len(measured)
        assert len(table(found)) > len({(line["key"]["direction"], line["key"]["is_causal"]) for line in measured})
    if "bench.json" in files:
        kept = json.loads((folder / "bench.json").read_text())
        assert len(kept["measurements"]) >= len(measured) - 2  # less those of the case that was being measured
    if "table.txt" in files:
        assert (folder / "table.txt").read_text().startswith("CPU")
    return len(measured)


def test_on_a_bare_machine_a_kill_at_any_moment_leaves_a_usable_report_and_it_goes_on_when_called_again(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    paths = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **paths, "CUDA_VISIBLE_DEVICES": ""}
    out = tmp_path / "out"
    card = out / "card.jsonl"
    command = [sys.executable, "-m", "tests.gpu.on_a_card", str(out), "--quick", "forward", "gates"]

    def run_until(condition):
        """Run the command, and kill all its processes when the condition holds; what every moment left is looked at."""
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        moments = 0
        while process.poll() is None and not (out.exists() and condition()):
            if out.exists():
                moment = shutil.copytree(out, tmp_path / f"moment {moments}", ignore=shutil.ignore_patterns(".tmp-*"))
                check_usable(moment)
                shutil.rmtree(moment)
                moments += 1
            time.sleep(0.1)
        for pid in of_session(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        assert wait_for(lambda: of_session(process.pid) == [])
        return process.returncode, check_usable(out)

    def measured():
        return card.exists() and card.read_text().count('"provider"')

    assert run_until(lambda: measured() >= 2)[0] == -signal.SIGKILL  # one begun and finished
    assert run_until((out / "table.txt").exists)[0] == -signal.SIGKILL
    before = card.read_text()
    assert run_until(lambda: False) == (0, 4)  # ours and torch's, causal and not
    assert card.read_text().startswith(before)
    keys = [json.dumps(line["key"], sort_keys=True) for line in results(card)]
    assert len(set(keys)) == len(keys)
    assert [line["result"]["outcome"] for line in results(card) if "test" in line["key"]] == ["skipped"] * 2  # so they were collected


# ---- both calls, in this process


@pytest.fixture
def rehearsed(tmp_path, monkeypatch):
    """Do steps, each task in this process; the folder of results."""
    (tmp_path / "ncu").write_text("#!/bin/sh\necho profiled $6\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(signal, "alarm", lambda seconds: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(card_work, "gates", lambda *words: 0)  # a session of pytest within one; the test above runs them
    monkeypatch.setitem(card_work.TASKS, "gates", lambda *words: 0)
    monkeypatch.setattr(on_a_card, "side_by_side", lambda commands, limit_s: not any(card_work.main(words[3:]) for words in commands))
    return lambda steps: (on_a_card.main([str(tmp_path / "out"), "--quick", *steps.split(), "--until", "1e6"]), tmp_path / "out")


def test_both_calls_leave_what_they_are_for_and_nothing_is_done_again(rehearsed, monkeypatch, capsys):
    code, out = rehearsed(CALLS[0])
    assert code == 0
    assert [line["key"]["step"] for line in results(out / "card.jsonl") if "step" in line["key"]] == CALLS[0].split()
    assert check_usable(out) == 14  # two masks, two directions, ours, torch's and eager; a step of decoding, ours and torch's
    assert {path.name for path in out.iterdir()} == {"bench.json", "card.jsonl", "table.txt"}
    said = capsys.readouterr().out
    assert " as built, " in said
    assert "failed" not in said

    monkeypatch.setattr(card_tuning, "best", lambda log: {"forward 64": [16, 16, 4, 2]})  # times of the interpreter are by chance
    code, _ = rehearsed(CALLS[1])
    assert code == 0
    again = json.loads((out / "again.json").read_text())
    assert again["tiles"] == {"forward 64": [16, 16, 4, 2]}
    assert {(line["provider"], line["direction"]) for line in again["measurements"]} == {
        (provider, direction) for provider in ("ours", "sdpa") for direction in ("forward", "backward")
    }
    assert (out / "profile.txt").read_text().count("profiled regex:^flash_") == 3
    assert "tiles: as built" in (out / "table.txt").read_text()
    assert "tiles: {'forward 64': [16, 16, 4, 2]}" in (out / "table.txt").read_text()
    assert {path.name for path in out.iterdir()} == {"again.json", "bench.json", "card.jsonl", "profile.txt", "table.txt"}

    before = results(out / "card.jsonl")
    assert [rehearsed(steps)[0] for steps in CALLS] == [0, 0]
    assert results(out / "card.jsonl") == before


def test_a_step_there_is_not_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        on_a_card.main([str(tmp_path / "out"), "--quick", "core", "F"])
    assert "invalid choice: 'F'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_steps_share_what_is_left_of_one_deadline(tmp_path, monkeypatch, capsys):
    clock, shares, takes = [100.0], [], iter([10.0, 60.0, 500.0])
    monkeypatch.setattr(on_a_card, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def step(card):
        shares.append(card.left_s())
        clock[0] += next(takes)
        return len(shares) == 1

    monkeypatch.setattr(on_a_card, "STEPS", {"a": (20, step), "b": (60, step), "c": (20, step), "d": (50, step)})
    assert on_a_card.main([str(tmp_path), "--quick", "a", "b", "c", "d", "--until", "300"]) == 1
    assert shares == pytest.approx([300 * 20 / 150, 290 * 60 / 130, 230 * 20 / 70])  # no time is left for d
    assert capsys.readouterr().out.splitlines()[1:] == [
        *("a: done, 10.0 s", "b: not finished, call it again, 60.0 s"),
        *("c: not finished, call it again, 500.0 s", "d: not finished, call it again, 0.0 s"),
    ]
    takes = iter([1.0, 1.0])
    shares.clear()
    on_a_card.main([str(tmp_path), "--quick", "a", "b", "--until", "300"])
    assert shares == [300.0]  # a was done before


# ---- processes


def code(text):
    return [sys.executable, "-c", text]


def test_at_the_limit_processes_and_their_children_are_killed(tmp_path, monkeypatch):
    note = tmp_path / "pid"

    def clock():
        return 1e9 if note.exists() and note.read_text().endswith("\n") else 0.0

    monkeypatch.setattr(card_processes, "time", types.SimpleNamespace(sleep=time.sleep, monotonic=clock))
    assert not side_by_side([["sh", "-c", f"sleep 600 & echo $! > {note}; wait"], ["true"]], 100.0)
    assert wait_for(lambda: not is_running(int(note.read_text())))


def test_a_process_that_lost_its_gpu_or_crashed_is_started_again_and_a_mistake_only_once(tmp_path, capfd):
    crash = f"import os; n = len(os.listdir({str(tmp_path)!r})); open({str(tmp_path)!r} + f'/{{n}}', 'w'); "
    assert side_by_side([code(crash + f"n == 0 and os._exit({card_processes.LOST}); n == 1 and os.abort()")], 120.0)
    assert len(list(tmp_path.iterdir())) == 3
    assert not side_by_side([code(crash + "raise ValueError('wrong\\nword')")], 120.0)
    assert len(list(tmp_path.iterdir())) == 5
    assert capfd.readouterr().out.count("ended with 1: word") == 2


def test_what_a_tool_says_is_kept_unless_it_takes_too_long():
    assert said_by(code("import os, sys; print('a' * 3, os.environ['X']); sys.exit(4)"), 60.0, X="y") == (4, "aaa y")
    assert len(said_by(code("print('line\\n' * 999 + 'end')"), 60.0)[1].splitlines()) == 400
    assert said_by(code("import time; time.sleep(600)"), 0.3) is None


# ---- the gates


@pytest.fixture
def gates(tmp_path, monkeypatch):
    monkeypatch.setattr(card_work, "REHEARSED", False)
    return lambda share, of: card_work.Gates(Log(tmp_path / "gates.jsonl", {}), share, of)


def outcome(nodeid, outcome, when="call", message=""):
    crash = types.SimpleNamespace(reprcrash=types.SimpleNamespace(message=message))
    return types.SimpleNamespace(nodeid=nodeid, outcome=outcome, failed=outcome == "failed", when=when, duration=0.1, longrepr=crash)


def test_the_gates_are_dealt_out_by_variant_ours_first_and_those_that_are_finished_are_left_out(gates):
    def item(backend, d, lengths):
        parameters = types.SimpleNamespace(params={"backend": backend, "d": d, "lengths": lengths})
        return types.SimpleNamespace(nodeid=f"{backend} {d} {lengths}", originalname="test", callspec=parameters)

    everything = [item(backend, d, lengths) for lengths in (1, 2) for backend in ("eager", "auto") for d in (8, 16, 24, 32)]
    gates(0, 1).pytest_runtest_logreport(outcome("auto 16 2", "passed"))
    dealt = []
    for share in range(3):
        items = list(everything)
        gates(share, 3).pytest_collection_modifyitems(items)
        dealt.append([item.nodeid for item in items])
    assert dealt == [
        ["auto 8 1", "auto 8 2", "auto 32 1", "auto 32 2", "eager 24 1", "eager 24 2"],
        ["auto 16 1", "eager 8 1", "eager 8 2", "eager 32 1", "eager 32 2"],
        ["auto 24 1", "auto 24 2", "eager 16 1", "eager 16 2"],
    ]


def test_a_warning_is_no_failure_of_a_gate(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers = core: first\n")
    gate = tmp_path / "test_warns_on_a_gpu.py"
    gate.write_text("import warnings\ndef test_it():\n    warnings.warn('the driver is old')\n")
    monkeypatch.setattr(card_work, "GATE_FILES", [gate])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert card_work.gates(tmp_path, "not core", "0", "1") == 0
    assert [line["result"]["outcome"] for line in results(tmp_path / "card.jsonl")] == ["passed"]


def test_a_gate_that_fails_is_a_line_and_one_that_loses_the_gpu_ends_the_process(gates, monkeypatch, tmp_path):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    plugin = gates(0, 1)
    plugin.pytest_runtest_logreport(outcome("a", "passed", when="setup"))
    plugin.pytest_runtest_logreport(outcome("a", "failed", message="assert 3.0 <\n 2.0"))
    assert ended == []
    monkeypatch.setattr(card_work, "answers", lambda device: False)
    plugin.pytest_runtest_logreport(outcome("b", "failed", when="setup", message="illegal access"))
    assert ended == [card_processes.LOST]
    found = results(tmp_path / "gates.jsonl")
    assert [(line["key"]["test"], line["result"]["error"]) for line in found] == [("a", "assert 3.0 < 2.0"), ("b", "illegal access")]


# ---- what is compiled before it is timed


class Launches:
    """In the place of a kernel: what Triton would compile for each launch."""

    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    def __getitem__(self, grid):
        return self

    def __call__(self, *arguments, **constants):
        self.seen.add((self.name, *map(self.special, arguments), *map(str, constants.items())))

    def special(self, argument):
        """What is compiled for an argument: ints outside of tuples are counts, which no kernel is compiled for."""
        if isinstance(argument, torch.Tensor):
            return argument.dtype, argument.data_ptr() % 16 == 0
        if isinstance(argument, tuple):
            return tuple((number == 1, number % 16 == 0, number < 2**31) for number in argument)
        return argument if argument is None else type(argument)


def test_warm_compiles_what_the_bench_launches_and_nothing_else(monkeypatch):
    kernels = {
        flash_forward: ["flash_forward"],
        flash_backward: ["flash_backward_key_value", "flash_backward_query"],
        flash_row_terms: ["flash_row_terms"],
        flash_decode: ["flash_decode", "flash_merge"],
    }
    seen = set()
    for module, names in kernels.items():
        for name in names:
            monkeypatch.setattr(module, name, Launches(name, seen))
    monkeypatch.setattr(decoding, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(torch, "randn", lambda size, device, dtype, generator: torch.empty(size, dtype=dtype))  # whatever is in them

    def launched(sizes):
        seen.clear()
        for case in sizes:
            for direction in case.directions:
                tensors = case.tensors("cpu", torch.float32)
                calls(attention(OURS, case, tensors[0].device), tensors, direction)[0]()
        return set(seen)

    sizes = bench_cases.cases("cuda")
    asked = []
    monkeypatch.setattr(card_tuning, "_try", lambda log, device, key, tiles, direction, time, wanted: asked.append((direction, key)))
    for share in range(3):
        card_tuning.warm_share(Log(None, {}), sizes, "cuda", share, 3)
    warmed = [Case(**{name: value for name, value in key.items() if name != "warm"}) for _, key in asked]
    assert len(warmed) < len(sizes)
    assert launched(warmed) == launched(sizes)


# ---- tuning


@pytest.mark.parametrize("kernel", [kernel for kernels in card_tuning.KERNELS.values() for kernel in kernels])
@pytest.mark.parametrize("d", [64, 128])
def test_candidates_begin_with_what_is_built_and_stay_near_it(kernel, d):
    built = configuration(kernel, d, d, torch.bfloat16)
    found = card_tuning.candidates(kernel, d)
    assert found[0] == built
    assert 8 <= len(found) == len(set(found)) <= 30
    for one in found[1:]:
        assert card_tuning.held(kernel, d, one) <= card_tuning.REGISTERS
        assert one.max_registers or (one.block_q == built.block_q) or (one.block_kv == built.block_kv)
        assert {one.block_q / built.block_q, one.block_kv / built.block_kv} <= {0.5, 1.0, 2.0}


def rated(log, case, direction, ours, best, **more):
    for provider, rate in (("ours", ours), ("sdpa-cudnn", best), ("sdpa-flash", best / 2)):
        key = {**asdict(case), "provider": provider, "direction": direction, "source": source_hash() if provider == "ours" else None}
        log.finish({**key, "tiles": None, **more}, {"tflops_per_s": rate})


def test_the_worst_cells_get_candidates_and_the_worst_of_all_gets_more_at_another_length():
    log = Log(None, {})
    rated(log, Case(1, 16, 16, 16384, 128, True), "forward", 200.0, 400.0)
    rated(log, Case(4, 32, 32, 4096, 64, False), "forward", 300.0, 400.0)
    rated(log, Case(16, 32, 32, 1024, 64, False), "backward", 100.0, 300.0)
    rated(log, Case(4, 32, 8, 4096, 128, True), "forward", 1.0, 400.0)  # no cell of the target
    rated(log, Case(8, 16, 16, 2048, 128, True), "forward", 1.0, 400.0, tiles={"forward 128": [64, 64, 4, 3]})  # another configuration
    worst = card_tuning.jobs(log, "worst", "cuda")
    assert [(kernel, case.d, case.length) for kernel, _, case in worst] == [
        *[("backward_key_value", 64, 1024)] * 6,
        *[("backward_query", 64, 1024)] * 6,
        *[("forward", 128, 16384)] * 12,
    ]
    assert worst[0][1] == configuration("backward_key_value", 64, 64, torch.bfloat16)
    wide = card_tuning.jobs(log, "wide", "cuda")
    assert len({(kernel, tile) for kernel, tile, _ in wide}) > 24
    assert {(kernel, case) for kernel, _, case in wide} == {
        (kernel, Case(4, 32, 32, 4096, 64, is_causal)) for kernel in card_tuning.KERNELS["backward"] for is_causal in (True, False)
    }
    assert card_tuning.jobs(Log(None, {}), "worst", "cuda") == []


@pytest.mark.parametrize("kernel", ["forward", "backward_key_value", "backward_query"])
def test_a_candidate_reaches_the_launch_of_its_kernel_only_and_is_not_timed_if_it_does_not_compile(kernel, monkeypatch):
    case, impossible = Case(1, 1, 1, 24, 64, True), Configuration(16, 24, 1, 1)  # a tile has powers of two as sides
    small = Configuration(16, 16, 1, 1)
    monkeypatch.setattr(card_tuning, "jobs", lambda log, step, device: [(kernel, impossible, case), (kernel, small, case)])
    log = Log(None, {})
    card_tuning.compile_share(log, "worst", "cpu", 0, 1)
    assert [line["tile"] for line in log.results] == [list(impossible), list(small)]
    assert "power of 2" in log.results[0]["error"]
    assert "error" not in log.results[1]
    card_tuning.time_all(log, "worst", "cpu")
    assert [(line["tune"], line["tile"]) for line in log.results[2:]] == [("worst", list(small))]
    monkeypatch.setattr(card_tuning, "relative_error", lambda found, wanted: float("nan"))
    assert card_tuning._run("cpu", "forward", None, case, []) == {"error": "wrong result: relative error nan"}


def test_the_best_is_named_by_its_gain_and_the_wide_look_has_the_last_word():
    log = Log(None, {})
    built, other, third = [(128, 64, 8, 3, None), (64, 64, 4, 3, 168), (64, 64, 4, 2, None)]

    def time(step, times):
        for length, of_tiles in times.items():
            for tile, time_ms in zip((built, other, third), of_tiles, strict=False):
                key = {"tune": step, "kernel": "forward", "tile": list(tile), **asdict(Case(1, 1, 1, length, 64, True))}
                log.finish({**key, "source": source_hash()}, {"time_ms": time_ms})

    time("worst", {1024: (4.0, 2.0), 4096: (8.0, 8.0, 1.0)})  # the third is not through
    assert card_tuning.summary(log, "worst") == [
        "forward d 64: 128x64, 8 warps, 3 stages as built, 64x64, 4 warps, 3 stages, 168 registers is 1.414 times as fast"
    ]
    assert card_tuning.best(log) == {"forward 64": list(other)}
    time("wide", {4096: (1.0, 2.0, 3.0)})
    assert card_tuning.best(log) == {}


# ---- profiles


def test_without_the_tools_the_profile_says_so_and_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(on_a_card.shutil, "which", lambda name, path: None)
    assert on_a_card.profiles(on_a_card.Card(tmp_path, 60.0))
    assert capsys.readouterr().out.count("there is no ncu here") == 3
    assert list(tmp_path.iterdir()) == []


def test_a_tool_that_takes_too_long_leaves_the_step_unfinished(tmp_path, monkeypatch):
    monkeypatch.setattr(on_a_card.shutil, "which", lambda name, path: name)
    monkeypatch.setattr(on_a_card, "said_by", lambda *args, **environment: None)
    assert not on_a_card.profiles(on_a_card.Card(tmp_path, 60.0))
