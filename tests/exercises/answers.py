"""What the gates share: where the chapters' notebooks and right answers are, and how an answer is put to a task."""

import importlib
from pathlib import Path

import nbformat
import numpy as np
import sympy

from attn_course.numbers import lesson_in
from attn_course.tasks import all_tasks, judge, run
from attn_course.tasks.core import CHECK_SEED

SEEDS = (CHECK_SEED, 1, 20, 300)  # notebooks always draw the same cases; a class draws its own
FUNCTION_TASKS = [task for task in all_tasks() if task.wants_function]
DERIVE_TASKS = [task for task in all_tasks() if task.kind == "derive"]


def notebook(root: Path, folder: str, lesson: str) -> nbformat.NotebookNode:
    """The one notebook of a lesson in exercises/ or solutions/."""
    (path,) = (path for path in (root / folder).glob("*.ipynb") if lesson_in(path.name) == lesson)
    return nbformat.read(path, as_version=4)


def right_answers(task):
    """The right answers of tests/exercises/right_answers, in the form the learner hands in."""
    chapter = importlib.import_module(f"tests.exercises.right_answers.{task.lesson}")
    return [as_answer(task, function) for function in chapter.RIGHT[task.id]]


def as_answer(task, function):
    """What a learner hands in, made from a function: itself, an expression or a value."""
    if task.wants_function:
        return function
    if task.kind == "derive":
        return function(*(sympy.Symbol(name, real=True) for name in task.symbols))
    return function()


def run_and_judge(task, answer, seed=CHECK_SEED, time_limit_s=10.0):
    """The verdict without a look at the source, as in a class."""
    cases = task.cases(np.random.default_rng(seed))
    inputs = [case.inputs for case in cases]
    results = run(
        answer, inputs, kind=task.kind, entry=task.entry, symbols=task.symbols, functions=task.functions, time_limit_s=time_limit_s
    )
    return judge(task, cases, results)
