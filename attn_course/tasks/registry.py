"""Find tasks: the file tasks.py of each lesson holds them in its list TASKS, and so does that in a folder of a teacher's own."""

import importlib
import runpy
from functools import cache
from pathlib import Path

from attn_course import numbers
from attn_course.tasks.core import Task


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
    """Return TASKS of a lesson as its file lists them, those of its exercises and those that the lesson asks its reader."""
    if lesson in _OWN:
        return _OWN[lesson][1]
    main = [name for name in numbers.lesson_modules("tasks", lesson) if name.endswith(".tasks")]
    return list(importlib.import_module(main[0]).TASKS) if main else []


@cache
def _lesson_tasks(lesson: str) -> tuple[Task, ...]:
    tasks = declared_tasks(lesson)
    wanted, got = numbers.names("tasks", lesson), [task.id for task in tasks]
    if sorted(wanted) != sorted(got):
        raise ValueError(
            f"TASKS of {lesson} must have the ids of its exercises, {wanted}; got {got}: attn-course notebooks build counts them"
        )
    return tuple(sorted((task for task in tasks if not task.your_turn), key=lambda task: wanted.index(task.id)))
