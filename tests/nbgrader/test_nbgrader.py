"""The real nbgrader: it generates, validates and autogrades our notebooks, and takes our marks into its gradebook."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import nbformat
import pytest

from attn_course.authoring.nbgrader_source import prepare
from attn_course.tasks import all_tasks
from attn_course.tasks.registry import declared_tasks
from tests.nbgrader.interpreter import Interpreter

ROOT = Path(__file__).parents[2]
NAME = "softmax"
MARKS = "attn_course.classroom.nbgrader_marks"
EXPORT = f"import sys; from {MARKS} import main; sys.exit(main())"


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


def environment_of(python: Path, home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "PYTEST"))}
    path = f"{python.parent}{os.pathsep}{kept['PATH']}"  # nbgrader calls alembic by name
    return kept | {"PYTHONPATH": str(ROOT), "HOME": str(home), "PYTHONWARNINGS": "ignore", "PATH": path}


def run(python: Path, *words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a module as a command; 300 s are many times what the slowest takes."""
    variables = environment_of(python, cwd) | environment
    return subprocess.run([str(python), "-m", *words], cwd=cwd, env=variables, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def interpreter(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpreter]:
    """One process of nbgrader's environment for all exports; the command itself runs where a test says so."""
    command = [str(python), str(Path(__file__).with_name("interpreter.py"))]
    environment = environment_of(python, tmp_path_factory.mktemp("home"))
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Interpreter(process)
        process.stdin.close()


@pytest.fixture(scope="module")
def course(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder of nbgrader with our chapter, its assignment generated."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "nbgrader_config.py").write_text('c.CourseDirectory.course_id = "attention"\n', encoding="utf-8")
    prepare(ROOT, folder, ["softmax"])
    ran = run(python, "nbgrader", "generate_assignment", NAME, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def built(folder: str) -> Path:
    """Our built notebook."""
    (path,) = (ROOT / folder).glob(f"*_{NAME}.ipynb")
    return path


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
    for student, cell, score in selected(gradebook, query):
        found.setdefault(student, {})[cell] = score
    return found


def selected(gradebook: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(gradebook)) as database:
        return database.execute(query).fetchall()


def test_what_nbgrader_generates_holds_every_cell_of_our_exercise_and_no_solution(course):
    generated, ours = cells(course / "release" / NAME / f"{NAME}.ipynb"), cells(built("exercises"))
    assert generated.keys() == ours.keys()
    repairs = {task.id for task in all_tasks("softmax") if task.kind == "repair"}
    answers = {task.id for task in all_tasks("softmax")}
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
    asked_in_the_lesson = {task.id for task in declared_tasks("softmax") if task.your_turn}  # their solutions stand in the same notebook
    for student, folder in (("right", "solutions"), ("empty", "exercises")):
        place = course / "submitted" / student / NAME
        place.mkdir(parents=True)
        notebook = json.loads(built(folder).read_text(encoding="utf-8"))
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"].removesuffix("-check") not in asked_in_the_lesson]
        (place / f"{NAME}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    ran = run(python, "nbgrader", "autograde", NAME, cwd=course)
    assert ran.returncode == 0, ran.stderr
    found = scores(course / "gradebook.db")
    most = {f"{task.id}-check": float(task.points) for task in all_tasks("softmax")}
    assert found["right"] == most
    assert found["empty"] == dict.fromkeys(most, 0.0)


def notebook_of(lesson: str, points: dict[str, int], assignment: str, status: str = "graded") -> dict:
    tasks = [
        {"task": task.id, "points": points.get(task.id, 0), "max_points": task.points, "passed": task.id in points}
        | {"message": f"{task.entry} is not right", "hint": None if task.id == "stable-softmax" else "think"}
        for task in all_tasks(lesson)
    ]
    name = "" if status == "missing" else "my renamed.ipynb"
    return {"assignment": assignment, "notebook": name, "lesson": lesson, "counts": True, "status": status, "tasks": tasks}


def report_of(points: dict[str, int], assignment: str = NAME) -> dict:
    return {"report_version": 2, "students": [{"student": "zoë", "notebooks": [notebook_of("softmax", points, assignment)]}]}


def two_chapters(*, statuses: tuple[str, str] = ("graded", "graded")) -> dict:
    """Assignment week3 on lookup and softmax, from three students of whom the last handed in nothing."""
    students = {
        "ada": [notebook_of("lookup", {"kernel-regression": 2}, "week3"), notebook_of("softmax", {"stable-softmax": 3}, "week3")],
        "zoë": [notebook_of("lookup", {}, "week3", statuses[0]), notebook_of("softmax", {"softmax-jacobian": 2}, "week3", statuses[1])],
        "cy": [notebook_of("lookup", {}, "week3", "missing"), notebook_of("softmax", {}, "week3", "missing")],
    }
    return {"report_version": 2, "students": [{"student": name, "notebooks": notebooks} for name, notebooks in students.items()]}


def export(interpreter: Interpreter, report: dict, gradebook: Path) -> subprocess.CompletedProcess[str]:
    (gradebook.parent / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return interpreter.run(EXPORT, gradebook.parent, str(gradebook.parent), str(gradebook))


@pytest.fixture(scope="module")
def empty(interpreter: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook that nbgrader has just made: that alone takes longer than to fill it."""
    path = tmp_path_factory.mktemp("empty") / "gradebook.db"
    ran = export(interpreter, {"report_version": 2, "students": []}, path)
    assert ran.stdout == f"0 marks in {path}\n", ran.stderr
    return path


@pytest.fixture
def gradebook(empty: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copyfile(empty, tmp_path / "gradebook.db"))


def notebooks(gradebook: Path) -> dict[str, set[str]]:
    """The notebooks of assignment week3, each with its cells that carry points."""
    query = """
        select notebook.name, base_cell.name from base_cell join notebook on notebook.id = base_cell.notebook_id
        join assignment on assignment.id = notebook.assignment_id where assignment.name = 'week3' and base_cell.type = 'GradeCell'"""
    found: dict[str, set[str]] = {}
    for notebook, cell in selected(gradebook, query):
        found.setdefault(notebook, set()).add(cell)
    return found


@pytest.mark.parametrize("known", [True, False])
def test_our_marks_stand_in_its_gradebook(course, interpreter, gradebook, known):
    if known:
        shutil.copyfile(course / "gradebook.db", gradebook)
    for _ in range(2):  # a second export replaces the first
        ran = export(interpreter, report_of({"stable-softmax": 3, "softmax-jacobian": 2}), gradebook)
        assert (ran.returncode, ran.stdout) == (0, f"{len(all_tasks('softmax'))} marks in {gradebook}\n"), ran.stderr
    found = scores(gradebook)["zoë"]
    assert {cell: score for cell, score in found.items() if score} == {"stable-softmax-check": 3.0, "softmax-jacobian-check": 2.0}
    assert len(found) == len(all_tasks("softmax"))
    comments = dict(selected(gradebook, "select base_cell.name, manual_comment from comment join base_cell on base_cell.id = cell_id"))
    assert comments["stable-softmax"] is None
    assert comments["entropy-by-hand"].endswith("is not right  think")


def test_what_the_teacher_decided_on_a_chapter_is_extra_credit(interpreter, gradebook):
    """Also for somebody who handed in nothing; of a submission it goes when the decision goes."""
    report = two_chapters()
    decided = {"ada": report["students"][0]["notebooks"][1], "cy": report["students"][2]["notebooks"][1]}
    query = """
        select student_id, sum(coalesce(auto_score, 0) + coalesce(extra_credit, 0)) from grade
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id group by student_id"""
    for points in (1.5, None):
        for each in decided.values():
            each |= {"points": points if points is not None else sum(task["points"] for task in each["tasks"])}
        assert export(interpreter, report, gradebook).returncode == 0
        found = dict(selected(gradebook, query))
        assert (found["ada"], found["cy"]) == (2 + (points or 3), 1.5)


def test_nbgraders_own_export_lists_our_marks(course, interpreter, python, tmp_path):
    folder = shutil.copytree(course, tmp_path / "course")
    assert export(interpreter, report_of({"stable-softmax": 3}), folder / "gradebook.db").returncode == 0
    ran = run(python, "nbgrader", "export", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    (line,) = [line for line in (folder / "grades.csv").read_text(encoding="utf-8").splitlines() if "zoë" in line]
    assert ",3.0," in line


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, "No such file"),
        ("{", "is not the report.json"),
        ('{"report_version": 9}', "wanted report_version 2, got 9"),
        ("[]", "got None"),
    ],
)
def test_a_bad_report_is_one_line(interpreter, tmp_path, content, wanted):
    if content is not None:
        (tmp_path / "report.json").write_text(content, encoding="utf-8")
    ran = interpreter.run(EXPORT, tmp_path, str(tmp_path), str(tmp_path / "x.db"))
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert wanted in ran.stderr
    assert not (tmp_path / "x.db").exists()


def test_the_command_makes_a_gradebook_without_a_path_and_exports_two_chapters(python, tmp_path):
    gradebook = tmp_path / "marks? #2.db"
    (tmp_path / "report.json").write_text(json.dumps(two_chapters()), encoding="utf-8")
    bare = {"PATH": "/nowhere", "PYTHONWARNINGS": "default"}  # nbgrader's programs are found, and nothing warns
    ran = run(python, MARKS, str(tmp_path), str(gradebook), cwd=tmp_path, **bare)
    n_tasks = len(all_tasks("lookup")) + len(all_tasks("softmax"))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{2 * n_tasks} marks in {gradebook}\n", "")
    wanted = {"lookup": {f"{task.id}-check" for task in all_tasks("lookup")}}
    wanted |= {"softmax": {f"{task.id}-check" for task in all_tasks("softmax")}}
    assert notebooks(gradebook) == wanted
    found = scores(gradebook)
    assert found.keys() == {"ada", "zoë"}
    assert {cell: score for cell, score in found["ada"].items() if score} == {"kernel-regression-check": 2.0, "stable-softmax-check": 3.0}
    assert {cell: score for cell, score in found["zoë"].items() if score} == {"softmax-jacobian-check": 2.0}
    assert all(set(one.values()) <= {0.0, 2.0, 3.0} and len(one) == n_tasks for one in found.values())
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", gradebook.name}


def test_a_chapter_that_was_not_handed_in_is_zero_also_where_a_mark_stood(interpreter, gradebook):
    for statuses in (("graded", "graded"), ("graded", "missing")):
        report = two_chapters(statuses=statuses)
        if statuses[1] == "missing":
            report["students"][1]["notebooks"][1] = notebook_of("softmax", {}, "week3", "missing")
        assert export(interpreter, report, gradebook).returncode == 0
    assert set(scores(gradebook)["zoë"].values()) == {0.0}
    assert scores(gradebook)["ada"]["stable-softmax-check"] == 3.0


def test_a_chapter_that_comes_later_joins_the_submissions_that_are_there(interpreter, gradebook):
    first = two_chapters()
    for student in first["students"]:
        del student["notebooks"][0]
    assert export(interpreter, first, gradebook).returncode == 0
    assert notebooks(gradebook).keys() == {"softmax"}
    assert export(interpreter, two_chapters(), gradebook).returncode == 0
    assert notebooks(gradebook).keys() == {"lookup", "softmax"}
    assert scores(gradebook)["ada"]["kernel-regression-check"] == 2.0


def test_a_refused_export_leaves_the_gradebook_as_it_was(interpreter, gradebook, tmp_path):
    assert export(interpreter, two_chapters(), gradebook).returncode == 0
    before = gradebook.read_bytes()
    report = two_chapters()
    for student in report["students"]:
        student["notebooks"][0]["tasks"][1]["points"] = 1  # this chapter could be written, and stands first
        student["notebooks"][1]["tasks"].append(
            {"task": "softmax-of-the-moon", "points": 1, "max_points": 5, "passed": False, "message": "", "hint": None}
        )
    ran = export(interpreter, report, gradebook)
    assert ran.returncode == 2
    assert "notebook softmax of assignment week3 is in the gradebook with other tasks, and has submissions" in ran.stderr
    assert gradebook.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", gradebook.name}


def test_an_error_nobody_foresaw_leaves_no_gradebook(interpreter, tmp_path):
    report = two_chapters()
    del report["students"][1]["notebooks"][1]["tasks"][3]["points"]
    ran = export(interpreter, report, tmp_path / "gradebook.db")
    assert ran.returncode != 0
    assert "KeyError: 'points'" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


WITHOUT_ALEMBIC = f"""
import os, pathlib
from unittest import mock
from {MARKS} import MarksError, export_marks

with mock.patch("sysconfig.get_path", lambda name: "/nowhere"), mock.patch.dict(os.environ, PATH="/nowhere"):
    try:
        export_marks({{"students": []}}, pathlib.Path("x.db"))
    except MarksError as error:
        print(error)
"""


def test_without_alembic_it_is_one_sentence_and_no_file(interpreter, tmp_path):
    ran = interpreter.run(WITHOUT_ALEMBIC, tmp_path)
    assert ran.stdout.startswith("nbgrader cannot make a gradebook, for want of the program alembic that came with it"), ran.stderr
    assert len(ran.stdout.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("my thesis, not a database", "cannot be used as a gradebook"),
        ("create table recipes (name text)", "is a database of something else"),
    ],
)
def test_a_file_that_is_no_gradebook_is_left_alone(interpreter, tmp_path, what, complaint):
    if what.startswith("create"):
        with closing(sqlite3.connect(tmp_path / "x.db")) as database:
            database.execute(what)
            database.commit()
    else:
        (tmp_path / "x.db").write_text(what, encoding="utf-8")
    before = (tmp_path / "x.db").read_bytes()
    ran = export(interpreter, report_of({}), tmp_path / "x.db")
    assert ran.returncode == 2
    assert complaint in ran.stderr
    assert (tmp_path / "x.db").read_bytes() == before
