"""What is remembered of passed tasks, where, and what happens to a damaged record."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attn_course.files import Locked, locked
from attn_course.tasks import CheckFailed, Verdict, check, get_task, progress

PASSED = Verdict("stable-softmax", "Softmax", True, 3, 3, "ok")
FAILED = Verdict("stable-softmax", "Softmax", False, 0, 3, "no")
DAMAGED = [
    "",
    "[]",
    "{}",
    '{"tasks": []}',
    '{"tasks": {"stable-softmax": {"passed": true, "points": true, "max_points": 3, "attempts": 1, "last": ""}}}',
    '{"tasks": {"stable-softmax": {"passed": true, "points": 3, "max_points": 3, "attempts": "many", "last": ""}}}',
    '{"tasks": {"stable-softmax": {"passed": true, "points": 3, "max_points": 3}}',
]


@pytest.fixture
def course(tmp_path):
    (tmp_path / "work" / "deep").mkdir(parents=True)
    (tmp_path / "exercises").mkdir()
    return tmp_path


def test_a_course_without_a_record_has_no_progress(course):
    assert progress.load(course) == {}
    assert list((course / "work").iterdir()) == [course / "work" / "deep"]


def test_a_passed_task_stays_passed_with_its_best_points(course):
    for verdict in (FAILED, PASSED, FAILED):
        progress.record(verdict, course)
    (entry,) = progress.load(course).values()
    assert [entry[key] for key in ("passed", "points", "max_points", "attempts")] == [True, 3, 3, 3]
    assert entry["last"].endswith("+00:00")


@pytest.mark.parametrize("content", [*map(str.encode, DAMAGED), b"\xff\xfe{"])
def test_a_damaged_record_is_told_in_one_line_and_left_as_it_is(course, content):
    path = course / "work" / ".progress.json"
    path.write_bytes(content)
    for action in (lambda: progress.load(course), lambda: progress.record(PASSED, course)):
        with pytest.raises(ValueError, match=r"^work/\.progress\.json must be .*; it is damaged: mend it or delete it$"):
            action()
    assert path.read_bytes() == content
    assert {other.name for other in (course / "work").iterdir()} <= {".progress.json", ".progress.lock", "deep"}


def test_a_write_that_fails_leaves_the_old_record_and_no_litter(course, monkeypatch):
    progress.record(FAILED, course)
    before = (course / "work" / ".progress.json").read_bytes()

    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="No space left"):
        progress.record(PASSED, course)
    assert (course / "work" / ".progress.json").read_bytes() == before
    assert sorted(path.name for path in (course / "work").iterdir()) == [".progress.json", ".progress.lock", "deep"]


ONE_OF_MANY = """
import sys
from pathlib import Path
from attn_course.tasks import Verdict, progress
for n in range(20):
    progress.record(Verdict(f"{sys.argv[1]}.{n}", "Toy", True, 1, 1, "ok"), Path(sys.argv[2]))
"""


def test_kernels_that_record_at_the_same_moment_lose_nothing(course):
    kernels = [subprocess.Popen([sys.executable, "-c", ONE_OF_MANY, str(chapter), str(course)]) for chapter in range(4)]
    assert [kernel.wait(timeout=60) for kernel in kernels] == [0] * 4
    assert len(progress.load(course)) == 80
    assert sorted(path.name for path in (course / "work").iterdir()) == [".progress.json", ".progress.lock", "deep"]


def test_a_record_waits_until_the_other_kernel_is_done(course, monkeypatch):
    with locked(course / "work" / progress.LOCK, patience_s=0):
        waiting = threading.Thread(target=progress.record, args=(PASSED, course))
        waiting.start()
        waiting.join(timeout=0.2)
        assert waiting.is_alive()
        assert progress.load(course) == {}
        monkeypatch.setattr(progress, "PATIENCE_S", 0)
        with pytest.raises(Locked, match="another process is writing"):
            progress.record(PASSED, course)
    waiting.join(timeout=60)
    assert progress.load(course)["stable-softmax"]["passed"] is True


def test_the_course_is_found_from_work_and_below_only_if_it_has_exercises(course):
    assert progress.course_root(course / "work") == course
    assert progress.course_root(course / "work" / "deep") == course
    for other in (course, course / "exercises", course.parent):
        assert progress.course_root(other) is None
    (course / "exercises").rmdir()
    assert progress.course_root(course / "work") is None


def test_check_records_inside_work_and_nowhere_else(course, monkeypatch):
    record = course / "work" / ".progress.json"
    for folder in (course, course / "exercises"):
        monkeypatch.chdir(folder)
        check("entropy-by-hand", 0.868)
    assert not record.exists()
    monkeypatch.chdir(course / "work" / "deep")
    with pytest.raises(CheckFailed):
        check("entropy-by-hand", 7)
    assert progress.load(course)["entropy-by-hand"]["passed"] is False
    check("entropy-by-hand", 0.868)
    assert progress.load(course)["entropy-by-hand"]["passed"] is True


def test_a_damaged_record_does_not_keep_the_learner_from_the_verdict(course, monkeypatch, capsys):
    record = course / "work" / ".progress.json"
    record.write_text("{", encoding="utf-8")
    monkeypatch.chdir(course / "work")
    with pytest.raises(ValueError, match="damaged"):
        check("entropy-by-hand", 0.868)
    assert capsys.readouterr().out == get_task("entropy-by-hand").ok_line + "\n"
    with pytest.raises(CheckFailed, match="You gave 7") as caught:
        check("entropy-by-hand", 7)
    assert "damaged" in str(caught.value.__cause__)
    assert Path(record).read_text(encoding="utf-8") == "{"


def test_a_record_that_cannot_be_written_costs_one_line_and_no_verdict(course, monkeypatch, capsys):
    record = course / "work" / ".progress.json"
    record.mkdir()  # fails for root, too, which a read-only folder does not
    monkeypatch.chdir(course / "work")
    check("entropy-by-hand", 0.868)
    line = f"Your progress is not recorded: Is a directory ({record})\n"
    assert capsys.readouterr().out == get_task("entropy-by-hand").ok_line + "\n" + line
    with pytest.raises(CheckFailed, match="You gave 7") as caught:
        check("entropy-by-hand", 7)
    assert capsys.readouterr().out == line
    assert caught.value.__cause__ is None


def test_a_folder_that_is_gone_costs_no_verdict(tmp_path, monkeypatch, capsys):
    (tmp_path / "lost").mkdir()
    monkeypatch.chdir(tmp_path / "lost")
    (tmp_path / "lost").rmdir()
    check("entropy-by-hand", 0.868)
    first, second = capsys.readouterr().out.splitlines()
    assert first == get_task("entropy-by-hand").ok_line
    assert second.startswith("Your progress is not recorded: No such file or directory")
