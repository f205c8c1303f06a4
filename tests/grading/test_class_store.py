"""The folder of a class run: whole files or none, one run at a time, and never two runs mixed."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from attn_course.grading.class_grade import grade_class
from attn_course.grading.class_store import OtherRun, Store, StoreError
from attn_course.grading.submissions import parse_time
from tests.grading.class_tools import grade, notebook, order, small_class, without_times

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_a_file_is_replaced_whole(tmp_path):
    with Store(tmp_path / "out", resume=False) as store:
        store.write("a/b.txt", "first")
        store.write("a/b.txt", "second \ud800")
    assert (tmp_path / "out" / "a" / "b.txt").read_text() == r"second \ud800"
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == [".lock", "a", "b.txt"]


@pytest.fixture
def full_disk(monkeypatch):
    """After `allow` further files have reached the disk, it is full."""
    left = [0]
    fsync = os.fsync

    def full(descriptor):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        fsync(descriptor)

    monkeypatch.setattr("attn_course.grading.class_store.os.fsync", full)

    def allow(files):
        left[0] = files

    return allow


def test_a_full_disk_leaves_the_old_file_and_no_half_one(tmp_path, full_disk):
    with Store(tmp_path / "out", resume=False) as store:
        full_disk(1)
        store.write("grades.csv", "old")
        with pytest.raises(StoreError, match=r"grades.csv: cannot be written: No space left on device"):
            store.write("grades.csv", "new")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name != ".lock"] == ["grades.csv"]
    assert (tmp_path / "out" / "grades.csv").read_text() == "old"


@pytest.mark.parametrize("files", [0, 1, 3, 5, 6, 7])
def test_a_disk_that_fills_up_stops_a_class_that_resumes_later(tmp_path, full_disk, files):
    """1 file says what the run is about, 4 hold results, then come the tables."""
    small_class(tmp_path / "in")
    full_disk(files)
    with pytest.raises(StoreError, match="No space left on device"):
        grade(tmp_path / "in", tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.tmp*"))
    full_disk(1_000)
    grade(tmp_path / "in", tmp_path / "out", resume=True)
    grade(tmp_path / "in", tmp_path / "undisturbed")
    assert without_times(tmp_path / "out") == without_times(tmp_path / "undisturbed")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_device_that_is_full_is_one_clear_line(tmp_path, monkeypatch):
    opened = Path.open

    def to_full(path, *arguments, **options):
        return opened(Path("/dev/full") if path.name.startswith(".tmp-") else path, *arguments, **options)

    with Store(tmp_path / "out", resume=False) as store:
        monkeypatch.setattr(Path, "open", to_full)
        with pytest.raises(StoreError, match="cannot be written: No space left on device"):
            store.write("grades.csv", "text")


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    small_class(tmp_path / "in")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        grade(tmp_path / "in", tmp_path / "file" / "out")


def test_out_may_not_be_a_file_or_somebodys_folder(tmp_path):
    small_class(tmp_path / "in")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    for resume in (False, True):
        with pytest.raises(OtherRun, match="is a file, not a folder"):
            grade(tmp_path / "in", tmp_path / "file", resume=resume)
        with pytest.raises(OtherRun, match="is not empty and holds no class run"):
            grade(tmp_path / "in", tmp_path / "folder", resume=resume)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["thesis.tex"]


def test_submissions_and_out_lie_apart(tmp_path):
    small_class(tmp_path / "in")
    for submissions, out in (("in", "in"), ("in", "in/s00/out"), ("in/s00", "in")):
        with pytest.raises(OtherRun, match="must not lie in the folder of the submissions"):
            grade(tmp_path / submissions, tmp_path / out)


def test_out_may_lie_in_a_course_folder_beside_what_was_submitted(tmp_path):
    small_class(tmp_path / "submitted")
    assert len(grade(tmp_path, tmp_path / "grades-02").marked) == 4
    with pytest.raises(OtherRun, match="must not lie in the folder of the submissions"):
        grade(tmp_path, tmp_path / "submitted" / "grades-02")


def test_what_a_resumed_run_leaves_open_is_as_it_was_begun(tmp_path):
    small_class(tmp_path / "in")
    due = parse_time("2026-12-01 18:00 UTC")
    grade(tmp_path / "in", tmp_path / "out", lessons=("softmax", "scaling"), due=due)
    before = without_times(tmp_path / "out")
    again = grade(tmp_path / "in", tmp_path / "out", resume=True, seed=None)
    assert again.lessons == ("softmax", "scaling")
    assert without_times(tmp_path / "out") == before


def test_a_finished_run_is_not_overwritten(tmp_path):
    small_class(tmp_path / "in")
    grade(tmp_path / "in", tmp_path / "out")
    before = without_times(tmp_path / "out")
    with pytest.raises(OtherRun, match="holds a class run already; --resume goes on with it"):
        grade(tmp_path / "in", tmp_path / "out", seed=8)
    assert without_times(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"seed": 8}, "begun with --seed 7, and this run has 8"),
        ({"lessons": ("softmax", "scaling")}, "begun with --chapters none, and this run has 2, 3"),
        ({"submissions": "other"}, "begun with the class in .*/in, and this run has .*/other"),
    ],
)
def test_another_run_does_not_go_on(tmp_path, change, complaint):
    small_class(tmp_path / "in")
    small_class(tmp_path / "other")
    grade(tmp_path / "in", tmp_path / "out")
    change = {name: tmp_path / value if name == "submissions" else value for name, value in change.items()}
    with pytest.raises(OtherRun, match=complaint):
        grade(**{"submissions": tmp_path / "in", "out": tmp_path / "out", "resume": True} | change)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("course_sha256", "0" * 64, "another state of attn_course"),
        ("version", "0.0.1", "begun with version 0.0.1"),
        ("format", 99, re.escape("written by another version of attn_course (format 99)")),
        ("sandbox", "sandbox: none", "its first part was graded with “sandbox: none”"),
    ],
)
def test_another_course_or_sandbox_does_not_go_on(tmp_path, name, value, complaint):
    small_class(tmp_path / "in")
    grade(tmp_path / "in", tmp_path / "out")
    path = tmp_path / "out" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    next((tmp_path / "out" / "results").iterdir()).unlink()
    with pytest.raises(OtherRun, match=complaint):
        grade(tmp_path / "in", tmp_path / "out", resume=True)


def test_a_damaged_run_file_is_one_clear_line(tmp_path):
    small_class(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text('{"format": ')
    with pytest.raises(OtherRun, match=r"run.json: is damaged"):
        grade(tmp_path / "in", tmp_path / "out", resume=True)


def test_two_runs_do_not_write_into_one_folder(tmp_path):
    small_class(tmp_path / "in")
    with Store(tmp_path / "out", resume=False), pytest.raises(OtherRun, match="another class run is writing there"):
        grade(tmp_path / "in", tmp_path / "out")
    grade(tmp_path / "in", tmp_path / "out")


def test_what_is_graded_is_not_graded_again_unless_it_changed(tmp_path):
    small_class(tmp_path / "in")
    grade(tmp_path / "in", tmp_path / "out")
    again, started = [], []
    notebook(tmp_path / "in" / "s01" / "02_softmax.ipynb", right="1 2 3")
    notebook(tmp_path / "in" / "new" / "02_softmax.ipynb")
    shutil.rmtree(tmp_path / "in" / "s02")
    grade_class(
        order(tmp_path / "in", tmp_path / "out", resume=True), on_start=started.append, on_result=lambda result: again.append(result.place)
    )
    assert sorted(again) == ["new/02_softmax.ipynb", "s01/02_softmax.ipynb"]
    assert (started[0].changed, started[0].gone) == (("s01/02_softmax.ipynb",), ("s02/02_softmax.ipynb",))
    pages = sorted(path.relative_to(tmp_path / "out" / "feedback").as_posix() for path in (tmp_path / "out" / "feedback").rglob("*"))
    assert pages == sorted(name for s in ("new", "s00", "s01", "s03") for name in (s, f"{s}/02_softmax.html")), "no page of a notebook gone"


def test_a_result_cut_short_is_graded_again(tmp_path):
    small_class(tmp_path / "in")
    grade(tmp_path / "in", tmp_path / "out")
    complete = without_times(tmp_path / "out")
    first, second, *_ = sorted((tmp_path / "out" / "results").iterdir())
    first.write_bytes(first.read_bytes()[:50])
    (first.parent / ".tmp-0123456789abcdef").write_text("{")
    second.write_text("[]")
    grade(tmp_path / "in", tmp_path / "out", resume=True)
    assert without_times(tmp_path / "out") == complete
