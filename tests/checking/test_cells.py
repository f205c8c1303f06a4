"""Reading notebooks that anyone may have edited."""

import os

import pytest

from attn_course.checking.cells import NotebookError, read_code_cells
from attn_course.checking.notebook_check import plan_check
from tests.classroom import toy
from tests.classroom.bad_files import BAD_FILES, spoil


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gets_one_line_that_names_it(name, toy_course):
    path, words = spoil(toy_course / "work", name)
    with pytest.raises(NotebookError) as caught:
        plan_check(path, exercises=toy_course / "exercises")
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_path_with_a_null_byte_is_refused(tmp_path):
    with pytest.raises(NotebookError):
        read_code_cells(tmp_path / "a\0b.ipynb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a Unix thing")
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe.ipynb")
    with pytest.raises(NotebookError, match="is not a regular file"):
        read_code_cells(tmp_path / "pipe.ipynb")


def test_a_byte_order_mark_and_sources_as_lists_of_lines_are_welcome(tmp_path):
    path = toy.write(tmp_path / "a.ipynb", [toy.cell("", "x") | {"source": ["a = 1\n", "b = 2"]}])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [cell.source for cell in read_code_cells(path)] == ["a = 1\nb = 2"]


def test_markdown_is_left_out(tmp_path):
    path = toy.write(tmp_path / "a.ipynb", [{"cell_type": "markdown", "metadata": {}, "source": "# Hi"}, toy.cell("a", "x")])
    assert [cell.source for cell in read_code_cells(path)] == ["a"]


def role(tmp_path, source="", cell_id=None, metadata=None):
    raw = {"cell_type": "code", "id": cell_id, "metadata": metadata or {}, "source": source}
    (cell,) = read_code_cells(toy.write(tmp_path / "a.ipynb", [raw]))
    return cell.role, cell.task


def test_a_cell_is_known_by_the_id_of_nbgrader_first(tmp_path):
    metadata = {"nbgrader": {"grade_id": "repair-transposed-weights-check"}}
    assert role(tmp_path, cell_id="repair-mixed-batch", metadata=metadata) == ("check", "repair-transposed-weights")


def test_a_cell_is_known_by_its_own_id(tmp_path):
    assert role(tmp_path, cell_id="split-heads") == ("answer", "split-heads")


def test_a_cell_is_known_by_the_id_that_colab_keeps_in_its_metadata(tmp_path):
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
