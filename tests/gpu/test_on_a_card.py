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
from pathlib import Path

import pytest
import torch

from attn_course.gpu.bench import reported
from attn_course.gpu.bench_log import Log
from attn_course.gpu.bench_report import table
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
    (tmp_path / "ncu").write_text("#!/bin/sh\necho profiled $6\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(signal, "alarm", lambda seconds: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setitem(card_work.TASKS, "gates", lambda *words: 0)  # a session of pytest within one; the test above runs them
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


# ---- profiles


def test_a_tool_that_takes_too_long_leaves_the_step_unfinished(tmp_path, monkeypatch):
    monkeypatch.setattr(on_a_card.shutil, "which", lambda name, path: name)
    monkeypatch.setattr(on_a_card, "said_by", lambda *args, **environment: None)
    assert not on_a_card.profiles(on_a_card.Card(tmp_path, 60.0))
