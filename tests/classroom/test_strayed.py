"""What learners do to notebooks in other tools: both engines say what became of an answer, and judge what is left."""

import json
import re
import subprocess
import sys

import pytest

from attn_course.checking.cells import NotebookError, read_code_cells
from attn_course.checking.notebook_check import check_notebook, plan_check
from tests.classroom import toy

MARKDOWN = "the answer cell is a Markdown cell now, which does not run: make it code again (in JupyterLab: Esc, then Y)"
RAW = MARKDOWN.replace("Markdown", "Raw")


def turned(cells, **kinds):
    """Cells of which some, by id, are of another kind now; an editor drops what only code has."""
    for cell in cells:
        if kind := kinds.get(cell["id"]):
            cell["cell_type"] = kind
            del cell["outputs"], cell["execution_count"]
    return cells


def test_an_answer_that_is_no_code_any_more_is_told_so_by_both(toy_course, grader):
    cells = turned(toy.cells(toy.RIGHT), twice="markdown", thrice="raw")
    path = toy.write(toy_course / "work" / "ex_97_toy.ipynb", cells)
    checked, graded = check_notebook(path, exercises=toy_course / "exercises").tasks, grader.grade(path, student="ada").verdicts
    assert [task.status for task in checked] == ["missing", "missing", "passed"]
    assert [task.message for task in checked[:2]] == [verdict.message for verdict in graded[:2]] == [MARKDOWN, RAW]
    assert [verdict.points for verdict in graded] == [0, 0, 4]


def test_all_code_in_one_cell_is_judged_by_the_name_of_the_file_in_both(toy_course, grader):
    whole = "\n".join([*toy.RIGHT.values(), 'check("twice", twice)'])
    path = toy.write(toy_course / "work" / "ex_97_toy.ipynb", [toy.cell(toy.SETUP, "first"), toy.cell(whole, "all")])
    checked, graded = check_notebook(path, exercises=toy_course / "exercises").tasks, grader.grade(path, student="ada").verdicts
    assert [task.points for task in checked] == [verdict.points for verdict in graded] == [2, 3, 4]


def test_notes_that_are_named_for_a_lesson_and_answer_nothing_are_no_exercise(toy_course):
    path = toy.write(toy_course / "work" / "toy notes.ipynb", [toy.cell("x = 2", "mine")])
    with pytest.raises(NotebookError, match="holds no task of the course"):
        plan_check(path, exercises=toy_course / "exercises")


def test_conflict_markers_of_git_are_named_in_both(toy_course, grader):
    path = toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells(toy.RIGHT))
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([first, "<<<<<<< HEAD", *lines[:2], "=======", *lines[:2], ">>>>>>> theirs", *lines[2:]]), encoding="utf-8")
    said = (
        "holds conflict markers of git (line 2: <<<<<<< HEAD): keep one side, say with git checkout --ours or --theirs and the file's name"
    )
    with pytest.raises(NotebookError, match=re.escape(said)):
        read_code_cells(path)
    assert said in grader.grade(path, student="ada").problem


def test_the_line_of_the_readme_runs_files_that_other_tools_saved(root, tmp_path):
    guide = (root / "docs" / "learners-guide.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`pytest (--nbval [^`]+) work/ex_02_softmax\.ipynb`", guide)
    for name in ("python3-of-vs-code", ""):
        metadata = {"kernelspec": {"name": name, "display_name": "Python", "language": "python"}} if name else {}
        book = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": [toy.cell("x = 1", "a")]}
        (tmp_path / f"saved{name}.ipynb").write_text(json.dumps(book))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", *line.split(), "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("2 passed")) == (0, 1), done.stdout
