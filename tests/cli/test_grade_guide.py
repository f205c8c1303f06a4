"""A made-up class of six, from the platform and back, by the commands and tables of the teachers' guide alone."""

import re
import shlex
import shutil

import pytest

from attn_course.classroom.desk import Papers, read_desk
from attn_course.tasks import all_tasks
from tests.classroom import platforms

MOST = sum(task.points for task in all_tasks("softmax"))


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
    assert ("1 missing, 1 not judged, 1 late" if platform == "canvas" else "1 missing, 1 late") in " ".join(
        said.out.split()
    )  # an apology is no notebook
    out = words[words.index("--out") + 1]
    assert f"`{out}/{platform}.csv`" in guide
    who, column = ("ID", platforms.CANVAS_COLUMN) if platform == "canvas" else ("Identifier", "Grade")
    rows = platforms.table(room / out / f"{platform}.csv")
    assert [row[who] for row in rows] == [row[who] for row in platforms.table(before)]
    after = {row[who]: row[column] for row in rows}
    points = {row["student"]: row["points"] for row in platforms.table(room / out / "summary.csv")}
    for student, *_, canvas, moodle in platforms.SIX:
        mark = after[canvas if platform == "canvas" else f"Participant {moodle}"]
        assert mark == "" if student == "fay" else float(mark) == round(100 * float(points[student]) / MOST, 2)
    assert sum(map(int, points.values())) > 0


def test_the_tables_that_the_guide_shows_are_read_as_it_says(guide):
    roster, points, decisions = re.findall(r"```csv\n(.*?)```", guide, flags=re.DOTALL)
    desk = read_desk(Papers({"roster": ("r", roster), "points": ("p", points), "overrides": ("o", decisions)}))
    assert [student.id for student in desk.roster.students] == ["ada", "bo"]
    assert desk.worth == {"stable-softmax": 5, all_tasks("softmax")[2].id: 0}
    found = desk.decisions(["ada", "bo"], {task.id: task.points for task in all_tasks("softmax")})
    assert [(each.student, each.task, each.lesson) for each in found] == [
        ("ada", "stable-softmax", "softmax"),
        ("bo", "", "softmax"),
        ("bo", "", ""),
    ]
