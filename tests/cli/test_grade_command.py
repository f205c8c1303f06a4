"""`attn-course grade`: what it says, and its exit codes."""

import json

import pytest

from attn_course.grading import class_engines
from tests.grading.class_tools import Threads, notebook, small_class
from tests.grading.stand_in import StandIn, Unsafe


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch, tmp_path):
    monkeypatch.setattr("attn_course.grading.grader.Grader", StandIn)
    monkeypatch.setattr(class_engines, "Pool", lambda jobs: Threads())
    monkeypatch.setattr("attn_course.grading.class_report._figures", lambda marked, shares: [])
    monkeypatch.chdir(tmp_path)


def test_a_class_is_graded_however_well_it_did(attn_course, tmp_path):
    small_class(tmp_path / "in", 2)
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", words="break")
    (tmp_path / "in" / "zoe").mkdir()
    said = attn_course("grade", "in", "--out", "out", "--seed", "5", "--jobs", "1")
    assert said.code == 0
    assert said.out.splitlines()[0].startswith("4 students, 2 notebooks graded on chapter 2, ")
    assert said.out.splitlines()[0].endswith(", 1 missing, 1 not judged")
    assert "out/grades.csv" in said.out
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"grades.csv", "summary.csv", "class.html", "report.json", "feedback"}
    assert json.loads((tmp_path / "out" / "report.json").read_text())["seed"] == 5
    assert (tmp_path / "out" / "grades.csv").read_text().splitlines()[1].startswith("bea,softmax,stable-softmax,0,3,not judged,")


def test_each_run_draws_its_own_seed_and_resume_keeps_it(attn_course, tmp_path):
    small_class(tmp_path / "in", 1)
    seeds = []
    for out in ("first", "second"):
        assert attn_course("grade", "in", "--out", out).code == 0
        seeds.append(json.loads((tmp_path / out / "run.json").read_text())["seed"])
    assert seeds[0] != seeds[1]
    before = (tmp_path / "first" / "grades.csv").read_bytes()
    assert attn_course("grade", "in", "--out", "first", "--resume").code == 0
    assert (tmp_path / "first" / "grades.csv").read_bytes() == before


def test_a_resumed_run_says_what_is_not_as_it_was(attn_course, tmp_path):
    small_class(tmp_path / "in", 3)
    said = attn_course("grade", "in", "--out", "out", "--resume", "--due", "2026-12-01", "--chapters", "2,3")
    assert said.code == 0
    assert "out held no run to go on with: a new one begins" in said.err
    assert "due: 2026-12-01 23:59:59 UTC" in said.err
    assert "Note: nobody handed in a notebook on chapter 3" in said.out
    notebook(tmp_path / "in" / "s01" / "02_softmax.ipynb", right="1 2 3")
    (tmp_path / "in" / "s02" / "02_softmax.ipynb").unlink()
    said = attn_course("grade", "in", "--out", "out", "--resume")
    lines = " ".join(said.err.split())
    assert said.code == 0
    assert "held no run" not in lines
    assert "graded again, because changed (1): s01/02_softmax.ipynb" in lines
    assert "graded before, and gone now (1): s02/02_softmax.ipynb" in lines
    assert json.loads((tmp_path / "out" / "report.json").read_text())["due"] == "2026-12-01T23:59:59+00:00"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere", "--out", "out"], "nowhere: is no folder of submissions"),
        (["in"], "Missing option '--out'"),
        (["in", "--out", "in"], "must not lie in the folder of the submissions"),
        (["in", "--out", "out", "--chapters", "two"], "--chapters: there is no chapter two"),
        (["in", "--out", "out", "--chapters", "2-1"], "--chapters: '2-1' ends before it begins"),
        (["in", "--out", "out", "--chapters", "77"], "--chapters: there is no chapter 77"),
        (["in", "--out", "out", "--due", "soon"], "--due: wanted a time such as"),
        (["in", "--out", "out", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["in", "--out", "out", "--seed", "-1"], "Invalid value for '--seed'"),
        (["in", "--out", "out", "--jobs", "2", "--scheduler", "tcp://x:1"], "--jobs and --scheduler exclude each other"),
        (["in", "--out", "taken"], "is not empty and holds no class run"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(attn_course, tmp_path, words, complaint):
    small_class(tmp_path / "in", 1)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").touch()
    said = attn_course("grade", *words)
    assert said.code == 2
    assert said.err.startswith("attn-course: ")
    assert len(said.err.splitlines()) == 1
    assert complaint in said.err
    assert not (tmp_path / "out").exists()


def test_without_a_sandbox_it_says_what_to_do(attn_course, tmp_path, monkeypatch):
    monkeypatch.setattr("attn_course.grading.grader.Grader", Unsafe)
    small_class(tmp_path / "in", 1)
    said = attn_course("grade", "in", "--out", "out")
    assert (said.code, said.err) == (1, "attn-course: no sandbox here; --allow-unsafe grades without one\n")
    assert attn_course("grade", "in", "--out", "out", "--allow-unsafe").code == 0


def test_a_disk_that_is_full_is_one_line_that_says_how_to_go_on(attn_course, tmp_path, monkeypatch):
    small_class(tmp_path / "in", 2)
    kept = []

    def full(store, key, result):
        from attn_course.grading.class_store import StoreError

        kept.append(key)
        raise StoreError("out: cannot be written: No space left on device")

    monkeypatch.setattr("attn_course.grading.class_store.Store.keep", full)
    said = attn_course("grade", "in", "--out", "out")
    assert said.code == 1
    assert said.err.splitlines()[-1] == (
        "attn-course: out: cannot be written: No space left on device; what was graded is kept: --resume goes on"
    )
    assert len(kept) == 1


def test_ctrl_c_leaves_a_run_that_goes_on(attn_course, tmp_path, monkeypatch):
    small_class(tmp_path / "in", 3)
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
    assert not (tmp_path / "out" / "grades.csv").exists()
    assert attn_course("grade", "in", "--out", "out", "--resume").code == 0
    assert graded.count(graded[0]) == 1
