"""The committed notebooks are what their sources ask for."""

import re
import shutil

import pytest

from attn_course import authoring, numbers
from attn_course.tasks import all_tasks, lessons

from .chapters import ALL, EXECUTED, LESSONS, ROOT, notebook


def test_there_is_a_lesson_with_exercises_and_solutions():
    assert LESSONS
    assert {name.split("/")[0] for name in ALL} == {"notebooks", "solutions", "exercises"}


def test_every_notebook_is_in_step_with_its_source():
    problems = authoring.check(ROOT)
    assert not problems, "\n" + "\n".join(map(str, problems))


@pytest.mark.parametrize("slug", lessons())
def test_the_exercises_hold_every_task_of_the_lesson_in_order(slug):
    (name,) = [name for name in ALL if name.startswith("exercises/") and numbers.lesson_in(name.split("/")[1]) == slug]
    answers = [cell.id for cell in notebook(name).cells if "task" in cell.metadata.get("tags", [])]
    assert answers == [task.id for task in all_tasks(slug)]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the course that a test may change."""
    root = tmp_path_factory.mktemp("course")
    for folder in ("attn_course", "notebooks", "solutions", "exercises", "docs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, root)
    return root


def test_a_build_of_the_committed_course_runs_and_writes_nothing(copy):
    report = authoring.build(copy)
    assert (report.written, report.executed) == ([], [])
    assert sorted(report.kept) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_one_changed_cell_is_found_and_named(copy, name):
    path = copy / name
    before = path.read_text(encoding="utf-8")
    try:
        path.write_text(before.replace("softmax", "sofmax", 1), encoding="utf-8", newline="\n")
        (problem, *_) = authoring.check(copy, only=[path.stem])
        assert (problem.notebook, problem.cell is not None) == (name, True)
    finally:
        path.write_text(before, encoding="utf-8", newline="\n")


@pytest.mark.parametrize("name", EXECUTED)
def test_one_changed_digit_of_an_output_is_noticed_even_without_running(copy, name):
    path = copy / name
    before = path.read_text(encoding="utf-8")
    changed = re.sub(r'("text": \[\n\s+"\D*)(\d)', lambda match: f"{match[1]}{(int(match[2]) + 1) % 10}", before, count=1)
    assert changed != before
    try:
        path.write_text(changed, encoding="utf-8", newline="\n")
        assert [problem.notebook for problem in authoring.check(copy, only=[path.stem])] == [name]
    finally:
        path.write_text(before, encoding="utf-8", newline="\n")
