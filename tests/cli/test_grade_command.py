"""`attn-course grade`: what it says, and its exit codes."""

import json
from unittest import mock

import pytest

from attn_course.classroom.budget import USUAL
from attn_course.classroom.store import StoreError
from tests.classroom.stand_in import StandIn, Unsafe


def test_a_class_is_graded_however_well_it_did(attn_course, room):
    room.with_students(2).hand_in("bea", words="break")
    (room / "in" / "zoe").mkdir()
    said = attn_course("grade", "in", "--out", "out", "--seed", "5", "--jobs", "1")
    assert said.code == 0
    first = said.out.splitlines()[0]
    assert (first.startswith("4 students, 2 notebooks graded on chapter 2, "), first.endswith(", 1 missing, 1 not judged")) == (True, True)
    assert "out/grades.csv" in said.out
    assert {path.name for path in (room / "out").iterdir()} >= {"grades.csv", "summary.csv", "class.html", "report.json", "feedback"}
    assert json.loads((room / "out" / "report.json").read_text())["seed"] == 5
    assert (room / "out" / "grades.csv").read_text().splitlines()[1].startswith("bea,softmax,stable-softmax,0,3,not judged,")


def test_each_run_draws_its_own_seed_and_resume_keeps_it(attn_course, room):
    room.with_students(1)
    seeds = []
    for out in ("first", "second"):
        assert attn_course("grade", "in", "--out", out).code == 0
        seeds.append(json.loads((room / out / "run.json").read_text())["seed"])
    assert seeds[0] != seeds[1]
    before = (room / "first" / "grades.csv").read_bytes()
    assert attn_course("grade", "in", "--out", "first", "--resume").code == 0
    assert (room / "first" / "grades.csv").read_bytes() == before


def test_a_resumed_run_says_what_is_not_as_it_was(attn_course, room):
    room.with_students(3)
    said = attn_course("grade", "in", "--out", "out", "--resume", "--due", "2026-12-01", "--chapters", "2,3")
    assert said.code == 0
    assert "out held no run to go on with: a new one begins" in said.err
    assert "due: 2026-12-01 23:59:59 UTC" in said.err
    assert "Note: nobody handed in a notebook on chapter 3" in said.out
    room.hand_in("s01", right="1 2 3")
    (room / "in" / "s02" / "02_softmax.ipynb").unlink()
    said = attn_course("grade", "in", "--out", "out", "--resume")
    lines = " ".join(said.err.split())
    assert (said.code, "held no run" in lines) == (0, False)
    assert "graded again, because changed (1): s01/02_softmax.ipynb" in lines
    assert "graded before, and gone now (1): s02/02_softmax.ipynb" in lines
    assert json.loads((room / "out" / "report.json").read_text())["due"] == "2026-12-01T23:59:59+00:00"


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        (
            ["tea=5"],
            "wanted NAME=VALUE with a number and one of the names cell, call, cpu, notebook, student, memory, output, copies; got 'tea=5'",
        ),
        (["cell"], "wanted NAME=VALUE with a number and one of the names"),
        (["cell=long"], "got 'cell=long'"),
        (["cell=-1"], "cell must be a number of seconds for a code cell, above 0; got -1"),
        (["memory=nan"], "memory must be a number of MiB for a notebook"),
        (["copies=1.5"], "copies must be a whole number of notebooks of a student on one chapter, above 0; got 1.5"),
        (["notebook=200", "student=100"], "student must be at least notebook, the time for one; got 100 and 200 s"),
    ],
)
def test_a_limit_that_cannot_be_is_one_line_and_nothing_is_written(attn_course, room, limits, complaint):
    room.with_students(1)
    said = attn_course("grade", "in", "--out", "out", *(word for limit in limits for word in ("--limit", limit)))
    assert (said.code, (room / "out").exists()) == (2, False)
    assert "attn-course: --limit: " in said.err
    assert complaint in said.err


def test_limits_are_handed_on_kept_and_stand_in_the_report(attn_course, room, monkeypatch):
    room.with_students(1)
    made = []
    monkeypatch.setattr("attn_course.classroom.grader.Grader", lambda **options: made.append(options["limits"]) or StandIn(**options))
    words = ("grade", "in", "--out", "out", "--limit", "cell=30", "--limit", "memory=2048")
    assert attn_course(*words).code == 0
    assert [(limits.cell, limits.memory, limits.call) for limits in made] == [(30.0, 2048.0, USUAL.call)]
    for name in ("run.json", "report.json"):
        assert USUAL.changed(json.loads((room / "out" / name).read_text())["limits"].split()) == made[0]
    assert attn_course(*words, "--resume").code == 0
    said = attn_course("grade", "in", "--out", "out", "--limit", "cell=31", "--resume")
    assert (said.code, "was begun with --limit cell=30" in " ".join(said.err.split())) == (2, True)


def test_without_a_sandbox_it_says_what_to_do(attn_course, room, monkeypatch):
    monkeypatch.setattr("attn_course.classroom.grader.Grader", Unsafe)
    room.with_students(1)
    said = attn_course("grade", "in", "--out", "out")
    assert (said.code, said.err) == (1, "attn-course: no sandbox here; --allow-unsafe grades without one\n")
    assert attn_course("grade", "in", "--out", "out", "--allow-unsafe").code == 0


def test_ctrl_c_and_a_full_disk_leave_a_run_that_goes_on(attn_course, room, monkeypatch):
    room.with_students(3)
    grade = StandIn.grade
    graded = []

    def interrupted(self, path, **options):
        graded.append(path)
        if len(graded) == 2:
            raise KeyboardInterrupt
        return grade(self, path, **options)

    monkeypatch.setattr(StandIn, "grade", interrupted)
    said = attn_course("grade", "in", "--out", "out")
    assert said.code == 130
    assert "--resume goes on in out" in " ".join(said.err.split())
    assert not (room / "out" / "grades.csv").exists()
    full = StoreError("out: cannot be written: No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr("attn_course.classroom.store.Store.keep", mock.Mock(side_effect=full))
        said = attn_course("grade", "in", "--out", "out", "--resume")
    line = "attn-course: out: cannot be written: No space left on device; what was graded is kept: --resume goes on"
    assert (said.code, said.err.splitlines()[-1]) == (1, line)
    assert attn_course("grade", "in", "--out", "out", "--resume").code == 0
    assert graded.count(graded[0]) == 1
