"""What the tests of answers share: where the chapters' notebooks and right answers are, and how an answer is put to a task."""

import importlib
from functools import cache
from pathlib import Path

import nbformat
import numpy as np

from attn_course.numbers import lesson_in
from attn_course.tasks import all_tasks, get_task, judge, run
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.gates import Bench, as_answer

FUNCTION_TASKS = [task for task in all_tasks() if task.wants_function]
DERIVE_TASKS = [task for task in all_tasks() if task.kind == "derive"]


def notebook(root: Path, folder: str, lesson: str) -> nbformat.NotebookNode:
    """The one notebook of a lesson in exercises/ or solutions/."""
    (path,) = (path for path in (root / folder).glob("*.ipynb") if lesson_in(path.name) == lesson)
    return nbformat.read(path, as_version=4)


@cache
def shown(root: Path, task_id: str) -> tuple[str, str]:
    """The question of a task and the cell that answers it, as the solution has them."""
    task = get_task(task_id)
    cells = {cell.id: cell.source for cell in notebook(root, "solutions", task.lesson).cells}
    return cells[f"{task_id}-text"].removeprefix(task.card).partition("<details>")[0].strip(), cells[task_id]


def right_answers(task):
    """The right answers of tests/exercises/right_answers, in the form the learner hands in."""
    chapter = importlib.import_module(f"tests.exercises.right_answers.{task.lesson}")
    return [as_answer(task, function) for function in chapter.RIGHT[task.id]]


def run_and_judge(task, answer, time_limit_s=10.0):
    """The verdict without a look at the source, as in a class."""
    cases = task.draw(np.random.default_rng(CHECK_SEED))
    inputs = [case.inputs for case in cases]
    results = run(
        answer, inputs, kind=task.kind, entry=task.entry, symbols=task.symbols, functions=task.functions, time_limit_s=time_limit_s
    )
    return judge(task, cases, results, expect=_bench(task.id).expect)


@cache
def _bench(task_id):
    """What the task's own answer and mistakes give is computed once."""
    return Bench(get_task(task_id))
