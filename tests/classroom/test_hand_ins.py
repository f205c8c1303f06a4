"""Finding what a class handed in: both layouts, and every odd file that teachers meet."""

import json
import os
from datetime import UTC, datetime
from unittest import mock

import pytest

from attn_course.classroom.downloads import SubmissionsError
from attn_course.classroom.hand_ins import find_submissions, printable
from attn_course.classroom.submission import MAX_BYTES
from attn_course.classroom.times import parse_time
from tests.classroom.stand_in import notebook

LESSONS = ("softmax", "scaling")


def find(folder):
    return find_submissions(folder, lessons=LESSONS)


def only(folder):
    (hand_in,) = find(folder).hand_ins
    return hand_in


def test_a_folder_for_each_student(tmp_path):
    notebook(tmp_path / "bea" / "03_scaling.ipynb", "scaling")
    notebook(tmp_path / "bea" / "02_softmax.ipynb", "softmax")
    notebook(tmp_path / "adam" / "02_softmax.ipynb", "softmax")
    (tmp_path / "cleo").mkdir()
    found = find(tmp_path)
    assert found.students == ("adam", "bea", "cleo")
    assert [(each.student, each.assignment, each.lesson) for each in found.hand_ins] == [
        ("adam", "softmax", "softmax"),
        ("bea", "softmax", "softmax"),
        ("bea", "scaling", "scaling"),
    ]
    assert not any(each.problem or each.notes for each in found.hand_ins)


@pytest.mark.parametrize("start", ["", "submitted"])
def test_the_layout_of_nbgrader(tmp_path, start):
    root = tmp_path / "submitted"
    path = notebook(root / "bea" / "week 1" / "02_softmax.ipynb", "softmax")
    (path.parent / "timestamp.txt").write_text("2026-11-20 23:59:30.000000 UTC\n")
    (path.parent / "data.csv").write_text("1,2\n")
    hand_in = only(tmp_path / start)
    assert (hand_in.student, hand_in.assignment, hand_in.notebook, hand_in.lesson) == ("bea", "week 1", "02_softmax.ipynb", "softmax")
    assert hand_in.handed_in == datetime(2026, 11, 20, 23, 59, 30, tzinfo=UTC)
    assert hand_in.place == "bea/week 1/02_softmax.ipynb"


def test_checkpoints_and_hidden_files_are_nobodys_and_a_student_may_be_called_submitted(tmp_path):
    notebook(tmp_path / "bea" / "02_softmax.ipynb")
    notebook(tmp_path / "submitted" / "02_softmax.ipynb")
    notebook(tmp_path / "bea" / ".ipynb_checkpoints" / "02_softmax-checkpoint.ipynb")
    notebook(tmp_path / "bea" / "._02_softmax.ipynb")
    notebook(tmp_path / ".ipynb_checkpoints" / "02_softmax.ipynb")
    assert [each.place for each in find(tmp_path).hand_ins] == ["bea/02_softmax.ipynb", "submitted/02_softmax.ipynb"]
    assert find(tmp_path).students == ("bea", "submitted")


NAMED_OTHERWISE = "named for chapter 2, but its cells are those of chapter 3, by which it is graded"


@pytest.mark.parametrize(
    ("name", "lesson", "words", "notes"),
    [
        ("my homework.ipynb", "scaling", "", ()),
        ("02_softmax final.ipynb", "scaling", "", (NAMED_OTHERWISE,)),
        ("02_softmax.ipynb", "softmax", '"id": "repair-head-weights" "id": "cosine-scores"', ()),
    ],
)
def test_cells_are_believed_more_than_a_name_and_a_text_is_no_cell(tmp_path, name, lesson, words, notes):
    notebook(tmp_path / "bea" / name, lesson, words=words)
    assert (only(tmp_path).lesson, only(tmp_path).notes) == (lesson, notes)


def test_a_name_decides_where_cells_have_lost_their_ids(tmp_path):
    path = notebook(tmp_path / "bea" / "2_softmax.ipynb", "softmax")
    path.write_text(path.read_text().replace("stable-softmax", "anything"))
    assert only(tmp_path).lesson == "softmax"


ODD = {  # by the reason: what a file is called, and how it is made
    "is a symbolic link": ("02_softmax.ipynb", lambda path: path.symlink_to(notebook(path.parents[2] / "elsewhere" / "02_softmax.ipynb"))),
    "is too large (16 MiB; at most 16): clear its outputs": ("02_softmax.ipynb", lambda path: path.write_bytes(bytes(MAX_BYTES + 1))),
    "is empty": ("02_softmax.ipynb", lambda path: path.touch()),
    "is not a regular file": ("02_softmax.ipynb", os.mkfifo),
    "is a folder, not a notebook": ("02_softmax.ipynb", lambda path: path.mkdir()),
    "its name must end in .ipynb": ("02_softmax.ipynb.txt", notebook),
    "holds no task of the course": ("notes.ipynb", lambda path: path.write_text(json.dumps({"nbformat": 4, "cells": []}))),
}


@pytest.mark.parametrize("problem", ODD)
def test_an_odd_file_has_a_row_with_the_reason(tmp_path, problem):
    name, make = ODD[problem]
    (tmp_path / "class" / "bea").mkdir(parents=True)
    make(tmp_path / "class" / "bea" / name)
    assert only(tmp_path / "class").problem.startswith(problem)


def test_a_file_that_cannot_be_read_has_a_row(tmp_path, monkeypatch):
    notebook(tmp_path / "bea" / "02_softmax.ipynb")
    monkeypatch.setattr("attn_course.classroom.hand_ins.os.open", mock.Mock(side_effect=PermissionError(13, "Permission denied")))
    assert (only(tmp_path).problem, only(tmp_path).lesson) == ("cannot be read: Permission denied", "softmax")


def test_a_notebook_that_lies_too_deep_has_a_row_and_a_damaged_timestamp_is_a_note(tmp_path):
    notebook(tmp_path / "bea" / "week 1" / "02" / "02_softmax.ipynb")
    path = notebook(tmp_path / "cleo" / "week 1" / "02_softmax.ipynb")
    (path.parent / "timestamp.txt").write_text("yesterday, promise")
    deep, undated = find(tmp_path).hand_ins
    assert deep.problem.startswith("lies too deep")
    assert undated.notes == ("its timestamp.txt holds no time that can be read",)


def test_names_that_are_not_utf8_are_graded_and_shown_escaped_as_are_signs_that_would_mislead(tmp_path):
    folder = os.fsencode(tmp_path) + b"/ren\xe9"
    os.mkdir(folder)  # noqa: PTH102  # a Path takes no bytes
    notebook(tmp_path / os.fsdecode(b"ren\xe9") / os.fsdecode(b"02_\xff.ipynb"))
    hand_in = only(tmp_path)
    assert (hand_in.student, hand_in.notebook, hand_in.problem) == (r"ren\xe9", r"02_\xff.ipynb", "")
    assert hand_in.notes == ("its file name is not UTF-8",)
    assert len(hand_in.key) == 32
    notebook(tmp_path / r"ren\xe9" / "02_softmax.ipynb")  # looks the same
    assert find(tmp_path).students == (r"ren\xe9", r"ren\xe9 (2)")
    assert len({each.place for each in find(tmp_path).hand_ins}) == 2
    assert printable("a\x1b[31m\nb\u202ec") == r"a\x1b[31m\nb\u202ec"
    assert printable("Zoe\u0308 北京") == "Zoë 北京"


def test_what_lies_beside_the_students_is_noted_and_not_followed(tmp_path):
    notebook(tmp_path / "class" / "bea" / "02_softmax.ipynb")
    notebook(tmp_path / "class" / "02_softmax.ipynb")
    (tmp_path / "secret" / "solutions").mkdir(parents=True)
    (tmp_path / "class" / "mallory").symlink_to(tmp_path / "secret")
    found = find(tmp_path / "class")
    assert found.students == ("bea",)
    assert found.notes == (
        "02_softmax.ipynb lies in no student's folder: it was not graded",
        "mallory is a symbolic link to a folder: it was not followed",
    )


@pytest.mark.parametrize("missing", [True, False])
def test_no_class_is_one_clear_line(tmp_path, missing):
    with pytest.raises(SubmissionsError, match="is no folder of submissions" if missing else "holds no student's folder"):
        find(tmp_path / "nothing" if missing else tmp_path)


@pytest.mark.parametrize(
    ("text", "last_of_day", "iso"),
    [
        ("2026-11-20 23:59:00.000000 UTC", False, "2026-11-20T23:59:00+00:00"),
        ("2026-11-20 23:59", False, "2026-11-20T23:59:00+00:00"),
        ("2026-07-01 12:00 Europe/Berlin", False, "2026-07-01T10:00:00+00:00"),
        ("2026-11-20T23:59:00+01:00", False, "2026-11-20T22:59:00+00:00"),
        ("2026-11-20", False, "2026-11-20T00:00:00+00:00"),
        ("2026-11-20", True, "2026-11-20T23:59:59+00:00"),
        ("2026-07-01 Europe/Berlin", True, "2026-07-01T21:59:59+00:00"),
        ("2026-11-20 00:00", True, "2026-11-20T00:00:00+00:00"),
        ("20261120T1800", True, "2026-11-20T18:00:00+00:00"),
    ],
)
def test_times_are_read_as_nbgrader_and_people_write_them_and_a_day_alone_may_mean_its_end(text, last_of_day, iso):
    assert parse_time(text, last_of_day=last_of_day).isoformat() == iso


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01 UTC", "2026-11-20 23:59 Atlantis/Sunken", "2026-11-20 23:59 ../../etc/passwd"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="wanted a time such as"):
        parse_time(text)
