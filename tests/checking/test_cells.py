"""Reading notebooks that anyone may have edited."""

import json
import os

import pytest

from attn_course.checking.cells import NotebookError, read_code_cells
from attn_course.checking.notebook_check import plan_check
from tests.classroom import toy


def _json(data):
    return lambda path: path.write_text(json.dumps(data), encoding="utf-8")


def _notebook(**changes):
    return _json({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": toy.cells({})} | changes)


def _truncated(path):
    toy.write(path, toy.cells({}))
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) // 2], encoding="utf-8")


def _huge(path):
    with path.open("wb") as stream:
        stream.truncate(80 * 2**20)  # a hole: no disk is used


def _check(task):
    return toy.cell(f'check("{task}", something)', "a-check")


NAMES = {"prose": "notes.md", "tasks of two chapters": "mine.ipynb", "another chapter without its name": "mine.ipynb"}
# what is no notebook anyone can judge, and the words that its complaint must hold
BAD_FILES = {
    "a named pipe": (os.mkfifo, "is not a regular file"),  # nobody waits for a writer
    "missing": (lambda path: None, "no such file"),
    "directory": (lambda path: path.mkdir(), "is a directory"),
    "prose": (lambda path: path.write_text("# Notes\n", encoding="utf-8"), "is not a notebook: not valid JSON at line 1"),
    "truncated JSON": (_truncated, "is cut short or damaged"),
    "empty file": (lambda path: path.touch(), "is empty"),
    "JSON but a list": (_json([1, 2]), "is JSON, but not a notebook"),
    "JSON but no notebook": (_json({"cells": []}), "no nbformat number"),
    "cells that are no list": (_notebook(cells="all"), "no list of cells"),
    "nested too deep": (lambda path: path.write_text("[" * 200_000, encoding="utf-8"), "is not a notebook"),
    "a number of 5000 digits": (lambda path: path.write_text('{"nbformat": ' + "4" * 5000 + "}"), "absurd numbers"),
    "format 3": (_notebook(nbformat=3), "is in notebook format 3"),
    "no cells": (_notebook(cells=[]), "without cells"),
    "a cell that is text": (_notebook(cells=["print(1)"]), "cell 1 is no code, markdown or raw cell"),
    "a cell whose source is a number": (_notebook(cells=[{"cell_type": "code", "source": 7, "metadata": {}}]), "cell 1 has no text"),
    "binary": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff"), "byte 0 is not UTF-8"),
    "UTF-16": (lambda path: path.write_text('{"nbformat": 4}', encoding="utf-16"), "is not UTF-8"),
    "huge": (_huge, "is too large (80 MiB; at most 64)"),
    "in R": (_notebook(metadata={"kernelspec": {"language": "R"}}), "is a notebook in r"),
    "a lesson": (_notebook(cells=[toy.cell("print(1)", "hello")]), "holds no task of the course"),
    "tasks of two chapters": (_notebook(cells=[_check("of-another"), _check("twice")]), "tasks of chapters 96 and 97"),
    "a task by its number": (
        _notebook(cells=[_check("97.1")]),
        "a number, 97.1, is not accepted in the place of a task's name: write check('twice'",
    ),
    "a number as the id of a cell": (
        _notebook(cells=[toy.cell("x = 1", "task-98-1-check")]),
        "task's name: write the name that stands in the exer",
    ),
    "another chapter": (_notebook(cells=[_check("of-another")]), "is named for the lesson toy but holds tasks of another"),
    "another chapter without its name": (_notebook(cells=[_check("of-another")]), "holds tasks of chapter 96, for which"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gets_one_line_that_names_it(name, toy_course):
    make, words = BAD_FILES[name]
    path = toy_course / "work" / NAMES.get(name, "ex_97_toy.ipynb")
    make(path)
    with pytest.raises(NotebookError) as caught:
        plan_check(path, exercises=toy_course / "exercises")
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_path_with_a_null_byte_is_refused(tmp_path):
    with pytest.raises(NotebookError):
        read_code_cells(tmp_path / "a\0b.ipynb")


def test_a_byte_order_mark_sources_as_lists_of_lines_and_markdown_are_welcome(tmp_path):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "# Hi"}, toy.cell("", "x") | {"source": ["a = 1\n", "b = 2"]}]
    path = toy.write(tmp_path / "a.ipynb", cells)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [cell.source for cell in read_code_cells(path)] == ["a = 1\nb = 2"]


def role(tmp_path, source="", cell_id=None, metadata=None):
    raw = {"cell_type": "code", "id": cell_id, "metadata": metadata or {}, "source": source}
    (cell,) = read_code_cells(toy.write(tmp_path / "a.ipynb", [raw]))
    return cell.role, cell.task


def test_a_cell_is_known_by_the_id_of_nbgrader_else_its_own_else_the_one_that_colab_keeps(tmp_path):
    metadata = {"nbgrader": {"grade_id": "repair-transposed-weights-check"}}
    assert role(tmp_path, cell_id="repair-mixed-batch", metadata=metadata) == ("check", "repair-transposed-weights")
    assert role(tmp_path, cell_id="split-heads") == ("answer", "split-heads")
    assert role(tmp_path, cell_id="Zk3h2", metadata={"id": "repair-transposed-weights-check"}) == ("check", "repair-transposed-weights")


@pytest.mark.parametrize(
    "source",
    [
        'check("repair-transposed-weights", my_softmax)',
        "# once more\n\ncheck( 'repair-transposed-weights', my_softmax );\n",
        'check("repair-transposed-weights", lambda x: (x, 1))',
    ],
)
def test_a_cell_without_ids_is_known_by_its_call_of_check(tmp_path, source):
    assert role(tmp_path, source, cell_id="a1b2c3") == ("check", "repair-transposed-weights")


@pytest.mark.parametrize(
    "source",
    [
        'def my_softmax(x):\n    return x\ncheck("repair-transposed-weights", my_softmax)',
        'a = 1\ncheck("repair-transposed-weights", a)',
        "check(4.2, a)",
        'recheck("repair-transposed-weights", a)',
        '# check("repair-transposed-weights", a)',
    ],
)
def test_an_answer_that_calls_check_at_its_end_is_no_check_cell(tmp_path, source):
    assert role(tmp_path, source) == ("other", None)


@pytest.mark.parametrize(
    "metadata", [{"nbgrader": "yes"}, {"nbgrader": {"grade_id": 7}}, {"tags": "task"}, {"id": ["repair-transposed-weights"]}]
)
def test_odd_metadata_does_no_harm(tmp_path, metadata):
    assert role(tmp_path, "a = 1", metadata=metadata) == ("other", None)


def test_the_first_line_that_is_no_comment_names_a_cell(tmp_path):
    path = toy.write(
        tmp_path / "a.ipynb", [toy.cell("# first\n\nimport numpy as np", "x"), toy.cell("y = " + "1" * 90, "y"), toy.cell("", "z")]
    )
    first, second, third = read_code_cells(path)
    assert first.first_line == "import numpy as np"
    assert len(second.first_line) == 40
    assert third.first_line == ""
