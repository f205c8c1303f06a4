"""Which notebook counts, what is missing or late, and the tables that say so."""

import json

import pytest

from attn_course.classroom.marks import cell, percent
from attn_course.classroom.times import parse_time
from attn_course.tasks import all_tasks
from tests.classroom import platforms

TASKS = all_tasks("softmax")
FULL = " ".join(str(number) for number, _ in enumerate(TASKS, 1))
MOST = {lesson: sum(task.points for task in all_tasks(lesson)) for lesson in ("softmax", "scaling", "attention")}


def rows(room, name="grades.csv"):
    return platforms.table(room / "out" / name)


def diagnoses(room, status):
    return [row["diagnosis"] for row in rows(room) if row["status"] == status]


STATUSES = {  # by student: what the stand-in is told, and what becomes of the first task
    "adam": ("partly", "partly", "1"),
    "bea": ("right", "passed", str(TASKS[0].points)),
    "cleo": ("say not judged: the time for the notebook was over", "not judged", "0"),
    "dora": ("say my_softmax has no answer yet", "unanswered", "0"),
    "emil": ("say my_softmax is not right", "failed", "0"),
    "zoe": ("", "missing", "0"),
}


def test_every_task_of_every_student_has_a_row_with_its_status_and_points(room):
    for student, (words, *_) in STATUSES.items():
        (room / "in" / student).mkdir(parents=True)
        if words:
            room.hand_in(student, right="1" if words == "right" else "", words=words)
    room.grade()
    found = rows(room)
    assert [(row["student"], row["task"]) for row in found] == [(student, task.id) for student in STATUSES for task in TASKS]
    assert [(row["status"], row["points"]) for row in found[:: len(TASKS)]] == [tuple(expected) for _, *expected in STATUSES.values()]
    assert {row["assignment"] for row in found} == {"softmax"}


def test_the_summary_has_one_row_for_each_student(room):
    room.hand_in("bea", right=FULL)
    room.hand_in("adam", "03_scaling.ipynb", "scaling")
    room.grade()
    adam, bea = rows(room, "summary.csv")
    most = MOST["softmax"] + MOST["scaling"]
    assert adam["student"] == "adam"
    head = "student,points,max_points,percent,remarks,softmax points,softmax max_points,scaling points,scaling max_points"
    assert ",".join(bea) == head
    share = f"{100 * MOST['softmax'] / most:.1f}"
    assert (
        ",".join(bea.values()) == f"bea,{MOST['softmax']},{most},{share},1 missing,{MOST['softmax']},{MOST['softmax']},0,{MOST['scaling']}"
    )
    assert percent(0, 0) == 0


def test_of_two_notebooks_on_a_chapter_the_better_counts_and_the_other_says_so(room):
    room.hand_in("bea", right="1")
    room.hand_in("bea", "02_softmax-Copy1.ipynb", right=FULL)
    marked = room.grade().marked
    assert [(each.notebook, each.status) for each in marked] == [("02_softmax-Copy1.ipynb", "graded"), ("02_softmax.ipynb", "duplicate")]
    assert len(rows(room)) == len(TASKS) + 1
    (diagnosis,) = diagnoses(room, "duplicate")
    assert diagnosis.startswith(
        f"02_softmax.ipynb: 02_softmax-Copy1.ipynb counts for chapter 2; this one has 3 of {MOST['softmax']} points"
    )


def test_a_chapter_counts_once_in_whatever_folders_its_notebooks_lie(room):
    for folder, right in (("", "1"), ("Old/", FULL), ("backup/", FULL)):
        room.hand_in("ada", f"{folder}02_softmax.ipynb", right=right)
    assert [(each.place, each.status) for each in room.grade().marked] == [
        ("ada/02_softmax.ipynb", "duplicate"),
        ("ada/Old/02_softmax.ipynb", "graded"),
        ("ada/backup/02_softmax.ipynb", "duplicate"),
    ]
    (row,) = rows(room, "summary.csv")
    assert (row["points"], row["max_points"], row["remarks"]) == (str(MOST["softmax"]), str(MOST["softmax"]), "2 duplicate")
    assert all("Old/02_softmax.ipynb counts for chapter 2" in text for text in diagnoses(room, "duplicate"))


def test_a_chapter_has_one_column_whatever_its_folders_are_called(room):
    for student, folder in (("ada", "week3/"), ("bea", "week3/"), ("bob", ""), ("cy", "Week 3/")):
        room.hand_in(student, f"{folder}02_softmax.ipynb", right=FULL)
    room.hand_in("ada", "week3/03_scaling.ipynb", "scaling")
    room.grade()
    found = rows(room, "summary.csv")
    assert [name for name in found[0] if name.endswith(" points")] == ["week3 points"]
    assert [row["week3 points"] for row in found] == [str(MOST["softmax"])] * 4
    assert {row["week3 max_points"] for row in found} == {found[0]["max_points"]}


def test_late_is_said_and_costs_nothing(room):
    for student, when in (("early", "21 01:58:00"), ("late", "21 01:59:00"), ("later", "23 02:00:00"), ("on time", "20 23:58:30")):
        path = room.hand_in(student, "week 1/02_softmax.ipynb", right="1")
        (path.parent / "timestamp.txt").write_text(f"2026-11-{when} UTC")
    done = room.grade(due=parse_time("2026-11-20 23:58:30 UTC"))
    said = "02_softmax.ipynb: handed in {} after it was due, by its timestamp.txt"
    assert diagnoses(room, "late") == [said.format(text) for text in ("1 h 59 min", "2 h", "2 d 2 h 1 min")]
    assert {each.points for each in done.marked} == {3}
    assert [row["remarks"] for row in rows(room, "summary.csv")] == ["1 late"] * 3 + [""]


def test_a_due_time_without_times_of_handing_in_is_said_and_so_is_whose_word_a_time_is(room):
    room.with_students(7)
    known = room.hand_in("zoe", "week 1/02_softmax.ipynb")
    (known.parent / "timestamp.txt").write_text("2026-11-20 10:00:00 UTC")
    done = room.grade("with", due=parse_time("2026-11-20 23:58:30 UTC"))
    places = ", ".join(f"s0{number}/02_softmax.ipynb" for number in range(5))
    assert done.found.notes == (
        f"no timestamp.txt says when 7 of 8 notebooks came, so none of these can be marked as late: {places} and 2 more",
        "when 1 of 8 notebooks came is what timestamp.txt beside them says, which is written in the student's own account",
    )
    students = json.loads((room / "with" / "report.json").read_text())["students"]
    assert [each["notebooks"][0]["handed_in"] for each in students] == [
        *[None] * 7,
        {"time": "2026-11-20T10:00:00+00:00", "from": "timestamp.txt"},
    ]
    assert room.grade("without").found.notes == ()


def test_of_too_many_notebooks_on_one_chapter_the_first_are_graded_and_each_other_has_a_row_that_says_so(room):
    for number in range(4):
        room.hand_in("eve", f"{number} softmax.ipynb", right="1" if number == 1 else "")
    done = room.grade(limits=("copies=2",))
    assert [(each.notebook, each.status, each.points) for each in done.marked] == [
        ("0 softmax.ipynb", "duplicate", 0),
        ("1 softmax.ipynb", "graded", 3),
        ("2 softmax.ipynb", "duplicate", 0),
        ("3 softmax.ipynb", "duplicate", 0),
    ]
    assert [text.partition("points; ")[2] for text in diagnoses(room, "duplicate")] == [
        "",
        *[f"{number} softmax.ipynb is one of 4 notebooks on chapter 2, of which the first 2 by name are graded" for number in (2, 3)],
    ]


def test_a_file_that_cannot_be_graded_gets_no_points_and_the_reason(room):
    notebook = room.hand_in("bea", right="1")
    (room / "in" / "adam").mkdir()
    (room / "in" / "adam" / "02_softmax.ipynb").symlink_to(notebook)
    room.hand_in("cy", words="unreadable the file is damaged")
    assert [(each.status, each.sandbox) for each in room.grade().marked] == [("not judged", ""), ("graded", "full"), ("not judged", "")]
    for student, why in (("adam", " is a symbolic link: hand in the notebook itself"), ("cy", ": the file is damaged")):
        *tasks, last = (row for row in rows(room) if row["student"] == student)
        assert {(row["points"], row["status"]) for row in tasks} == {("0", "not judged")}
        named = f"02_softmax.ipynb{why}" if student == "adam" else "the file is damaged"
        assert [row["diagnosis"] for row in tasks] == [f"not judged: {named}"] * len(TASKS)
        assert (last["status"], last["diagnosis"]) == ("not judged", f"02_softmax.ipynb{why}")


def test_only_chapters_asked_for_count(room):
    room.hand_in("bea")
    room.hand_in("bea", "03_scaling.ipynb", "scaling")
    marked = room.grade(lessons=("softmax", "attention")).marked
    assert [(each.lesson, each.status) for each in marked] == [
        ("softmax", "graded"),
        ("scaling", "not asked for"),
        ("attention", "missing"),
    ]
    assert sum(each.max_points for each in marked if each.counts) == MOST["softmax"] + MOST["attention"]


def test_an_assignment_is_missing_under_the_name_the_class_uses(room):
    for student in ("adam", "bea", "cleo"):
        room.hand_in(student, f"{'week 1' if student != 'cleo' else 'weak 1'}/02_softmax.ipynb")
    (room / "in" / "zoe").mkdir()
    assert [each.assignment for each in room.grade().marked] == ["week 1", "week 1", "weak 1", "week 1"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", '=HYPERLINK("http://x","y")'])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(text):
    assert cell(text) == "'" + text


def test_hostile_names_and_words_stay_text_in_the_tables(room):
    room.hand_in("=cmd|' calc'!A0", words='say @SUM(1),"x"')
    room.grade()
    assert (rows(room)[0]["student"], rows(room)[0]["diagnosis"]) == ("'=cmd|' calc'!A0", '\'@SUM(1),"x"')
    assert rows(room, "summary.csv")[0]["student"].startswith("'=")
