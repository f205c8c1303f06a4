"""The real nbgrader: it generates, validates and autogrades our notebooks, and takes our marks into its gradebook."""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import nbformat
import pytest

from attn_course.authoring.nbgrader_source import prepare
from attn_course.tasks import all_tasks

ROOT = Path(__file__).parents[2]
NAME = "02_softmax"


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of the environment that `make test` made for nbgrader."""
    found = Path(os.environ.get("NBGRADER_PYTHON", ROOT / ".venv" / "nbgrader" / "bin" / "python"))
    if not found.exists():
        reason = f"no nbgrader environment at {found}: make test makes it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def run(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "PYTEST"))}
    path = f"{python.parent}{os.pathsep}{environment['PATH']}"  # nbgrader calls alembic by name
    environment |= {"PYTHONPATH": str(ROOT), "HOME": str(cwd), "PYTHONWARNINGS": "ignore", "PATH": path}
    return subprocess.run([str(python), "-m", *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def course(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder of nbgrader with our chapter, its assignment generated."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "nbgrader_config.py").write_text('c.CourseDirectory.course_id = "attention"\n', encoding="utf-8")
    prepare(ROOT, folder, ["2"])
    ran = run(python, "nbgrader", "generate_assignment", NAME, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def cells(path: Path) -> dict[str, str]:
    return {cell["id"]: cell["source"] for cell in nbformat.read(path, as_version=4).cells}


def scores(gradebook: Path) -> dict[str, dict[str, float]]:
    """What nbgrader counts for each student and cell: the manual score if there is one, else the automatic one."""
    query = """
        select submitted_assignment.student_id, base_cell.name, coalesce(grade.manual_score, grade.auto_score)
        from grade join base_cell on base_cell.id = grade.cell_id
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"""
    found: dict[str, dict[str, float]] = {}
    with closing(sqlite3.connect(gradebook)) as database:
        for student, cell, score in database.execute(query):
            found.setdefault(student, {})[cell] = score
    return found


def test_what_nbgrader_generates_holds_every_cell_of_our_exercise_and_no_solution(course):
    generated, ours = cells(course / "release" / NAME / f"{NAME}.ipynb"), cells(ROOT / "exercises" / f"{NAME}.ipynb")
    assert generated.keys() == ours.keys()
    repairs = {task.slug for task in all_tasks(2) if task.kind == "repair"}
    answers = {task.slug for task in all_tasks(2)}
    for name, text in ours.items():
        if name not in answers:
            assert generated[name] == text
        elif name in repairs:
            assert generated[name].startswith(text)
        assert "BEGIN SOLUTION" not in generated[name]
    assert all("NotImplementedError" in generated[name] for name in answers)


def test_nbgrader_validates_our_solutions(course, python):
    ran = run(python, "nbgrader", "validate", f"source/{NAME}/{NAME}.ipynb", cwd=course)
    assert ran.returncode == 0, ran.stderr
    assert "Success! Your notebook passes all the tests." in ran.stdout


def test_nbgrader_autogrades_our_handed_out_exercise_and_our_solution(course, python):
    for student, folder in (("right", "solutions"), ("empty", "exercises")):
        place = course / "submitted" / student / NAME
        place.mkdir(parents=True)
        shutil.copyfile(ROOT / folder / f"{NAME}.ipynb", place / f"{NAME}.ipynb")
    ran = run(python, "nbgrader", "autograde", NAME, cwd=course)
    assert ran.returncode == 0, ran.stderr
    found = scores(course / "gradebook.db")
    most = {f"{task.slug}-check": float(task.points) for task in all_tasks(2)}
    assert found["right"] == most
    assert found["empty"] == dict.fromkeys(most, 0.0)


def report_of(points: dict[str, int], assignment: str = NAME) -> dict:
    tasks = [
        {"task": task.id, "points": points.get(task.id, 0), "max_points": task.points, "passed": task.id in points}
        | {"message": f"{task.entry} is not right", "hint": None if task.id == "2.1" else "think"}
        for task in all_tasks(2)
    ]
    notebook = {"assignment": assignment, "chapter": 2, "counts": True, "status": "graded", "tasks": tasks}
    return {"report_version": 1, "students": [{"student": "zoë", "notebooks": [notebook]}]}


@pytest.mark.parametrize("known", [True, False])
def test_our_marks_stand_in_its_gradebook(course, python, tmp_path, known):
    gradebook = tmp_path / "gradebook.db"
    if known:
        shutil.copyfile(course / "gradebook.db", gradebook)
    (tmp_path / "report.json").write_text(json.dumps(report_of({"2.1": 3, "2.4": 2})), encoding="utf-8")
    for _ in range(2):  # a second export replaces the first
        ran = run(python, "attn_course.grading.nbgrader_marks", str(tmp_path), str(gradebook), cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (0, f"9 marks in {gradebook}\n"), ran.stderr
    found = scores(gradebook)["zoë"]
    assert {cell: score for cell, score in found.items() if score} == {"task-2-1-check": 3.0, "task-2-4-check": 2.0}
    assert len(found) == 9
    with closing(sqlite3.connect(gradebook)) as database:
        comments = dict(database.execute("select base_cell.name, manual_comment from comment join base_cell on base_cell.id = cell_id"))
    assert comments["task-2-1"] is None
    assert comments["task-2-2"].endswith("is not right  think")


def test_nbgraders_own_export_lists_our_marks(course, python, tmp_path):
    folder = shutil.copytree(course, tmp_path / "course")
    (tmp_path / "report.json").write_text(json.dumps(report_of({"2.1": 3})), encoding="utf-8")
    run(python, "attn_course.grading.nbgrader_marks", str(tmp_path), str(folder / "gradebook.db"), cwd=tmp_path)
    ran = run(python, "nbgrader", "export", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    (line,) = [line for line in (folder / "grades.csv").read_text(encoding="utf-8").splitlines() if "zoë" in line]
    assert ",3.0," in line


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, "No such file"),
        ("{", "is not the report.json"),
        ('{"report_version": 9}', "wanted report_version 1, got 9"),
        ("[]", "got None"),
    ],
)
def test_a_bad_report_is_one_line(python, tmp_path, content, wanted):
    if content is not None:
        (tmp_path / "report.json").write_text(content, encoding="utf-8")
    ran = run(python, "attn_course.grading.nbgrader_marks", str(tmp_path), str(tmp_path / "x.db"), cwd=tmp_path)
    assert ran.returncode == 2
    assert wanted in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / "x.db").exists()


def test_a_file_that_is_no_gradebook_is_left_alone(python, tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(report_of({})), encoding="utf-8")
    (tmp_path / "x.db").write_text("my thesis, not a database", encoding="utf-8")
    ran = run(python, "attn_course.grading.nbgrader_marks", str(tmp_path), str(tmp_path / "x.db"), cwd=tmp_path)
    assert ran.returncode == 2
    assert "cannot be used as a gradebook" in ran.stderr
    assert (tmp_path / "x.db").read_text(encoding="utf-8") == "my thesis, not a database"
