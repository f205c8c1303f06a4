"""Tasks of a teacher's own, from a folder outside of the package: the guide's example, handed out without answers and graded."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from attn_course import numbers
from attn_course.checking.cells import NoTasks
from attn_course.checking.notebook_check import plan_check
from attn_course.classroom.process import course_fingerprint
from attn_course.classroom.sandbox import probe
from attn_course.classroom.submission import read_exercise
from attn_course.tasks import registry
from tests.classroom import platforms

RIGHT = "def my_largest(weights):\n    return np.max(weights / weights.sum(axis=-1, keepdims=True), axis=-1)"
WRONG = "def my_largest(weights):\n    return weights.max(axis=-1)"


@pytest.fixture
def guide(root):
    text = (root / "docs" / "teachers-guide.md").read_text(encoding="utf-8")
    return text[text.index("## 5. Tasks of your own") : text.index("## What you are protected from")]


@pytest.fixture
def extra(guide, tmp_path, monkeypatch):
    """The guide's folder, typed in; afterwards the course is without it again."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "extra"
    folder.mkdir()
    (text,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    (folder / "tasks.py").write_text(text, encoding="utf-8")
    yield folder
    forget()


def forget():
    registry._OWN.clear()
    registry._lesson_tasks.cache_clear()
    for remembered in (numbers.stored_tables, read_exercise, course_fingerprint):
        remembered.cache_clear()


def changed(folder, old, new):
    text = (folder / "tasks.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "tasks.py").write_text(text.replace(old, new), encoding="utf-8")


def hand_in(folder, exercise, answer, *, setup=""):
    folder.mkdir(parents=True)
    book = json.loads(exercise.read_text(encoding="utf-8"))
    next(cell for cell in book["cells"] if cell["id"] == "largest-share")["source"] = answer
    next(cell for cell in book["cells"] if cell["id"] == "setup")["source"] = setup
    (folder / exercise.name).write_text(json.dumps(book), encoding="utf-8")


def test_the_guides_example_is_handed_out_and_graded_by_its_commands(attn_course, guide, extra, tmp_path):
    release, grade = (shlex.split(line)[1:] for line in re.findall(r"^attn-course .*$", guide, flags=re.MULTILINE))
    said = attn_course(*release, "--no-lessons")
    assert (said.code, said.out.splitlines()[-2:]) == (0, ["ex_extra extra: 1 tasks, 2 points", "made week4"])
    exercise = tmp_path / "week4" / "exercises" / "ex_extra.ipynb"
    assert exercise.read_bytes() == (extra / "ex_extra.ipynb").read_bytes()
    assert "[exercises](exercises/ex_extra.ipynb) | 1 | 2 |" in (tmp_path / "week4" / "README.md").read_text(encoding="utf-8")
    assert "weights.sum(axis=-1)" not in exercise.read_text(encoding="utf-8")
    assert not [
        path for path in (tmp_path / "week4").rglob("*") if path.is_file() and path != exercise and b"my_largest" in path.read_bytes()
    ]
    submitted = tmp_path / "submitted"
    hand_in(submitted / "ada", exercise, RIGHT)
    hand_in(submitted / "bo", exercise, WRONG, setup=f"print(open({str(extra / 'tasks.py')!r}).read())")
    forget()  # grading is another process
    assert attn_course(*grade, "--jobs", "1").code == 0
    rows = [row for row in platforms.table(tmp_path / "grades-04" / "grades.csv") if row["task"]]
    assert [(row["student"], row["task"], row["points"]) for row in rows] == [("ada", "largest-share", "2"), ("bo", "largest-share", "0")]
    assert "this is the mistake “not divided”" in rows[1]["diagnosis"]
    if probe().level == "full":
        assert "PermissionError" in (tmp_path / "grades-04" / "class.html").read_text(encoding="utf-8")
    forget()
    assert attn_course(*grade[:-2], "--resume").code == 0
    changed(extra, "points=2", "points=3")
    forget()
    said = attn_course(*grade, "--resume")
    assert (said.code, "another state of attn_course" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (".max -> .min", "weights.max(axis=-1) -> 1.0 * weights.max(axis=-1)", "the known wrong answer “the smallest” passes"),
        ('"largest-share"', '"stable-softmax"', "tasks.py: wanted ids that no other task has; got 'stable-softmax'"),
        ("@asked(", "@asked(\n(", "tasks.py: cannot be loaded: SyntaxError"),
        ('"""Tasks of this class\'s own."""', "ORDER = []", "tasks.py: wanted the tasks of the lesson in ORDER, each once"),
        ("@asked(", "@(lambda *a, **k: str)(", "tasks.py: wanted tasks, each a function below @asked(...); got none"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_line_and_nothing_is_made(attn_course, extra, old, new, complaint):
    changed(extra, old, new)
    said = attn_course("release", "--out", "week4", "--chapters", "softmax", "--own", "extra")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert complaint in said.err
    assert [path.name for path in extra.parent.iterdir()] == ["extra"]


@pytest.mark.parametrize(("name", "complaint"), [("softmax", "no lesson's; got 'softmax'"), ("My Tasks", "a Python name in lower case")])
def test_a_folder_that_cannot_name_a_lesson_is_refused(attn_course, extra, name, complaint):
    extra.rename(extra.parent / name)
    for command in (["release", "--out", "x"], ["grade", ".", "--out", "x"], ["similarity", "."]):
        said = attn_course(*command, "--own", name)
        assert (said.code, complaint in said.err) == (2, True)


def test_an_exercise_is_built_before_it_is_graded_and_a_students_own_check_leaves_it_out(attn_course, extra, root, tmp_path):
    (tmp_path / "submitted").mkdir()
    said = attn_course("grade", "submitted", "--out", "x", "--own", "extra")
    assert (said.code, said.err.endswith("ex_extra.ipynb: missing; attn-course release --own extra builds it\n")) == (2, True)
    forget()
    attn_course("release", "--out", "week4", "--chapters", "softmax", "--no-lessons", "--own", "extra")
    forget()
    (tmp_path / "work").mkdir()
    with pytest.raises(NoTasks):
        plan_check(Path(shutil.copy(extra / "ex_extra.ipynb", tmp_path / "work")), exercises=root / "exercises")
