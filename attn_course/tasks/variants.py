"""The numbers of a student: what a notebook prints of a task whose numbers differ from one student to the next."""

import sys
from typing import Any

from attn_course.tasks.registry import get_task


def shell() -> Any:
    """IPython's shell, if we are inside it, else None."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def student() -> str:
    """Return the id that the notebook gives its variable STUDENT; "" where there is none.

    Raises TypeError if it is no text.
    """
    names = getattr(shell(), "user_ns", {})
    found = names.get("STUDENT", "")
    if not isinstance(found, str):
        raise TypeError(f"STUDENT must be your id in quotation marks, such as 'ann'; got {found!r}")
    return found.strip()


def question(task_id: str) -> tuple[Any, ...]:
    """Print the numbers that a task has for this student, and return them in the same order.

    Raises ValueError if there is no such task, or if it has the same numbers for everybody.
    """
    key = student()
    task = get_task(task_id).variant(key)
    if not task.question_source:
        raise ValueError(f"task_id must name a task whose numbers differ; those of {task_id} are in its text or figure")
    print(f"{key}: " if key else "", ", ".join(f"{name} = {number}" for name, number in task.numbers.items()), sep="")
    return tuple(task.numbers.values())


def figure_data(task_id: str) -> dict[str, Any]:
    """Return what the figure of a figure task is drawn from; the exercise passes it on to a function of `figures`.

    Returns `data`: arguments of the figure, by name. Raises ValueError if there is no such task, or it is not about a figure.
    """
    task = get_task(task_id).variant(student())
    if task.figure_data is None:
        raise ValueError(f"task_id must name a figure task; task {task_id} is of the kind {task.kind!r}")
    return task.figure_data(**task.numbers)
