"""Nothing is wrong with any lesson, and the committed notebooks are what their sources ask for."""

import functools
import json
import shutil

import pytest

from attn_course import authoring
from attn_course.authoring.course import built_notebooks, chosen_lessons
from attn_course.authoring.gates import lesson_problems

from .chapters import ALL, LESSONS, ROOT, UNITS


def test_there_is_a_lesson_with_exercises_and_solutions_and_no_notebook_lacks_a_source():
    assert LESSONS
    assert {name.split("/")[0] for name in ALL} == {"notebooks", "solutions", "exercises"}
    assert built_notebooks(ROOT) == sorted(ALL)


@pytest.mark.parametrize("slug", [lesson.slug for lesson in chosen_lessons(ROOT)])
@pytest.mark.usefixtures("no_shape_check")  # every small change of a formula calls the reference
def test_the_gate_finds_nothing_wrong_with_a_lesson(slug):
    """A build tries all small changes of its equations, and what they depend on makes it stale; here one in nine is tried again."""
    problems = authoring.check(ROOT, only=[slug], gate=functools.partial(lesson_problems, every=9))
    assert not problems, "\n" + "\n".join(map(str, problems))


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


@pytest.mark.parametrize("slug", [LESSONS[0], LESSONS[-1]])
def test_one_changed_cell_and_one_changed_digit_of_an_output_are_found_in_each_notebook(copy, slug):
    """Without running; a cell is named."""
    units = [unit for unit in UNITS if unit.slug == slug]
    before = {unit.name: (copy / unit.name).read_text(encoding="utf-8") for unit in units}

    def found(change) -> list[tuple[str, str | None]]:
        for name, text in before.items():
            book = json.loads(text)
            change(book["cells"])
            (copy / name).write_text(json.dumps(book, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        problems = authoring.check(copy, only=[slug], gate=lambda written: [])
        return [(problem.file, problem.cell) for problem in problems if "stale" not in problem.message]

    def another_letter(cells):
        cells[1]["source"] = ["!" + cells[1]["source"][0], *cells[1]["source"][1:]]

    def another_digit(cells):
        for output in [output for cell in cells for output in cell.get("outputs", []) if output.get("text")][:1]:
            output["text"] = [output["text"][0] + "0", *output["text"][1:]]

    try:
        second = {name: json.loads(text)["cells"][1]["id"] for name, text in before.items()}
        assert found(another_letter) == [(unit.name, second[unit.name]) for unit in units]
        assert found(another_digit) == [(unit.name, None) for unit in units if unit.is_executed]
    finally:
        for name, text in before.items():
            (copy / name).write_text(text, encoding="utf-8")
