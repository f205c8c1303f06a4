"""What a build writes, when it writes, and what it refuses."""

import os
from pathlib import Path

import nbformat
import pytest

from attn_course.authoring import AuthoringError

LESSON, SOLUTION, EXERCISE = ("notebooks/02_double.ipynb", "solutions/02_double.ipynb", "exercises/ex_02_double.ipynb")
NOTEBOOKS = (LESSON, SOLUTION, EXERCISE)


def test_a_build_writes_lesson_solution_and_exercise(course):
    report = course.build()
    assert report.written == list(NOTEBOOKS)
    assert report.executed == [LESSON, SOLUTION]
    assert [path.name for path in sorted((course.root / "notebooks").iterdir())] == ["02_double.ipynb", "series.toml", "src"], (
        "no temporary file stays"
    )


@pytest.mark.parametrize("name", [SOLUTION, EXERCISE])
def test_answer_and_check_cells_carry_the_metadata_nbgrader_reads(built, name):
    answer, check = built.cell(name, "double-it").metadata, built.cell(name, "double-it-check").metadata
    assert answer == {
        "nbgrader": {"schema_version": 3, "grade": False, "solution": True, "locked": False, "task": False, "grade_id": "double-it"},
        "tags": ["task"],
    }
    assert check == {
        "nbgrader": {
            "schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False, "points": 2,
            "grade_id": "double-it-check",
        },
        "tags": ["check"],
    }  # fmt: skip


def test_an_exercise_shows_stubs_and_no_explanation_and_no_output(built):
    assert built.cell(EXERCISE, "double-it").source == (
        'def my_double(x):\n    """Twice x."""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
    )
    assert built.cell(EXERCISE, "slope-of-double").source == "my_slope = ...  # your answer"
    assert built.cell(EXERCISE, "half-it").source == 'def my_half(x):\n    """Half of x."""\n    return x // 2'
    cells = built.notebook(EXERCISE).cells
    assert "double-it-why" not in [cell.id for cell in cells]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")
    assert "SOLUTION" not in built.read(EXERCISE)


def test_a_second_build_runs_nothing_and_touches_nothing(built):
    for name in NOTEBOOKS:
        os.utime(built.root / name, (1, 1))
    report = built.build()
    assert (report.written, report.executed, report.kept) == ([], [], list(NOTEBOOKS))
    assert built.runs == []
    assert all((built.root / name).stat().st_mtime == 1 for name in NOTEBOOKS)


def test_a_second_build_needs_neither_jupytext_nor_nbformat_nor_tasks(built, root):
    import subprocess
    import sys

    code = (
        "import sys; from attn_course.authoring import build; report = build(sys.argv[1]); assert len(report.kept) == 3;"
        "slow = {'jupytext', 'nbformat', 'nbclient', 'sympy', 'attn_course.tasks'} & set(sys.modules); assert not slow, slow"
    )
    done = subprocess.run([sys.executable, "-c", code, str(built.root)], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_changed_prose_keeps_the_outputs_and_runs_nothing(built):
    built.edit("notebooks/src/double.py", "Twice is a sum", "Two times is a sum")
    report = built.build()
    assert (report.written, report.executed) == ([LESSON], [])
    assert built.cell(LESSON, "try-it").outputs[0].text == "42\n"
    assert built.check() == []


def test_changed_code_runs_again(built):
    built.edit("notebooks/src/double.py", "print(double(21))", "print(double(22))")
    assert built.build().executed == [LESSON]


def test_changed_package_code_that_a_notebook_needs_makes_it_stale_and_other_code_does_not(built):
    built.edit("attn_course/reference/triple.py", "3 * x", "x * 3")
    built.edit("attn_course/lessons/triple/tasks.py", "[]", "[3]")
    assert built.build().written == []
    built.edit("attn_course/reference/double.py", "x + x", "2 * x")
    assert built.build().executed == [LESSON]
    built.edit("attn_course/lessons/double/tasks.py", '"half-it",', '"half-it",  # last')
    report = built.build()
    assert (report.executed, report.written) == ([SOLUTION], [SOLUTION, EXERCISE])


def test_an_edited_lesson_is_run_and_written_again(built):
    before = built.read(LESSON)
    built.edit(LESSON, '"42\\n"', '"43\\n"')
    report = built.build()
    assert (report.executed, built.read(LESSON)) == ([LESSON], before)


def test_an_edited_exercise_is_not_replaced_unless_forced(built):
    built.edit(EXERCISE, "my_slope = ...", "my_slope = 2")
    edited = built.read(EXERCISE)
    with pytest.raises(
        AuthoringError, match=r"exercises/ex_02_double\.ipynb: edited since the last build \(see slope-of-double\).*--force"
    ) as caught:
        built.build()
    assert "\n" not in str(caught.value)
    assert built.read(EXERCISE) == edited
    assert built.runs == []
    assert built.build(force=True).written == [EXERCISE]
    assert built.check() == []


def test_an_exercise_that_was_run_counts_as_edited(built):
    notebook = built.notebook(EXERCISE)
    notebook.cells[1].execution_count = 1
    built.write(EXERCISE, nbformat.writes(notebook) + "\n")
    with pytest.raises(AuthoringError, match="edited since the last build"):
        built.build()


def test_force_runs_everything_but_writes_only_what_differs(built):
    report = built.build(force=True)
    assert (report.executed, report.written) == ([LESSON, SOLUTION], [])


def test_only_selects_lessons_by_number_or_name(course):
    course.write("notebooks/src/triple.py", '# %% [markdown] id="title"\n# # Half\n')
    assert course.build(only=["3"]).written == ["notebooks/03_triple.ipynb"]
    assert course.build(only=["02_double"]).written == list(NOTEBOOKS)
    for unknown in ("4", "02_doubl", "", "²"):
        with pytest.raises(AuthoringError, match=f"no lesson '{unknown}'; there are double, triple"):
            course.build(only=[unknown])


def test_a_bad_source_changes_no_notebook_of_any_lesson(course):
    course.write("notebooks/src/triple.py", "# %% [markdown]\n# # Half\n")
    with pytest.raises(AuthoringError, match=r"notebooks/src/triple\.py: cell 1 .*wanted an id"):
        course.build()
    assert not list(course.root.glob("*/*.ipynb"))
    assert course.runs == []


def test_a_failed_write_leaves_the_old_file_and_no_other(built, monkeypatch):
    built.edit("notebooks/src/double.py", "Twice", "Two times")
    before = built.read(LESSON)

    def disk_is_full(self: Path, target: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", disk_is_full)
    with pytest.raises(OSError, match="no space left"):
        built.build()
    assert built.read(LESSON) == before
    assert sorted(path.name for path in (built.root / "notebooks").iterdir()) == ["02_double.ipynb", "series.toml", "src"]
