"""The whole command as root, as an ordinary user and in containers: the same points for the honest and for the hostile."""

import csv
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from attn_course.classroom.sandbox import probe
from attn_course.classroom.sandbox.layers import LANDLOCK
from attn_course.tasks import all_tasks
from tests.classroom import notebooks
from tests.classroom.hostile.attacks import ATTACKS, ENDLESS
from tests.classroom.sandbox_child import CONTAINERS, USERS, command_as, command_in

SEED, ATTACKED = "5", "softmax-jacobian"
PLACES = [*USERS, *CONTAINERS]
QUICK = sorted(set(ATTACKS) - ENDLESS)


@pytest.fixture(scope="module")
def graded(root):
    """Takes a place; returns the rows of grades.csv, the report, and what the command printed there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o777)
        solved = notebooks.load(root, "solutions", "softmax")
        attacks = {
            attack.replace(" ", "-"): notebooks.answered(root, "softmax", {ATTACKED: ATTACKS[attack][0]}, folder="solutions")
            for attack in QUICK
        }
        for student, book in {"honest": solved, **attacks}.items():
            (folder / "in" / student).mkdir(parents=True)
            notebooks.save(book, folder / "in" / student / "02_softmax.ipynb")

        @cache
        def grade_in(place):
            start = command_in(place) if place in CONTAINERS else command_as(place)  # skips where it cannot be had
            return grade(start, root, folder, folder / place.replace(" ", "-"))

        yield grade_in


def grade(start, root, folder, out):
    options = f"--seed {SEED} --jobs 1 --limit memory=256".split()
    words = [sys.executable, "-m", "attn_course.cli", "grade", folder / "in", "--out", out, *options]
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run([*start, *map(str, words)], env=variables, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return (out / "grades.csv").read_text(), json.loads((out / "report.json").read_text()), done.stdout + done.stderr


@pytest.mark.parametrize("place", PLACES)
def test_every_place_gives_the_same_grades_and_an_attack_nothing_where_it_stands(graded, place):
    grades, report, printed = graded(place)
    if place == "nobody":
        assert grades == graded("this user")[0]
    here, there = ([row for row in csv.DictReader(text.splitlines()) if row["task"]] for text in (graded("this user")[0], grades))
    for ours, theirs in zip(here, there, strict=True):
        if ours["student"] != "kills-itself":  # number 1 of a namespace survives it
            assert [ours[name] for name in ("student", "task", "points")] == [theirs[name] for name in ("student", "task", "points")]
    most = {task.id: task.points for task in all_tasks("softmax")}
    points = {student["student"]: student["points"] for student in report["students"]}
    assert points.pop("honest") == sum(most.values())
    assert set(points) == {attack.replace(" ", "-") for attack in QUICK}
    judged_before = most["stable-softmax"] + most["entropy-by-hand"] + most["log-softmax-derivative"]
    assert all(judged_before <= found <= sum(most.values()) - most[ATTACKED] for found in points.values())
    assert report["sandbox"].startswith("sandbox: ")
    assert report["sandbox"] in " ".join(printed.split())
    assert report["sandbox_levels"] == {report["sandbox"].removeprefix("sandbox: ").partition(" (")[0]: len(QUICK) + 1}
    if place in CONTAINERS and LANDLOCK in probe().holding:
        assert report["sandbox"].startswith(f"sandbox: {CONTAINERS[place]} ("), "or what was taken away was not"
