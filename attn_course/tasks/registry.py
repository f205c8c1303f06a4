"""Find tasks: the files tasks*.py of each lesson hold them, and ORDER, or TASKS, in tasks.py says in which order.

A folder of a teacher's own holds them in the list TASKS of its tasks.py.
"""

import importlib
import runpy
from functools import cache
from pathlib import Path
from typing import Any

from attn_course import numbers
from attn_course.tasks.core import Note, Task


class UnknownTask(ValueError):
    """There is no task of that id."""


class OwnTasksError(ValueError):
    """A folder does not hold a teacher's own tasks; the text is one line that names the file."""


_OWN: dict[str, tuple[Path, list[Task]]] = {}  # by slug


def add_own(folder: Path) -> str:
    """Add a teacher's own tasks: those of TASKS in the file tasks.py of a folder outside of the package.

    They make up a lesson behind all others, which is called like the folder and has no number. Adding it again changes nothing.

    Returns the lesson's slug.

    Raises OwnTasksError if there are none, or a name is one of the course's.
    """
    folder = folder.resolve()
    slug, path = folder.name, folder / "tasks.py"
    if slug in _OWN and _OWN[slug][0] == folder:
        return slug
    if not (slug.isascii() and slug.isidentifier() and slug.islower()) or slug in numbers.lessons():
        raise OwnTasksError(f"{folder}: wanted a folder whose name is a Python name in lower case and no lesson's; got {slug!r}")
    if not path.is_file():
        raise OwnTasksError(f"{path}: missing; wanted TASKS = [Task(...), ...]")
    try:
        tasks = runpy.run_path(str(path), run_name=f"{slug}.tasks").get("TASKS")
    except Exception as error:  # a teacher's file may fail in any way
        raise OwnTasksError(f"{path}: cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(tasks, list) or not tasks or not all(isinstance(task, Task) for task in tasks):
        raise OwnTasksError(f"{path}: wanted TASKS = [Task(...), ...]; got {'none' if not tasks else type(tasks).__name__}")
    ids = [task.id for task in tasks]
    for task in tasks:
        if ids.count(task.id) > 1 or numbers.lesson_of("tasks", task.id):
            raise OwnTasksError(f"{path}: wanted ids that no other task has; got {task.id!r} a second time")
        if len(task.variants) > 1:
            raise OwnTasksError(f"{path}: wanted the same numbers for all students; task {task.id!r} has variants")
    _OWN[slug] = folder, tasks
    numbers.add_lesson(slug, slug.replace("_", " ").capitalize(), ids)
    return slug


def own_exercises() -> dict[str, Path]:
    """Return where the exercises of the lessons that were added lie once they are built, by slug."""
    return {slug: folder / f"ex_{slug}.ipynb" for slug, (folder, _) in _OWN.items()}


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
    """Return the tasks of a lesson's exercises, or of all, in their order; what the lesson itself asks its reader is not among them."""
    return [task for slug in lessons() if lesson in (None, slug) for task in _lesson_tasks(slug)]


def lessons() -> list[str]:
    """Return the slugs of the lessons that have tasks, in their order."""
    return [*numbers.lessons_with("tasks"), *_OWN]


def declared_tasks(lesson: str) -> list[Task]:
    """Return the tasks of a lesson as its file lists them, those of its exercises and those that the lesson asks its reader.

    Raises ValueError if ORDER names a task that is not there, or does not name one that is.
    """
    if lesson in _OWN:
        return _OWN[lesson][1]
    main = _main_file(lesson)
    if main is None:
        return []
    listed = vars(main).get("TASKS")
    if listed is not None:
        return list(listed)
    there = {task.id: task for name in numbers.lesson_modules("tasks", lesson) for task in _tasks_in(name)}
    wanted = [each for each in order(lesson) if isinstance(each, str)]
    if strange := sorted({*wanted} ^ {*there}):
        raise ValueError(f"wanted the tasks of the lesson in ORDER, each once; got {', '.join(strange)} in one of the two alone")
    return [there[name] for name in wanted]


def order(lesson: str) -> list[str | Note]:
    """Return ORDER of a lesson: the ids of its tasks, and the cells between them."""
    return list(_main_file(lesson).ORDER)


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
    return tuple(sorted((task for task in tasks if not task.your_turn), key=lambda task: wanted.index(task.id)))
