"""The built exercises: a cell for each answer and each check, no answer in sight, and a run fails at the checks and nowhere else.

That solutions and other right answers pass, and known mistakes do not, is the gate's part: tests/notebooks/test_sync.py.
"""

import os
import re

import nbformat
import pytest
from nbclient import NotebookClient

from attn_course.tasks import all_tasks, lessons
from attn_course.tasks.registry import declared_tasks
from tests.exercises.answers import notebook


def cells_tagged(book, tag):
    return [cell for cell in book.cells if tag in cell.metadata.get("tags", [])]


@pytest.mark.parametrize("chapter", lessons())
@pytest.mark.parametrize("folder", ["solutions", "exercises"])
def test_every_task_has_one_answer_cell_and_one_check_cell_in_order(root, folder, chapter):
    book, tasks = notebook(root, folder, chapter), all_tasks(chapter)
    if folder == "solutions":  # they also hold what the lesson asks its reader and what earlier exercises asked, at the end
        tasks += [task for task in declared_tasks(chapter) if not task.in_exercises]
    assert [cell.id for cell in cells_tagged(book, "task")] == [task.id for task in tasks]
    checks = cells_tagged(book, "check")
    assert [cell.id for cell in checks] == [f"{task.id}-check" for task in tasks]
    assert [cell.source for cell in checks] == [f'check("{task.id}", {task.entry})' for task in tasks]


@pytest.mark.parametrize("chapter", lessons())
def test_no_exercise_holds_an_answer_or_an_output(root, chapter):
    book = notebook(root, "exercises", chapter)
    assert not any(cell.get("outputs") for cell in book.cells)
    for task, cell in zip(all_tasks(chapter), cells_tagged(book, "task"), strict=True):
        solved = next(other for other in notebook(root, "solutions", chapter).cells if other.id == cell.id)
        assert "SOLUTION" not in cell.source
        if task.kind in ("repair", "derivation"):
            assert cell.source == task.handed_out
        elif task.wants_function:
            assert "    # YOUR CODE HERE\n    raise NotImplementedError()" in cell.source
        else:
            assert cell.source == f"{task.entry} = ...  # your answer"
        inside = re.search(r"### BEGIN SOLUTION\n(.+?)\n *### END SOLUTION", solved.source, re.DOTALL).group(1)
        assert inside.strip() not in cell.source


def test_untouched_exercises_fail_at_exactly_their_check_cells_each_with_one_bundle_that_says_what_is_missing(root, tmp_path, warm_python):
    """A run goes on after errors; one kernel runs all lessons and forgets every name before the next."""
    books = {lesson: notebook(root, "exercises", lesson) for lesson in lessons()}
    run = nbformat.v4.new_notebook()
    for chapter, book in books.items():
        for cell in book.cells:
            cell.id = f"{chapter}-{cell.id}"
        run.cells += [nbformat.v4.new_code_cell("get_ipython().reset()"), *book.cells]
    options = {"kernel_name": "python3", "allow_errors": True, "resources": {"metadata": {"path": str(tmp_path)}}}  # not work/: no record
    client = NotebookClient(run, timeout=60, **options)
    client.create_kernel_manager().kernel_spec.argv[0] = warm_python  # whatever kernels this machine has
    client.execute(env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    for chapter, book in books.items():
        tasks = all_tasks(chapter)
        failed = [cell.id for cell in book.cells for output in cell.get("outputs", []) if output.output_type == "error"]
        assert failed == [f"{chapter}-{task.id}-check" for task in tasks]
        for task, cell in zip(tasks, cells_tagged(book, "check"), strict=True):
            shown, error = cell.outputs
            assert error.ename == "CheckFailed"
            assert error.evalue.startswith(f"task {task.number} ({task.title}): ")
            assert len(error.traceback) == 1, "the learner wants the reason, not our stack"
            wrong = ("The first wrong number", "The number ", "Shape or form: ")
            wanted = wrong if task.kind == "repair" else (f"{task.entry} has no answer yet",)
            assert any(words in error.evalue for words in wanted)
            assert shown.output_type == "display_data"
            assert set(shown.data) == {"text/html", "text/plain", "application/vnd.attn-course.verdict+json"}
            verdict = shown.data["application/vnd.attn-course.verdict+json"]
            assert (verdict["task"], verdict["passed"], verdict["points"], verdict["max_points"]) == (task.id, False, 0, task.points)
            assert shown.data["text/plain"] == error.evalue
