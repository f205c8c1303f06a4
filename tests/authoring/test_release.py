"""What a teacher hands out: whole, pristine, without solutions, and usable where it lies."""

import ast
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import nbformat
import pytest

from attn_course.authoring import AuthoringError
from attn_course.authoring.course import units
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.imports import ImportGraph
from attn_course.authoring.notebook import to_text
from attn_course.authoring.numbering import numbering
from attn_course.authoring.release import ENVIRONMENT, release, without_reasons
from attn_course.authoring.render import render
from attn_course.commands.course import is_course
from attn_course.language.getting import BESIDE_THE_COURSE, NAME
from attn_course.site import write_site
from attn_course.tasks import all_tasks, get_task, lessons
from attn_course.tasks.registry import declared_tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("class") / "handout"
    release(ROOT, out, ["2", "04"])
    return out


def test_it_holds_what_students_need_and_nothing_of_the_solutions(handout):
    asked = {"README.md", "LICENSE", "LICENSE-APACHE", "NOTICE", "pyproject.toml", "constraints.txt", "environment.yml"}
    assert {path.name for path in handout.iterdir()} == {*asked, "attn_course", "exercises", "notebooks"}
    for folder, start in (("exercises", "ex_"), ("notebooks", "")):
        assert {path.name for path in (handout / folder).iterdir()} == {f"{start}02_softmax.ipynb", f"{start}04_attention.ipynb"}
    for exercise in (handout / "exercises").iterdir():
        assert exercise.read_bytes() == (ROOT / "exercises" / exercise.name).read_bytes()
        assert not any(cell.get("outputs") for cell in nbformat.read(exercise, as_version=4).cells)
    assert not [*handout.rglob("*.pyc"), *handout.rglob("*.woff2")]


def test_the_site_is_not_built_of_what_students_have(monkeypatch, tmp_path):
    monkeypatch.setattr("attn_course.site.HERE", tmp_path)
    with pytest.raises(AuthoringError, match="built in a checkout of the course"):
        write_site(ROOT, tmp_path / "site")


def test_the_language_model_comes_along_where_the_package_looks_for_it(tmp_path):
    (tmp_path / NAME).write_bytes(b"numbers")
    release(ROOT, tmp_path / "out", ["2"], with_lessons=False, model=tmp_path / NAME)
    assert (tmp_path / "out" / "model" / NAME).read_bytes() == b"numbers"
    assert BESIDE_THE_COURSE.relative_to(ROOT).as_posix() == f"model/{NAME}"


def test_the_instructions_name_every_chapter_with_its_points(handout):
    text = (handout / "README.md").read_text(encoding="utf-8")
    tasks = all_tasks("softmax")
    points = sum(task.points for task in tasks)
    assert f"| 02 | softmax | [exercises](exercises/ex_02_softmax.ipynb) | {len(tasks)} | {points} |" in text
    assert "work/ex_02_softmax.ipynb" in text
    assert "Read the lesson" in text


def test_the_instructions_fit_a_folder_without_a_makefile(handout):
    text = (handout / "README.md").read_text(encoding="utf-8")
    assert "several gigabytes" in text
    assert "--index-url https://download.pytorch.org/whl/cpu torch" in text
    for name in ("README.md", "environment.yml"):
        assert not re.search(r"\bmake (lab|test)\b", (handout / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("with_lessons", [True, False])
def test_progress_lists_the_chapters_that_were_handed_out(tmp_path, with_lessons):
    place = tmp_path / "student"
    release(ROOT, place, ["2", "04"], with_lessons=with_lessons)
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "attn_course.cli", "progress", "--json", "-"]
    ran = subprocess.run(words, cwd=place / "exercises", env=environment, capture_output=True, text=True)
    assert [chapter["lesson"] for chapter in json.loads(ran.stdout)["chapters"]] == ["softmax", "attention"], ran.stderr


def test_no_answer_and_no_reason_can_be_read_in_what_is_packed(handout):
    whys = [task.sheet.why for lesson in lessons() for task in declared_tasks(lesson) if task.sheet and task.sheet.why]
    assert whys
    for path in handout.glob("attn_course/lessons/*/tasks*.py"):
        text = path.read_text(encoding="utf-8")
        assert [type(node).__name__ for node in ast.parse(text).body] == ["Expr", "ImportFrom", "Expr"]
        assert not re.search(r"\bdef |return|->", text)
        unpacked = zlib.decompress(base64.b64decode(text.split('"""')[3])).decode()
        assert not [why for why in whys if why.splitlines()[0] in unpacked]


def test_a_reason_is_taken_out_whatever_stands_around_it():
    source = '@asked("a", why="één", points=1)\ndef f(x):\n    "why=1"\n\n\ng = made(\n    why=r"""\n    because\n    """,\n)\n'
    wanted = '@asked("a", why="", points=1)\ndef f(x):\n    "why=1"\n\n\ng = made(\n    why="",\n)\n'
    assert without_reasons(source) == wanted


def test_what_is_packed_checks_as_before(handout, tmp_path):
    code = (
        "from attn_course.tasks import all_tasks; from attn_course.tasks.gates import bench_of;"
        "tasks = [task for task in all_tasks('heads') if task.wants_function];"
        "print(len(tasks), all(bench_of(task).verdict(task.answer).passed for task in tasks),"
        " all(bench_of(task).verdict(wrong.function).mistake == wrong.name for task in tasks for wrong in task.wrong),"
        " all('def ' in task.handed_out for task in tasks if task.kind == 'repair'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(handout), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stdout == "6 True True True\n", ran.stderr


@pytest.fixture
def small_course(tmp_path: Path) -> Path:
    """The one chapter that the test changes, in a course whose package holds no more of it than its tasks."""
    root = tmp_path / "course"
    for name in (
        "exercises/ex_02_softmax.ipynb",
        "notebooks/02_softmax.ipynb",
        "attn_course/lessons/softmax/tasks.py",
        "notebooks/src/softmax.py",
        "notebooks/series.toml",
        *ENVIRONMENT,
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    return root


def test_an_exercise_that_was_solved_in_place_is_not_handed_out(small_course, tmp_path):
    exercise = small_course / "exercises" / "ex_02_softmax.ipynb"
    exercise.write_text(exercise.read_text(encoding="utf-8").replace("raise NotImplementedError()", "return 42", 1), encoding="utf-8")
    with pytest.raises(AuthoringError, match=r"exercises/ex_02_softmax\.ipynb was changed since it was built"):
        release(small_course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_exercise_is_named(small_course, tmp_path):
    (small_course / "exercises" / "ex_02_softmax.ipynb").unlink()
    with pytest.raises(AuthoringError, match=r"exercises/ex_02_softmax\.ipynb is not there"):
        release(small_course, tmp_path / "out")


def test_nothing_is_overwritten_and_nothing_left_half_written(small_course, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(AuthoringError, match="is there already"):
        release(small_course, tmp_path / "taken")
    (small_course / "LICENSE").unlink()
    with pytest.raises(AuthoringError, match=r"cannot write .*No such file"):
        release(small_course, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"taken", "course"}
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["mine.txt"]


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders for two students, of exercises built from their present sources."""
    root = tmp_path_factory.mktemp("course")
    for name in ("attn_course", "notebooks", "solutions", *ENVIRONMENT):
        (root / name).symlink_to(ROOT / name)
    (root / "exercises").mkdir()
    counted = numbering(root)
    fingerprints = Fingerprints(ImportGraph(root, counted.tables), counted)
    for unit in units(root, ["masking"]):
        if unit.folder == "exercises":
            unit.path.write_text(to_text(render(unit, fingerprints, get_task)), encoding="utf-8")
    out = tmp_path_factory.mktemp("class") / "handout"
    release(root, out, ["masking"], with_lessons=False, students=["ada", "Zoë O'Neil"])
    return out


def test_each_student_of_a_class_gets_a_whole_folder_with_the_own_id(class_folder):
    assert {path.name for path in class_folder.iterdir()} == {"ada", "Zoë O'Neil"}
    for student in ("ada", "Zoë O'Neil"):
        folder = class_folder / student
        assert is_course(folder)
        assert not (folder / "notebooks").exists()
        text = (folder / "README.md").read_text(encoding="utf-8")
        assert ("yours alone" in text, "Read the lesson" in text) == (True, False)
        (exercise,) = (folder / "exercises").iterdir()
        cells = nbformat.read(exercise, as_version=4).cells
        names: dict[str, object] = {}
        (asking,) = (cell.source for cell in cells if "STUDENT" in cell.source)
        exec(asking, names)
        assert names["STUDENT"] == student
        nbformat.validate(nbformat.read(exercise, as_version=4))


def test_what_two_students_get_differs_in_their_ids_alone(class_folder):
    first, second = (
        {path.relative_to(folder): path.read_bytes().decode("utf-8", "replace") for path in sorted(folder.rglob("*")) if path.is_file()}
        for folder in (class_folder / "ada", class_folder / "Zoë O'Neil")
    )
    assert first.keys() == second.keys()
    assert [str(path.parent) for path in first if first[path] != second[path]] == ["exercises"]
    for path, text in first.items():
        assert text.replace('STUDENT = \\"ada\\"', 'STUDENT = \\"Zoë O\'Neil\\"') == second[path]


def test_without_a_roster_nobody_is_named(handout):
    assert "yours alone" not in (handout / "README.md").read_text(encoding="utf-8")
