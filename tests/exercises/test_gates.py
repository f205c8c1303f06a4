"""The four gates every task must pass; a chapter joins by registering tasks and right answers.

The solution passes, the untouched exercise fails at its check cells and nowhere else, every known wrong answer fails with
its own hint, and right answers written in other ways pass.
"""

import inspect
import os
import re
import sys

import numpy as np
import pytest
from nbclient import NotebookClient

from attn_course.grading.warm_kernels.provisioner import use_warm_kernel
from attn_course.numbers import cite
from attn_course.tasks import all_tasks, assess, lessons
from attn_course.tasks.notebook import plain
from tests.exercises.answers import SEEDS, as_answer, notebook, right_answers, run_and_judge

TASKS = all_tasks()
WRONGS = [pytest.param(task, wrong, id=f"{task.id}-{wrong.name}") for task in TASKS for wrong in task.wrong]


def task_id(task):
    return task.id


def cells_tagged(book, tag):
    return [cell for cell in book.cells if tag in cell.metadata.get("tags", [])]


@pytest.fixture(scope="module", params=lessons())
def solution(request, root):
    """A chapter, the code of its solution without the checks, and the names that this code defines."""
    book = notebook(root, "solutions", request.param)
    texts = [text for tag in ("setup", "given", "task") for text in [cell.source for cell in cells_tagged(book, tag)]]
    names = {"__name__": "__main__"}
    for text in texts:
        assert "attn_course" not in text, "an answer must not lean on the course's own code"
        exec(text, names)
    return request.param, texts, names


# --- 1: the solution passes --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_every_solution_passes_on_the_notebooks_cases_and_on_fresh_ones(solution, seed):
    chapter, texts, names = solution
    for task in all_tasks(chapter):
        verdict = assess(task, names[task.entry], texts, names, seed=seed)
        assert verdict.passed, plain(verdict)
        assert (verdict.points, verdict.message) == (task.points, task.ok_line)


@pytest.mark.parametrize("chapter", lessons())
@pytest.mark.parametrize("folder", ["solutions", "exercises"])
def test_every_task_has_one_answer_cell_and_one_check_cell_in_order(root, folder, chapter):
    book, tasks = notebook(root, folder, chapter), all_tasks(chapter)
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
        if task.kind == "repair":
            assert cell.source == task.broken_source
        elif task.wants_function:
            assert "    # YOUR CODE HERE\n    raise NotImplementedError()" in cell.source
        else:
            assert cell.source == f"{task.entry} = ...  # your answer"
        inside = re.search(r"### BEGIN SOLUTION\n(.+?)\n *### END SOLUTION", solved.source, re.DOTALL).group(1)
        assert inside.strip() not in cell.source


# --- 2: the untouched exercise fails at exactly its check cells --------------------------------------


@pytest.fixture(scope="module", params=lessons())
def untouched(request, root, tmp_path_factory, warm):
    """A chapter, and its exercise notebook after a run that goes on after errors."""
    book = notebook(root, "exercises", request.param)
    folder = str(tmp_path_factory.mktemp("untouched"))  # not work/: nothing is recorded
    client = NotebookClient(book, timeout=60, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": folder}})
    client.create_kernel_manager().kernel_spec.argv[0] = sys.executable  # whatever kernels this machine has
    variables = use_warm_kernel(client.km, warm)
    return request.param, client.execute(env={**os.environ, "IPYTHONDIR": folder, **variables})


def test_the_untouched_exercise_fails_at_exactly_its_check_cells_naming_each_task(untouched):
    chapter, book = untouched
    errors = {cell.id: output for cell in book.cells for output in cell.get("outputs", []) if output.output_type == "error"}
    assert list(errors) == [f"{task.id}-check" for task in all_tasks(chapter)]
    for task in all_tasks(chapter):
        error = errors[f"{task.id}-check"]
        assert error.ename == "CheckFailed"
        assert error.evalue.startswith(f"task {task.number} ({task.title}): ")
        assert len(error.traceback) == 1, "the learner wants the reason, not our stack"


def test_a_failing_check_cell_shows_one_bundle_with_its_verdict(untouched):
    chapter, book = untouched
    for task, cell in zip(all_tasks(chapter), cells_tagged(book, "check"), strict=True):
        shown, error = cell.outputs
        assert shown.output_type == "display_data"
        assert set(shown.data) == {"text/html", "text/plain", "application/vnd.attn-course.verdict+json"}
        verdict = shown.data["application/vnd.attn-course.verdict+json"]
        assert (verdict["task"], verdict["passed"], verdict["points"], verdict["max_points"]) == (task.id, False, 0, task.points)
        assert shown.data["text/plain"] == error.evalue


def test_an_untouched_answer_is_told_that_it_is_none_yet_and_a_function_to_repair_that_it_is_not_right(untouched):
    chapter, book = untouched
    for task, cell in zip(all_tasks(chapter), cells_tagged(book, "check"), strict=True):
        wanted = " First wrong: " if task.kind == "repair" else f"{task.entry} has no answer yet"
        assert wanted in cell.outputs[-1].evalue


# --- 3: every known wrong answer fails with its own hint ---------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("task", "wrong"), WRONGS)
def test_a_known_wrong_answer_fails_with_its_own_name_and_hint(task, wrong, seed):
    verdict = run_and_judge(task, as_answer(task, wrong.function), seed)
    assert (verdict.passed, verdict.points) == (False, 0)
    assert (verdict.mistake, verdict.hint) == (wrong.name, cite(wrong.hint))
    assert f"this is “{wrong.name}”" in verdict.message


@pytest.mark.parametrize(("task", "wrong"), [param for param in WRONGS if param.values[0].wants_function])
def test_a_known_wrong_answer_is_known_in_float32_too(task, wrong):
    def narrow(*inputs):
        result = wrong.function(*inputs)
        return tuple(np.float32(item) for item in result) if isinstance(result, tuple) else result.astype(np.float32)

    verdict = run_and_judge(task, narrow)
    assert verdict.mistake == wrong.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", [task for task in TASKS if task.broken is not None], ids=task_id)
def test_the_function_to_repair_fails(task, seed):
    assert not assess(task, task.broken, seed=seed).passed


@pytest.mark.parametrize("task", [task for task in TASKS if task.kind in ("predict", "figure")], ids=task_id)
def test_no_message_tells_a_number_that_is_the_learners_to_find(task):
    rights = [f"{number:.3g}" for number in np.ravel(task.answer())]
    for wrong in task.wrong:
        message = run_and_judge(task, wrong.function()).message
        given = {f"{number:.3g}" for number in np.ravel(wrong.function())}
        numbers = {f"{float(number):.3g}" for number in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", message.removeprefix(task.entry))}
        assert not (numbers - given) & set(rights)


# --- 4: right answers written in other ways pass -----------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", TASKS, ids=task_id)
def test_right_answers_written_in_other_ways_pass(task, seed):
    answers = right_answers(task)
    assert len(answers) >= 2
    for answer in answers:
        verdict = assess(task, answer, seed=seed)
        assert verdict.passed, f"{getattr(answer, '__name__', answer)}: {plain(verdict)}"


@pytest.mark.parametrize("task", [task for task in TASKS if task.wants_function], ids=task_id)
def test_the_other_ways_differ_from_each_other_and_among_them_are_torch_and_float32(task):
    answers = right_answers(task)
    bodies = {inspect.getsource(answer).partition(":\n")[2] for answer in answers}
    assert len(bodies) == len(answers)
    inputs = task.cases(np.random.default_rng(0))[0].inputs.values()
    with np.errstate(all="ignore"):
        first = [result[-1] if isinstance(result := answer(*inputs), tuple) else result for answer in answers]
    assert {"Tensor", "ndarray"} <= {"ndarray" if isinstance(item, (np.ndarray, float)) else type(item).__name__ for item in first}
    assert {"float32", "float64"} <= {str(getattr(item, "dtype", "float64")).removeprefix("torch.") for item in first}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", TASKS, ids=task_id)
def test_the_cases_of_a_seed_are_always_the_same_and_hold_shapes_whose_axes_differ(task, seed):
    once, again = (task.cases(np.random.default_rng(seed)) for _ in range(2))
    assert len({case.name for case in once}) == len(once)
    for case, other in zip(once, again, strict=True):
        assert (case.name, repr(case.inputs)) == (other.name, repr(other.inputs))
        shapes = [value.shape for value in case.inputs.values() if isinstance(value, np.ndarray)]
        assert all(len(set(shape)) == len(shape) for shape in shapes)
