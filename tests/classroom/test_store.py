"""The folder of a class run: whole files or none, one run at a time, and never two runs mixed."""

import errno
import json
import os
import re
import shutil
import zipfile

import pytest

from attn_course.classroom.grade_class import Started
from attn_course.classroom.store import OtherRun, Store, StoreError
from attn_course.classroom.times import parse_time
from tests.classroom import platforms
from tests.classroom.class_tools import without_times
from tests.cli.conftest import tree


@pytest.mark.parametrize("files", [0, 3, 5, 7])
def test_a_disk_that_fills_up_stops_a_class_that_resumes_later(small_room, monkeypatch, files):
    """1 file says what the run is about, 4 hold results, then come the tables."""
    left, fsync = [files], os.fsync

    def full(descriptor):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        fsync(descriptor)

    monkeypatch.setattr("attn_course.files.os.fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        small_room.grade()
    assert not list((small_room / "out").rglob("*.tmp*"))
    left[0] = 1_000
    small_room.grade(resume=True)
    assert small_room.is_as_if_undisturbed()


@pytest.mark.parametrize(
    ("out", "submissions", "error", "complaint"),
    [
        ("file/out", "in", StoreError, "cannot be written: Not a directory"),
        ("file", "in", OtherRun, "is a file, not a folder"),
        ("folder", "in", OtherRun, "is not empty and holds no class run"),
        ("in", "in", OtherRun, "must not lie in the folder of the submissions"),
        ("in/s00/out", "in", OtherRun, "must not lie in the folder of the submissions"),
        ("in", "in/s00", OtherRun, "must not lie in the folder of the submissions"),
        ("course/submitted/grades", "course", OtherRun, "must not lie in the folder of the submissions"),
        ("finished", "in", OtherRun, "holds a class run already; --resume goes on with it"),
    ],
)
def test_a_folder_that_is_somebodys_or_cannot_be_made_is_one_clear_line(small_room, out, submissions, error, complaint):
    (small_room / "file").write_text("mine")
    (small_room / "folder").mkdir()
    (small_room / "folder" / "thesis.tex").write_text("mine")
    small_room.with_students(1, "course/submitted").grade("finished")
    before = tree(small_room.folder)
    for resume in (False,) if out == "finished" else (False, True):
        with pytest.raises(error, match=complaint):
            small_room.grade(out, submissions=submissions, resume=resume, seed=8)
    assert tree(small_room.folder) == before


def test_two_runs_do_not_write_into_one_folder_which_may_lie_beside_what_was_submitted(room):
    room.with_students(4, "submitted")
    with Store(room / "grades-02", resume=False), pytest.raises(OtherRun, match="another class run is writing there"):
        room.grade("grades-02", submissions="")
    assert len(room.grade("grades-02", submissions="").marked) == 4


def test_what_a_resumed_run_leaves_open_is_as_it_was_begun(small_room):
    small_room.grade(lessons=("softmax", "scaling"), due=parse_time("2026-12-01 18:00 UTC"), limits=("cell=7", "student=400"))
    before = without_times(small_room / "out")
    assert "cell=7 call=10 cpu=60 notebook=120 student=400" in json.loads(before["report.json"])["limits"]
    assert small_room.grade(resume=True, seed=None).lessons == ("softmax", "scaling")
    assert without_times(small_room / "out") == before
    small_room.grade(resume=True, limits=("student=400",))
    assert without_times(small_room / "out") == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"seed": 8}, "begun with --seed 7, and this run has 8"),
        ({"lessons": ("softmax", "scaling")}, "begun with --chapters none, and this run has 2, 3"),
        ({"limits": ("cell=7",)}, "begun with --limit cell=20 .* and this run has cell=7 "),
        ({"variants": True}, "begun with --variants False, and this run has True"),
        ({"submissions": "other"}, "begun with the class in .*/in, and none of the notebooks graded there is here"),
    ],
)
def test_another_run_does_not_go_on(small_room, change, complaint):
    small_room.with_students(4, "other", words="of another class").grade()
    with pytest.raises(OtherRun, match=complaint):
        small_room.grade(resume=True, **change)


def test_a_later_download_of_the_class_goes_on(room):
    before = platforms.canvas_zip(room / "submissions.zip", room / "workshop")
    room.grade(submissions="submissions.zip")
    with zipfile.ZipFile(before) as old, zipfile.ZipFile(room / "submissions (1).zip", "w") as later:
        for name in old.namelist():
            again = "lovelaceada_LATE_5001_66777_ex_02_softmax-1.ipynb" if name.startswith("lovelaceada") else name
            later.writestr(again, old.read(name).replace(b"right", b"wrong") if again != name else old.read(name))
    started: list[Started] = []
    done = room.grade(submissions="submissions (1).zip", resume=True, on_start=started.append)
    assert (started[0].total, started[0].kept, len(started[0].gone)) == (5, 4, 1)
    assert [(each.points, each.is_late) for each in done.marked if each.student.startswith("lovelaceada")] == [(0, True)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"course_sha256": "0" * 64}, "another state of attn_course"),
        ({"version": "0.0.1"}, "begun with version 0.0.1"),
        ({"format": 99}, re.escape("written by another version of attn_course (format 99)")),
        ({"sandbox": "sandbox: none"}, "its first part was graded with “sandbox: none”"),
        (None, r"run.json: is damaged"),
    ],
)
def test_another_course_or_sandbox_does_not_go_on_nor_a_damaged_run(small_room, change, complaint):
    small_room.grade()
    path = small_room / "out" / "run.json"
    path.write_text('{"format": ' if change is None else json.dumps(json.loads(path.read_text()) | change))
    next((small_room / "out" / "results").iterdir()).unlink()
    with pytest.raises(OtherRun, match=complaint):
        small_room.grade(resume=True)


def test_what_is_graded_is_not_graded_again_unless_it_changed(small_room):
    small_room.grade()
    again, started = [], []
    small_room.hand_in("s01", right="1 2 3")
    small_room.hand_in("new")
    shutil.rmtree(small_room / "in" / "s02")
    small_room.grade(resume=True, on_start=started.append, on_result=lambda result: again.append(result.place))
    assert sorted(again) == ["new/02_softmax.ipynb", "s01/02_softmax.ipynb"]
    assert (started[0].changed, started[0].gone) == (("s01/02_softmax.ipynb",), ("s02/02_softmax.ipynb",))
    pages = {path.relative_to(small_room / "out" / "feedback").as_posix() for path in (small_room / "out" / "feedback").rglob("*")}
    assert pages == {name for s in ("new", "s00", "s01", "s03") for name in (s, f"{s}/02_softmax.html")}, "no page of a notebook gone"


def test_a_result_cut_short_is_graded_again(small_room):
    small_room.grade()
    complete = without_times(small_room / "out")
    first, second, *_ = sorted((small_room / "out" / "results").iterdir())
    first.write_bytes(first.read_bytes()[:50])
    (first.parent / ".tmp-0123456789abcdef").write_text("{")
    second.write_text("[]")
    small_room.grade(resume=True)
    assert without_times(small_room / "out") == complete
