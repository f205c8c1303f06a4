"""Whole notebooks under nbval, in few runs: each takes seconds."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest

from attn_course.checking import nbval_run, notebook_check
from attn_course.checking.cells import Cell
from attn_course.checking.nbval_run import EngineError, Outcome, run_nbval
from attn_course.checking.notebook_check import check_notebook
from attn_course.checking.report import REPORT_SCHEMA, report_to_dict
from tests.classroom import toy
from tests.cli.conftest import tree
from tests.processes import is_running, wait_for


def judge(course, cells, **options):
    path = toy.write(course / "work" / "ex_97_toy.ipynb", cells)
    return check_notebook(path, exercises=course / "exercises", **options)


def statuses(report):
    return [task.status for task in report.tasks]


def test_right_answers_earn_all_points_beside_their_own_files_and_nothing_is_written(toy_course, monkeypatch):
    outcomes = {}
    monkeypatch.setattr(notebook_check, "run_nbval", lambda *cells, **options: outcomes.update(run_nbval(*cells, **options)) or outcomes)
    (toy_course / "work" / "factor.txt").write_text("3")
    answers = toy.RIGHT | {
        "thrice": "import sys, warnings\nfactor = float(open('factor.txt').read())\ndef thrice(x):\n    print('debugging', x.shape)\n"
        "    print('and more', file=sys.stderr)\n    warnings.warn('oh')\n    return factor * x",
        "four-times": "# NBVAL_SKIP\ndef four_times(x):\n    return 4 * x",
    }
    cells = [*toy.cells(answers), toy.cell("assert 'toy.install' in In[1], 'check reads the cells run so far'", "history")]
    cells[1] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "stale"}], "execution_count": 7}
    (toy_course / "work" / ".progress.json").write_text('{"tasks": {}}')
    (toy_course / "work" / ".progress.lock").touch()
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", cells)
    before = tree(toy_course)
    seen = []
    report = judge(toy_course, cells, on_cell=lambda done, total: seen.append((done, total)))
    assert statuses(report) == ["passed"] * 3
    assert {outcome.problem for outcome in outcomes.values()} == {None}  # the cards are those that the task asks for
    assert (report.points, report.max_points, report.passed, report.problems) == (9, 9, True, ())
    after = tree(toy_course)
    assert set(after) == set(before)
    assert [name for name in after if after[name] != before[name]] == ["work/.progress.json"]  # by check itself, as in JupyterLab
    assert seen[-1][1] == len(cells)
    jsonschema.validate(report_to_dict([report]), REPORT_SCHEMA)


def test_each_task_fails_for_its_own_reason_and_a_record_that_cannot_be_written_is_one_note(toy_course):
    (toy_course / "work" / ".progress.json").mkdir()
    cells = toy.cells({"twice": "def twice(x):\n    return -2 * x", "thrice": "x = 1\n\ndef thrice(x:\n    return 3 * x"})
    report = judge(toy_course, [*cells, toy.cell("a = 1\nb = 1 / 0", "scratch")])
    assert statuses(report) == ["failed", "failed", "unanswered"]
    mistake, syntax, stub = report.tasks
    assert (mistake.mistake, mistake.hint) == ("lost the sign", "hint: you lost the sign")
    assert "lost the sign" in mistake.message
    assert syntax.message.startswith("the answer cell does not run: SyntaxError:")
    assert "line 3 of the cell" in syntax.message
    assert (stub.message, stub.hint) == ("four_times has no answer yet", "first nudge for four_times")
    assert [(p.cell, p.message) for p in report.problems] == [(8, "ZeroDivisionError: division by zero in line 2 of the cell")]
    assert report.notes == (f"Your progress is not recorded: Is a directory ({toy_course / 'work' / '.progress.json'})",)
    jsonschema.validate(report_to_dict([report]), REPORT_SCHEMA)


WAITS = "import time\n"  # an endless loop need not keep a processor busy until it is interrupted


def test_a_loop_that_swallows_interrupts_costs_only_its_own_task(toy_course):
    endless = f"{WAITS}while True:\n    try:\n        while True:\n            time.sleep(0.1)\n    except BaseException:\n        pass"
    report = judge(toy_course, toy.cells(toy.RIGHT | {"twice": endless}), cell_timeout_s=8)
    assert statuses(report) == ["failed", "passed", "passed"]
    assert report.tasks[0].message == "the answer cell does not run: did not finish within 8 s: is there a loop that never ends?"


def test_a_loop_is_interrupted_and_a_kernel_that_dies_is_noticed_and_takes_what_it_started_along(tmp_path):
    leaves = "import os, pathlib, subprocess\npathlib.Path('child').write_text(str(subprocess.Popen(['sleep', '600']).pid))\nos._exit(3)"
    cells = (f"{WAITS}while True: time.sleep(0.1)", "a = 1", leaves, "b = 2")
    outcomes = run_nbval([Cell(cell) for cell in cells], folder=tmp_path, cell_timeout_s=8)
    assert [(outcome.problem, outcome.alive) for outcome in outcomes.values()] == [("timeout", True), (None, True), ("died", False)]
    assert list(outcomes) == [0, 1, 2]
    assert wait_for(lambda: not is_running(int((tmp_path / "child").read_text())))


def test_a_kernel_that_dies_between_its_reply_and_the_end_of_its_output_has_died_and_is_not_late(tmp_path):
    dies = "import os, time\nget_ipython().kernel._publish_status = lambda *_, **__: time.sleep(0.5) or os._exit(0)"
    outcomes = run_nbval([Cell("a = 1"), Cell(dies)], folder=tmp_path, cell_timeout_s=60)
    assert [(outcome.problem, outcome.alive) for outcome in outcomes.values()] == [(None, True), ("died", False)]


@pytest.fixture
def dying(monkeypatch):
    """Takes what tells, of a cell's place and text, whether Python ends there; returns the runs, to which each adds its texts."""

    def install(ends):
        runs = []

        def run(copies, **_):
            runs.append([copy.source for copy in copies])
            died = next((number for number, text in enumerate(runs[-1]) if ends(number, text)), len(copies))
            fine = {number: Outcome(None, True, 0.1) for number in range(died)}
            return fine | ({died: Outcome("died", False, 0.1)} if died < len(copies) else {})

        monkeypatch.setattr(notebook_check, "run_nbval", run)
        return runs

    return install


def test_cells_that_end_python_are_left_out_and_the_rest_runs_again(toy_course, dying):
    runs = dying(lambda number, text: "exit" in text)
    exits = [toy.cell(f"os._exit({number})", f"exit-{number}") for number in range(5)]
    first, *others = toy.cells(toy.RIGHT)
    report = judge(toy_course, [first, *exits, *others])
    assert [["exit" in source for source in run].count(True) for run in runs] == [5, 4, 3, 2, 1, 0]
    assert len({len(run) for run in runs}) == 1
    assert statuses(report) == ["passed"] * 3
    assert [(problem.cell, problem.first_line) for problem in report.problems] == [(2 + n, f"os._exit({n})") for n in range(5)]


def test_a_notebook_that_ends_python_in_every_cell_is_given_up(toy_course, dying):
    runs = dying(lambda number, text: text and "sleep(" not in text)
    report = judge(toy_course, [*(toy.cell("a = 1", f"mine-{number}") for number in range(12)), *toy.cells(toy.RIGHT)])
    assert statuses(report) == ["not judged"] * 3
    assert len(runs) == 10


def test_a_cell_that_ends_python_a_moment_after_its_reply_is_blamed_and_not_the_cells_below_it(toy_course):
    first, *others = toy.cells(toy.RIGHT)
    guilty = toy.cell("import os, threading\nthreading.Timer(0.15, os._exit, [0]).start()", "guilty")
    last = toy.cell("import asyncio\nawait asyncio.sleep(2.0)", "waits")  # Python ends within 1.2 s on an idle machine
    report = judge(toy_course, [first, guilty, *others, last])
    assert statuses(report) == ["passed"] * 3
    assert [(problem.cell, problem.message[:12]) for problem in report.problems] == [(2, "ended Python")]
    assert report.notes == ()


def test_python_that_ends_whatever_is_left_out_is_said_in_a_note(toy_course, dying):
    dying(lambda number, text: number == 4)  # empty or not
    report = judge(toy_course, toy.cells(toy.RIGHT))
    assert report.notes == ("a cell before code cell 5 ended Python",)
    assert statuses(report)[-1] == "not judged"


def test_exit_in_a_cell_is_blamed_on_that_cell_and_costs_no_task(toy_course):
    first, answer, check, *others = toy.cells(toy.RIGHT | {"thrice": "def thrice(x):\n    exit()\n    return 3 * x"})
    report = judge(toy_course, [first, answer, toy.cell("print('bye')\nquit()", "leave"), check, *others])
    assert statuses(report) == ["passed", "failed", "passed"]
    assert report.tasks[1].message == "ended Python: does it call exit, or use up the memory?"
    assert [(p.cell, p.first_line, p.message) for p in report.problems] == [
        (3, "print('bye')", "ended Python: does it call exit, or use up the memory?")
    ]


def test_a_kernel_that_is_gone_before_a_cell_is_the_fault_of_the_last_one_that_replied(tmp_path):
    lines = [{"cell": 0}, {"cell": 1}, {"cell": 2, "problem": "gone", "alive": False}, {"cell": 3, "problem": "gone", "alive": False}]
    (tmp_path / "cells.jsonl").write_text("".join(json.dumps({"seconds": 0.1, "stdout": "", **line}) + "\n" for line in lines))
    outcomes = nbval_run._read_outcomes(tmp_path, 4, 1)
    assert [(number, outcome.problem, outcome.alive) for number, outcome in outcomes.items()] == [(0, None, True), (1, "died", False)]


def test_nbval_that_is_killed_within_a_line_is_an_error_of_the_engine(tmp_path):
    (tmp_path / "cells.jsonl").write_text('{"cell": 0, "seconds": 0.1, "stdout": ""}\n{"cell": 1, "seco')
    (tmp_path / "output.txt").write_text("pytest says so\n\n")
    with pytest.raises(EngineError, match=r"^nbval ended early \(exit code -9\): pytest says so$"):
        nbval_run._read_outcomes(tmp_path, 2, -9)


def test_checks_run_though_the_notebook_hides_check_and_a_setup_that_fails_is_said_once(toy_course):
    hidden = "def check(*anything):\n    pass\n\nprint = input = sys = attn_course = _course = None"
    lacking = {"twice": "def twice(x):\n    return helpful.add(x, x)", "thrice": "def thrice(x):\n    return -3 * x"}
    first, *others = toy.cells(toy.RIGHT | lacking)
    first["source"] = "import toy\ntoy.install()"
    report = judge(toy_course, [first, toy.cell("import no_such_module as helpful", "more-setup"), toy.cell(hidden, "hidden"), *others])
    assert statuses(report) == ["not judged", "failed", "passed"]
    assert report.tasks[0].message == "code cell 2 fails, which would define helpful"
    assert report.tasks[1].mistake == "lost the sign"
    assert [p.message for p in report.problems] == ["ModuleNotFoundError: No module named 'no_such_module' in line 1 of the cell"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_kernel_that_does_not_start_is_started_once_more(tmp_path, monkeypatch, times):
    (tmp_path / "ipykernel_launcher.py").write_text(
        "import pathlib, runpy, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        f"for each in [here / f'tried{{n}}' for n in range({times})]:\n"
        "    if not each.exists():\n"
        "        each.touch()\n"
        "        raise SystemExit('address already in use')\n"
        "sys.path.remove(str(here))\n"
        "runpy.run_module('ipykernel_launcher', run_name='__main__', alter_sys=True)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    if times == 2:
        with pytest.raises(EngineError, match="the Python kernel did not start"):
            run_nbval([Cell("a = 1")], folder=tmp_path, cell_timeout_s=60)
    else:
        (outcome,) = run_nbval([Cell("print(6 * 7)")], folder=tmp_path, cell_timeout_s=60).values()
        assert (outcome.problem, outcome.stdout.strip()) == (None, "42")
    assert len(list(tmp_path.glob("tried*"))) == times


def test_pytest_that_does_not_start_is_an_error_of_the_engine(tmp_path, monkeypatch):
    monkeypatch.setattr(nbval_run, "_command", lambda *_: [sys.executable, "-c", "raise SystemExit('pytest is gone')"])
    with pytest.raises(EngineError, match=r"nbval ended early \(exit code 1\): pytest is gone"):
        run_nbval([Cell("a = 1")], folder=tmp_path, cell_timeout_s=60)


def test_nbval_that_hangs_is_ended(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(nbval_run, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(nbval_run, "STARTUP_S", -70.0)
    monkeypatch.setattr(nbval_run.subprocess, "Popen", lambda *args, **options: started.append(popen(*args, **options)) or started[0])
    with pytest.raises(EngineError, match="did not finish within"):
        run_nbval([Cell("a = 1")], folder=tmp_path, cell_timeout_s=60)
    assert started[0].poll() is not None
