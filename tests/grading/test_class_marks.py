"""Which notebook counts, what is missing or late, and the tables that say so."""

import csv
import io

import pytest

from attn_course.grading.class_marks import cell, grades_csv, summary_csv
from attn_course.grading.submissions import parse_time
from attn_course.tasks import all_tasks
from tests.grading.class_tools import grade, notebook, small_class

FULL = " ".join(str(number) for number, _ in enumerate(all_tasks("softmax"), 1))


@pytest.fixture(autouse=True)
def _quick(without_pictures):
    """The tables need no figures."""


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def graded(tmp_path, **changes):
    return grade(tmp_path / "in", tmp_path / "out", **changes)


def test_every_task_of_every_student_has_a_row(tmp_path):
    small_class(tmp_path / "in", 3)
    (tmp_path / "in" / "zoe").mkdir()
    found = rows(grades_csv(graded(tmp_path).marked))
    tasks = all_tasks("softmax")
    assert [(row["student"], row["task"]) for row in found] == [(s, t.id) for s in ("s00", "s01", "s02", "zoe") for t in tasks]
    assert {row["status"] for row in found if row["student"] == "zoe"} == {"missing"}
    assert [row["points"] for row in found if row["student"] == "s01"] == [str(tasks[0].points)] + ["0"] * (len(tasks) - 1)
    assert {row["assignment"] for row in found} == {"softmax"}
    assert (tmp_path / "out" / "grades.csv").read_text() == grades_csv(graded(tmp_path, resume=True).marked)


def test_the_summary_has_one_row_for_each_student(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", right=FULL)
    notebook(tmp_path / "in" / "adam" / "03_scaling.ipynb", "scaling")
    done = graded(tmp_path)
    bea = rows(summary_csv(done.marked, done.found.students))[1]
    most = [sum(task.points for task in all_tasks(chapter)) for chapter in ("softmax", "scaling")]
    assert bea == {
        "student": "bea",
        "points": str(most[0]),
        "max_points": str(sum(most)),
        "percent": f"{100 * most[0] / sum(most):.1f}",
        "remarks": "1 missing",
        "softmax points": str(most[0]),
        "softmax max_points": str(most[0]),
        "scaling points": "0",
        "scaling max_points": str(most[1]),
    }


def test_of_two_notebooks_on_a_chapter_the_better_counts_and_the_other_says_so(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", right="1")
    notebook(tmp_path / "in" / "bea" / "02_softmax-Copy1.ipynb", right=FULL)
    done = graded(tmp_path)
    assert [(each.notebook, each.status) for each in done.marked] == [
        ("02_softmax-Copy1.ipynb", "graded"),
        ("02_softmax.ipynb", "duplicate"),
    ]
    found = rows(grades_csv(done.marked))
    assert len(found) == len(all_tasks("softmax")) + 1
    assert found[-1]["status"] == "duplicate"
    assert found[-1]["diagnosis"].startswith("02_softmax.ipynb: 02_softmax-Copy1.ipynb counts for chapter 2; this one has 3 of 20 points")


def test_a_chapter_counts_once_in_whatever_folders_its_notebooks_lie(tmp_path):
    for folder, right in (("", "1"), ("Old", FULL), ("backup", FULL)):
        notebook(tmp_path / "in" / "ada" / folder / "02_softmax.ipynb", right=right)
    done = graded(tmp_path)
    assert [(each.place, each.status) for each in done.marked] == [
        ("ada/02_softmax.ipynb", "duplicate"),
        ("ada/Old/02_softmax.ipynb", "graded"),
        ("ada/backup/02_softmax.ipynb", "duplicate"),
    ]
    (row,) = rows(summary_csv(done.marked, done.found.students))
    assert (row["points"], row["max_points"], row["remarks"]) == ("20", "20", "2 duplicate")
    found = [row["diagnosis"] for row in rows(grades_csv(done.marked)) if row["status"] == "duplicate"]
    assert all("Old/02_softmax.ipynb counts for chapter 2" in text for text in found)


def test_a_chapter_has_one_column_whatever_its_folders_are_called(tmp_path):
    for student, folder in (("ada", "week3"), ("bea", "week3"), ("bob", ""), ("cy", "Week 3")):
        notebook(tmp_path / "in" / student / folder / "02_softmax.ipynb", right=FULL)
    notebook(tmp_path / "in" / "ada" / "week3" / "03_scaling.ipynb", "scaling")
    done = graded(tmp_path)
    found = rows(summary_csv(done.marked, done.found.students))
    assert [name for name in found[0] if name.endswith(" points")] == ["week3 points"]
    assert [row["week3 points"] for row in found] == ["20"] * 4
    assert {row["week3 max_points"] for row in found} == {found[0]["max_points"]}


def test_late_is_said_and_costs_nothing(tmp_path):
    for student, minute in (("early", 58), ("late", 59)):
        path = notebook(tmp_path / "in" / student / "week 1" / "02_softmax.ipynb", right="1")
        (path.parent / "timestamp.txt").write_text(f"2026-11-21 01:{minute}:00 UTC")
    done = graded(tmp_path, due=parse_time("2026-11-20 23:58:30 UTC"))
    late = [row for row in rows(grades_csv(done.marked)) if row["status"] == "late"]
    assert [row["diagnosis"] for row in late] == [
        "02_softmax.ipynb: handed in 1 h 59 min after it was due",
        "02_softmax.ipynb: handed in 2 h after it was due",
    ]
    assert {each.points for each in done.marked} == {3}
    assert rows(summary_csv(done.marked, done.found.students))[1]["remarks"] == "1 late"


def test_a_file_that_cannot_be_graded_gets_no_points_and_the_reason(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", right="1")
    (tmp_path / "in" / "adam").mkdir()
    (tmp_path / "in" / "adam" / "02_softmax.ipynb").symlink_to(tmp_path / "in" / "bea" / "02_softmax.ipynb")
    adam = [row for row in rows(grades_csv(graded(tmp_path).marked)) if row["student"] == "adam"]
    assert {(row["points"], row["status"]) for row in adam[:-1]} == {("0", "not judged")}
    assert adam[0]["diagnosis"] == "not judged: 02_softmax.ipynb is a symbolic link: hand in the notebook itself"
    assert adam[-1]["status"] == "not judged"


def test_a_file_that_the_grader_cannot_read_is_not_judged(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", words="unreadable the file is damaged")
    done = graded(tmp_path)
    assert [each.status for each in done.marked] == ["not judged"]
    found = rows(grades_csv(done.marked))
    assert {row["status"] for row in found} == {"not judged"}
    assert {row["diagnosis"] for row in found[:-1]} == {"not judged: the file is damaged"}
    assert found[-1]["diagnosis"] == "02_softmax.ipynb: the file is damaged"
    assert done.marked[0].sandbox == ""  # nothing of it ran


def test_only_chapters_asked_for_count(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb")
    notebook(tmp_path / "in" / "bea" / "03_scaling.ipynb", "scaling")
    done = graded(tmp_path, lessons=("softmax", "attention"))
    assert [(each.lesson, each.status) for each in done.marked] == [
        ("softmax", "graded"),
        ("scaling", "not asked for"),
        ("attention", "missing"),
    ]
    assert sum(each.max_points for each in done.marked if each.counts) == sum(
        task.points for lesson in ("softmax", "attention") for task in all_tasks(lesson)
    )


def test_an_assignment_is_missing_under_the_name_the_class_uses(tmp_path):
    for student in ("adam", "bea", "cleo"):
        notebook(tmp_path / "in" / student / ("week 1" if student != "cleo" else "weak 1") / "02_softmax.ipynb")
    (tmp_path / "in" / "zoe").mkdir()
    assert [each.assignment for each in graded(tmp_path).marked] == ["week 1", "week 1", "weak 1", "week 1"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", '=HYPERLINK("http://x","y")'])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(text):
    assert cell(text) == "'" + text


def test_hostile_names_and_words_stay_text_in_the_tables(tmp_path):
    notebook(tmp_path / "in" / "=cmd|' calc'!A0" / "02_softmax.ipynb", words='say @SUM(1),"x"')
    done = graded(tmp_path)
    found = rows(grades_csv(done.marked))
    assert found[0]["student"] == "'=cmd|' calc'!A0"
    assert found[0]["diagnosis"] == '\'@SUM(1),"x"'
    assert rows(summary_csv(done.marked, done.found.students))[0]["student"].startswith("'=")
