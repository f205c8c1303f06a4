"""Find tasks: the files tasks*.py of each lesson hold them, and ORDER in tasks.py says in which order.

A folder of a teacher's own holds them in its tasks.py, in the order in which they stand there, or in that of ORDER.
"""

import importlib
import runpy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attn_course import numbers
from attn_course.tasks.asked import TaskError
from attn_course.tasks.core import Note, Task


class UnknownTask(ValueError):
    """There is no task of that id."""


class OwnTasksError(ValueError):
    """A folder does not hold a teacher's own tasks; the text is one line that names the file."""


@dataclass(frozen=True)
class _Own:
    """A teacher's own tasks: the folder they are in, and ORDER."""

    folder: Path
    order: list[str | Note]
    tasks: list[Task]


_OWN: dict[str, _Own] = {}  # by slug


def add_own(folder: Path) -> str:
    """Add a teacher's own tasks: those in the file tasks.py of a folder outside of the package.

    They make up a lesson behind all others, which is called like the folder and has no number. Adding it again changes nothing.

    Returns the lesson's slug. Raises OwnTasksError if there are none, or a name is one of the course's.
    """
    folder = folder.resolve()
    slug, path = folder.name, folder / "tasks.py"
    if slug in _OWN and _OWN[slug].folder == folder:
        return slug
    if not (slug.isascii() and slug.isidentifier() and slug.islower()) or slug in numbers.lessons():
        raise OwnTasksError(f"{folder}: wanted a folder whose name is a Python name in lower case and no lesson's; got {slug!r}")
    if not path.is_file():
        raise OwnTasksError(f"{path}: missing; wanted tasks, each a function below @asked(...)")
    try:
        defined = runpy.run_path(str(path), run_name=f"{slug}.tasks")
    except TaskError as error:
        raise OwnTasksError(str(error)) from error
    except Exception as error:  # a teacher's file may fail in any way
        raise OwnTasksError(f"{path}: cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}") from error
    tasks = [each for each in defined.values() if isinstance(each, Task)]
    if not tasks:
        raise OwnTasksError(f"{path}: wanted tasks, each a function below @asked(...); got none")
    listed = defined.get("ORDER", [task.id for task in tasks])
    try:
        tasks = _in_order(tasks, listed)
    except ValueError as error:
        raise OwnTasksError(f"{path}: {error}") from None
    ids = [task.id for task in tasks]
    for task in tasks:
        if ids.count(task.id) > 1 or numbers.lesson_of("tasks", task.id):
            raise OwnTasksError(f"{path}: wanted ids that no other task has; got {task.id!r} a second time")
        if len(task.variants) > 1:
            raise OwnTasksError(f"{path}: wanted the same numbers for all students; task {task.id!r} has variants")
    _OWN[slug] = _Own(folder, listed, tasks)
    numbers.add_lesson(slug, slug.replace("_", " ").capitalize(), ids)
    return slug


def own_exercises() -> dict[str, Path]:
    """Return where the exercises of the lessons that were added lie once they are built, by slug."""
    return {slug: own.folder / f"ex_{slug}.ipynb" for slug, own in _OWN.items()}


def get_task(task_id: str) -> Task:
    """Return a task by its id.

    Raises UnknownTask if there is no such task.
    """
    lesson = numbers.lesson_of("tasks", task_id) if isinstance(task_id, str) else None
    found = [task for task in declared_tasks(lesson) if task.id == task_id] if lesson in lessons() else []
    if not found:
        raise UnknownTask(numbers.unknown("task", task_id, [name for slug in lessons() for name in numbers.names("tasks", slug)]))
    return found[0]


def all_tasks(lesson: str | None = None) -> list[Task]:
    """Return the tasks of a lesson's exercises, or of all, in their order; neither retired ones nor what the lesson asks its reader."""
    return [task for slug in lessons() if lesson in (None, slug) for task in _lesson_tasks(slug)]


def asked_tasks(lesson: str, ids: Collection[str] | None) -> list[Task]:
    """Return the tasks that a class run judges: those of the lesson's exercises, or those that are named, retired ones too."""
    return all_tasks(lesson) if ids is None else [task for task in declared_tasks(lesson) if task.id in ids and not task.your_turn]


def lessons() -> list[str]:
    """Return the slugs of the lessons that have tasks, in their order."""
    return [*numbers.lessons_with("tasks"), *_OWN]


def declared_tasks(lesson: str) -> list[Task]:
    """Return the tasks of a lesson as its file lists them, those of its exercises and those that the lesson asks its reader.

    Raises ValueError if ORDER names a task that is not there, or does not name one that is.
    """
    if lesson in _OWN:
        return _OWN[lesson].tasks
    main = _main_file(lesson)
    if main is None:
        return []
    return _in_order([task for name in numbers.lesson_modules("tasks", lesson) for task in _tasks_in(name)], main.ORDER)


def order(lesson: str) -> list[str | Note]:
    """Return ORDER of a lesson: the ids of its tasks, and the cells between them."""
    return list(_OWN[lesson].order if lesson in _OWN else _main_file(lesson).ORDER)


def _in_order(tasks: Sequence[Task], listed: Sequence[str | Note]) -> list[Task]:
    there = {task.id: task for task in tasks}
    wanted = [each for each in listed if isinstance(each, str)]
    if strange := sorted({*wanted} ^ {*there}):
        raise ValueError(f"wanted the tasks of the lesson in ORDER, each once; got {', '.join(strange)} in one of the two alone")
    return [there[name] for name in wanted]


def _main_file(lesson: str) -> Any:
    """The module tasks.py of a lesson; None if it has none."""
    main = [name for name in numbers.lesson_modules("tasks", lesson) if name.endswith(".tasks")]
    return importlib.import_module(main[0]) if main else None


def _tasks_in(module: str) -> list[Task]:
    return [each for each in vars(importlib.import_module(module)).values() if isinstance(each, Task)]


@cache
def _lesson_tasks(lesson: str) -> tuple[Task, ...]:
    tasks = declared_tasks(lesson)
    wanted, got = numbers.names("tasks", lesson), [task.id for task in tasks]
    if sorted(wanted) != sorted(got):
        raise ValueError(
            f"the tasks of {lesson} must have the ids of its exercises, {wanted}; got {got}: attn-course notebooks build counts them"
        )
    return tuple(sorted((task for task in tasks if task.in_exercises), key=lambda task: wanted.index(task.id)))
