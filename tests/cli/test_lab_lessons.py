"""Lessons are opened as copies: one that nobody wrote into follows the course, any other is its reader's."""

from pathlib import Path

import nbformat
import pytest

from attn_course.authoring.links import links_in
from attn_course.commands.lab_files import copy_exercises, copy_states
from attn_course.commands.lab_lessons import COPIED, FOLDER, as_copied, copy_lessons, lesson_copies
from attn_course.commands.terminal import BadInput
from attn_course.tasks import progress
from tests.browser.toy_course import write_notebook

SECOND = ("# Lesson, second edition", "1 + 1")


@pytest.fixture
def copied(course):
    """A course whose lessons have been copied."""
    assert copy_lessons(course) == []
    return course


def texts(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def run_once(path):
    """What running and saving leaves of a notebook: the same cells, other outputs."""
    book = nbformat.read(path, as_version=4)
    book.cells[1]["outputs"], book.cells[1]["execution_count"] = [nbformat.v4.new_output("stream", text="2")], 1
    nbformat.write(book, path)


def test_each_lesson_is_copied_to_work_and_its_links_lead_where_they_led(course):
    exercise = Path("..", "work", "ex_02_softmax.ipynb").as_posix()
    write_notebook(course / "notebooks" / "02_softmax.ipynb", f"# [do]({exercise}), [read](../README.md), [on](03_scaling.ipynb)")
    assert copy_lessons(course) == []
    assert [path.name for path in sorted((course / "work" / "lessons").iterdir())] == ["02_softmax.ipynb", "03_scaling.ipynb"]
    assert texts(course / "work/lessons/02_softmax.ipynb") == [
        "# [do](../ex_02_softmax.ipynb), [read](../../README.md), [on](03_scaling.ipynb)"
    ]
    assert progress.course_root(course / "work" / "lessons") == course


def test_exercises_in_work_and_lessons_in_work_link_each_other(course):
    write_notebook(course / "exercises" / "ex_02_softmax.ipynb", "# for [02](../notebooks/02_softmax.ipynb#why)", "def answer(): ...")
    link = (".." / FOLDER.parent / "ex_02_softmax.ipynb").as_posix()
    write_notebook(course / "notebooks" / "02_softmax.ipynb", f"# now the [tasks]({link})")
    copy_exercises(course)
    copy_lessons(course)
    for page, other in (("ex_02_softmax", "lessons/02_softmax"), ("lessons/02_softmax", "ex_02_softmax")):
        here = course / "work" / f"{page}.ipynb"
        (link,) = links_in(texts(here)[0])
        assert (here.parent / link.partition("#")[0]).resolve() == course / "work" / f"{other}.ipynb"
    assert copy_states(course)["ex_02_softmax.ipynb"] == "untouched"


@pytest.mark.parametrize("link", ["../notebooks/", "lessons/"])
def test_an_exercise_copied_before_its_links_opened_the_own_lesson_is_no_older_one(course, link):
    write_notebook(course / "exercises" / "ex_02_softmax.ipynb", "# for [02](../notebooks/02_softmax.ipynb)")
    write_notebook(course / "work" / "ex_02_softmax.ipynb", f"# for [02]({link}02_softmax.ipynb)")
    assert copy_states(course)["ex_02_softmax.ipynb"] == "untouched"


@pytest.mark.parametrize("is_run", [False, True])
def test_a_copy_that_nobody_wrote_into_follows_the_course(copied, is_run):
    mine = copied / "work" / "lessons" / "02_softmax.ipynb"
    if is_run:
        run_once(mine)
    before = mine.read_bytes()
    assert copy_lessons(copied) == []
    assert mine.read_bytes() == before  # a start writes nothing new where the course has nothing new
    write_notebook(copied / "notebooks" / "02_softmax.ipynb", *SECOND)
    assert copy_lessons(copied) == []
    assert texts(mine) == [*SECOND]


def test_what_a_reader_wrote_is_kept_and_a_newer_lesson_announced(copied):
    mine = copied / "work" / "lessons" / "02_softmax.ipynb"
    write_notebook(mine, "# Lesson 02_softmax.ipynb", "my_answer = 42")
    before = mine.read_bytes()
    assert copy_lessons(copied) == []
    write_notebook(copied / "notebooks" / "02_softmax.ipynb", *SECOND)
    (line,) = copy_lessons(copied)
    assert "newer 02_softmax.ipynb" in line
    assert "rename work/lessons/02_softmax.ipynb" in line
    assert mine.read_bytes() == before
    assert mine not in as_copied(copied)
    mine.rename(mine.with_name("02_softmax-mine.ipynb"))
    assert copy_lessons(copied) == []
    assert texts(mine) == [*SECOND]
    write_notebook(mine, "# mine", "42")
    (copied / COPIED).unlink()  # a lost memory costs no work
    write_notebook(copied / "notebooks" / "02_softmax.ipynb", "# Lesson, third edition", "1 + 1")
    copy_lessons(copied)
    assert texts(mine) == ["# mine", "42"]


def test_a_lesson_that_has_another_number_now_moves_unless_it_is_its_readers(copied):
    mine = copied / "work" / "lessons" / "03_scaling.ipynb"
    write_notebook(mine, "# mine", "42")
    for old, new in (("02_softmax", "05_softmax"), ("03_scaling", "06_scaling")):
        (copied / "notebooks" / f"{old}.ipynb").unlink()
        write_notebook(copied / "notebooks" / f"{new}.ipynb", *SECOND)
    (line,) = copy_lessons(copied)
    assert "newer 03_scaling.ipynb" in line
    assert [path.name for path in sorted((copied / "work" / "lessons").iterdir())] == ["03_scaling.ipynb", "05_softmax.ipynb"]
    assert [copy.name for copy in lesson_copies(copied).values()] == ["05_softmax.ipynb", "03_scaling.ipynb"]


def test_a_folder_that_cannot_be_made_is_one_clear_line(course):
    (course / "work").mkdir()
    (course / "work" / "lessons").write_text("no folder")
    with pytest.raises(BadInput, match=r"^cannot write to .*lessons: "):
        copy_lessons(course)
