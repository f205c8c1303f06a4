"""Copies of the exercises belong to the learner, and only what the course built is trusted."""

import json
from pathlib import Path

import nbformat
import pytest

from attn_course.commands import lab_files, lab_trust
from attn_course.commands.lab_files import copy_exercises, copy_states
from attn_course.commands.lab_lessons import copy_lessons
from attn_course.commands.lab_trust import built_notebooks, trust, trust_built
from attn_course.commands.terminal import BadInput
from tests.browser.toy_course import write_notebook


def is_trusted(path: Path) -> bool:
    keeper = lab_trust.notary()
    try:
        return bool(keeper.check_signature(nbformat.read(path, as_version=4)))
    finally:
        keeper.store.close()


def test_every_exercise_is_copied_once_and_said_so_and_what_was_copied_is_remembered(course: Path):
    assert copy_exercises(course) == ["copied to work/: ex_02_softmax.ipynb, ex_03_scaling.ipynb"]
    for name in ("ex_02_softmax.ipynb", "ex_03_scaling.ipynb"):
        assert (course / "work" / name).read_bytes() == (course / "exercises" / name).read_bytes()
    assert copy_exercises(course) == []
    assert set(json.loads((course / lab_files.COPIES).read_text())) == {"softmax", "scaling"}
    assert all(part.startswith(".") for part in lab_files.PROFILE.parts[1:])
    (course / lab_files.COPIES).write_text("[1")
    assert copy_exercises(course) == []
    assert copy_states(course)["ex_02_softmax.ipynb"] == "untouched"


@pytest.mark.parametrize(
    ("name", "copied"),
    [("ex_02_softmax.ipynb", "ex_03_scaling.ipynb"), ("02_softmax.ipynb", "ex_02_softmax.ipynb, ex_03_scaling.ipynb")],
    ids=["a copy", "of the first version"],
)
def test_what_the_learner_wrote_is_never_written_over(course: Path, name: str, copied: str):
    mine = course / "work" / name
    write_notebook(mine, "# mine", "42")
    before = mine.read_bytes()
    assert copy_exercises(course)[0] == f"copied to work/: {copied}"
    assert mine.read_bytes() == before


def test_a_newer_exercise_is_announced_for_a_copy_not_begun(course: Path):
    copy_exercises(course)
    write_notebook(course / "exercises" / "ex_02_softmax.ipynb", "# Exercises, second edition", "answer()")
    before = (course / "work" / "ex_02_softmax.ipynb").read_bytes()
    (line,) = copy_exercises(course)
    assert "newer ex_02_softmax.ipynb" in line
    assert "have not begun" in line
    assert "delete work/ex_02_softmax.ipynb" in line
    assert (course / "work" / "ex_02_softmax.ipynb").read_bytes() == before
    (course / "work" / "ex_02_softmax.ipynb").unlink()
    assert copy_exercises(course)[0] == "copied to work/: ex_02_softmax.ipynb"
    assert copy_exercises(course) == []


def test_running_cells_is_not_yet_beginning(course: Path):
    copy_exercises(course)
    mine = course / "work" / "ex_02_softmax.ipynb"
    notebook = nbformat.read(mine, as_version=4)
    notebook.cells[1]["execution_count"] = 1
    notebook.metadata["language_info"] = {"name": "python", "version": "3.13"}
    nbformat.write(notebook, mine)
    assert copy_states(course) == {"ex_02_softmax.ipynb": "untouched", "ex_03_scaling.ipynb": "untouched"}


def test_a_copy_begun_is_kept_when_the_course_changes(course: Path):
    copy_exercises(course)
    write_notebook(course / "work" / "ex_02_softmax.ipynb", "# Exercises", "def answer():\n    return 42", "answer()")
    assert copy_states(course)["ex_02_softmax.ipynb"] == "begun"
    assert copy_exercises(course) == []
    write_notebook(course / "exercises" / "ex_02_softmax.ipynb", "# Exercises, second edition", "answer()")
    (line,) = copy_exercises(course)
    assert "yours is kept" in line
    assert "rename work/ex_02_softmax.ipynb" in line


@pytest.mark.parametrize(
    "content", ["", '{"cells": [', "[]", '{"cells": [{"source": 1}]}'], ids=["empty", "truncated", "a list", "no type"]
)
def test_a_copy_that_is_no_notebook_is_pointed_out_and_kept(course: Path, content: str):
    broken = course / "work" / "ex_02_softmax.ipynb"
    broken.parent.mkdir()
    broken.write_text(content)
    messages = copy_exercises(course)
    assert any("work/ex_02_softmax.ipynb cannot be read" in line for line in messages)
    assert broken.read_text() == content


def test_work_that_is_a_file_is_one_clear_line(course: Path):
    (course / "work").write_text("not a folder")
    with pytest.raises(BadInput, match=r"^cannot write to .*work: ") as caught:
        copy_exercises(course)
    assert "\n" not in str(caught.value)


def test_lessons_solutions_and_untouched_copies_are_trusted_and_nothing_else(course: Path):
    copy_exercises(course)
    copy_lessons(course)
    write_notebook(course / "work" / "ex_03_scaling.ipynb", "# mine", "42", script=True)
    write_notebook(course / "work" / "lessons" / "03_scaling.ipynb", "# mine", script=True)
    write_notebook(course / "work" / "found_somewhere.ipynb", "# not the course's", script=True)
    assert trust(built_notebooks(course)) == []
    trusted = {path.relative_to(course).as_posix() for path in course.rglob("*.ipynb") if is_trusted(path)}
    # an exercise has no outputs and the same content as its copy, so the signature of one is that of the other
    assert trusted == {
        *(f"{room}/{name}" for room in ("notebooks", "solutions") for name in ("02_softmax.ipynb", "03_scaling.ipynb")),
        *("work/ex_02_softmax.ipynb", "exercises/ex_02_softmax.ipynb", "work/lessons/02_softmax.ipynb"),
    }


def test_a_lesson_that_is_no_notebook_does_not_keep_the_others_from_being_trusted(course: Path):
    (course / "notebooks" / "02_softmax.ipynb").write_text("{")
    (line,) = trust(built_notebooks(course))
    assert line.startswith("cannot mark 02_softmax.ipynb as trusted: ")
    assert is_trusted(course / "notebooks" / "03_scaling.ipynb")


def test_what_is_trusted_already_is_not_signed_again_and_what_changed_is(course: Path, monkeypatch: pytest.MonkeyPatch):
    copy_exercises(course)
    signed: list[str] = []
    sign = lab_trust.trust
    monkeypatch.setattr(lab_trust, "trust", lambda paths: signed.extend(path.name for path in paths) or sign(paths))
    assert trust_built(course) == []
    assert len(signed) == 6
    signed.clear()
    assert trust_built(course) == []
    assert signed == []
    write_notebook(course / "notebooks" / "03_scaling.ipynb", "# Lesson, second edition", script=True)
    assert trust_built(course) == []
    assert signed == ["03_scaling.ipynb"]
    assert is_trusted(course / "notebooks" / "03_scaling.ipynb")
    (course.parent / "data" / "nbsignatures.db").unlink()  # lost: all are signed again
    assert trust_built(course) == []
    assert is_trusted(course / "notebooks" / "02_softmax.ipynb")


def test_a_home_that_cannot_be_written_costs_trust_but_not_the_course(course: Path, monkeypatch: pytest.MonkeyPatch):
    (course.parent / "file").write_text("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course.parent / "file" / "data"))
    (line,) = trust(built_notebooks(course))
    assert "explorables will not move" in line


def test_a_copy_of_a_lesson_that_has_another_number_now_is_still_the_copy(course: Path):
    copy_exercises(course)
    mine = course / "work" / "ex_02_softmax.ipynb"
    write_notebook(mine, "# mine", "42")
    moved = course / "exercises" / "ex_02_softmax.ipynb"
    moved.rename(moved.with_name("ex_05_softmax.ipynb"))
    before = sorted(path.name for path in (course / "work").iterdir())
    assert copy_exercises(course) == []
    assert sorted(path.name for path in (course / "work").iterdir()) == before
    assert copy_states(course)["ex_02_softmax.ipynb"] == "begun"


def test_two_notebooks_of_one_lesson_are_one_clear_error(course: Path):
    copy_exercises(course)
    write_notebook(course / "work" / "ex_05_softmax.ipynb", "# mine", "42")
    with pytest.raises(BadInput, match=r"ex_02_softmax\.ipynb and ex_05_softmax\.ipynb are both for the lesson softmax: keep one$"):
        copy_exercises(course)
