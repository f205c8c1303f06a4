"""`attn-course grade` at a teacher's desk: single tasks, other points, decisions, one student again, pages without names; the guide."""

import html
import json
import re
import shlex
import shutil

import pytest

from attn_course.classroom.desk import Papers, read_desk
from attn_course.tasks import all_tasks
from tests.classroom import platforms
from tests.cli.conftest import refused, tree

TASKS = all_tasks("softmax")
FIRST, SECOND = TASKS[0], TASKS[1]


def rows(room, name="grades.csv"):
    return platforms.table(room / "out" / name)


def summary(room):
    return {row["student"]: row for row in rows(room, "summary.csv")}


def test_only_the_tasks_that_are_named_are_graded_and_count(attn_course, room):
    room.hand_in("ada", right="1 2 3")
    room.hand_in("bo", "03_scaling.ipynb", "scaling", right="1")
    assert attn_course("grade", "in", "--out", "out", "--tasks", f"{SECOND.number}, {FIRST.id}").code == 0
    assert [(row["student"], row["task"]) for row in rows(room) if row["task"]] == [
        (s, t.id) for s in ("ada", "bo") for t in (FIRST, SECOND)
    ]
    assert summary(room)["ada"]["max_points"] == str(FIRST.points + SECOND.points)
    assert attn_course("grade", "in", "--out", "out", "--resume").code == 0
    said = attn_course("grade", "in", "--out", "out", "--resume", "--tasks", FIRST.id)
    assert (said.code, "begun with --tasks 2.1, 2.2, and this run has 2.1" in said.err) == (2, True)


def test_tasks_may_have_other_points(attn_course, room):
    room.hand_in("ada", right="1 2")
    (room / "points.csv").write_text(f"task,points\n{FIRST.id},7.5\n{SECOND.number},0\n")
    assert attn_course("grade", "in", "--out", "out", "--points", "points.csv").code == 0
    assert [(row["points"], row["max_points"]) for row in rows(room)[:3]] == [("7.5", "7.5"), ("0", "0"), ("0", str(TASKS[2].points))]
    (room / "points.csv").write_text(f"task,points\n{FIRST.id},5\n")
    assert attn_course("grade", "in", "--out", "out", "--resume", "--points", "points.csv").code == 0
    assert summary(room)["ada"]["points"] == str(5 + SECOND.points)


def test_decisions_hold_are_shown_and_survive_a_resumed_run(attn_course, room):
    platforms.roster(room / "roster.csv")
    for student in ("ada", "bo"):
        room.hand_in(student, f"hw/{student}_softmax.ipynb", right="2")
        (room / "in" / student / "hw" / "timestamp.txt").write_text("2026-11-21 12:00 UTC")
    (room / "decisions.csv").write_text(
        "student,what,points,comment,due\n"
        f"ada,{FIRST.id},{FIRST.points - 1},right but for the axis,\n"
        "bo,,,ill,2026-11-22\n"
        "fay,ex_02_softmax.ipynb,9,oral exam,\n"
    )
    command = ["grade", "in", "--out", "out", "--due", "2026-11-20", "--roster", "roster.csv"]
    assert attn_course(*command, "--overrides", "decisions.csv").code == 0
    for _ in range(2):
        (row,) = (row for row in rows(room) if (row["student"], row["task"]) == ("ada", FIRST.id))
        assert (row["points"], row["status"]) == (str(FIRST.points - 1), "decided")
        text = f"the teacher's decision: {FIRST.points - 1} in place of 0 points; right but for the axis"
        assert row["diagnosis"].startswith(text)
        assert "right but for the axis" in (room / "out" / "feedback" / "ada" / "hw" / "ada_softmax.html").read_text()
        found = summary(room)
        wanted = [str(FIRST.points - 1 + SECOND.points), str(SECOND.points), "9"]
        assert [found[student]["points"] for student in ("ada", "bo", "fay")] == wanted
        assert ["late" in found[student]["remarks"] for student in ("ada", "bo")] == [True, False]
        page = " ".join((room / "out" / "class.html").read_text().split())
        assert "9 in place of 0 points; oral exam" in page
        assert "due 2026-11-22 23:59 UTC; ill" in page
        report = json.loads((room / "out" / "report.json").read_text())
        assert next(each for each in report["students"] if each["student"] == "fay")["points"] == 9
        (room / "decisions.csv").unlink(missing_ok=True)
        assert attn_course("grade", "in", "--out", "out", "--resume").code == 0
    (room / "decisions.csv").write_text("student,what,points\n")
    assert attn_course("grade", "in", "--out", "out", "--resume", "--overrides", "decisions.csv").code == 0
    assert summary(room)["fay"]["points"] == "0"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("eve,2.1,1", "column 'student': wanted a student of this class; got 'eve'"),
        ("ada,2.1,99", f"column 'points': wanted 0 to {FIRST.points}, what there is to be had; got '99'"),
        ("ada,softmax,999", f"column 'points': wanted 0 to {sum(task.points for task in TASKS)}, what there is to be had; got '999'"),
        ("ada,3,1", "column 'what': wanted a chapter that is asked for (2) or one of its tasks; got '3'"),
        ("ada,2.1,1\nada,stable-softmax,2", "line 3, column 'what': wanted one decision on the same, not a second after line 2"),
    ],
)
def test_a_decision_that_cannot_hold_is_refused_before_anything_is_graded(attn_course, room, line, complaint):
    room.hand_in("ada")
    (room / "decisions.csv").write_text(f"student,what,points\n{line}\n")
    before = tree(room.folder)
    (said,) = refused(attn_course("grade", "in", "--out", "out", "--overrides", "decisions.csv"), room.folder, before)
    assert complaint in said


def test_one_student_is_graded_again_and_nobody_else(attn_course, room):
    for student in ("ada", "bo"):
        room.hand_in(student, right="1")
    assert attn_course("grade", "in", "--out", "out").code == 0
    kept = {path.name: path.stat().st_mtime_ns for path in (room / "out" / "results").iterdir()}
    for student in ("ada", "bo", "new"):
        room.hand_in(student, right="1 2")
    assert attn_course("grade", "in", "--out", "out", "--resume", "--student", "ada").code == 0
    found = summary(room)
    assert [found[s]["points"] for s in ("ada", "bo", "new")] == [str(FIRST.points + SECOND.points), str(FIRST.points), "0"]
    assert found["new"]["remarks"] == "1 not judged"
    now = {path.name: path.stat().st_mtime_ns for path in (room / "out" / "results").iterdir()}
    assert (now.keys() == kept.keys(), sum(now[name] != kept[name] for name in kept)) == (True, 1)
    assert attn_course("grade", "in", "--out", "out", "--resume").code == 0
    assert [summary(room)[s]["points"] for s in ("bo", "new")] == [str(FIRST.points + SECOND.points)] * 2
    (said,) = refused(attn_course("grade", "in", "--out", "out", "--resume", "--student", "eve"), room.folder, tree(room.folder))
    assert "--student: wanted a student of this class; got eve" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--student", "ada"], "--student grades one student of a run that is there again: add --resume"),
        (["--student", "ada", "--resume"], "holds no class run, in which a student could be graded again; leave --student out"),
        (["--tasks", "2.99"], "--tasks: wanted tasks by id or number, such as stable-softmax,2.3; got 2.99"),
        (["--tasks", ","], "--tasks: wanted tasks by id or number, such as stable-softmax,2.3; got none"),
        (["--tasks", "2.1", "--chapters", "3"], "--tasks: names tasks of chapter 2; --chapters asks for 3"),
        (["--roster", "missing.csv"], "missing.csv: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_graded_so_is_one_clear_line(attn_course, room, words, complaint):
    room.hand_in("ada")
    (said,) = refused(attn_course("grade", "in", "--out", "out", *words), room.folder, tree(room.folder))
    assert complaint in said


def test_anonymous_pages_name_nobody_and_the_summary_says_who_is_who(attn_course, room):
    platforms.canvas_zip(room / "submissions.zip", room / "workshop")
    platforms.roster(room / "roster.csv")
    (room / "decisions.csv").write_text("student,what,points,comment\nbo,2,5,Bo Anne-Marie O'Neil asked\n")
    platforms.canvas_gradebook(room / "book.csv")
    (room / "book.csv").write_text((room / "book.csv").read_text().replace("A,7.50,,", "A,7.50,EX,"))  # Bo's is a note then
    command = ["grade", "submissions.zip", "--out", "out", "--roster", "roster.csv", "--overrides", "decisions.csv", "--anonymous"]
    assert attn_course(*command, "--gradebook", "book.csv", "--assignment", "Week 3").code == 0
    for _ in range(2):
        pages = [*(room / "out" / "feedback").rglob("*.html"), room / "out" / "class.html"]
        texts = [html.unescape(path.read_text()) + path.relative_to(room / "out").as_posix() for path in pages]
        for student, name, _, mail, *_ in platforms.SIX:
            ids = [f">{student}<", f"/{student}/", f" {student}<", f" {student},"]
            for word in (name, name.split()[-1], mail, platforms.canvas_names().get(student, mail), *ids):
                assert not any(word in text for text in texts), word
        aliases = {row["student"]: row["alias"] for row in rows(room, "summary.csv")}
        assert len({*aliases.values()}) == len(platforms.SIX)
        folders = {path.parent.name for path in pages if path.name != "class.html"}
        assert folders == {aliases[student] for student in (*platforms.RIGHT, "fay")}  # hers says that an apology is no notebook
        assert attn_course("grade", "submissions.zip", "--out", "out", "--resume").code == 0


@pytest.fixture
def guide(root):
    return (root / "docs" / "teachers-guide.md").read_text(encoding="utf-8")


def command_with(guide, word):
    """The one command of the guide that names a file."""
    (line,) = [line for line in re.findall(r"^attn-course grade .*$", guide, flags=re.MULTILINE) if word in shlex.split(line)]
    return shlex.split(line)[1:]


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
def test_a_class_goes_from_the_platform_and_back_by_the_guide_alone(attn_course, room, guide, platform):
    platforms.roster(room / "roster.csv")
    if platform == "canvas":
        platforms.canvas_zip(room / "submissions.zip", room / "workshop")
        before = platforms.canvas_gradebook(room / "canvas-export.csv")
        words = command_with(guide, "submissions.zip")
    else:
        platforms.moodle_folder(room / "download")
        shutil.make_archive(str(room / "moodle"), "zip", room / "download")
        before = platforms.moodle_worksheet(room / "worksheet.csv")
        words = command_with(guide, "moodle.zip")
    said = attn_course(*words)
    assert (said.code, said.out.count("6 students, 5 notebooks graded on chapter 2")) == (0, 1)
    not_judged = "1 not judged, " if platform == "canvas" else ""  # an apology is no notebook
    assert f"1 missing, {not_judged}1 late" in " ".join(said.out.split())
    out = words[words.index("--out") + 1]
    assert f"`{out}/{platform}.csv`" in guide
    who, column = ("ID", platforms.CANVAS_COLUMN) if platform == "canvas" else ("Identifier", "Grade")
    rows = platforms.table(room / out / f"{platform}.csv")
    assert [row[who] for row in rows] == [row[who] for row in platforms.table(before)]
    after = {row[who]: row[column] for row in rows}
    points = {row["student"]: row["points"] for row in platforms.table(room / out / "summary.csv")}
    for student, *_, canvas, moodle in platforms.SIX:
        mark = after[canvas if platform == "canvas" else f"Participant {moodle}"]
        share = 100 * float(points[student]) / sum(task.points for task in TASKS)
        assert mark == "" if student == "fay" else float(mark) == round(share, 2)
    assert sum(map(int, points.values())) > 0


def test_the_tables_that_the_guide_shows_are_read_as_it_says(guide):
    roster, points, decisions = re.findall(r"```csv\n(.*?)```", guide, flags=re.DOTALL)
    desk = read_desk(Papers({"roster": ("r", roster), "points": ("p", points), "overrides": ("o", decisions)}))
    assert [student.id for student in desk.roster.students] == ["ada", "bo"]
    assert desk.worth == {"stable-softmax": 5, TASKS[2].id: 0}
    found = desk.decisions(["ada", "bo"], {task.id: task.points for task in TASKS})
    assert [(each.student, each.task, each.lesson) for each in found] == [
        ("ada", "stable-softmax", "softmax"),
        ("bo", "", "softmax"),
        ("bo", "", ""),
    ]
