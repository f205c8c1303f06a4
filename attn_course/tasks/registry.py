"""Find tasks: each chapter's file attn_course/tasks/chNN.py holds them in its list TASKS."""

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any

from attn_course.tasks.core import Task


class UnknownTask(ValueError):
    """There is no task of that id."""


def get_task(task_id: str) -> Task:
    """Return a task by its id.

    Parameters
    ----------
    task_id : str
        Chapter and number, such as "2.1".

    Returns
    -------
    task : Task
        The task.

    Raises
    ------
    UnknownTask
        If the id is malformed, or there is no such task.
    """
    if not isinstance(task_id, str) or not re.fullmatch(r"\d+\.\d+", task_id):
        raise UnknownTask(f"a task id must look like '2.1'; got {task_id!r}")
    chapter = int(task_id.split(".")[0])
    known = {task.id: task for task in _chapter_tasks(chapter)} if chapter in chapters() else {}
    if task_id not in known:
        listed = ", ".join(known) if known else f"chapters with tasks: {', '.join(map(str, chapters()))}"
        raise UnknownTask(f"there is no task {task_id}; {listed}")
    return known[task_id]


def figure_data(task_id: str) -> dict[str, Any]:
    """Return what the figure of a figure task is drawn from; the exercise passes it on to a function of `figures`.

    Parameters
    ----------
    task_id : str
        Such as "2.7".

    Returns
    -------
    data : dict
        Arguments of the figure, by name.

    Raises
    ------
    ValueError
        If there is no such task, or it is not about a figure.
    """
    task = get_task(task_id)
    if task.figure_data is None:
        raise ValueError(f"task_id must name a figure task; task {task_id} is of the kind {task.kind!r}")
    return task.figure_data()


def all_tasks(chapter: int | None = None) -> list[Task]:
    """Return the tasks of a chapter, or of all chapters, in their order."""
    wanted = chapters() if chapter is None else [chapter]
    return [task for number in wanted if number in chapters() for task in _chapter_tasks(number)]


def chapters() -> list[int]:
    """Return the numbers of the chapters that have tasks."""
    return list(_chapters())


@cache
def _chapters() -> tuple[int, ...]:
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return tuple(sorted(int(name[2:]) for name in names if re.fullmatch(r"ch\d\d", name)))


@cache
def _chapter_tasks(chapter: int) -> tuple[Task, ...]:
    module = importlib.import_module(f"attn_course.tasks.ch{chapter:02d}")
    tasks: list[Task] = module.TASKS
    wanted = [f"{chapter}.{n}" for n in range(1, len(tasks) + 1)]
    if [task.id for task in tasks] != wanted:
        raise ValueError(f"TASKS of chapter {chapter} must have the ids {wanted}; got {[task.id for task in tasks]}")
    return tuple(tasks)
