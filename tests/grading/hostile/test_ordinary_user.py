"""The whole command as root and as an ordinary user: the same grades for the honest and for the hostile."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from attn_course.tasks import all_tasks
from tests.grading import notebooks
from tests.grading.hostile.attacks import ATTACKS
from tests.grading.sandbox_child import USERS, command_as

SEED, ATTACKED = "5", "2.4"
QUICK = sorted(set(ATTACKS) - {"loops", "loops and catches everything", "sleeps"})  # these last as long as a cell may


@pytest.fixture(scope="module")
def graded(root):
    """By user: the rows of grades.csv, the report, and what the command printed."""
    for user in USERS:
        command_as(user)  # skips where it cannot be had
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        place.chmod(0o777)
        solved = notebooks.load(root, "solutions", 2)
        attacks = {
            attack.replace(" ", "-"): notebooks.answered(root, 2, {ATTACKED: ATTACKS[attack][0]}, folder="solutions") for attack in QUICK
        }
        for student, book in {"honest": solved, **attacks}.items():
            (place / "in" / student).mkdir(parents=True)
            notebooks.save(book, place / "in" / student / "02_softmax.ipynb")
        yield {user: grade_as(user, root, place) for user in USERS}


def grade_as(user, root, place):
    out = place / user.replace(" ", "-")
    words = [
        sys.executable,
        "-c",
        "from attn_course.cli import main; main()",
        "grade",
        place / "in",
        "--out",
        out,
        "--seed",
        SEED,
        "--jobs",
        "1",
    ]
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run([*command_as(user), *map(str, words)], env=variables, cwd=place, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return (out / "grades.csv").read_text(), json.loads((out / "report.json").read_text()), done.stdout + done.stderr


def test_the_grades_are_the_same(graded):
    (first, *_), (second, *_) = graded.values()
    assert first == second


@pytest.mark.parametrize("user", USERS)
def test_each_attack_gets_nothing_where_it_stands_and_the_honest_get_all(graded, user):
    _, report, _ = graded[user]
    most = {task.id: task.points for task in all_tasks(2)}
    points = {student["student"]: student["points"] for student in report["students"]}
    assert points.pop("honest") == sum(most.values())
    assert set(points) == {attack.replace(" ", "-") for attack in QUICK}
    assert all(found <= sum(most.values()) - most[ATTACKED] for found in points.values())
    assert all(found >= most["2.1"] + most["2.2"] + most["2.3"] for found in points.values()), "what was judged before stays"


@pytest.mark.parametrize("user", USERS)
def test_the_level_of_the_sandbox_is_printed_and_stands_in_the_report(graded, user):
    _, report, printed = graded[user]
    assert report["sandbox"] in " ".join(printed.split())
