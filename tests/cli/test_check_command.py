"""`attn-course check` on the toy course: the table, the JSON, the exit code."""

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from attn_course.checking.nbval_run import EngineError
from attn_course.checking.notebook_check import plan_check
from attn_course.checking.report import REPORT_SCHEMA, CellProblem, NotebookReport, TaskReport, count_each_lesson_once
from attn_course.commands import check as check_module
from attn_course.commands.terminal import write_json
from tests.classroom import toy


def make_report(
    *, title="Stable softmax on any axis", status="failed", message="this is the mistake “softmax over the first axis”.", problems=()
):
    hint = None if status in ("passed", "missing") else "each row's weights must sum to 1: normalise over the last axis"
    task = TaskReport("stable-softmax", title, status, 3 if status == "passed" else 0, 3, message, None, hint, "2.19", 0.5)
    return NotebookReport(
        "work/ex_02_softmax.ipynb", "softmax", (task, TaskReport("entropy-by-hand", "Jacobian", "passed", 4, 4, "ok 2.2")), problems, 3.2
    )


@pytest.fixture
def reported(toy_course, monkeypatch):
    """A notebook in work/ whose report is made up: nothing is run."""
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))

    def report(**changes):
        monkeypatch.setattr("attn_course.checking.notebook_check.check_notebook", lambda *args, **options: make_report(**changes))

    return report


def test_work_is_checked_by_default_and_everything_is_told(toy_course, attn_course):
    toy.write(
        toy_course / "work" / "ex_97_toy.ipynb", toy.cells({"twice": toy.RIGHT["twice"], "thrice": "def thrice(x):\n    return -3 * x"})
    )
    said = attn_course("check", "--json", "verdicts.json")
    assert said.code == 1
    assert said.err == ""
    shown = " ".join(said.out.split())
    for words in ("work/ex_97_toy.ipynb (chapter 97)", "97.1 Twice 2/2 passed",
                  "97.2 Thrice 0/3 failed: this is the mistake “lost the sign”",
                  "Hint: hint: you lost the sign", "97.3 Four times 0/4 four_times has no answer yet",
                  "Hint: first nudge for four_times", "1 of 3 tasks pass, 2 of 9 points"):  # fmt: skip
        assert words in shown
    verdicts = json.loads((toy_course / "verdicts.json").read_text())
    jsonschema.validate(verdicts, REPORT_SCHEMA)
    assert [task["mistake"] for task in verdicts["notebooks"][0]["tasks"]] == [None, "lost the sign", None]
    assert stat.S_IMODE((toy_course / "verdicts.json").stat().st_mode) == 0o644
    assert not list(toy_course.glob("*.tmp"))
    said = attn_course("progress")
    assert "97 1/3 2/9" in " ".join(said.out.split())  # the check cells recorded it


@pytest.mark.parametrize(("status", "code"), [("passed", 0), ("failed", 1), ("unanswered", 1), ("missing", 1), ("not judged", 1)])
def test_the_exit_code_says_whether_every_task_passes_and_json_on_standard_output_stands_alone(status, code, reported, attn_course):
    problems = (CellProblem(1, "import nunpy", "ModuleNotFoundError: No module named 'nunpy'"),)
    reported(status=status, problems=problems)
    said = attn_course("check")
    assert said.code == code
    above = " ".join(said.out.split("Task")[0].split())
    assert above.endswith("Code cell 1 (import nunpy): ModuleNotFoundError: No module named 'nunpy'")
    said = attn_course("check", "--json", "-")
    assert said.code == code
    verdicts = json.loads(said.out)
    jsonschema.validate(verdicts, REPORT_SCHEMA)
    assert (verdicts["points"], verdicts["max_points"], verdicts["passed"]) == (4 if code else 7, 7, not code)


@pytest.mark.parametrize("width", [200, 80, 60, 40, 12])
def test_names_and_hints_are_whole_and_brackets_as_they_are_at_any_width_and_none_is_below_forty(width, reported, attn_course, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    reported(message="element [red] of [0, 1] is wrong [/]")
    out = attn_course("check").out
    assert max(map(len, out.splitlines())) <= max(width, 40)
    assert "…" not in out
    words = set(out.replace("│", " ").split())
    assert {"Stable", "softmax", "any", "axis", "weights", "normalise", "last", "[red]", "[0,", "1]", "[/]"} <= words


@pytest.mark.parametrize("width", [200, 80, 40])
def test_the_place_in_a_formula_is_quoted_because_a_folded_line_has_no_columns(reported, attn_course, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    place = r"my_formula cannot be read: dS is unknown here" + "\n" + r"  \frac{1}{n} dS^\top Q" + "\n" + " " * 14 + "^^"
    reported(message=place)
    out = attn_course("check").out
    assert "^^" not in out
    assert r"unknown here, at `dS` behind `\frac{1}{n}`" in " ".join(out.replace("│", " ").split())


def test_notes_of_ones_own_in_work_are_left_out_unless_named(reported, toy_course, attn_course):
    reported(status="passed")
    toy.write(toy_course / "work" / "Untitled.ipynb", [])
    toy.write(toy_course / "work" / "notes.ipynb", [toy.cell("print(1)", "mine")])
    said = attn_course("check")
    assert (said.code, said.err) == (0, "")
    assert said.out.count("(chapter 2)") == 1
    (toy_course / "work" / "ex_97_toy.ipynb").unlink()
    for words in (["check", "work/notes.ipynb"], ["check"]):
        said = attn_course(*words)
        assert said.code == 2
        assert "attn-course: work/notes.ipynb: holds no task of the course" in said.err


COPIES = ("ex_97_toy-Copy1.ipynb", "ex_97_toy.ipynb", "toy again.ipynb")


@pytest.fixture
def reported_by(toy_course, monkeypatch):
    """Three notebooks on one chapter in work/, of which a function of a test says how they did; nothing is run."""
    for name in COPIES:
        toy.write(toy_course / "work" / name, toy.cells({}))

    def take(status_of):
        def report(path, **options):
            return replace(make_report(status=status_of(path.name)), notebook=str(path))

        monkeypatch.setattr("attn_course.checking.notebook_check.check_notebook", report)

    return take


@pytest.fixture
def copies(reported_by):
    """The same, of which the second passes."""
    reported_by(lambda name: "passed" if name == COPIES[1] else "failed")


def test_of_several_notebooks_on_one_chapter_the_totals_count_the_best_and_say_so(copies, attn_course):
    said = attn_course("check", "--json", "verdicts.json")
    assert said.code == 0
    shown = " ".join(said.out.split())
    assert "2 of 2 tasks pass, 7 of 7 points" in shown
    assert shown.count("Note: the totals count work/ex_97_toy.ipynb for this chapter") == 2
    verdicts = json.loads(Path("verdicts.json").read_text())
    jsonschema.validate(verdicts, REPORT_SCHEMA)
    assert (verdicts["points"], verdicts["max_points"], verdicts["passed"]) == (7, 7, True)
    assert {Path(found["notebook"]).name: found["counted"] for found in verdicts["notebooks"]} == dict(
        zip(COPIES, (False, True, False), strict=True)
    )


def test_notebooks_that_are_named_all_count(copies, attn_course):
    said = attn_course("check", *(f"work/{name}" for name in COPIES))
    assert said.code == 1
    assert "4 of 6 tasks pass, 15 of 21 points" in " ".join(said.out.split())
    assert "Note" not in said.out


def test_of_equally_good_notebooks_the_first_counts():
    first, second = (replace(make_report(), notebook=name) for name in "ab")
    other = replace(make_report(), lesson="scaling")
    assert [report.counted for report in count_each_lesson_once([first, second, other])] == [True, False, True]


def test_a_note_of_the_report_is_shown(toy_course, attn_course):
    cells = toy.cells({})
    cells[2]["source"] = "twice = abs\n" + cells[2]["source"]
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", cells)
    said = attn_course("check", "--json", "verdicts.json")
    note = "code cell 3 is the check of task 97.1: what else was written into it does not run"
    assert f"Note: {note}" in " ".join(said.out.split())
    assert json.loads(Path("verdicts.json").read_text())["notebooks"][0]["notes"] == [note]


def test_one_damaged_notebook_keeps_no_other_from_being_checked(toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells(toy.RIGHT))
    (toy_course / "work" / "ex_96_another.ipynb").write_text("{", encoding="utf-8")
    said = attn_course("check", "--json", "verdicts.json")
    assert said.code == 2
    assert said.err.startswith("attn-course: work/ex_96_another.ipynb: is cut short or damaged")
    assert "3 of 3 tasks pass, 9 of 9 points" in said.out
    verdicts = json.loads((toy_course / "verdicts.json").read_text(encoding="utf-8"))
    assert (verdicts["points"], verdicts["passed"]) == (9, False)


def test_a_sign_that_cannot_be_written_does_no_harm(toy_course, attn_course):
    cells = toy.cells({})
    cells[1]["source"] = "def twice(x): return '\ud800'"
    path = toy.write(toy_course / "work" / "ex_97_toy.ipynb", cells)
    assert "\\ud800" in path.read_text()
    assert plan_check(path, exercises=toy_course / "exercises").cells[1].source == "def twice(x): return '?'"
    write_json("a.json", {"message": "\ud800"})
    assert json.loads((toy_course / "a.json").read_text()) == {"message": "\ud800"}


def test_several_notebooks_are_checked_side_by_side_and_shown_in_their_order(reported_by, attn_course, monkeypatch):
    both = threading.Barrier(2, timeout=60)
    reported_by(lambda name: both.wait() is not None and "passed")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    said = attn_course("check", *(f"work/{name}" for name in COPIES[1::-1]))
    assert (said.code, said.err) == (0, "")
    assert said.out.index(COPIES[1]) < said.out.index(COPIES[0])


def test_an_engine_that_fails_costs_only_its_own_notebook(reported_by, attn_course):
    def fail_once(name):
        if name == COPIES[0]:
            raise EngineError("nbval ended early (exit code -9)")
        return "passed"

    reported_by(fail_once)
    said = attn_course("check", *(f"work/{name}" for name in COPIES[:2]), "--json", "verdicts.json")
    assert (said.code, said.err) == (1, "")
    assert said.out.count("not judged: nbval ended early (exit code -9)") == len(toy.TASKS)
    assert "2 of 5 tasks pass, 7 of 16 points" in said.out
    verdicts = json.loads(Path("verdicts.json").read_text())
    jsonschema.validate(verdicts, REPORT_SCHEMA)
    assert [found["passed"] for found in verdicts["notebooks"]] == [False, True]


def test_a_notebook_is_judged_by_the_course_it_lies_in(toy_course, attn_course, tmp_path_factory, monkeypatch):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    notebook = toy_course / "work" / "ex_97_toy.ipynb"
    assert check_module._courses([notebook]) == {notebook: toy_course}


@pytest.mark.parametrize(("flag", "variable"), [("--no-color", None), (None, "1")])
def test_no_color_is_plain(flag, variable, reported, attn_course, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    reported()
    assert "\x1b[31m" in attn_course("check").out.replace("\x1b[1;31m", "\x1b[31m")
    if variable:
        monkeypatch.setenv("NO_COLOR", variable)
    said = attn_course("check", *([flag] if flag else []))
    assert not any(f"\x1b[{code}m" in said.out for code in ("31", "1;31", "32", "36"))
