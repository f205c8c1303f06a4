"""Every way a built notebook can stray from its source is found, and the finding names the notebook and the cell."""

import json

import pytest

LESSON, SOLUTION, EXERCISE = ("notebooks/02_double.ipynb", "solutions/02_double.ipynb", "exercises/ex_02_double.ipynb")

EDITS = {  # what: (notebook, text in the file, replacement, cell, message)
    "a digit of a formula": (LESSON, "2x = x + x", "3x = x + x", "formula", "line 1: wanted 'Twice is a sum: $$2x = x + x"),
    "a tag": (LESSON, "tag{2.1}", "tag{2.7}", "formula", "tag{2.1}"),
    "a line of code": (LESSON, "double(21)", "double(22)", "try-it", "wanted 'print(double(21))', got 'print(double(22))'"),
    "a cell tag": (LESSON, '"live"', '"alive"', "clock", "metadata 'tags': wanted ['live'], got ['alive']"),
    "a cell tag added": (
        LESSON, '"id": "setup",\n   "metadata": {', '"id": "setup",\n   "metadata": {"tags": ["x"], ', "setup", "metadata 'tags'"
    ),
    "an execution count": (LESSON, '"execution_count": 2', '"execution_count": 9', "try-it", "wanted execution count 2, got 9"),
    "a count of a live cell": (LESSON, '"execution_count": null', '"execution_count": 3', "clock", "wanted execution count None, got 3"),
    "the kernel": (LESSON, '"name": "python3"', '"name": "conda"', None, "metadata 'kernelspec'"),
    "the minor version": (LESSON, '"nbformat_minor": 5', '"nbformat_minor": 4', None, "wanted nbformat 4.5, got 4.4"),
    "the layout": (LESSON, '"nbformat": 4,', '"nbformat":  4,', None, "not the bytes the last build wrote"),
    "a stored output": (LESSON, '"42\\n"', '"43\\n"', None, "not the bytes the last build wrote"),
    "the source it names": (LESSON, '"src/double.py"', '"src/triple.py"', None, "got 'src/triple.py'"),
    "a question": (EXERCISE, "Mend `my_half`", "Break `my_half`", "half-it-text", "wanted 'Mend"),
    "the points": (SOLUTION, '"points": 2', '"points": 20', "double-it-check", "metadata 'nbgrader'"),
    "an unlocked check": (
        EXERCISE, 'half-it-check",\n     "locked": true', 'half-it-check",\n     "locked": false', "half-it-check", "metadata 'nbgrader'",
    ),
    "a changed id": (LESSON, '"id": "formula"', '"id": "equation"', "formula", "missing; wanted 'Twice is a sum"),
    "an id twice": (LESSON, '"id": "formula"', '"id": "title"', "title", "wanted an id of its own, got 2 cells with it"),
    "an id gone": (LESSON, '"id": "try-it",\n', "", "try-it", "missing; wanted 'print(double(21))'"),
}  # fmt: skip


def test_a_fresh_build_has_no_problem(built):
    assert built.check() == []


@pytest.mark.parametrize(("name", "old", "new", "cell", "message"), EDITS.values(), ids=EDITS)
def test_an_edit_by_hand_is_found(built, name, old, new, cell, message):
    built.edit(name, old, new)
    problems = built.check()
    assert {problem.file for problem in problems} == {name}
    assert any(problem.cell == cell and message in problem.message for problem in problems), problems
    assert all("\n" not in str(problem) for problem in problems)


def test_a_finding_shows_where_two_long_lines_part(built):
    built.edit("notebooks/src/double.py", "# Twice is", f"# {'Very, ' * 40}twice is")
    built.build()
    built.edit(LESSON, "2x = x + x", "2x = x + y")
    (problem,) = built.check()
    wanted, got = (rf"'...y, twice is a sum: $$2x = x + {end} \tag{{2.1}}$$'" for end in "xy")
    assert (problem.cell, problem.message) == ("formula", f"line 1: wanted {wanted}, got {got}")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": []}', '{"metadata": {}, "cells": 3, "nbformat": 4, "nbformat_minor": 5}'])
def test_a_file_that_is_no_notebook_is_found(built, text):
    built.write(LESSON, text)
    (problem,) = built.check()
    assert (problem.file, problem.cell) == (LESSON, None)
    assert "wanted a notebook of format 4.5" in problem.message


def test_missing_and_extra_notebooks_are_found(built):
    (built.root / SOLUTION).unlink()
    built.write("exercises/07_other.ipynb", built.read(EXERCISE))
    assert [str(problem) for problem in built.check()] == [
        "solutions/02_double.ipynb: missing; run attn-course notebooks build",
        "exercises/07_other.ipynb: no source: wanted one under src/, or the notebook removed",
    ]


def test_cells_added_and_moved_are_found(built):
    notebook = json.loads(built.read(LESSON))
    notebook["cells"].insert(2, {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "A note."})
    notebook["cells"][0], notebook["cells"][1] = notebook["cells"][1], notebook["cells"][0]
    built.write(LESSON, json.dumps(notebook))
    found = {problem.cell: problem.message for problem in built.check()}
    assert found["mine"] == "a cell that the source does not have"
    assert found["title"] == "out of order: wanted it where 'setup' stands"


def test_stale_notebooks_are_found(built):
    built.edit("attn_course/reference/double.py", "x + x", "2 * x")
    (problem,) = built.check()
    assert (problem.file, problem.cell) == (LESSON, None)
    assert problem.message.startswith("stale: ")


def test_a_changed_source_is_found_in_its_cell(built):
    built.edit("notebooks/src/double.py", "Twice", "Two times")
    assert [problem.cell for problem in built.check()] == [None, "formula"]


def test_a_source_that_cannot_be_built_is_a_problem_of_its_own(built):
    built.edit("notebooks/src/double.py", 'id="formula"', 'id="title"')
    (problem,) = built.check()
    assert str(problem) == ("notebooks/src/double.py: cell 3: wanted an id of its own, got 'title' a second time")


def test_outputs_in_an_exercise_are_found(built):
    notebook = json.loads(built.read(EXERCISE))
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "double-it-check")
    cell.update(execution_count=7, outputs=[{"output_type": "stream", "name": "stdout", "text": ["ok\n"]}])
    built.write(EXERCISE, json.dumps(notebook))
    assert [(problem.cell, problem.message) for problem in built.check()] == [
        ("double-it-check", "wanted a pristine exercise, got 1 outputs and execution count 7")
    ]


def test_stripped_outputs_are_found(built):
    notebook = json.loads(built.read(LESSON))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
    built.write(LESSON, json.dumps(notebook))
    assert [problem.cell for problem in built.check()] == ["setup", "try-it"]


def test_a_check_changes_nothing(built):
    built.edit(LESSON, "2x = x + x", "3x = x + x")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in built.root.rglob("*") if path.is_file()}
    built.check()
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in built.root.rglob("*") if path.is_file()}
    assert built.runs == []


def test_only_limits_a_check_to_its_lesson(built):
    built.write("notebooks/src/triple.py", '# %% [markdown] id="title"\n# # Half\n')
    assert built.check(only=["2"]) == []
    assert [problem.file for problem in built.check()] == ["notebooks/03_triple.ipynb"]
