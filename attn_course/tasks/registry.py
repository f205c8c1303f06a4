"""Find tasks: the file tasks.py of each lesson holds them in its list TASKS."""

import importlib
from functools import cache

from attn_course import numbers
from attn_course.tasks.core import Task


class UnknownTask(ValueError):
    """There is no task of that id."""


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
    return numbers.lessons_with("tasks")


def declared_tasks(lesson: str) -> list[Task]:
    """Return TASKS of a lesson as its file lists them, those of its exercises and those that the lesson asks its reader."""
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
