"""The script of the first minutes on a GPU, rehearsed without one: killed on the way, gone on with, and what each part of it does."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import torch

from attn_course.gpu import bench
from attn_course.gpu.bench_log import Log
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


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(path):
    return [json.dumps(line["key"], sort_keys=True) for line in lines(path) if "key" in line]


# ---- the script, killed on the way


def pids():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_on_a_bare_machine_step_a_ended_on_the_way_leaves_no_process_and_goes_on_when_called_again(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    paths = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **paths, "CUDA_VISIBLE_DEVICES": ""}
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.gpu.on_a_card", str(out), "A"]
    first = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    card = out / "card.jsonl"
    wait_for(lambda: first.poll() is not None or (card.exists() and '"result"' in card.read_text()), 300.0)
    workers = [pid for pid in pids() if str(out) in command_of(pid) and pid != first.pid]
    first.send_signal(signal.SIGTERM)
    said = first.communicate(timeout=120)[0]
    assert first.returncode == 143, said
    assert said.startswith("no GPU: a rehearsal at tiny sizes")
    assert [pid for pid in workers if not wait_for(lambda pid=pid: not is_running(pid))] == []

    before = card.read_text()
    second = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert second.returncode == 0, second.stdout + second.stderr
    assert second.stdout.splitlines()[-2] == "gates: 2 skipped"  # so they were collected
    assert [path.name for path in card_work.GATE_FILES] == ["test_flash_on_a_gpu.py", "test_on_a_gpu.py"]
    assert second.stdout.splitlines()[-1].startswith("A: done, ")
    assert card.read_text().startswith(before)
    for path in out.iterdir():
        assert len(set(results(path))) == len(results(path))
    smoked = [line for line in lines(card) if "smoke" in line.get("key", {})]
    assert {line["key"]["smoke"] for line in smoked} == {"ours", "sdpa"}
    assert all(error < 1e-5 for line in smoked for error in line["result"]["relative_errors"].values())


# ---- the other steps, in this process


@pytest.fixture
def rehearsed(tmp_path, monkeypatch):
    """Do steps, each task in this process; the folder of results."""
    (tmp_path / "ncu").write_text("#!/bin/sh\necho profiled $6\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(bench, "cases", bench.cases)  # put back afterwards
    monkeypatch.setattr(signal, "alarm", lambda seconds: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(on_a_card, "side_by_side", lambda commands, limit_s: not any(card_work.main(words[3:]) for words in commands))
    return lambda *steps: (on_a_card.main([str(tmp_path / "out"), *steps]), tmp_path / "out")[1]


def test_every_step_leaves_what_it_is_for_and_is_not_done_again(rehearsed, capsys):
    out = rehearsed("B", "C", "D", "E")
    said = capsys.readouterr().out.splitlines()
    assert [line[:7] for line in said if line[1:3] == ": "] == [f"{step}: done" for step in "BCDE"]
    tuned = [line["key"]["kernel"] for line in lines(out / "tuning.jsonl") if "time_ms" in line.get("result", {})]
    assert tuned == ["forward", "forward", "backward_key_value", "backward_query"]
    assert any(line.startswith("forward d 16 causal: 16x16, 1 warps, 1 stages as built, ") for line in said)
    report = json.loads((out / "bench.json").read_text())
    assert {line["provider"] for line in report["measurements"]} == {"ours", "sdpa", "eager"}
    assert [line for line in report["measurements"] if "error" in line] == []
    profiled = (out / "profile.txt").read_text()
    assert profiled.count("profiled regex:^flash_") == profiled.count("exit code 0") == 3

    files = {path.name: path.read_text() for path in out.iterdir()}
    assert files.keys() == {"bench.json", "bench.jsonl", "card.jsonl", "profile.txt", "tuning.jsonl"}
    assert all(len(text) < 20_000 for text in files.values())
    rehearsed("B", "C", "D", "E")
    assert capsys.readouterr().out.splitlines()[1:] == [f"{step}: done before" for step in "BCDE"]
    assert {name: text for name, text in files.items() if name != "card.jsonl"} == {
        path.name: path.read_text() for path in out.iterdir() if path.name != "card.jsonl"
    }


def test_a_step_there_is_not_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        on_a_card.main([str(tmp_path / "out"), "A", "F"])
    assert "a STEP is one of A, B, C, D, E; got A F" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_step_that_is_not_finished_says_so_and_is_asked_again(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setitem(on_a_card.STEPS, "C", lambda card: asked.append(card.left_s()) or len(asked) == 2)
    words = [str(tmp_path), "C", "--limit", "77"]
    assert [on_a_card.main(words) for _ in range(3)] == [1, 0, 0]
    assert "C: not finished, call it again" in capsys.readouterr().out
    assert len(asked) == 2
    assert all(0 < left_s <= 77 for left_s in asked)


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


def test_the_gates_are_dealt_out_and_those_that_are_finished_are_left_out(gates):
    everything = [types.SimpleNamespace(nodeid=str(number)) for number in range(11)]
    gates(0, 1).pytest_runtest_logreport(outcome("4", "passed"))
    seen = []
    for share in range(3):
        items = list(everything)
        gates(share, 3).pytest_collection_modifyitems(items)
        seen += [item.nodeid for item in items]
    assert sorted(seen, key=int) == [str(number) for number in range(11) if number != 4]


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
    found = [line for line in lines(tmp_path / "gates.jsonl") if "key" in line]
    assert [(line["key"]["test"], line["result"]["error"]) for line in found] == [("a", "assert 3.0 < 2.0"), ("b", "illegal access")]


# ---- tuning


@pytest.mark.parametrize("kernel", card_tuning.KERNELS)
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


@pytest.mark.parametrize("kernel", card_tuning.KERNELS)
def test_a_candidate_reaches_the_launch_of_its_kernel_only(kernel, monkeypatch):
    monkeypatch.setattr(card_tuning, "grid", lambda device: ([card_tuning.Case(1, 1, 1, 24, 16, True)], tiles))
    impossible = Configuration(16, 24, 1, 1)  # a tile has powers of two as sides
    tiles = {(name, 16): [impossible] if name == kernel else [] for name in card_tuning.KERNELS}
    log = Log(None, {})
    card_tuning.compile_share(log, "cpu", 0, 1)
    (line,) = log.results
    assert (line["kernel"], line["tile"]) == (kernel, [16, 24, 1, 1, None])
    assert "power of 2" in line["error"]
    card_tuning.time_all(log, "cpu")
    assert len(log.results) == 1


def test_a_wrong_candidate_is_not_timed_and_the_best_is_named_by_its_gain(tmp_path, monkeypatch):
    log = Log(tmp_path / "tuning", {})
    for length, times in ((1024, (4.0, 2.0, 1.0)), (4096, (8.0, 8.0, 1.0))):
        for tile, time_ms in zip(((128, 64, 8, 3), (64, 64, 4, 3, 168), (64, 64, 4, 2)), times, strict=True):
            key = card_tuning._key("time", "forward", Configuration(*tile), card_tuning.Case(1, 1, 1, length, 64, True))
            wrong = tile == (64, 64, 4, 2) and length == 4096
            log.finish(key, {"error": "wrong result"} if wrong else {"time_ms": time_ms})
    assert card_tuning.summary(tmp_path / "tuning", {}) == [
        "forward d 64 causal: 128x64, 8 warps, 3 stages as built, 64x64, 4 warps, 3 stages, 168 registers is 1.414 times as fast"
    ]
    monkeypatch.setattr(card_tuning, "relative_error", lambda found, wanted: float("nan"))
    assert card_tuning._run("cpu", "forward", None, card_tuning.Case(1, 1, 1, 8, 16, True), []) == {
        "error": "wrong result: relative error nan"
    }


# ---- profiles


def test_without_the_tools_step_e_says_so_and_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(on_a_card.shutil, "which", lambda name, path: None)
    assert on_a_card.profiles(on_a_card.Card(tmp_path, 60.0))
    assert capsys.readouterr().out.count("there is no ncu here") == 3
    assert list(tmp_path.iterdir()) == []


def test_a_tool_that_takes_too_long_leaves_the_step_unfinished(tmp_path, monkeypatch):
    monkeypatch.setattr(on_a_card.shutil, "which", lambda name, path: name)
    monkeypatch.setattr(on_a_card, "said_by", lambda *args, **environment: None)
    assert not on_a_card.profiles(on_a_card.Card(tmp_path, 60.0))
