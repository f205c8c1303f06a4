"""Building with a real kernel: what cells see, what is stored, and how a failing cell is reported."""

import json
import sys

import pytest

from attn_course.authoring import AuthoringError

from .conftest import SERIES, ToyCourse

LESSON = """\
# %% id="where"
import os, sys
from pathlib import Path

print(Path.cwd().name, os.environ["PYTHONHASHSEED"], os.environ["OMP_NUM_THREADS"], os.environ["MPLBACKEND"].rpartition(".")[2])
print(Path(sys.executable).samefile(os.environ["BUILDER_PYTHON"]))
print("two writes, ", end="", flush=True)
print("one output")

# %% id="package"
from attn_course.reference import double

double(21)

# %% id="live" tags=["live"]
import time

print(time.perf_counter())

# %% id="raises" tags=["raises-exception"]
raise ValueError("on purpose")

# %% id="after"
print("done")
"""


def course_of(root, lesson):
    toy = ToyCourse(root)
    toy.write("notebooks/series.toml", SERIES)
    toy.write("notebooks/src/double.py", lesson)
    return toy


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    toy, steps = course_of(tmp_path_factory.mktemp("course"), LESSON), []
    toy.write("attn_course/__init__.py", "")
    toy.write("attn_course/reference/__init__.py", "def double(x):\n    return x + x\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUILDER_PYTHON", sys.executable)
        toy.build(execute=None, progress=steps.append)
    return toy, json.loads(toy.read("notebooks/02_double.ipynb"))["cells"], steps


def test_cells_run_in_the_notebooks_folder_with_a_fixed_environment(built_once):
    cells = built_once[1]
    assert [output["name"] for output in cells[0]["outputs"]] == ["stdout"]
    assert cells[0]["outputs"][0]["text"][:2] == ["notebooks 0 1 backend_inline\n", "True\n"]


def test_writes_to_one_stream_are_one_output(built_once):
    assert built_once[1][0]["outputs"][0]["text"][2] == "two writes, one output\n"


def test_cells_import_the_package_of_the_course_that_is_built(built_once):
    (result,) = built_once[1][1]["outputs"]
    assert (result["output_type"], result["data"]["text/plain"], result["execution_count"]) == ("execute_result", ["42"], 2)


def test_live_cells_run_and_keep_nothing(built_once):
    assert (built_once[1][2]["execution_count"], built_once[1][2]["outputs"]) == (None, [])


def test_a_cell_that_is_meant_to_raise_keeps_its_error_without_paths(built_once):
    assert built_once[1][3]["outputs"] == [
        {"output_type": "error", "ename": "ValueError", "evalue": "on purpose", "traceback": ["ValueError: on purpose"]}
    ]
    assert built_once[1][4]["execution_count"] == 5


def test_no_cell_carries_times_and_no_file_is_left(built_once):
    toy, cells, _ = built_once
    assert all(set(cell["metadata"]) <= {"tags"} for cell in cells)
    assert sorted(path.name for path in (toy.root / "notebooks").iterdir()) == ["02_double.ipynb", "series.toml", "src"]


def test_a_notebook_that_was_run_passes_the_check(built_once):
    assert built_once[0].check() == []


def test_progress_names_each_cell_before_it_runs(built_once):
    runs = [(step.cell, step.number, step.total) for step in built_once[2] if step.action == "run"]
    assert runs == [("where", 1, 5), ("package", 2, 5), ("live", 3, 5), ("raises", 4, 5), ("after", 5, 5)]


def test_a_failing_cell_is_named_with_its_line_and_nothing_is_written(tmp_path):
    toy = course_of(tmp_path, '# %% id="fine"\nx = 0\n\n# %% id="broken"\ny = 2\ny / x\n')
    with pytest.raises(AuthoringError) as caught:
        toy.build(execute=None)
    assert str(caught.value) == "notebooks/02_double.ipynb: cell 'broken' failed: ZeroDivisionError: division by zero (line 2: 'y / x')"
    assert not (tmp_path / "notebooks" / "02_double.ipynb").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import time; time.sleep(60)", "cell 'stuck' did not finish: A cell timed out"),
        ("import os; os._exit(1)", "cell 'stuck' did not finish: Kernel died"),
    ],
)
def test_a_cell_that_never_ends_is_named(tmp_path, monkeypatch, line, message):
    monkeypatch.setattr("attn_course.authoring.execute.CELL_TIMEOUT_S", 2)
    with pytest.raises(AuthoringError, match=message) as caught:
        course_of(tmp_path, f'# %% id="stuck"\n{line}\n').build(execute=None)
    assert "\n" not in str(caught.value)
