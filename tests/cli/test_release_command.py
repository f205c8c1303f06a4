"""`attn-course release` says what it made."""

from pathlib import Path

import pytest

from attn_course.classroom.budget import USUAL
from attn_course.tasks import all_tasks


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_lists_the_chapters_and_the_folder(attn_course):
    said = attn_course("release", "--out", "handout", "--chapters", "1-2,02_softmax", "--no-lessons")
    assert (said.code, said.err) == (0, "")
    tasks = all_tasks("softmax")
    assert said.out.splitlines()[1:] == [f"02 softmax: {len(tasks)} tasks, {sum(task.points for task in tasks)} points", "made handout"]
    assert {path.name for path in Path("handout/exercises").iterdir()} == {"ex_01_lookup.ipynb", "ex_02_softmax.ipynb"}
    assert Path("handout/attn_course/classroom/templates/page.html").is_file()
    assert USUAL.table() in Path("handout/README.md").read_text(encoding="utf-8")


def test_with_a_roster_it_makes_a_folder_for_each_student(attn_course):
    words = ("release", "--out", "handout", "--chapters", "softmax", "--no-lessons", "--roster", "class.csv")
    Path("class.csv").write_text("id,name\n../ada,Ada\n", encoding="utf-8")
    said = attn_course(*words)
    assert (said.code, Path("handout").exists()) == (2, False)
    assert "an id that can name a folder, without slashes; got '../ada'" in " ".join(said.err.split())
    Path("class.csv").write_text("id,name\nada,Ada Lovelace\nbob,Bob\n", encoding="utf-8")
    said = attn_course(*words)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-1] == "made handout, a folder in it for each of 2 students"
    assert {path.name for path in Path("handout").iterdir()} == {"ada", "bob"}
    assert Path("handout/ada/exercises/ex_02_softmax.ipynb").is_file()


def test_with_a_roster_the_language_model_is_handed_out_once(attn_course, monkeypatch):
    Path("class.csv").write_text("id,name\nada,Ada Lovelace\n", encoding="utf-8")
    said = attn_course("release", "--out", "handout", "--roster", "class.csv", "--model")
    assert said.code == 2
    assert said.err.startswith("attn-course: --model would copy 98 MB for each student of the roster")
    monkeypatch.setenv("ATTN_COURSE_MODEL", "no")
    said = attn_course("release", "--out", "handout", "--model")
    assert (said.code, said.err) == (2, "attn-course: the language model is switched off by ATTN_COURSE_MODEL=no\n")
    assert not Path("handout").exists()


def test_students_read_the_limits_that_their_teacher_will_set(attn_course):
    words = ("release", "--out", "handout", "--chapters", "softmax", "--no-lessons")
    said = attn_course(*words, "--limit", "cell=0")
    assert (said.code, Path("handout").exists()) == (2, False)
    assert "--limit: cell must be a number of seconds" in said.err
    assert attn_course(*words, "--limit", "cell=77").code == 0
    assert "| `cell` | 77 seconds for a code cell |" in Path("handout/README.md").read_text(encoding="utf-8")


def test_the_teachers_guide_prints_the_limits_as_they_are(root):
    assert USUAL.table() in (root / "docs" / "teachers-guide.md").read_text(encoding="utf-8")
